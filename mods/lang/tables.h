#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "mods/lang/captured.h"
#include "mods/lang/expression.h"
#include "mods/lang/tensor.h"

namespace attn {

/// What the parser knows of a table: it has no memory yet.
struct TableDeclaration {
  std::string name;                  ///< as expressions read it
  int rank = 1;                      ///< 1 to 4
  ValueType type = ValueType::real;  ///< of its entries
};

/// What a table of this element type holds: float reals, int32 indices, bool conditions.
template <class T>
inline constexpr ValueType value_type_of = std::is_same_v<T, float>          ? ValueType::real
                                           : std::is_same_v<T, std::int32_t> ? ValueType::index
                                                                             : ValueType::condition;

/// A table bound to memory, which stays the caller's.
struct Table {
  std::string name;                  ///< as expressions read it
  ValueType type = ValueType::real;  ///< of its entries
  int rank = 1;                      ///< 1 to 4
  const void* data = nullptr;        ///< float, std::int32_t or bool, by `type`
  std::array<std::int64_t, max_table_rank> extents{}, strides{};  ///< in elements; `rank` of them

  /// The same memory as a captured tensor; `name` must outlive it.
  template <int Rank, class T>
  Captured<Rank, T> captured() const {
    TensorView<const T, Rank> view{static_cast<const T*>(data), {}, {}};
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      view.extents[axis] = extents[axis];
      view.strides[axis] = strides[axis];
    }
    return {view, name.c_str()};
  }
};

/// The tables that an expression may read, by name.
class Tables {
 public:
  /// @throws std::invalid_argument on a bad or repeated name, or an extent outside 0 to 2^31 - 1.
  template <class T, int Rank>
  void add(const std::string& name, const TensorView<T, Rank>& view) {
    using Element = std::remove_const_t<T>;
    static_assert(std::is_same_v<Element, float> || std::is_same_v<Element, std::int32_t> ||
                      std::is_same_v<Element, bool>,
                  "tables hold float, std::int32_t or bool");
    static_assert(Rank >= 1 && Rank <= max_table_rank, "tables have rank 1 to 4");
    Table table{name, value_type_of<Element>, Rank, view.data, {}, {}};
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      table.extents[axis] = view.extents[axis];
      table.strides[axis] = view.strides[axis];
    }
    add(std::move(table));
  }
  void add(Table table);  ///< @throws as the one above

  const std::vector<Table>& all() const { return tables_; }  ///< in the order they were added
  /// Null where there is none of that name.
  const Table* find(const std::string& name) const;
  /// For the parser.
  std::vector<TableDeclaration> declarations() const;
  /// @throws std::invalid_argument if the expression reads a table that is not here, or one of
  ///   another rank or type.
  void require(const Expression& root) const;

 private:
  std::vector<Table> tables_;
};

/// The tables that an expression reads, in order of first read.
/// @throws std::invalid_argument if one is read with two ranks or types.
std::vector<TableDeclaration> tables_read(const Expression& root);

}  // namespace attn
