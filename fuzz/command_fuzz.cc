#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "fuzz/commands.h"
#include "fuzz/corpus.h"
#include "fuzz/functors.h"
#include "fuzz/fuzz_record.h"
#include "fuzz/random.h"
#include "fuzz/relations.h"
#include "fuzz/row_limits.h"
#include "fuzz/user_corpus.h"
#include "mods/lang/parse.h"

namespace attn::fuzz {
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

/// Holds a case to a relation, in place of the oracle.
Checked checked(const std::string& name, const Case& c, const Relation& relation,
                const RunOptions& options) {
  const std::optional<Case> fitted = relation.fitted(c);
  if (!fitted) return {name, fmt::format("relation {}: does not apply\n", relation.name)};
  const RelationVerdict v = run_relation(relation, *fitted, options);
  return {name, v.outcome == Outcome::pass ? "" : report(relation, *fitted, v)};
}

/// Replays the user's own cases, and then those that ship if `shipped`. The first failure takes the
/// page.
void replay_corpora(const FuzzArguments& a, bool shipped, const RunOptions& options,
                    FuzzRecord& record) {
  std::vector<Checked>& all = record.corpus;
  const auto replay = [&](const std::string& name, const Case& c) {
    const Verdict v = run_case(c, options);
    const bool failed = v.outcome != Outcome::pass && v.outcome != Outcome::mistrusted;
    if (failed && !a.html.empty() && all_right(all)) record.page = failure_page(c, options);
    all.push_back({name, failed ? report(c, v) : ""});
  };
  if (!a.corpus.empty())
    for (const UserCase& own : read_user_corpus(a.corpus))
      if (own.relation)
        all.push_back(checked(own.file, own.value, *own.relation, options));
      else
        replay(own.file, own.value);
  if (!all.empty()) fmt::print(stderr, "corpus: {} cases of {} replayed\n", all.size(), a.corpus);
  if (!shipped) return;
  int ran = 0, failed = 0;
  for (const CorpusEntry& entry : corpus()) {
    if (entry.line.empty()) continue;
    replay(fmt::format("{} ({})", entry.id, entry.source), parse_case(entry.line));
    ++ran, failed += !all.back().failure.empty();
  }
  fmt::print(stderr, "corpus: {} of {} cases of public bug reports pass\n", ran - failed, ran);
}

/// `i/n`: part i of n.
Shard parse_shard(const std::string& text) {
  Shard shard;
  if (text.empty()) return shard;
  const std::size_t slash = text.find('/');
  const auto number = [&](const std::string& digits) -> std::uint64_t {
    const bool good = !digits.empty() && digits.size() < 10 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
    return good ? std::stoull(digits) : 0;
  };
  const std::uint64_t i = number(text.substr(0, slash)),
                      n = slash == std::string::npos ? 0 : number(text.substr(slash + 1));
  if (i < 1 || i > n)
    throw std::invalid_argument(
        fmt::format("--shard: '{}', expected i/n, the i-th of n parts, such as 1/4", text));
  return {i - 1, n};
}

/// Prints how far a campaign is: all the time to a terminal, every five seconds elsewhere.
class Progress {
 public:
  explicit Progress(const CampaignOptions& o) : limits_(o) {}

  void operator()(const CampaignResult& r) {
    const bool terminal = isatty(2);
    if (!terminal && r.seconds - last_ < 5) return;
    last_ = r.seconds;
    double left = std::numeric_limits<double>::infinity();
    if (limits_.cases > 0)
      left = static_cast<double>(cases_of(limits_.shard, limits_.cases) - r.cases) /
             r.cases_per_second();
    if (limits_.seconds > 0) left = std::min(left, limits_.seconds - r.seconds);
    fmt::print(stderr, "{}{} cases, {:.0f} a second, {:.0f} s left{}", terminal ? "\r" : "",
               r.cases, r.cases_per_second(), std::max(0.0, left), terminal ? "   " : "\n");
    std::fflush(stderr);
  }

 private:
  const CampaignOptions& limits_;
  double last_ = -10;
};

void print_summary(const CampaignResult& r) {
  fmt::print("{} cases in {:.1f} s: {:.0f} a second; {} mistrusted, {} refused\n", r.cases,
             r.seconds, r.cases_per_second(), r.count_of(Outcome::mistrusted),
             r.count_of(Outcome::refused));
  for (const auto& [dimension, regions] : r.coverage) {
    std::string line;
    for (const auto& [region, n] : regions) line += fmt::format("  {} {}", region, n);
    fmt::print("  {:<11}{}\n", dimension, line);
  }
}

/// Examines the mod and the mask that the user gave.
std::vector<Checked> examine_fixed(const Fixed& fixed, nlohmann::json& examination) {
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
                 examination);
}

