#pragma once

#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "mods/lang/host_device.h"
#include "mods/lang/number.h"

namespace attn {

/// The lengths that a mod or mask may ask for. In packed sequences and in decode `sq` and `skv` are
/// those of the sequence at hand, and `q_start`, `kv_start` where it starts in the packed axis.
struct Sizes {
  int b = 0, hq = 0, hkv = 0, sq = 0, skv = 0;  ///< B, Hq, Hkv, Sq, Skv
  int q_start = 0, kv_start = 0;  ///< rows of the packed axes; 0 if not packed
  int q_offset = 0;  ///< the index q of row 0; in decode Skv - Sq: a step is a row of the whole
};

/// A whole number that knows the environment it lives in: what mods and masks receive as b, h, q
/// and kv. `Env` fixes the number types (`Int`, `Score`) and performs every captured read, so that
/// one functor text is exact in the reference, checked on the CPU engines and plain on the GPU.
///
/// Arithmetic among indices and integers stays an index; with a score it becomes a score.
template <class Env>
struct Index {
  typename Env::Int value;  ///< b, h, q or kv, or what was made of them
  Env* env;                 ///< shared by the indices of one call, and outlives them

  ATTN_INLINE auto score() const { return env->to_score(value); }  ///< as a score
};

/// True for `Index` of any environment.
template <class X>
inline constexpr bool is_index = false;
/// As it says.
template <class Env>
inline constexpr bool is_index<Index<Env>> = true;

/// What may stand beside an index and turns it into a score.
template <class X>
concept score_operand = !std::integral<X> && !is_index<X>;

/// The lengths of the problem that this index belongs to.
template <class Env>
ATTN_INLINE const Sizes& sizes(const Index<Env>& i) {
  return i.env->sizes;
}

#define ATTN_INDEX_ARITHMETIC(op)                                                          \
  template <class Env>                                                                     \
  ATTN_INLINE Index<Env> operator op(const Index<Env>& a, const Index<Env>& b) {           \
    return {a.value op b.value, a.env};                                                    \
  }                                                                                        \
  template <class Env, std::integral T>                                                    \
  ATTN_INLINE Index<Env> operator op(const Index<Env>& a, T b) {                           \
    return {a.value op static_cast<std::int32_t>(b), a.env};                               \
  }                                                                                        \
  template <class Env, std::integral T>                                                    \
  ATTN_INLINE Index<Env> operator op(T a, const Index<Env>& b) {                           \
    return {static_cast<std::int32_t>(a) op b.value, b.env};                               \
  }
#define ATTN_INDEX_WITH_SCORE(op)                                                          \
  template <class Env, score_operand S>                                                    \
  ATTN_INLINE auto operator op(const Index<Env>& a, const S& b) {                          \
    return a.score() op b;                                                                 \
  }                                                                                        \
  template <class Env, score_operand S>                                                    \
  ATTN_INLINE auto operator op(const S& a, const Index<Env>& b) {                          \
    return a op b.score();                                                                 \
  }
#define ATTN_INDEX_COMPARISON(op)                                                          \
  template <class Env>                                                                     \
  ATTN_INLINE auto operator op(const Index<Env>& a, const Index<Env>& b) {                 \
    return a.value op b.value;                                                             \
  }                                                                                        \
  template <class Env, std::integral T>                                                    \
  ATTN_INLINE auto operator op(const Index<Env>& a, T b) {                                 \
    return a.value op static_cast<std::int32_t>(b);                                        \
  }                                                                                        \
  template <class Env, std::integral T>                                                    \
  ATTN_INLINE auto operator op(T a, const Index<Env>& b) {                                 \
    return static_cast<std::int32_t>(a) op b.value;                                        \
  }

ATTN_INDEX_ARITHMETIC(+)
ATTN_INDEX_ARITHMETIC(-)
ATTN_INDEX_ARITHMETIC(*)
ATTN_INDEX_WITH_SCORE(+)
ATTN_INDEX_WITH_SCORE(-)
ATTN_INDEX_WITH_SCORE(*)
ATTN_INDEX_WITH_SCORE(/)
ATTN_INDEX_COMPARISON(<)
ATTN_INDEX_COMPARISON(<=)
ATTN_INDEX_COMPARISON(>)
ATTN_INDEX_COMPARISON(>=)
ATTN_INDEX_COMPARISON(==)
ATTN_INDEX_COMPARISON(!=)
ATTN_INDEX_WITH_SCORE(<)
ATTN_INDEX_WITH_SCORE(<=)
ATTN_INDEX_WITH_SCORE(>)
ATTN_INDEX_WITH_SCORE(>=)
ATTN_INDEX_WITH_SCORE(==)
ATTN_INDEX_WITH_SCORE(!=)
#undef ATTN_INDEX_WITH_SCORE
#undef ATTN_INDEX_COMPARISON

/// `/` and `%` truncate as in C++.
/// @throws std::invalid_argument on the host if the divisor is zero.
template <class A, class B>
ATTN_INLINE void check_divisor([[maybe_unused]] const A& a, [[maybe_unused]] const B& b) {
#if !defined(__CUDA_ARCH__)
  if constexpr (std::integral<A> && std::integral<B>)
    if (b == 0) throw std::invalid_argument("divisor: 0 in index arithmetic, expected not zero");
#endif
}
#define ATTN_INDEX_DIVISION(op)                                                            \
  template <class Env>                                                                     \
  ATTN_INLINE Index<Env> operator op(const Index<Env>& a, const Index<Env>& b) {           \
    check_divisor(a.value, b.value);                                                       \
    return {a.value op b.value, a.env};                                                    \
  }                                                                                        \
  template <class Env, std::integral T>                                                    \
  ATTN_INLINE Index<Env> operator op(const Index<Env>& a, T b) {                           \
    return a op Index<Env>{typename Env::Int(static_cast<std::int32_t>(b)), a.env};        \
  }                                                                                        \
  template <class Env, std::integral T>                                                    \
  ATTN_INLINE Index<Env> operator op(T a, const Index<Env>& b) {                           \
    return Index<Env>{typename Env::Int(static_cast<std::int32_t>(a)), b.env} op b;        \
  }
ATTN_INDEX_DIVISION(/)
ATTN_INDEX_DIVISION(%)
#undef ATTN_INDEX_DIVISION
#undef ATTN_INDEX_ARITHMETIC

/// Minus an index is an index.
template <class Env>
ATTN_INLINE Index<Env> operator-(const Index<Env>& a) {
  return {-a.value, a.env};
}

/// As `select`, of two indices.
template <class C, class Env>
ATTN_INLINE Index<Env> number_select(const C& c, const Index<Env>& a, const Index<Env>& b) {
  return {typename Env::Int(attn::select(c, a.value, b.value)), a.env};
}
/// The same with a constant.
template <class C, class Env, std::integral T>
ATTN_INLINE Index<Env> number_select(const C& c, const Index<Env>& a, T b) {
  return number_select(c, a, Index<Env>{typename Env::Int(static_cast<std::int32_t>(b)), a.env});
}
/// The same with a constant.
template <class C, class Env, std::integral T>
ATTN_INLINE Index<Env> number_select(const C& c, T a, const Index<Env>& b) {
  return number_select(c, Index<Env>{typename Env::Int(static_cast<std::int32_t>(a)), b.env}, b);
}
/// As `select`, of an index and a score: a score.
template <class C, class Env, score_operand S>
ATTN_INLINE auto number_select(const C& c, const Index<Env>& a, const S& b) {
  return attn::select(c, a.score(), b);
}
/// As `select`, of a score and an index: a score.
template <class C, class Env, score_operand S>
ATTN_INLINE auto number_select(const C& c, const S& a, const Index<Env>& b) {
  return attn::select(c, a, b.score());
}

/// `floor_div` of the values, so that a range answers by its own, exact rule.
template <class Env>
ATTN_INLINE Index<Env> number_floor_div(const Index<Env>& a, const Index<Env>& b) {
  check_divisor(a.value, b.value);
  return {typename Env::Int(attn::floor_div(a.value, b.value)), a.env};
}
/// `floor_mod` of the values, for the same reason.
template <class Env>
ATTN_INLINE Index<Env> number_floor_mod(const Index<Env>& a, const Index<Env>& b) {
  check_divisor(a.value, b.value);
  return {typename Env::Int(attn::floor_mod(a.value, b.value)), a.env};
}
/// `max` of the values, for the same reason.
template <class Env>
ATTN_INLINE Index<Env> number_max(const Index<Env>& a, const Index<Env>& b) {
  return {typename Env::Int(attn::max(a.value, b.value)), a.env};
}
/// `min` of the values, for the same reason.
template <class Env>
ATTN_INLINE Index<Env> number_min(const Index<Env>& a, const Index<Env>& b) {
  return {typename Env::Int(attn::min(a.value, b.value)), a.env};
}
#define ATTN_INDEX_WITH_INTEGER(name)                                                      \
  template <class Env, std::integral T>                                                    \
  ATTN_INLINE Index<Env> name(const Index<Env>& a, T b) {                                  \
    return name(a, Index<Env>{typename Env::Int(static_cast<std::int32_t>(b)), a.env});    \
  }                                                                                        \
  template <class Env, std::integral T>                                                    \
  ATTN_INLINE Index<Env> name(T a, const Index<Env>& b) {                                  \
    return name(Index<Env>{typename Env::Int(static_cast<std::int32_t>(a)), b.env}, b);    \
  }
ATTN_INDEX_WITH_INTEGER(number_floor_div)
ATTN_INDEX_WITH_INTEGER(number_floor_mod)
ATTN_INDEX_WITH_INTEGER(number_max)
ATTN_INDEX_WITH_INTEGER(number_min)
#undef ATTN_INDEX_WITH_INTEGER

/// |i| stays an index; every other elementary function takes the index as a score.
template <class F, class Env>
ATTN_INLINE auto number_apply(F f, const Index<Env>& i) {
  if constexpr (std::same_as<F, Abs>)
    return attn::select(i.value < 0, -i, i);
  else
    return attn::apply(f, i.score());
}

}  // namespace attn
