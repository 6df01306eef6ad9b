#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fuzz/expectation.h"
#include "fuzz/file_problem.h"
#include "fuzz/safetensors.h"
#include "fuzz/verdict.h"

namespace attn::fuzz {

/// How the program that wrote the outputs may round. Sums are fp32, and outputs are rounded to the
/// storage type, in each; weights may be divided by their sum before or after they meet V, and
/// delta = dot(dO, O) may take O as it was stored, or as it was before.
enum class Rounds {
  flash,  ///< P and dS to the storage type, before they are multiplied
  fp32,   ///< nothing else
  tf32,   ///< both operands of every product to 11 bits
  eager,  ///< every tensor: the product, the scaled and the modified score, the normalised P.
          ///< Forward only: no bound is known for gradients.
};
/// @throws std::invalid_argument if there is none of that name.
Rounds parse_rounds(const std::string& name);
/// The same as the oracle takes it. Of `eager` that is but a part: `forward_expectation` lets the
/// mod round, too.
Numerics numerics_of(Rounds rounds, DType storage);
/// @throws std::invalid_argument if no bound is known for the problem.
void check_rounds(const FileProblem& p, Rounds rounds);

/// What the outputs should hold: O, LSE and the row maxima; of a backward pass that is given
/// `given`, then the gradients.
Expectation forward_expectation(const FileProblem& p, Rounds rounds, BoundKind kind);
/// @throws std::invalid_argument as check_rounds
Expectation backward_expectation(const FileProblem& p, const StoredForwardResult& given,
                                 Rounds rounds, BoundKind kind);

/// The tensors that a program wrote, beside what they should hold.
struct JudgedOutputs {
  Expectation expected;                ///< of the outputs that are there
  std::vector<Tensor<double, 4>> got;  ///< in the order of `expected.outputs`
};

/// What a file of outputs came to.
struct FileVerdict {
  std::vector<std::string> missing;  ///< required outputs that are not there
  Verdict verdict;                   ///< on those that are
  JudgedOutputs outputs;             ///< what was judged
  std::string looks_like;            ///< of a discrepancy: known faults with this pattern
};

/// Judges every output that is in the file: `o lse row_max`, of a backward pass also `dq dk dv`,
/// `d_sink` and `d_NAME` for a floating table that the mod reads. A backward pass is held to the O
/// and LSE beside it where these are right, else to those of the problem.
/// @throws std::invalid_argument if an output has another shape or dtype, or there is none.
FileVerdict judge_outputs(const FileProblem& p, const Safetensors& outputs, Rounds rounds,
                          const std::vector<std::string>& required);

/// "dK" is "dk" in a file, "d slope" is "d_slope".
std::string file_name_of(const ExpectedOutput& output);

}  // namespace attn::fuzz
