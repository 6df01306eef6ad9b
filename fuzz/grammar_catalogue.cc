#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "fuzz/draw.h"
#include "fuzz/grammar_tables.h"
#include "masks/registry.h"
#include "mods/lang/parse.h"
#include "mods/registry.h"

/// Entries of the registries of mods and masks as expressions of a case. Their tables become random
/// ones: as large as the subscripts reach, and what is a subscript itself no larger than that.
namespace attn::fuzz {
namespace {

/// A table of an entry; `$name` is the value of a parameter.
struct TableExample {
  const char *name, *dims, *source;
};
constexpr TableExample examples[] = {
    // of mods
    {"slope", "Hq", "alibi"},
    {"negated_slope", "Hq", "uniform(-0.5,0)"},
    {"head", "Hq,1,1", "uniform(-2,2)"},
    {"batch", "B,1,1,1", "uniform(-2,2)"},
    {"query", "Sq,1", "uniform(-2,2)"},
    {"key", "Skv", "uniform(-2,2)"},
    {"pair", "Sq,Skv", "uniform(-2,2)"},
    {"bias", "B,Hq,Sq,Skv", "uniform(-2,2)"},
    {"batch_bias", "B,1,Sq,Skv", "uniform(-2,2)"},
    {"temperature", "1", "uniform(0.5,2)"},
    {"batch_table", "B", "uniform(-2,2)"},
    {"head_table", "Hq", "uniform(-2,2)"},
    {"query_table", "Sq", "uniform(-2,2)"},
    {"mixed", "B,Hq,Sq,$length", "uniform(-2,2)"},
    {"frequency", "4", "uniform(0,1)"},
    {"by_distance", "2*Sq+2*Skv", "uniform(-2,2)"},
    {"by_length", "Sq+Skv", "uniform(-2,2)"},
    {"clamped", "2*$width+1", "dyadic(-2,2)"},
    {"spatial", "Hq,8", "uniform(-2,2)"},
    {"hops", "B,Sq,Skv", "ints(0,7)"},
    {"edge_table", "2,Hq,5", "uniform(-2,2)"},
    {"edges", "B,Sq,Skv,2", "ints(0,4)"},
    {"q_rope", "B,Hq,Sq,2", "uniform(-1,1)"},
    {"k_rope", "B,Skv,2", "uniform(-1,1)"},
    // of masks
    {"ids", "Sq+Skv", "ints(0,3)"},
    {"starts", "Sq+Skv", "ints(0,30)"},
    {"offsets", "5", "ints(0,60)"},
    {"prefix", "4", "ints(0,3)"},
    {"counts", "B", "ints(0,60)"},
    {"threshold", "Skv", "ints(0,60)"},
    {"image_start", "Skv", "ints(0,30)"},
    {"image_end", "Skv", "ints(0,90)"},
    {"is_global", "Sq+Skv", "bits(0.1)"},
    {"of_head", "Hq", "bits(0.5)"},
    {"of_batch", "B", "bits(0.5)"},
    {"ancestor", "Sq,Skv+1", "bits(0.3)"},
    {"pairs", "Sq,Skv", "bits(0.4)"},
    {"array", "B,Hq,Sq,Skv", "bits(0.6)"},
    {"pattern", "Sq,Skv", "bits(0.5)"},
    {"chosen", "B,Hq,Sq,2", "ints(0,9)"},
    {"valid", "Skv", "ints(1,16)"},
    {"q_ids", "Sq", "documents(20)"},
    {"kv_ids", "Skv", "documents(20)"},
    {"q_starts", "Sq", "ints(0,30)"},
    {"kv_starts", "Skv", "ints(0,30)"},
    {"q_ends", "Sq", "ints(1,60)"},
    {"kv_ends", "Skv", "ints(1,60)"},
    {"padded_ids", "Skv", "documents(20)"},
    {"padded_ends", "Skv", "ints(1,60)"},
    {"gappy_ids", "Skv", "ints(-1,2)"},
};

/// `name[` as a word of its own.
bool reads(const std::string& text, const std::string& name) {
  const std::string read = name + "[";
  for (std::size_t at = 0; (at = text.find(read, at)) != std::string::npos; ++at)
    if (at == 0 || !(std::isalnum(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '_'))
      return true;
  return false;
}

/// Mostly near the default: half as much to twice as much.
double draw_parameter(const Parameter& p) {
  if (chance(40)) return p.value;
  if (p.kind == Parameter::Kind::real)
    return std::clamp(p.value * one_of({0.5, 0.75, 2.0}), p.least, p.most);
  const int value = static_cast<int>(p.value), reach = std::max(4, std::abs(value));
  return std::clamp<double>(drawn(value - reach, value + reach), p.least, p.most);
}

/// Any index that a subscript is made of.
bool has_subscript_of(const Expression& e, Op index) {
  if (e->op == Op::read)
    for (const Expression& subscript : e->args)
      if (uses(subscript, index)) return true;
  return std::any_of(e->args.begin(), e->args.end(),
                     [index](const Expression& arg) { return has_subscript_of(arg, index); });
}

/// Parameters that the entry takes: some do not go together.
template <class Entry>
std::unique_ptr<Arguments> draw_arguments(const Entry& entry) {
  for (int attempt = 0; attempt < 4; ++attempt) {
    ParameterValues values;
    for (const Parameter& p : entry.parameters) values[p.name] = draw_parameter(p);
    try {
      auto arguments = std::make_unique<Arguments>(entry.name, entry.parameters,
                                                   Sizes{1, 1, 1, 1, 1, 0, 0}, values, Tables());
      entry.build(*arguments);
      return arguments;
    } catch (const std::invalid_argument&) {
    }
  }
  return std::make_unique<Arguments>(entry.name, entry.parameters, Sizes{1, 1, 1, 1, 1, 0, 0},
                                     ParameterValues{}, Tables());
}

/// Tables by query have no entry for queries before the first key of a cache: an entry that reads
/// one does not fit there.
template <class Entry, class Parse>
std::string draw_entry(Case& c, const std::vector<Entry>& registry, Parse parse,
                       const char* otherwise) {
  const std::vector<TableSpec> before = c.tables;
  for (int attempt = 0; attempt < 16; ++attempt) {
    const Entry& entry = registry[drawn(0, static_cast<int>(registry.size()) - 1)];
    const std::unique_ptr<Arguments> arguments = draw_arguments(entry);
    const std::string text = arguments->substituted(entry.expression);
    for (const TableExample& t : examples)
      if (reads(text, t.name))
        c.tables.push_back(parse_table_spec(
            fmt::format("{}[{}]={}", t.name, arguments->substituted(t.dims), t.source)));
    if (!counts_from_keys(c) || !has_subscript_of(parse(text, c.declarations()), Op::q))
      return text;
    c.tables = before;
  }
  return otherwise;
}

}  // namespace

std::string draw_named_mod(Case& c) { return draw_entry(c, mod_registry(), parse_mod, "score"); }
std::string draw_named_mask(Case& c) {
  return draw_entry(c, mask_registry(), parse_mask, "kv <= q");
}

}  // namespace attn::fuzz
