#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "masks/check.h"
#include "mods/check.h"
#include "mods/lang/call.h"
#include "mods/lang/environments.h"
#include "mods/lang/storage.h"
#include "mods/lang/tensor.h"

/// The contract in code: what a valid attention problem is. Every check throws
/// `std::invalid_argument`, before any work, with the argument, its shape or value and what was
/// expected.
namespace attn {

/// Dropout of the probabilities: a pair is dropped with probability p, and a kept one weighs
/// 1 / (1 - p) times as much. Which pairs are dropped depends on the seed and on b, h, i, j alone.
struct Dropout {
  double p = 0;            ///< 0 <= p < 1
  std::uint64_t seed = 0;  ///< the key of Philox
};

/// What a caller may choose beside the tensors, the mod and the mask.
struct Options {
  std::optional<double> scale{};  ///< of the dot products; default 1/sqrt(D), any finite value
  /// Attention sink [Hq]: one more logit in the softmax of each query head, which has no value.
  std::optional<TensorView<const float, 1>> sink{};
  Dropout dropout{};  ///< p = 0: none
};

/// A tensor view without its element type: what the checks look at. Rank 3 or 4.
struct TensorInfo {
  const char* name = "";                             ///< the argument, for messages
  const void* data = nullptr;                        ///< null: there is no tensor
  DType dtype = DType::f32;                          ///< of its elements
  int rank = 4;                                      ///< 3 or 4
  std::array<std::int64_t, 4> extents{}, strides{};  ///< in elements; the first `rank` count

  bool empty() const;         ///< an extent is 0: there are no elements
  std::string shape() const;  ///< "[2, 4, 128, 64]"
};

/// A view without its element type, for checks and messages.
template <class T, int Rank>
TensorInfo describe(const char* name, const TensorView<T, Rank>& view) {
  using Element = std::remove_const_t<T>;
  static_assert(is_floating_storage<Element>, "tensors hold double, float, half or bfloat16");
  static_assert(Rank == 3 || Rank == 4, "tensors of a problem have rank 3 or 4");
  TensorInfo info{name, view.data, dtype_of<Element>, Rank, {}, {}};
  for (int axis = 0; axis < Rank; ++axis) {
    info.extents[axis] = view.extents[axis];
    info.strides[axis] = view.strides[axis];
  }
  return info;
}

/// The sizes of one valid attention problem; symbols as in the contract.
struct Problem {
  int b = 0;                 ///< B, batch
  int hq = 0;                ///< Hq, query heads
  int hkv = 0;               ///< Hkv, key/value heads
  int sq = 0;                ///< Sq, queries
  int skv = 0;               ///< Skv, keys
  int d = 0;                 ///< D, head size of Q and K
  int dv = 0;                ///< Dv, head size of V and O
  double scale = 1;          ///< s = scale * dot(q, k)
  DType dtype = DType::f32;  ///< of Q, K and V

