#include <gtest/gtest.h>

#include "fuzz/case.h"
#include "fuzz/run.h"

/// The benchmark case, B 8, H 8, S 2048, D 64 in fp16 with the production tile, on emulated warps,
/// every element of O and LSE against its own bound.
namespace attn::fuzz {
namespace {

constexpr const char* shape = "v1 B8 Hq8 Hkv8 Sq2048 Skv2048 D64 Dv64 fp16";
constexpr const char* rest = "tile: production; fill: gaussian; seed: 2048; impl: flash_forward";

void expect_pass(const std::string& mod_and_mask) {
  const Case c = parse_case(std::string(shape) + "; " + mod_and_mask + "; " + rest);
  const Verdict verdict = run_case(c);
  EXPECT_EQ(verdict.outcome, Outcome::pass) << report(c, verdict);
  EXPECT_EQ(verdict.target, name_of(Engine::warp));
}

TEST(SeedCase, AlibiCausal) {
  expect_pass("mod: score + slope[h] * (kv - q); mask: kv <= q; table: slope[Hq]=alibi");
}

TEST(SeedCase, Checkerboard) {
  expect_pass("mod: floor_mod(kv - q, 2) == 0 ? score / 2 : 2 * score; mask: true");
}

}  // namespace
}  // namespace attn::fuzz
