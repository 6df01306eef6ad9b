#include "mods/lang/tables.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace attn {
namespace {

std::string shape_of(int rank, ValueType type) {
  return "rank " + std::to_string(rank) + " and type " + name_of(type);
}

void collect(const Expression& e, std::vector<TableDeclaration>& seen) {
  if (e->op == Op::read) {
    const int rank = static_cast<int>(e->args.size());
    const auto known = std::find_if(seen.begin(), seen.end(),
                                    [&](const auto& t) { return t.name == e->table; });
    if (known == seen.end())
      seen.push_back({e->table, rank, e->type});
    else if (known->rank != rank || known->type != e->type)
      throw std::invalid_argument("table '" + e->table + "': read with " +
                                  shape_of(known->rank, known->type) + " and with " +
                                  shape_of(rank, e->type));
  }
  for (const Expression& arg : e->args) collect(arg, seen);
}

}  // namespace

void Tables::add(Table table) {
  if (!is_table_name(table.name))
    throw std::invalid_argument("table name '" + table.name + "': expected a word of at most " +
                                std::to_string(max_table_name) +
                                " letters, digits and '_' that the language does not use");
  if (find(table.name))
    throw std::invalid_argument("table '" + table.name + "': given twice, expected once");
  for (int axis = 0; axis < table.rank; ++axis) {
    const std::int64_t extent = table.extents[static_cast<std::size_t>(axis)];
    if (extent < 0 || extent > std::numeric_limits<std::int32_t>::max())
      throw std::invalid_argument("table '" + table.name + "': extent " + std::to_string(extent) +
                                  " in axis " + std::to_string(axis) +
                                  ", expected 0 to 2147483647");
  }
  tables_.push_back(std::move(table));
}

const Table* Tables::find(const std::string& name) const {
  for (const Table& table : tables_)
    if (table.name == name) return &table;
  return nullptr;
}

std::vector<TableDeclaration> Tables::declarations() const {
  std::vector<TableDeclaration> all;
  for (const Table& table : tables_) all.push_back({table.name, table.rank, table.type});
  return all;
}

void Tables::require(const Expression& root) const {
  for (const TableDeclaration& read : tables_read(root)) {
    const Table* table = find(read.name);
    if (!table)
      throw std::invalid_argument("table '" + read.name + "': not bound, expected one of " +
                                  shape_of(read.rank, read.type));
    if (table->rank != read.rank || table->type != read.type)
      throw std::invalid_argument("table '" + read.name + "': " +
                                  shape_of(table->rank, table->type) + ", expected " +
                                  shape_of(read.rank, read.type));
  }
}

std::vector<TableDeclaration> tables_read(const Expression& root) {
  std::vector<TableDeclaration> seen;
  collect(root, seen);
  return seen;
}

}  // namespace attn
