#pragma once

#include "mods/lang/storage.h"

namespace attn {

/// What an implementation is allowed to round, and nothing else: the oracle derives its error bound
/// from this record. A kernel that rounds less always passes; loosening a record is a reviewed
/// change. Errors are relative unless stated.
struct Numerics {
  DType storage = DType::bf16;      ///< of Q, K, V and O
  double score_rounding = 0;        ///< of the raw score; 0: kept in fp32
  double probability_rounding = 0;  ///< of exp(t - running max) before the product with V
  double exp_rounding = 0x1p-22;    ///< of one exponential (ex2.approx: 2 ulp)
  bool tensor_core = true;          ///< products may be summed with truncation, 16 at a time
};

/// The contract of the flash kernels: scores, sums and O are fp32, P is rounded to the storage type
/// for the tensor core, the row sum is taken from the unrounded P.
constexpr Numerics flash_numerics(DType storage) {
  return {.storage = storage, .probability_rounding = unit_roundoff(storage)};
}

}  // namespace attn
