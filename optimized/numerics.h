#pragma once

#include "mods/lang/storage.h"

namespace attn {

/// What an implementation is allowed to round, and nothing else: the oracle derives its error bound
/// from this record. A kernel that rounds less always passes; loosening a record is a reviewed
/// change. Errors are relative unless stated.
struct Numerics {
  DType storage = DType::bf16;  ///< of Q, K, V, O, dO and their gradients
  /// Of every number that enters a product, besides what it lost by being stored: TF32 has 10 bits.
  double input_rounding = 0;
  double score_rounding = 0;        ///< of the raw score; 0: kept in fp32
  double probability_rounding = 0;  ///< of exp(t - running max) before the product with V, and of P
                                    ///< before dV = P^T dO
  double gradient_rounding = 0;     ///< of dS before the products with K and Q
  double exp_rounding = 0x1p-22;    ///< of one exponential (ex2.approx: 2 ulp)
  bool tensor_core = true;          ///< products may be summed with truncation, 16 at a time
  bool delta_from_stored_o = true;  ///< delta = dot(dO, O) takes O as it was stored
  int most_splits = 1;              ///< parts of a row that are merged by their LSE, at most
};

/// The contract of the flash kernels: scores, sums and O are fp32; P and dS are rounded to the
/// storage type for the tensor core; the row sum is taken from the unrounded P.
constexpr Numerics flash_numerics(DType storage) {
  return {.storage = storage,
          .probability_rounding = unit_roundoff(storage),
          .gradient_rounding = unit_roundoff(storage)};
}

}  // namespace attn