  /// G, the query heads that share a key/value head: query head h reads key/value head h / G.
  int group() const { return hkv == 0 ? 1 : hq / hkv; }
  /// What mods and masks may ask for.
  Sizes sizes() const { return {b, hq, hkv, sq, skv, 0, 0}; }
  /// True when no pair of a query and a key exists.
  bool has_no_pair() const { return b == 0 || hq == 0 || sq == 0 || skv == 0; }
  std::array<std::int64_t, 4> q_extents() const { return {b, hq, sq, d}; }     ///< of Q and dQ
  std::array<std::int64_t, 4> k_extents() const { return {b, hkv, skv, d}; }   ///< of K and dK
  std::array<std::int64_t, 4> v_extents() const { return {b, hkv, skv, dv}; }  ///< of V and dV
  std::array<std::int64_t, 4> o_extents() const { return {b, hq, sq, dv}; }    ///< of O and dO
  std::array<std::int64_t, 3> lse_extents() const { return {b, hq, sq}; }      ///< of LSE and dLSE
};

/// Checks q [B, Hq, Sq, D], k [B, Hkv, Skv, D], v [B, Hkv, Skv, Dv] and the options.
/// Zero sizes are valid, but D = 0 is not and Hkv = 0 needs Hq = 0; Hq is a multiple of Hkv.
/// @throws std::invalid_argument
Problem make_problem(const TensorInfo& q, const TensorInfo& k, const TensorInfo& v,
                     const Options& options = {});

/// The same for views.
template <class T>
Problem make_problem(TensorView<const T, 4> q, TensorView<const T, 4> k, TensorView<const T, 4> v,
                     const Options& options = {}) {
  return make_problem(describe("q", q), describe("k", k), describe("v", v), options);
}

/// As make_problem, for K and V in pages: k [pages, Hkv, page_size, D], v [pages, Hkv, page_size,
/// Dv], pages of at least one slot, and page_table [B, max_pages]. Skv of the problem is the
/// capacity max_pages * page_size.
/// @throws std::invalid_argument
Problem make_paged_problem(const TensorInfo& q, const TensorInfo& k, const TensorInfo& v,
                           TensorView<const std::int32_t, 2> page_table,
                           const Options& options = {});

/// For an implementation that has neither a sink nor dropout: refuses both.
/// @throws std::invalid_argument
void refuse_sink_and_dropout(const Options& options, const char* implementation);

/// Checks that a further input or an output has the shape that the problem gives it, and memory.
/// @throws std::invalid_argument
void check_tensor(const TensorInfo& tensor, std::span<const std::int64_t> expected);

/// Checks that the outputs can be written: no two elements of one output share memory, and no
/// output shares memory with an input or with another output. Exact: views that interleave in one
/// buffer, such as packed dQ, dK, dV, pass.
/// @throws std::invalid_argument
void check_outputs(std::span<const TensorInfo> outputs, std::span<const TensorInfo> inputs);

/// True when two elements of the view share memory, as along an axis of stride 0.
/// `extents` and `strides` have one entry an axis.
bool shares_memory_with_itself(std::span<const std::int64_t> extents,
                               std::span<const std::int64_t> strides);

/// Runs a score mod or a mask on a whole index box at once: the batches or sequences `b`, all
/// heads, all rows from q_offset on, all keys. So index arithmetic that could leave 32 bits, or a
/// divisor that could be zero, is refused before any work. Functors on plain scalars cannot be
/// asked and pass.
/// @throws std::invalid_argument
template <class Functor>
void check_index_arithmetic(const Functor& functor, const Sizes& sizes, Range<std::int64_t> b) {
  using I = Index<RangeEnv>;
  constexpr bool is_mod = std::is_invocable_v<const Functor&, RangeEnv::Score, I, I, I, I>;
  constexpr bool is_mask = std::is_invocable_v<const Functor&, I, I, I, I>;
  if constexpr (!is_plain_functor<Functor> && (is_mod || is_mask)) {
    if (sizes.b == 0 || sizes.hq == 0 || sizes.sq == 0 || sizes.skv == 0) return;
    RangeEnv env{sizes};
    const auto span = [&env](std::int64_t first, int extent) {
      return I{RangeEnv::Int(first, first + extent - 1), &env};
    };
    const I batch{b, &env}, h = span(0, sizes.hq), q = span(sizes.q_offset, sizes.sq),
                            kv = span(0, sizes.skv);
    try {
      if constexpr (is_mod)
        (void)functor(RangeEnv::Score(-infinity, infinity), batch, h, q, kv);
      else
        (void)functor(batch, h, q, kv);
    } catch (const std::invalid_argument& refusal) {
      throw std::invalid_argument((is_mod ? "score mod: " : "mask: ") +
                                  std::string(refusal.what()));
    }
  }
}
/// The same over the whole problem.
template <class Functor>
void check_index_arithmetic(const Functor& functor, const Problem& problem) {
  check_index_arithmetic(functor, problem.sizes(), {0, std::int64_t{problem.b} - 1});
}

/// Everything that is asked of a mod and a mask before any work: that they fit the problem and
/// that their index arithmetic is safe in it.
/// @throws std::invalid_argument
template <class Mod, class Mask>
void check_functors(const Mod& mod, const Mask& mask, const Problem& problem) {
  check_mod(mod, problem.sizes());
  check_mask(mask, problem.sizes());
  check_index_arithmetic(mod, problem);
  check_index_arithmetic(mask, problem);
}

}  // namespace attn
