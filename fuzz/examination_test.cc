#include "fuzz/examination.h"

#include <gtest/gtest.h>

#include <string>

#include "fuzz/bind_tables.h"
#include "fuzz/functors.h"
#include "masks/algebra.h"
#include "mods/identity.h"
#include "mods/lang/parse.h"

namespace attn::fuzz {
namespace {

Case case_of(const std::string& mod, const std::string& mask, const std::string& table = "") {
  Case c;
  c.seed = 1;
  if (!table.empty()) c.tables.push_back(parse_table_spec(table));
  c.mod = parse_mod(mod, c.declarations());
  c.mask = parse_mask(mask, c.declarations());
  return c;
}

/// The faults, a line each.
template <class Report>
std::string faults_of(const Report& report) {
  std::string text;
  for (const std::string& line : report.wrong) text += line + '\n';
  return text;
}

TEST(ExamineMod, finds_nothing_wrong_with_a_right_one) {
  const ModReport r = examine_mod(
      case_of("30 * tanh(score / 30) + slope[h] * (kv - q)", "true", "slope[Hq]=uniform(0,0.5)"));
  EXPECT_EQ(faults_of(r), "");
  EXPECT_GT(r.derivatives, 300);
  EXPECT_EQ(r.captured_derivatives, r.derivatives);
  EXPECT_EQ(r.jumps_found, 0);
  ASSERT_EQ(r.determined.size(), 4u);
  EXPECT_GT(r.determined[1].median, r.determined[0].median);  // bf16 has fewer bits than fp16,
  EXPECT_GT(r.determined[0].median, r.determined[3].median);  // and that than fp32
}

TEST(ExamineMod, tells_where_it_jumps_and_by_how_much) {
  const ModReport r = examine_mod(case_of("select(score > 1, score + 0.5, score)", "true"));
  ASSERT_FALSE(r.jumps.empty());
  EXPECT_GE(r.jumps[0].score, 1);
  EXPECT_LE(r.jumps[0].score, 1 + 0x1p-52);
  EXPECT_EQ(r.jumps[0].size, 0.5 + 0x1p-52);  // two scores that are neighbours in fp64
}

TEST(ExamineMod, takes_no_kink_for_a_jump) {
  for (const char* mod : {"max(score, 0) + abs(score)", "clamp(score, -3, 3)", "max(0.3*score, 1)"})
    EXPECT_EQ(examine_mod(case_of(mod, "true")).jumps_found, 0) << mod;
}

TEST(ExamineMod, tells_what_a_kernel_would_meet) {
  EXPECT_NE(faults_of(examine_mod(case_of("score - log(q + kv)", "true"))).find("inf at score"),
            std::string::npos);
  // where the mask hides the pair it does not matter
  EXPECT_EQ(faults_of(examine_mod(case_of("score - log(q + kv)", "q + kv > 0"))), "");
  EXPECT_NE(faults_of(examine_mod(case_of("score + (q * Skv + kv) % 3", "true")))
                .find("expected results within 32 bits"),
            std::string::npos);
  EXPECT_NE(faults_of(examine_mod(case_of("score + t[kv]", "true", "t[Skv-1]=uniform(0,1)")))
                .find("captured read"),
            std::string::npos);
}

TEST(ExamineMask, tells_whether_intervals_decide_it) {
  const MaskReport causal = examine_mask(case_of("score", "kv <= q"));
  EXPECT_EQ(faults_of(causal), "");
  EXPECT_TRUE(causal.intervals);
  EXPECT_EQ(causal.costs.back().tokens, 1 << 20);
  const MaskReport dots = examine_mask(case_of("score", "(q % 7) * (kv % 5) % 3 == 1"));
  EXPECT_EQ(faults_of(dots), "");
  EXPECT_FALSE(dots.intervals);
  EXPECT_GT(dots.costs.back().scanned, 0);
}

// ---- C++ types ---------------------------------------------------------------------------------

struct Counter {
  mutable int calls = 0;
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index, Index) const {
    return s + 0.125f * static_cast<float>(calls++ % 3);
  }
};
struct WrongDerivative {
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index, Index) const {
    return attn::tanh(s);
  }
  template <class T, class Index>
  Dual<T> operator()(Dual<T> s, Index, Index, Index, Index) const {
    const T t = T(attn::tanh(s.v));
    return {t, T((1 - t) * s.d)};
  }
};
struct OtherOnScalars {
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index q, Index kv) const {
    return s - attn::abs(q - kv);
  }
  float operator()(float s, int, int, int q, int kv) const { return s + (q - kv); }
};
struct WrongSlopeOfTable {  // the value is right, the derivative to the table is not
  Captured<1> slope;
  template <class Score, class Index>
  Score operator()(Score s, Index, Index h, Index, Index) const {
    return s + slope(h);
  }
  template <class T, class Index>
  Dual<T> operator()(Dual<T> s, Index, Index h, Index, Index) const {
    const Dual<T> read = slope(h);
    return {T(s.v + read.v), T(s.d + 2 * read.d)};
  }
};
struct UnsoundMask : MaskBase {
  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    if constexpr (requires { kv.value.low; })
      return Maybe(true, kv.value.low > q.value.high);
    else
      return kv <= q;
  }
};
struct Causal : MaskBase {
  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    return kv <= q;
  }
};

