#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "mods/lang/tables.h"

namespace attn::fuzz {

/// A table on its way into a captured tensor of the user's struct: it becomes one of the rank and
/// the element type that the struct asks for.
struct TableArgument {
  const Tables& tables;  ///< of the case, in the order in which they were declared
  std::size_t number;    ///< which of them the captured tensor is made from, from 0 on

  /// @throws std::invalid_argument if there is no such table, or it is of another rank or type.
  template <int Rank, class T>
  operator Captured<Rank, T>() const {
    constexpr bool held =
        std::is_same_v<T, float> || std::is_same_v<T, std::int32_t> || std::is_same_v<T, bool>;
    static_assert(held, "tables hold float, std::int32_t or bool: so must a captured tensor here");
    if (number >= tables.all().size())
      throw std::invalid_argument(fmt::format(
          "--table: {} given, expected at least {}: one for each captured tensor of the struct, in "
          "the order of its members",
          tables.all().size(), number + 1));
    const Table& t = tables.all()[number];
    if (t.rank != Rank || t.type != value_type_of<T>)
      throw std::invalid_argument(fmt::format(
          "--table {}: holds {} of rank {}, expected {} of rank {}: captured tensor {} "
          "of the struct",
          t.name, name_of(t.type), t.rank, name_of(value_type_of<T>), Rank, number + 1));
    return t.captured<Rank, T>();
  }
};

namespace detail {

template <class F, bool has_base, std::size_t... n>
constexpr bool made_of(std::index_sequence<n...>) {
  if constexpr (has_base)  // an empty base such as MaskBase comes first
    return requires(TableArgument a) { F{{}, ((void)n, a)...}; };
  else
    return requires(TableArgument a) { F{((void)n, a)...}; };
}
/// How many captured tensors the struct begins with.
template <class F, bool has_base, std::size_t most = max_table_rank * 2>
constexpr std::size_t leading_captured() {
  if constexpr (most == 0)
    return 0;
  else if constexpr (made_of<F, has_base>(std::make_index_sequence<most>{}))
    return most;
  else
    return leading_captured<F, has_base, most - 1>();
}

template <class F, bool has_base, std::size_t... n>
F bound_to(const Tables& tables, std::size_t first, std::index_sequence<n...>) {
  if constexpr (has_base)
    return F{{}, TableArgument{tables, first + n}...};
  else
    return F{TableArgument{tables, first + n}...};
}

}  // namespace detail

/// The number of captured tensors that a mod or mask of type F is made of: its first members
/// (behind an empty base), or the arguments of its constructor.
template <class F>
inline constexpr std::size_t captured_count = std::max(detail::leading_captured<F, false>(),
                                                       detail::leading_captured<F, true>());

/// F on tables, from number `first` on, in the order of its members; members after the captured
/// tensors keep their own values.
template <class F>
F bound_to_tables(const Tables& tables, std::size_t first) {
  constexpr bool has_base = detail::leading_captured<F, false>() < captured_count<F>;
  return detail::bound_to<F, has_base>(tables, first,
                                       std::make_index_sequence<captured_count<F>>{});
}

}  // namespace attn::fuzz
