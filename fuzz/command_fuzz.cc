#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fuzz/commands.h"
#include "fuzz/corpus.h"
#include "fuzz/functors.h"
#include "fuzz/relations.h"
#include "fuzz/row_limits.h"
#include "mods/lang/parse.h"

namespace attn::fuzz {
namespace {

constexpr double mistrusted_budget = 0.2;

}  // namespace

void fix_shape(const std::string& text, Fixed& fixed) {
  struct Name {
    const char* name;
    std::optional<int> Fixed::*value;
  };
  constexpr Name names[] = {{"B", &Fixed::b},   {"Hq", &Fixed::hq},   {"Hkv", &Fixed::hkv},
                            {"Sq", &Fixed::sq}, {"Skv", &Fixed::skv}, {"Dv", &Fixed::dv},
                            {"D", &Fixed::d}};
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    bool known = false;
    for (const Name& n : names) {
      const std::string digits =
          word.starts_with(n.name) ? word.substr(std::string(n.name).size()) : "";
      if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos ||
          digits.size() > 6)
        continue;
      fixed.*n.value = std::stoi(digits);
      known = true;
      break;
    }
    if (!known)
      throw std::invalid_argument(fmt::format(
          "--shape: '{}', expected words such as B2 Hq4 Hkv2 Sq64 Skv65 D64 Dv64", word));
  }
  if (fixed.d == 0) throw std::invalid_argument("--shape: D0, expected at least D1");
}

namespace {

/// What the types that are built into this program fix.
void fix_types(const FuzzArguments& a, Fixed& fixed) {
  const BuiltInTypes* types = built_in_types();
  if (!types) return;
  fixed.mod_type = types->mod_type(), fixed.mask_type = types->mask_type();
  fixed.largest_head = types->largest_head();
  if (fixed.implementations.empty()) fixed.implementations = types->rows();
  for (const auto& [type, text, option] :
       {std::tuple{fixed.mod_type, a.mod, "--mod"}, {fixed.mask_type, a.mask, "--mask"}})
    if (!type.empty() && !text.empty())
      throw std::invalid_argument(
          fmt::format("{}: '{}', expected none beside the type {}", option, text, type));
}

Fixed fixed_by(const FuzzArguments& a) {
  Fixed fixed;
  fixed.implementations = rows_to_fuzz(a.implementation, parse_engine(a.engine));
  if (!a.dtype.empty()) fixed.dtype = parse_dtype(a.dtype);
  Case declares;
  for (const std::string& t : a.tables) {
    fixed.tables.push_back(parse_table_spec(t));
    declares.tables = fixed.tables;
    declares.declarations();  // a file that cannot be read is bad usage
  }
  if (!a.mod.empty()) fixed.mod = parse_mod(a.mod, declares.declarations());
  if (!a.mask.empty()) fixed.mask = parse_mask(a.mask, declares.declarations());
  fix_types(a, fixed);
  fix_shape(a.shape, fixed);
  return fixed;
}

/// Runs the cases that ship; 0 if every one passes.
int replay_corpus(const RunOptions& options) {
  int cases = 0;
  for (const CorpusEntry& entry : corpus()) {
    if (entry.line.empty()) continue;
    ++cases;
    const Case c = parse_case(entry.line);
    const Verdict v = run_case(c, options);
    if (v.outcome == Outcome::pass || v.outcome == Outcome::mistrusted) continue;
    fmt::print("corpus {} ({})\n{}", entry.id, entry.source, report(c, v));
    return 1;
  }
  fmt::print(stderr, "corpus: {} cases of public bug reports pass\n", cases);
  return 0;
}

void print_progress(const CampaignResult& r, const FuzzArguments& a) {
  static double last = -10;
  const bool terminal = isatty(2);
  if (!terminal && r.seconds - last < 5) return;
  last = r.seconds;
  const double left = a.cases > 0 ? static_cast<double>(a.cases - r.cases) / r.cases_per_second()
                                  : a.seconds - r.seconds;
  fmt::print(stderr, "{}{} cases, {:.0f} a second, {:.0f} s left{}", terminal ? "\r" : "", r.cases,
             r.cases_per_second(), std::max(0.0, left), terminal ? "   " : "\n");
  std::fflush(stderr);
}

std::uint64_t count_of(const CampaignResult& r, Outcome o) {
  const auto found = r.outcomes.find(o);
  return found == r.outcomes.end() ? 0 : found->second;
}

void print_summary(const CampaignResult& r) {
  fmt::print("{} cases in {:.1f} s: {:.0f} a second; {} mistrusted, {} refused\n", r.cases,
             r.seconds, r.cases_per_second(), count_of(r, Outcome::mistrusted),
             count_of(r, Outcome::refused));
  for (const auto& [dimension, regions] : r.coverage) {
    std::string line;
    for (const auto& [region, n] : regions) line += fmt::format("  {} {}", region, n);
    fmt::print("  {:<11}{}\n", dimension, line);
  }
}

nlohmann::json to_json(const CampaignResult& r, const FuzzArguments& a,
                       const nlohmann::json& examined) {
  nlohmann::json j;
  if (!examined.is_null()) j["examination"] = examined;
  std::uint64_t failed = 0;
  for (const auto& [outcome, n] : r.outcomes) failed += is_failure(outcome) ? n : 0;
  j["cases"] = r.cases;
  j["failed"] = failed;
  j["mistrusted"] = count_of(r, Outcome::mistrusted);
  j["refused"] = count_of(r, Outcome::refused);
  j["cases_per_second"] = r.cases_per_second();
  j["seconds"] = r.seconds;
  j["seed"] = a.seed;
  j["implementations"] = nlohmann::json::array();
  if (const auto found = r.coverage.find("implementation"); found != r.coverage.end())
    for (const auto& [name, cases] : found->second)
      if (cases > 0)
        j["implementations"].push_back(
            {{"name", name}, {"engine", a.engine}, {"device", "cpu"}, {"cases", cases}});
  j["coverage"] = r.coverage;
  if (r.failure)
    j["failure"] = {{"outcome", name_of(r.failure->verdict.outcome)},
                    {"replay", to_text(r.failure->shrunk)},
                    {"original", to_text(r.failure->original)},
                    {"report", report(r.failure->shrunk, r.failure->verdict)}};
  return j;
}

/// Examines the mod and the mask that the user gave; false if one is wrong.
bool examine_fixed(const Fixed& fixed, nlohmann::json& examined) {
  Case c;
  c.seed = 1;
  c.tables = fixed.tables;
  c.mod_type = fixed.mod_type, c.mask_type = fixed.mask_type;
  if (fixed.mod) c.mod = *fixed.mod;
  if (fixed.mask) c.mask = *fixed.mask;
  const auto length = [](const std::optional<int>& n) { return n.value_or(0); };
  const FixedLengths lengths{length(fixed.b), length(fixed.hq), length(fixed.hkv), length(fixed.sq),
                             length(fixed.skv)};
  return examine(c, lengths, fixed.mod || !c.mod_type.empty(), fixed.mask || !c.mask_type.empty(),
                 examined);
}

}  // namespace

