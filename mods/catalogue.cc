#include "mods/catalogue.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "mods/lang/environments.h"
#include "mods/lang/parse.h"
#include "mods/lang/tree_functor.h"

namespace attn {
namespace {

/// The shortest text that reads back as the same fp32 number; a whole number has no point.
std::string number_text(double value) {
  for (int digits = 6;; ++digits) {
    std::ostringstream text;
    text.precision(digits);
    text << value;
    if (digits >= 17 || std::stod(text.str()) == value) return text.str();
  }
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// Letters to insert, delete or change to make one word of the other (Levenshtein distance).
std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

Parameter whole(const char* name, int value, int least, const char* what) {
  return {name,
          Parameter::Kind::whole,
          static_cast<double>(value),
          static_cast<double>(least),
          static_cast<double>(1 << 24),
          what};
}
Parameter real(const char* name, double value, double least, double most, const char* what) {
  return {name, Parameter::Kind::real, value, least, most, what};
}

Arguments::Arguments(std::string entry, const std::vector<Parameter>& parameters,
                     const Sizes& lengths, const ParameterValues& values, const Tables& given)
    : sizes(lengths), entry_(std::move(entry)), parameters_(parameters), given_(given) {
  for (const Parameter& p : parameters_)
    values_[p.name] = static_cast<double>(static_cast<float>(p.value));
  for (const auto& [name, value] : values) {
    const auto known = std::find_if(parameters_.begin(), parameters_.end(),
                                    [&n = name](const Parameter& p) { return n == p.name; });
    if (known == parameters_.end()) {
      std::vector<std::string> names;
      for (const Parameter& p : parameters_) names.push_back(p.name);
      throw std::invalid_argument(
          "parameter '" + name + "' = " + number_text(value) + ": " +
          (names.empty() ? entry_ + " has no parameters" : entry_ + suggestion(name, names)));
    }
    const bool is_whole = known->kind == Parameter::Kind::whole;
    if (!(value >= known->least && value <= known->most) ||
        (is_whole && value != std::floor(value)))
      throw std::invalid_argument("parameter '" + name + "' = " + number_text(value) + ": " +
                                  entry_ + " expects a " + (is_whole ? "whole " : "") +
                                  "number from " + number_text(known->least) + " to " +
                                  number_text(known->most) + " (" + known->what + ")");
    values_[name] = is_whole ? value : static_cast<double>(static_cast<float>(value));
  }
}

double Arguments::value(const char* name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw std::logic_error(entry_ + ": no parameter " + name);
  return found->second;
}
std::int32_t Arguments::operator[](const char* name) const {
  return static_cast<std::int32_t>(value(name));
}
float Arguments::operator()(const char* name) const { return static_cast<float>(value(name)); }

bool Arguments::adopt(const std::string& name, int rank, ValueType type) {
  const Table* given = given_.find(name);
  if (!given) return false;
  if (given->rank != rank || given->type != type)
    throw std::invalid_argument("table '" + name + "': rank " + std::to_string(given->rank) +
                                " and type " + name_of(given->type) + ", " + entry_ +
                                " expects rank " + std::to_string(rank) + " and type " +
                                name_of(type));
  tables_.add(*given);
  return true;
}

void* Arguments::allocate(std::int64_t bytes) {
  memory_.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes)));
  return memory_.back().get();
}

void Arguments::require_all_used() const {
  std::vector<std::string> used;
  for (const Table& table : tables_.all()) used.push_back(table.name);
  for (const Table& table : given_.all())
    if (!tables_.find(table.name))
      throw std::invalid_argument(
          "table '" + table.name + "': " + entry_ +
          (used.empty() ? " reads no table" : suggestion(table.name, used)));
}

std::string Arguments::substituted(const std::string& text) const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_) names.push_back(name);
  // The longest name first: $width must not be taken for $w.
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::string result = text;
  for (const std::string& name : names)
    result = replaced(result, "$" + name, number_text(values_.at(name)));
  for (std::size_t at; (at = result.find("${")) != std::string::npos;) {
    const std::size_t end = result.find('}', at);
    const TreeMod constant(parse_mod(result.substr(at + 2, end - at - 2)), {});
    ExactEnv env{sizes};
    const Index<ExactEnv> none{0, &env};
    result.replace(at, end - at + 1, number_text(constant(0.0, none, none, none, none)));
  }
  return result;
}

std::string display(std::string code) {
  for (const char* noise : {"a[\"", "\"]", "a(\"", "\")", "(a)"}) code = replaced(code, noise, "");
  return code;
}

std::string suggestion(const std::string& name, const std::vector<std::string>& known) {
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& other : known) {
    const bool part = name.size() >= 3 && other.find(name) != std::string::npos;
    const std::size_t distance = part ? 1 : edits(name, other);
    if (distance <= std::max<std::size_t>(2, name.size() / 3)) near.emplace_back(distance, other);
  }
  std::sort(near.begin(), near.end());
  std::string text;
  if (near.empty()) {
    for (const std::string& other : known) text += (text.empty() ? "" : ", ") + other;
    return ": expected one of " + text;
  }
  for (std::size_t n = 0; n < near.size() && n < 3; ++n)
    text += (n ? " or '" : "'") + near[n].second + "'";
  return ": did you mean " + text + "?";
}

}  // namespace attn