/// Runs of as many cases have to do with each other what they must.
Checked checked_relations(const FuzzArguments& a, const CampaignOptions& options,
                          std::uint64_t cases) {
  const std::uint64_t part = options.shard.index;  // draws relations of its own
  const RelationsResult related = run_relations(
      options.fixed, part == 0 ? options.seed : hash_of(options.seed, part), cases, options.run);
  fmt::print("{} relations between runs hold\n", related.held);
  if (!related.failure) return {"relations", ""};
  std::string failure = report(*related.failure);
  if (!a.corpus.empty())
    failure += fmt::format("added        {}\n", add_to_user_corpus(a.corpus, *related.failure));
  return {"relations", failure};
}

/// What a campaign must be as a whole: its bounds have power, and it drew every region.
std::vector<Checked> checked_as_a_whole(const CampaignOptions& options, const CampaignResult& r) {
  const Checked power = power_of_bounds(r.count_of(Outcome::mistrusted), r.cases);
  Checked coverage{"coverage", ""};
  if (const std::vector<std::string> missed = unmet(r.coverage, options.fixed); !missed.empty())
    coverage.failure = fmt::format("too few cases of {}\n", fmt::join(missed, "; "));
  return {power, coverage};
}

/// Prints what is wrong, makes the page of a failure and adds it to the user's corpus.
void finish(FuzzRecord& record, const FuzzArguments& a, const RunOptions& options) {
  for (const Checked& c : record.corpus)
    if (!c.failure.empty()) fmt::print("corpus {}\n{}", c.name, c.failure);
  if (!all_right(record.whole)) record.page = {"The campaign as a whole", {}, {}};
  for (const Checked& c : record.whole) {
    fmt::print("{}", c.failure);
    if (!c.failure.empty()) record.page.texts.emplace_back(c.name, c.failure);
  }
  if (!all_right(record.examined))
    fmt::print("what is wrong with the mod or the mask itself is told above\n");
  if (const std::optional<Failure>& f = record.campaign.failure) {
    fmt::print("{}", report(*f));
    if (!a.html.empty()) record.page = failure_page(f->shrunk, options, to_text(f->original));
    if (!a.corpus.empty()) fmt::print("added        {}\n", add_to_user_corpus(a.corpus, *f));
  }
  if (record.is_clean()) fmt::print("no discrepancy\n");
}

CampaignOptions options_of(const FuzzArguments& a) {
  CampaignOptions options;
  options.cases = a.cases;
  options.seconds = a.cases == 0 && a.seconds == 0 ? 60 : a.seconds;
  options.seed = a.seed;
  options.shard = parse_shard(a.shard);
  options.jobs = jobs_or_cores(a.jobs);
  options.fixed = fixed_by(a);
  options.run.engine = parse_engine(a.engine);
  options.run.repeat = a.repeat;
  return options;
}

void run_fuzz(const FuzzArguments& a, FuzzRecord& record) {
  const CampaignOptions options = options_of(a);
  record.shard = options.shard;
  // the corpus is of expressions and of shipped rows
  const bool shipped = !built_in_types() && has_shipped_row(options.fixed.implementations);
  replay_corpora(a, shipped, options.run, record);
  if (!record.is_clean()) return finish(record, a, options.run);
  Progress progress(options);
  record.campaign = run_campaign(options, std::ref(progress));
  const CampaignResult& r = record.campaign;
  if (isatty(2)) fmt::print(stderr, "\n");
  const bool user_given =
      options.fixed.mod || options.fixed.mask || built_in_types() || !a.shape.empty();
  const bool all_refused = r.count_of(Outcome::refused) == r.cases;
  if (!r.refused.empty() && ((user_given && r.refused_is_plain) || all_refused))
    throw std::invalid_argument(fmt::format("{}\nin case {}", r.refused, r.refused_case));
  record.examined = examine_fixed(options.fixed, record.examination);
  print_summary(r);
  if (!r.refused.empty()) fmt::print("refused: {}\n         {}\n", r.refused, r.refused_case);
  if (!r.failure) {
    record.whole = checked_as_a_whole(options, r);
    // one to twenty cases
    if (shipped) record.whole.push_back(checked_relations(a, options, r.cases / 20));
  }
  finish(record, a, options.run);
}

}  // namespace

int fuzz_command(const FuzzArguments& a) {
  FuzzRecord record;
  record.engine = a.engine, record.seed = a.seed;
  return recorded(
      {a.json, a.junit, a.html}, [&] { return record.run_record(); }, [&] { run_fuzz(a, record); });
}

}  // namespace attn::fuzz
