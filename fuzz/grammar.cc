#include "fuzz/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "fuzz/draw.h"
#include "fuzz/grammar_tables.h"
#include "mods/lang/call.h"
#include "mods/lang/environments.h"
#include "mods/lang/parse.h"
#include "mods/lang/tree_functor.h"

namespace attn::fuzz {
namespace {

/// Text of a random score expression. Writing text and parsing it back exercises the parser too.
class ModWriter {
 public:
  explicit ModWriter(Case& c) : c_(c) {}

  std::string score(int depth) {
    if (depth == 0) return "score";
    const std::string inner = score(depth - 1);
    switch (drawn(0, 9)) {
      case 0:
        return fmt::format("({} + {})", inner, bounded());
      case 1:
        return fmt::format("({} - {})", inner, bounded());
      case 2:
        return fmt::format("({} * {})", inner, gain());
      case 3: {
        const int cap = one_of({5, 15, 30, 50});
        return fmt::format("{} * tanh({} / {})", cap, inner, cap);
      }
      case 4:
        return fmt::format("({} * sigmoid({}))", inner, inner);
      case 5: {
        const int low = one_of({2, 8, 30}), high = one_of({2, 8, 30});
        return chance(70) ? fmt::format("clamp({}, -{}, {})", inner, low, high)
                          : fmt::format("min({}, {})", inner, high);
      }
      case 6:
        return fmt::format("max({}, {} * ({}))", inner, one_of({"0.125", "0.25", "0.5"}), inner);
      case 7:
        return fmt::format("{}({})", chance(60) ? "abs" : "-", inner);
      case 8: {
        const std::string condition = pair_condition(c_), otherwise = score(depth - 1);
        return fmt::format("({} ? {} : {})", condition, inner, otherwise);
      }
      default:
        if (jumps_) return fmt::format("({} + {})", inner, bounded());
        jumps_ = true;  // at most one discontinuity a mod
        return jump(inner);
    }
  }

 private:
  std::string dyadic() { return fmt::format("{}", drawn(-8, 8) / 4.0); }
  std::string distance() { return chance(50) ? "(kv - q)" : "abs(q - kv)"; }
  /// floor(2^a x) / 2^a, or another branch where the score passes a number.
  std::string jump(const std::string& inner) {
    if (chance(50)) {
      const int step = one_of({1, 2, 4, 8});
      return fmt::format("floor({} * {}) / {}", inner, step, step);
    }
    const char* other = one_of({"{0} - 1", "{0} * 0.5", "-({0})"});
    return fmt::format("(score {} {} ? {} : {})", one_of({">", "<", ">=", "<="}), dyadic(), inner,
                       fmt::format(fmt::runtime(other), inner));
  }
  std::string bounded() {
    switch (drawn(0, 10)) {
      case 0:
        return dyadic();
      case 1:
        return fmt::format("{}[h]", reals(c_, "Hq"));
      case 2:
        return fmt::format("{}[b, {}]", reals(c_, dims_of(c_, chance(50) ? "B,Q" : "1,Q")),
                           q_index(c_));
      case 3:
        return fmt::format("{}[kv]", reals(c_, "Skv"));
      case 4: {
        const int reach = one_of({1, 4, 16});
        return fmt::format("{}[clamp(kv - q, -{}, {}) + {}]",
                           reals(c_, std::to_string(2 * reach + 1)), reach, reach, reach);
      }
      case 5: {
        const std::string by = distance(), dims = chance(80) ? "Hq" : "1";
        const char* source = chance(50) ? "uniform(-0.0625,0.0625)" : "alibi";
        return fmt::format("{}[h] * {}", table(c_, "slope", dims, source), by);
      }
      case 6: {
        const char* dims =
            one_of({"B,Hq,Q,Skv", "1,Hq,Q,Skv", "B,1,1,Skv", "1,1,Q,Skv", "B,Hq,Q,1"});
        return fmt::format("{}[b, h, {}, kv]", reals(c_, dims_of(c_, dims)), q_index(c_));
      }
      case 7:
        return fmt::format("tanh({})", chance(50) ? "score" : "score * 0.5");
      case 8:
        return chance(50) ? "exp(-0.125 * abs(kv - q))" : "exp(min(score, 1))";
      case 9:
        return "log(1.0 + abs(kv - q))";
      default: {
        const std::string by = distance();
        return fmt::format("{}({} * 0.25)", chance(50) ? "sin" : "cos", by);
      }
    }
  }
  std::string gain() {
    switch (drawn(0, 3)) {
      case 0:
        return dyadic();
      case 1:
        return fmt::format("(1 + {} / 4)", bounded());
      case 2:
        return fmt::format("sigmoid({})", bounded());
      default:
        return chance(50) ? reals(c_, "Hq") + "[h]" : reals(c_, "B") + "[b]";
    }
  }

