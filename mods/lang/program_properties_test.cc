#include <gtest/gtest.h>

#include <cmath>

#include "mods/lang/compile.h"
#include "mods/lang/expression_samples.h"

// Expressions run in two ways: as a tree (the reference) and as a program (the kernels). Random
// trees hold them against each other on every host environment, and the environments against each
// other.
namespace attn {
namespace {

using samples::is_accepted;
using samples::Place;
using samples::place;
using samples::same_bits;

/// A scalar kernel: fp32 scores.
struct FloatEnv {
  using Int = int;
  using Score = float;
  Sizes sizes;
  float to_score(int i) const { return static_cast<float>(i); }
  template <int Rank, class T>
  auto read(const Captured<Rank, T>& c, const int (&at)[Rank]) const {
    return c.tensor.data[checked_offset(c, at)];
  }
};

struct ModPair {
  TreeMod tree;
  ProgramMod program;
};
struct MaskPair {
  TreeMask tree;
  ProgramMask program;
};

class RandomExpressions : public testing::TestWithParam<int> {
 protected:
  static constexpr int trees = 1000, points = 20;
  samples::SampleTables tables_{static_cast<std::uint64_t>(GetParam())};
  samples::Trees everything_{100u + static_cast<unsigned>(GetParam()), tables_.tables(), false};
  samples::Trees finite_{200u + static_cast<unsigned>(GetParam()), tables_.tables(), true};

  /// The next mod that the library accepts and that fits a program.
  ModPair mod(samples::Trees& from) {
    for (;;) {
      TreeMod tree(from.draw(ValueType::real, 3 + from.below(5)), tables_.tables());
      if (!is_accepted(tree)) continue;
      try {
        return {tree, compile_mod(tree.expression(), tables_.tables())};
      } catch (const std::invalid_argument&) {
        ++too_large_;
      }
    }
  }
  MaskPair mask(samples::Trees& from) {
    from.without_score();
    for (;;) {
      TreeMask tree(from.draw(ValueType::condition, 2 + from.below(4)), tables_.tables());
      if (!is_accepted(tree)) continue;
      try {
        return {tree, compile_mask(tree.expression(), tables_.tables())};
      } catch (const std::invalid_argument&) {
        ++too_large_;
      }
    }
  }
  template <class Env>
  Place<Env> somewhere(Env& env) {
    const Sizes& n = samples::sizes;
    return place(env, finite_.below(n.b), finite_.below(n.hq), finite_.below(n.sq),
                 finite_.below(n.skv));
  }
  float some_score() { return static_cast<float>(finite_.below(8001) - 4000) / 1000; }

