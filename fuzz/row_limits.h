#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fuzz/case.h"
#include "optimized/implementations.h"
#include "reference/problem.h"

/// What a row of the table of implementations takes and does not take, asked of cases.
namespace attn::fuzz {

/// @throws std::invalid_argument naming the part of the case that its row does not do: another mod
///     or mask than its one, a sink, dropout, row maxima, a layout.
void check_limits(const Case& c, const Implementation& row);
/// Takes out of a drawn case the options and the layout that its row does not do.
void keep_to_limits(Case& c, const Implementation& row);

/// The sizes of a case, as `Implementation::refusal` is asked.
Problem problem_of(const Case& c);
/// True if there are lengths, and head sizes where none are given, for which the row takes a
/// problem of this storage type.
bool takes(const Implementation& row, DType dtype, std::optional<int> d = {},
           std::optional<int> dv = {});
/// Head sizes, of Q and K and of V alike, that the row takes; ascending.
const std::vector<int>& head_sizes(const Implementation& row, DType dtype);

/// The rows that the user's text means: names separated by commas, `all`, or nothing: the rows that
/// were added where there are any, else all. No name: every row.
/// @throws std::invalid_argument if one is unknown, or named and not built for the engine.
std::vector<std::string> rows_to_fuzz(const std::string& text, Engine engine);
/// True if one of these is a shipped row; no name: every row.
bool has_shipped_row(const std::vector<std::string>& names);
/// Names of rows, as lists of a user's choice hold them.
std::vector<std::string> names_of(std::span<const Implementation> rows);

}  // namespace attn::fuzz