int fuzz_command(const FuzzArguments& a) {
  CampaignOptions options;
  options.cases = a.cases;
  options.seconds = a.cases == 0 && a.seconds == 0 ? 60 : a.seconds;
  options.seed = a.seed;
  options.jobs = jobs_or_cores(a.jobs);
  options.fixed = fixed_by(a);
  options.run.engine = parse_engine(a.engine);
  options.run.repeat = a.repeat;
  if (!a.json.empty()) write_file(a.json, "");  // a bad path is bad usage, before any work

  // the corpus is of expressions and of shipped rows
  const bool shipped = !built_in_types() && has_shipped_row(options.fixed.implementations);
  if (const int status = shipped ? replay_corpus(options.run) : 0) return status;
  FuzzArguments limits = a;
  limits.seconds = options.seconds;
  const CampaignResult r =
      run_campaign(options, [&](const CampaignResult& so_far) { print_progress(so_far, limits); });
  if (isatty(2)) fmt::print(stderr, "\n");
  const bool user_given =
      options.fixed.mod || options.fixed.mask || built_in_types() || !a.shape.empty();
  const bool all_refused = count_of(r, Outcome::refused) == r.cases;
  if (!r.refused.empty() && ((user_given && r.refused_is_plain) || all_refused))
    throw std::invalid_argument(fmt::format("{}\nin case {}", r.refused, r.refused_case));
  nlohmann::json examined;
  const bool right = examine_fixed(options.fixed, examined);
  print_summary(r);
  if (!r.refused.empty()) fmt::print("refused: {}\n         {}\n", r.refused, r.refused_case);
  if (!a.json.empty()) write_file(a.json, to_json(r, a, examined).dump(2) + "\n");
  if (r.failure) {
    fmt::print("{}", report(r.failure->shrunk, r.failure->verdict));
    fmt::print("shrunk from  '{}'\n", to_text(r.failure->original));
    return 1;
  }
  const double mistrusted = static_cast<double>(count_of(r, Outcome::mistrusted));
  if (mistrusted > mistrusted_budget * static_cast<double>(r.cases)) {
    fmt::print("too many cases prove nothing: {:.0f} % mistrusted, at most {:.0f} % are allowed\n",
               100 * mistrusted / static_cast<double>(r.cases), 100 * mistrusted_budget);
    return 1;
  }
  if (const std::vector<std::string> missed = unmet(r.coverage, options.fixed); !missed.empty()) {
    fmt::print("too few cases of {}\n", fmt::join(missed, "; "));
    return 1;
  }
  if (shipped) {  // one relation to twenty cases
    const RelationsResult related = run_relations(options.fixed, a.seed, r.cases / 20, options.run);
    if (!related.failure.empty()) {
      fmt::print("{}", related.failure);
      return 1;
    }
    fmt::print("{} relations between runs hold\n", related.held);
  }
  fmt::print("no discrepancy\n");
  if (!right) fmt::print("what is wrong with the mod or the mask itself is told above\n");
  return right ? 0 : 1;
}

}  // namespace attn::fuzz