  int too_large_ = 0;
};

TEST_P(RandomExpressions, TreeAndProgramGiveTheSameBits) {
  ExactEnv env{samples::sizes};
  for (int i = 0; i < trees; ++i) {
    const ModPair f = mod(everything_);
    for (int k = 0; k < points; ++k) {
      const auto p = somewhere(env);
      const double s = some_score(), tree = call_mod(f.tree, s, p.b, p.h, p.q, p.kv);
      ASSERT_TRUE(same_bits(call_mod(f.program, s, p.b, p.h, p.q, p.kv), tree))
          << to_text(f.tree.expression());
    }
  }
  EXPECT_LT(too_large_, trees);  // most random mods fit
}

TEST_P(RandomExpressions, TreeAndProgramGiveTheSameConditions) {
  ExactEnv env{samples::sizes};
  for (int i = 0; i < trees; ++i) {
    const MaskPair f = mask(everything_);
    for (int k = 0; k < points; ++k) {
      const auto p = somewhere(env);
      ASSERT_EQ(call_mask(f.program, p.b, p.h, p.q, p.kv), call_mask(f.tree, p.b, p.h, p.q, p.kv))
          << to_text(f.tree.expression());
    }
  }
}

TEST_P(RandomExpressions, TreeAndProgramGiveTheSameDerivatives) {
  for (int i = 0; i < trees; ++i) {
    const ModPair f = mod(everything_);
    DualEnv tree_env{samples::sizes}, program_env{samples::sizes};
    const auto p = somewhere(tree_env);
    const Place<DualEnv> o{{p.b.value, &program_env}, {p.h.value, &program_env},
                           {p.q.value, &program_env}, {p.kv.value, &program_env}};
    const double s = some_score();
    for (int seeded = -1, reads = 0; seeded < reads; ++seeded) {
      tree_env.reads = program_env.reads = 0;
      tree_env.seeded = program_env.seeded = seeded;
      const Dual<double> x(s, seeded < 0 ? 1.0 : 0.0);
      const Dual<double> a = call_mod(f.tree, x, p.b, p.h, p.q, p.kv);
      const Dual<double> b = call_mod(f.program, x, o.b, o.h, o.q, o.kv);
      ASSERT_TRUE(same_bits(a.v, b.v) && same_bits(a.d, b.d)) << to_text(f.tree.expression());
      ASSERT_EQ(tree_env.reads, program_env.reads);
      ASSERT_EQ(tree_env.seeded_data, program_env.seeded_data);
      ASSERT_EQ(tree_env.seeded_offset, program_env.seeded_offset);
      reads = tree_env.reads;
    }
  }
}

TEST_P(RandomExpressions, BothTraceTheSameTensors) {
  for (int i = 0; i < trees; ++i) {
    const ModPair f = mod(everything_);
    TraceEnv a, b;
    const auto p = place(a, 0, 0, 0, 0), o = place(b, 0, 0, 0, 0);
    call_mod(f.tree, 0.0, p.b, p.h, p.q, p.kv);
    call_mod(f.program, 0.0, o.b, o.h, o.q, o.kv);
    ASSERT_EQ(a.tensors.size(), b.tensors.size());
    for (std::size_t t = 0; t < a.tensors.size(); ++t) {
      ASSERT_EQ(a.tensors[t].data, b.tensors[t].data);
      ASSERT_STREQ(a.tensors[t].name, b.tensors[t].name);
      ASSERT_EQ(a.tensors[t].extents, b.tensors[t].extents);
    }
  }
}

/// A box of the index plane, its corners drawn at random.
struct Box {
  int low[4], high[4];
};
Box some_box(samples::Trees& random) {
  const int n[] = {samples::sizes.b, samples::sizes.hq, samples::sizes.sq, samples::sizes.skv};
  Box box;
  for (int axis = 0; axis < 4; ++axis) {
    const int widest = axis < 2 ? 2 : 6;
    box.low[axis] = random.below(n[axis]);
    box.high[axis] = std::min(n[axis] - 1, box.low[axis] + random.below(widest));
  }
  return box;
}
template <class Visit>
void for_each(const Box& x, Visit visit) {
  for (int b = x.low[0]; b <= x.high[0]; ++b)
    for (int h = x.low[1]; h <= x.high[1]; ++h)
      for (int q = x.low[2]; q <= x.high[2]; ++q)
        for (int kv = x.low[3]; kv <= x.high[3]; ++kv) visit(b, h, q, kv);
}
Place<RangeEnv> over(RangeEnv& env, const Box& x) {
  const auto side = [&](int axis) {
    return Index<RangeEnv>{Range<std::int64_t>(x.low[axis], x.high[axis]), &env};
  };
  return {side(0), side(1), side(2), side(3)};
}

TEST_P(RandomExpressions, RangesHoldForEveryElement) {
  RangeEnv range_env{samples::sizes};
  ExactEnv env{samples::sizes};
  FloatEnv float_env{samples::sizes};
  for (int i = 0; i < trees / 4; ++i) {
    const ModPair f = mod(finite_);
    const Box box = some_box(finite_);
    const auto r = over(range_env, box);
    const float s = some_score(), t = s + 0.25f;
    const Range<double> scores(s, t);
    const Range<double> range = call_mod(f.program, scores, r.b, r.h, r.q, r.kv);
    const Range<double> tree = call_mod(f.tree, scores, r.b, r.h, r.q, r.kv);
    ASSERT_TRUE(same_bits(range.low, tree.low) && same_bits(range.high, tree.high));
    for_each(box, [&](int b, int h, int q, int kv) {
      const auto p = place(env, b, h, q, kv);
      const auto o = place(float_env, b, h, q, kv);
      for (float score : {s, s + 0.125f, t})
        for (double y : {call_mod(f.tree, double{score}, p.b, p.h, p.q, p.kv),
                         double{call_mod(f.program, score, o.b, o.h, o.q, o.kv)}})
          ASSERT_TRUE(range.low <= y && y <= range.high)
              << y << " outside " << range.low << " .. " << range.high << ": "
              << to_text(f.tree.expression());
    });
  }
}

TEST_P(RandomExpressions, VerdictsHoldForEveryElement) {
  RangeEnv range_env{samples::sizes};
  ExactEnv env{samples::sizes};
  int decided = 0;
  for (int i = 0; i < trees; ++i) {
    const MaskPair f = mask(finite_);
    const Box box = some_box(finite_);
    const auto r = over(range_env, box);
    const Maybe verdict = call_mask(f.program, r.b, r.h, r.q, r.kv);
    const Maybe tree = call_mask(f.tree, r.b, r.h, r.q, r.kv);
    ASSERT_TRUE(verdict.yes() == tree.yes() && verdict.no() == tree.no());
    ASSERT_FALSE(verdict.yes() && verdict.no());
    decided += verdict.yes() || verdict.no();
    for_each(box, [&](int b, int h, int q, int kv) {
      const auto p = place(env, b, h, q, kv);
      const bool attends = call_mask(f.tree, p.b, p.h, p.q, p.kv);
      ASSERT_TRUE(attends ? verdict.can_be_true : verdict.can_be_false)
          << to_text(f.tree.expression());
    });
  }
  EXPECT_GT(decided, trees / 10);  // or the verdicts would be worth nothing
}

/// Holds one fp32 result against its bound; true where there was an error to bound.
bool within(float got, const Rounded& bound, const Expression& mod) {
  if (std::isinf(bound.e) || same_bits(got, bound.v)) return false;
  EXPECT_LE(std::abs(got - bound.v), bound.e)
      << "got " << got << ", exactly " << bound.v << ": " << to_text(mod);
  return true;
}

TEST_P(RandomExpressions, ErrorBoundsHoldInFp32) {
  RoundedEnv rounded_env{samples::sizes};
  FloatEnv float_env{samples::sizes};
  int bounded = 0;
  for (int i = 0; i < trees && !HasFailure(); ++i) {
    const ModPair f = mod(everything_);
    for (int k = 0; k < points; ++k) {
      const auto p = somewhere(float_env);
      const auto o = place(rounded_env, p.b.value, p.h.value, p.q.value, p.kv.value);
      const float s = some_score();
      const Rounded bound = call_mod(f.program, Rounded(s), o.b, o.h, o.q, o.kv);
      const Rounded tree = call_mod(f.tree, Rounded(s), o.b, o.h, o.q, o.kv);
      ASSERT_TRUE(same_bits(bound.v, tree.v) && same_bits(bound.e, tree.e) &&
                  bound.ambiguous == tree.ambiguous);
      bounded += within(call_mod(f.program, s, p.b, p.h, p.q, p.kv), bound, f.tree.expression());
    }
  }
  EXPECT_GT(bounded, trees * points / 10);
}

TEST_P(RandomExpressions, ErrorBoundsOfDerivativesHoldInFp32) {
  using RoundedDualEnv = BasicDualEnv<Rounded>;
  RoundedDualEnv rounded_env{samples::sizes};
  BasicDualEnv<float> float_env{samples::sizes};
  int bounded = 0;
  for (int i = 0; i < trees && !HasFailure(); ++i) {
    const ModPair f = mod(everything_);
    for (int k = 0; k < points; ++k) {
      const auto p = somewhere(float_env);
      const auto o = place(rounded_env, p.b.value, p.h.value, p.q.value, p.kv.value);
      const float s = some_score();
      float_env.reads = rounded_env.reads = 0;
      float_env.seeded = rounded_env.seeded = k % 4 - 1;  // the score, or one of the first reads
      const bool of_score = k % 4 == 0;
      const Dual<Rounded> x(Rounded(s), Rounded(of_score ? 1 : 0));
      const Dual<Rounded> bound = call_mod(f.program, x, o.b, o.h, o.q, o.kv);
      const Dual<float> y(s, of_score ? 1.0f : 0.0f);
      bounded += within(call_mod(f.tree, y, p.b, p.h, p.q, p.kv).d, bound.d, f.tree.expression());
    }
  }
  EXPECT_GT(bounded, trees * points / 50);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomExpressions, testing::Range(0, 4));

}  // namespace
}  // namespace attn
