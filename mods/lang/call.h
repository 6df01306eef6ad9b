#pragma once

#include <type_traits>
#include <utility>

#include "mods/lang/index.h"

namespace attn {

/// True for an operator that is one plain function, such as
/// `float operator()(float s, int b, int h, int q, int kv) const`.
template <class F>
inline constexpr bool is_plain_functor = requires {
  &F::operator();
};

namespace detail {
template <class Env>
inline constexpr bool runs_scalars = requires {
  Env::each([](int i) { return i; }, 0);
};
/// Ranges do not run plain score mods, but they do run plain masks: undecided beyond one element.
template <class Env>
inline constexpr bool runs_scalar_masks = requires {
  Env::each([](int) { return true; }, 0);
};
}  // namespace detail

/// Calls a score mod. A templated operator runs on the environment's own numbers; a plain one (or
/// one constrained to scalar numbers) is applied element by element.
template <class Mod, class Score, class Env>
ATTN_INLINE auto call_mod(const Mod& mod, const Score& s, Index<Env> b, Index<Env> h, Index<Env> q,
                          Index<Env> kv) {
  if constexpr (!is_plain_functor<Mod> && std::is_invocable_v<const Mod&, Score, Index<Env>,
                                                              Index<Env>, Index<Env>, Index<Env>>) {
    return mod(s, b, h, q, kv);
  } else {
    static_assert(detail::runs_scalars<Env>,
                  "this score mod takes scalars only, so it has no derivative, range or error "
                  "bound: make its operator a template on Score and Index");
    return Env::each(
        [&mod](auto x, auto ib, auto ih, auto iq, auto ikv) { return mod(x, ib, ih, iq, ikv); }, s,
        b.value, h.value, q.value, kv.value);
  }
}

/// True where the mask's operator takes the numbers of `Env`; false where it takes scalars only.
template <class Mask, class Env>
inline constexpr bool mask_runs_on =
    !is_plain_functor<Mask> &&
    std::is_invocable_v<const Mask&, Index<Env>, Index<Env>, Index<Env>, Index<Env>>;

/// Calls a mask; see `call_mod`.
template <class Mask, class Env>
ATTN_INLINE auto call_mask(const Mask& mask, Index<Env> b, Index<Env> h, Index<Env> q,
                           Index<Env> kv) {
  if constexpr (mask_runs_on<Mask, Env>) {
    return mask(b, h, q, kv);
  } else if constexpr (detail::runs_scalar_masks<Env>) {
    return Env::each([&mask](auto ib, auto ih, auto iq, auto ikv) { return mask(ib, ih, iq, ikv); },
                     b.value, h.value, q.value, kv.value);
  } else {
    static_assert(detail::runs_scalar_masks<Env>,
                  "this mask takes scalars only: make its operator a template on Index");
  }
}

}  // namespace attn