/// These types, built in without kernels, while it lives.
template <class Mod, class Mask>
class BuiltIn final : public BuiltInTypes {
 public:
  BuiltIn() { built_in_types() = this; }
  ~BuiltIn() override { built_in_types() = nullptr; }
  std::string mod_type() const override { return "Mod"; }
  std::string mask_type() const override { return "Mask"; }
  std::size_t tables() const override { return captured_count<Mod> + captured_count<Mask>; }
  int largest_head() const override { return 64; }
  std::vector<std::string> rows() const override { return {}; }
  std::unique_ptr<Functors> functors(const Case&, const Tables& tables) const override {
    struct NoKernels final : TypedFunctors<Mod, Mask> {
      using TypedFunctors<Mod, Mask>::TypedFunctors;
      std::string_view run(const Implementation&, const AttentionCall&, Engine) const override {
        throw std::invalid_argument("no kernels");
      }
    };
    return std::make_unique<NoKernels>(bound_to_tables<Mod>(tables, 0),
                                       bound_to_tables<Mask>(tables, captured_count<Mod>));
  }
};

template <class Mod, class Mask = Causal>
std::string faults_of_types(const std::string& table = "") {
  const BuiltIn<Mod, Mask> types;
  Case c = case_of("score", "true", table);
  c.mod_type = "Mod", c.mask_type = "Mask";
  return faults_of(examine_mod(c)) + faults_of(examine_mask(c));
}

TEST(ExamineTypes, finds_each_kind_of_fault) {
  EXPECT_EQ(faults_of_types<Identity>(), "");
  EXPECT_NE(faults_of_types<Counter>().find("not pure"), std::string::npos);
  EXPECT_NE(faults_of_types<WrongDerivative>().find("wrong derivative: "), std::string::npos);
  EXPECT_NE(faults_of_types<OtherOnScalars>().find("its operator on plain numbers"),
            std::string::npos);
  EXPECT_NE(faults_of_types<WrongSlopeOfTable>("t[Hq]=uniform(0,1)")
                .find("wrong derivative to a captured tensor: 2"),
            std::string::npos);
  EXPECT_NE((faults_of_types<Identity, UnsoundMask>().find("range unsound")), std::string::npos);
}

TEST(ExamineTypes, says_which_table_does_not_fit) {
  for (const auto& [table, text] : {std::pair{"", "expected at least 1"},
                                    {"t[Hq,Skv]=uniform(0,1)", "expected real of rank 1"},
                                    {"t[Hq]=ints(0,3)", "holds index of rank 1"}}) {
    try {
      faults_of_types<WrongSlopeOfTable>(table);
      ADD_FAILURE() << table;
    } catch (const std::invalid_argument& refusal) {
      EXPECT_NE(std::string(refusal.what()).find(text), std::string::npos) << refusal.what();
    }
  }
}

TEST(CaseOfTypes, is_read_back_and_needs_the_type_to_be_built_in) {
  Case c;
  c.mod_type = "my::Mod";
  const std::string text = to_text(c);
  EXPECT_NE(text.find("modtype: my::Mod; mask: true"), std::string::npos) << text;
  EXPECT_EQ(to_text(parse_case(text)), text);
  EXPECT_THROW(functors_of(c, {}), std::invalid_argument);
}

}  // namespace
}  // namespace attn::fuzz
