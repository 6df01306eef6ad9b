#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/case.h"
#include "fuzz/pass_inputs.h"
#include "fuzz/stored_tensor.h"
#include "mods/lang/environments.h"
#include "optimized/implementations.h"

namespace attn::fuzz {

/// An output tensor and where its rows lie.
struct StoredOutput {
  std::string name;               ///< "O", "LSE", "row max"; "dQ", "dK", "dV", "d slope", "dSink"
  StoredTensor tensor;            ///< as the kernel writes it
  StoredTensor::Shape extents{};  ///< of the logical tensor
  RowPlaces rows;                 ///< empty: the logical tensor is the stored one

  /// The logical tensor [B, H, S, X]; rows that no sequence has are 0.
  Tensor<double, 4> load() const {
    return rows.empty() ? tensor.load() : tensor.load(extents, rows);
  }
};

/// The tensors of one case in poisoned memory, as its layout and its sequences say: dense, packed
/// one after another, in caches longer than what they hold, or in pages of any order.
class StoredPass {
 public:
  /// `captured`: the floating tensors that the mod reads; their gradients are outputs of a backward
  /// pass. Outputs are poisoned.
  StoredPass(const Case& c, const Implementation& implementation,
             const std::vector<CapturedTensor>& captured);
  /// Writes Q, K, V and, of a backward pass, dO and dLSE.
  void store(const PassInputs& in);
  /// O and LSE, which a backward pass reads.
  void store_forward_result(const Tensor<double, 4>& o_values, const Tensor<double, 3>& lse_values);
  /// What the kernel is to write, in a fixed order.
  std::vector<StoredOutput> outputs() const;

  /// As the kernel's call has them; those of the other pass are empty.
  StoredTensor q, k, v, o, lse, row_max, d_o, d_lse, dq, dk, dv, d_sink;
  std::vector<StoredTensor> d_captured;   ///< fp32, contiguous, one a captured tensor
  std::vector<std::int32_t> cu_q, cu_kv;  ///< packed
  std::vector<std::int32_t> lengths;      ///< caches
  /// [B, pages a sequence may have]; empty if the case is not paged.
  TensorView<const std::int32_t, 2> page_table() const;

 private:
  using Shape = StoredTensor::Shape;
  struct KeysAndValues {
    StoredTensor q, k, v;
  };
  void lay_out_sequences(Sequences how);
  void lay_out_pages();
  KeysAndValues make_inputs_of_layout(const char* q_name, const char* k_name, const char* v_name,
                                      Layout layout) const;

  Case c_;
  Pass pass_;
  RowPlaces query_rows_, key_rows_;
  Shape q_shape_{}, k_shape_{};  ///< [entries, heads, rows, D] as stored
  std::vector<std::int32_t> pages_;
  std::int64_t pages_per_row_ = 0, page_stride_ = 0;
};

}  // namespace attn::fuzz
