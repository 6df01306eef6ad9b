#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "mods/lang/captured.h"

/// What the masks and mods refuse, said in one way.
namespace attn {

/// What an axis of a table must be.
struct ExpectedAxis {
  enum class Rule { one_or, at_least, exactly };  ///< extent 1, or `length`; that or more; that
  Rule rule;                                      ///< how the extent is compared
  const char* name;                               ///< of the length, for messages: "Sq"
  std::int64_t length;                            ///< in elements
  /// Whether an axis of this extent is as expected.
  bool accepts(std::int64_t extent) const {
    if (rule == Rule::one_or) return extent == 1 || extent == length;
    return rule == Rule::at_least ? extent >= length : extent == length;
  }
  std::string text() const {  /// for messages: "at least Sq = 64"
    const char* word = rule == Rule::one_or ? "1 or " : rule == Rule::at_least ? "at least " : "";
    return word + std::string(name) + " = " + std::to_string(length);
  }
};
/// 1, which broadcasts, or the length.
inline ExpectedAxis one_or(const char* name, std::int64_t length) {
  return {ExpectedAxis::Rule::one_or, name, length};
}
/// The length or more.
inline ExpectedAxis at_least(const char* name, std::int64_t length) {
  return {ExpectedAxis::Rule::at_least, name, length};
}
/// The length.
inline ExpectedAxis exactly(const char* name, std::int64_t length) {
  return {ExpectedAxis::Rule::exactly, name, length};
}

/// @throws std::invalid_argument if an axis of the table is not as expected; `of` is the mask or
///     mod, `table` its argument.
template <int Rank, class T, class... Axes>
void check_table(const char* of, const char* table, const Captured<Rank, T>& captured,
                 const Axes&... axes) {
  static_assert(sizeof...(Axes) == Rank, "one expectation an axis");
  const std::array<ExpectedAxis, Rank> expected{axes...};
  bool fits = true;
  std::string text;
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    fits = fits && expected[axis].accepts(captured.tensor.extents[axis]);
    text += (axis ? ", " : "") + expected[axis].text();
  }
  if (!fits)
    throw std::invalid_argument(std::string(of) + ": " + table + " has shape " +
                                shape_string(captured.tensor.extents) + ", expected [" + text +
                                "]");
}

/// @throws std::invalid_argument if `value` is below `least`.
inline void check_at_least(const char* of, const char* argument, std::int64_t value,
                           std::int64_t least) {
  if (value < least)
    throw std::invalid_argument(std::string(of) + ": " + argument + " = " + std::to_string(value) +
                                ", expected " + std::to_string(least) + " or more");
}

/// A table of one row, seen as [1, n]: the same for every batch entry or head.
template <class T>
Captured<2, T> one_row(const Captured<1, T>& table) {
  return Captured<2, T>(
      TensorView<const T, 2>{
          table.tensor.data, {1, table.tensor.extents[0]}, {0, table.tensor.strides[0]}},
      table.name);
}

}  // namespace attn