  Case& c_;
  bool jumps_ = false;
};

/// Mods that are in use, among them those that keep a score of 0 exact.
std::string known_mod(Case& c, bool exact) {
  switch (drawn(0, exact ? 3 : 6)) {
    case 0:
      return "score";
    case 1:
      return "floor_mod(kv - q, 2) == 0 ? score / 2 : 2 * score";
    case 2:
      return fmt::format("score + {}[h] * (kv - q)",
                         table(c, "slope", "Hq", exact ? "dyadic(0,1)" : "alibi"));
    case 3:
      return fmt::format("score + {}[clamp(kv - q, -8, 8) + 8]",
                         table(c, "rel", "17", exact ? "dyadic(-4,4)" : "uniform(-2,2)"));
    case 4:
      return "30 * tanh(score / 30)";
    case 5:
      return fmt::format("15 * tanh(score / 15) + {}[h] * (kv - q)",
                         table(c, "slope", "Hq", "alibi"));
    default:
      return "score * sigmoid(score)";
  }
}

/// Scores of thousands are of use under a cap only.
std::string capped_mod(Case& c) {
  const int cap = one_of({5, 15, 30, 50});
  const std::string capped = fmt::format("{} * tanh(score / {})", cap, cap);
  switch (drawn(0, 2)) {
    case 0:
      return capped;
    case 1:
      return fmt::format("{} + {}[h] * (kv - q)", capped, table(c, "slope", "Hq", "alibi"));
    default:
      return fmt::format("clamp(score, -{}, {}) + {}[kv]", cap, cap, reals(c, "Skv"));
  }
}

/// The size of raw scores that a fill makes.
double score_reach(Fill fill) {
  switch (fill) {
    case Fill::ties:
    case Fill::denormal:
      return 2;
    case Fill::gaussian:
    case Fill::cancelling:
    case Fill::marker_v:
      return 16;
    case Fill::large:
    case Fill::offsets:
      return 64;
    case Fill::rising:
      return 128;
    case Fill::capped:
      return 2e4;
    case Fill::outlier:
    case Fill::small_ints:
      return 256;
    default:
      return 1e6;
  }
}

/// True if over the whole problem the mod stays within 2^10, where it does not mask a pair.
bool is_tame(const Case& c, const Expression& mod) {
  const Sizes sizes{c.b, c.hq, c.hkv, std::max(c.sq, 1), std::max(c.skv, 1), 0, 0};
  const TableStore store(c.tables, sizes, c.seed);
  const double reach = score_reach(c.fill);
  RangeEnv env{sizes};
  using I = Index<RangeEnv>;
  const auto all = [&](int extent) { return I{RangeEnv::Int(0, std::max(extent, 1) - 1), &env}; };
  const TreeMod functor(mod, store.tables());
  I q = all(c.sq);
  if (counts_from_keys(c)) q = I{RangeEnv::Int(-sizes.sq, sizes.skv - 1), &env};
  const auto value =
      call_mod(functor, Range<double>(-reach, reach), all(c.b), all(c.hq), q, all(c.skv));
  return (value.low >= -1024 || value.low == -infinity) && value.high <= 1024;
}

/// `mod` where the pair meets a condition; -inf, so that the pair is masked, elsewhere.
std::string masking(Case& c, const std::string& mod) {
  return fmt::format("({}) ? {} : -inf", pair_condition(c), mod);
}

}  // namespace

Expression draw_mod(Case& c) {
  const std::vector<TableSpec> before = c.tables;
  const auto parsed = [&](const std::string& text) { return parse_mod(text, c.declarations()); };
  switch (c.fill) {
    case Fill::exact_count:
    case Fill::exact_powers:
    case Fill::exact_pairs:
      return parsed("score");
    case Fill::nan_keys:
    case Fill::exact_code:
      return parsed(known_mod(c, true));
    case Fill::exact_rank:
    case Fill::very_negative:
    case Fill::very_positive:
    case Fill::large_products:
      return parsed(one_of({"score", "score", "score", "score + 0.5", "30 * tanh(score / 30)"}));
    case Fill::capped:
      return parsed(capped_mod(c));
    default:
      break;
  }
  if (chance(20)) return parsed("score");
  if (chance(15)) return parsed(known_mod(c, false));
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::string text = chance(25) ? draw_named_mod(c) : ModWriter(c).score(drawn(1, 3));
    Expression mod = parsed(text);
    if (chance(6))
      if (const Expression masked = parsed(masking(c, text)); masked->size <= largest_combination)
        mod = masked;
    if (uses(mod, Op::score) && is_tame(c, mod)) return mod;
    c.tables = before;
  }
  return parsed("score");
}

}  // namespace attn::fuzz
