#pragma once

#include <utility>
#include <vector>

#include "reference/dropout.h"
#include "reference/row_block.h"
#include "reference/sequences.h"
#include "reference/sink.h"

namespace attn::reference {

/// The fp64 values of a problem's inputs.
struct Inputs {
  Tensor4 q;  ///< [B, Hq, Sq, D]
  Tensor4 k;  ///< [B, Hkv, Skv, D]
  Tensor4 v;  ///< [B, Hkv, Skv, Dv]
};

/// What the passes work on: checked inputs, and the sequences in them. However K and V were stored,
/// the keys of a sequence are consecutive rows here.
struct Batch {
  Batch(const Problem& problem, Inputs inputs, std::vector<Sequence> sequences_in_it,
        const Options& options)
      : in(std::move(inputs)),
        sequences(std::move(sequences_in_it)),
        scale(problem.scale),
        group(problem.group()),
        sink(sinks(options, problem.hq)),
        dropout(options.dropout) {}

  Inputs in;                        ///< Q, K and V as fp64
  std::vector<Sequence> sequences;  ///< in order of b
  double scale;                     ///< of Q K^T
  int group;                        ///< G: query head h reads key/value head h / G
  std::vector<Sink> sink;           ///< [Hq]
  DropoutFactors dropout;           ///< of the probabilities
};

}  // namespace attn::reference
