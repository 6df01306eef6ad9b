// One kernel source, two engines: whatever the case, both give the same bits, and neither the order
// of blocks and warps nor the moment at which copies land changes one.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "fuzz/campaign.h"
#include "fuzz/run.h"

namespace attn::fuzz {
namespace {

/// A drawn case, cut down so that the thread engine, which is several times slower, keeps up.
Case small_case(std::uint64_t seed, int i) {
  Case c = drawn_case({}, seed, i).value();
  c.b = std::min(c.b, 2);
  if (c.hkv > 0) {
    const int group = std::min(c.hq / c.hkv, 2);
    c.hkv = std::min(c.hkv, 2);
    c.hq = group * c.hkv;
  }
  c.sq = std::min(c.sq, 70);
  c.skv = std::min(c.skv, 70);
  if (c.b * c.hq > 2) c.sq = std::min(c.sq, 33);
  for (auto [lengths, most] : {std::pair(&c.query_lengths, c.sq), {&c.key_lengths, c.skv}}) {
    if (!lengths->empty()) lengths->resize(c.b);
    for (int& length : *lengths) length = std::min(length, most);
  }
  if (!c.small_tile || c.b * c.hq > 4) c.d = std::min(c.d, 64), c.dv = std::min(c.dv, 64);
  return c;
}

RunOptions on(Engine engine, bool random_schedule) {
  RunOptions options;
  options.engine = engine;
  options.random_schedule = random_schedule;
  return options;
}

TEST(Engines, AreTwo) {
  const Case c = small_case(51, 0);
  const RawOutputs warp = run_raw(c, on(Engine::warp, false)),
                   thread = run_raw(c, on(Engine::thread, false));
  ASSERT_EQ(warp.target, "warp");
  ASSERT_EQ(thread.target, "thread");
}

TEST(Engines, GiveTheSameBits) {
  int with_keys = 0;
  std::set<std::string> seen;  // implementations
  for (int i = 0; i < 520; ++i) {
    const Case c = small_case(52, i);
    const RawOutputs warp = run_raw(c, on(Engine::warp, false)),
                     thread = run_raw(c, on(Engine::thread, false));
    ASSERT_NE(warp.target, thread.target);
    ASSERT_TRUE(warp == thread) << to_text(c);
    seen.insert(c.implementation);
    with_keys += c.b * c.hq * c.sq * c.skv > 0;
  }
  EXPECT_GE(with_keys, 450);
  EXPECT_EQ(seen.size(), implementations().size());
}

TEST(Engines, OutputsDifferWhereTheCaseDoes) {
  Case c = parse_case("v1 B1 Hq2 Hkv1 Sq5 Skv40 D16 Dv9 bf16"), other = c;
  other.seed += 1;
  EXPECT_FALSE(run_raw(c, on(Engine::warp, false)) == run_raw(other, on(Engine::warp, false)));
}

TEST(Schedules, GiveTheSameBits) {
  for (int i = 0; i < 200; ++i) {
    const Case c = small_case(54, i);
    const RawOutputs fixed = run_raw(c, on(Engine::warp, false));
    ASSERT_TRUE(run_raw(c, on(Engine::warp, true)) == fixed) << to_text(c);
    if (i % 6 == 0) {
      ASSERT_TRUE(run_raw(c, on(Engine::thread, true)) == fixed) << to_text(c);
    }
  }
}

}  // namespace
}  // namespace attn::fuzz
