// Relations: they hold in the kernels that ship, on random cases of every implementation, and each
// is broken by a fault: one that is planted, or a wrong call of a kernel that ships.
#include "fuzz/relations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/commands.h"
#include "mods/lang/compile.h"

namespace attn::fuzz {
namespace {

/// Cases of each relation; more by ATTN_RELATION_CASES in the environment.
int cases_of_each() {
  const char* text = std::getenv("ATTN_RELATION_CASES");
  return text ? std::atoi(text) : 12;
}

TEST(Relations, HoldInTheKernelsThatShip) {
  const auto drawn_for = [](std::size_t relation, int n) {
    return drawn_case({}, 0x3e1 + relation, n).value();
  };
  for (std::size_t i = 0; i < relations().size(); ++i) {
    const Relation& relation = relations()[i];
    int ran = 0, refused = 0;
    std::map<std::string, int> rows;
    for (int n = 0; ran < cases_of_each() && n < 40 * cases_of_each(); ++n) {
      const std::optional<Case> c = relation.fitted(drawn_for(i, n));
      if (!c) continue;
      const RelationVerdict v = run_relation(relation, *c);
      EXPECT_FALSE(is_failure(v.outcome)) << report(relation, *c, v);
      v.outcome == Outcome::refused ? ++refused : ++ran;
      ++rows[c->implementation];
    }
    EXPECT_EQ(ran, cases_of_each()) << relation.name;
    std::printf("%-16s %d cases, %d refused, %zu implementations\n", relation.name.data(), ran,
                refused, rows.size());
  }
}

// ---- faults of no kernel but of what stands around one ------------------------------------------

/// Lengths are rounded up to eight where there is room: what follows the last key is read.
std::string_view lengths_of_eight(const Implementation& row, const AttentionCall& given) {
  AttentionCall call = given;
  std::vector<std::int32_t> lengths(given.lengths.begin(), given.lengths.end());
  for (std::int32_t& length : lengths)
    length = std::min((length + 7) / 8 * 8, static_cast<std::int32_t>(given.k.extents[2]));
  call.lengths = lengths;
  return row.run(call, Engine::warp);
}

/// The keys on a page that is not full are left out.
std::string_view whole_pages(const Implementation& row, const AttentionCall& given) {
  AttentionCall call = given;
  std::vector<std::int32_t> lengths(given.lengths.begin(), given.lengths.end());
  for (std::int32_t& length : lengths) length -= length % given.k.extents[2];
  call.lengths = lengths;
  return row.run(call, Engine::warp);
}

/// A mod of more than a few instructions is taken for the score.
std::string_view short_mods(const Implementation& row, const AttentionCall& given) {
  AttentionCall call = given;
  if (given.mod.program.instruction_count > 6) call.mod = compile_mod(variable(Op::score), {});
  return row.run(call, Engine::warp);
}

/// Counts in the workspace, from whatever stands there, and stops where another seems to be done.
std::string_view counting(const Implementation& row, const AttentionCall& call) {
  if (call.options.workspace.data && *static_cast<const int*>(call.options.workspace.data) != 0)
    return name_of(Engine::warp);
  return row.run(call, Engine::warp);
}

/// O is saturated, as an integer type with a fixed scale would.
std::string_view saturating(const Implementation& row, const AttentionCall& call) {
  const std::string_view target = row.run(call, Engine::warp);
  const auto o = view_of<float, 4>(call.o);
  for (std::int64_t b = 0; b < o.extents[0]; ++b)
    for (std::int64_t h = 0; h < o.extents[1]; ++h)
      for (std::int64_t i = 0; i < o.extents[2]; ++i)
        for (std::int64_t d = 0; d < o.extents[3]; ++d)
          o(b, h, i, d) = std::clamp(o(b, h, i, d), -2.0f, 2.0f);
  return target;
}

/// Of more than 16 rows the last is left out: its dQ is 0.
std::string_view tail_without_dq(const Implementation& row, const AttentionCall& call) {
  const std::string_view target = row.run(call, Engine::warp);
  if (!call.dq.data || call.dq.extents[2] <= 16) return target;
  const auto dq = view_of<std::uint16_t, 4>(call.dq);
  for (std::int64_t b = 0; b < dq.extents[0]; ++b)
    for (std::int64_t h = 0; h < dq.extents[1]; ++h)
      for (std::int64_t d = 0; d < dq.extents[3]; ++d) dq(b, h, dq.extents[2] - 1, d) = 0;
  return target;
}

// ---- every relation is broken by one
// -------------------------------------------------------------

/// A relation and a fault that it finds among a few cases: a planted one, or the kernel that is run
/// in place of the one that ships.
struct Found {
  const char *relation, *implementation, *planted = "";
  std::string_view (*kernel)(const Implementation&, const AttentionCall&) = nullptr;
};
const Found found[] = {{"head_copies", "decode_paged", "M57"},
                       {"batch_copies", "flash_forward_fp32", "M30"},
                       {"head_order", "flash_forward_tf32", "M26"},
                       {"batch_order", "packed_backward", "M45"},
                       {"repeated_heads", "flash_forward_tf32", "M26"},
                       {"masked_keys", "flash_forward", "M02"},
                       {"longer_cache", "decode", "", lengths_of_eight},
                       {"page_size", "decode_paged", "", whole_pages},
                       {"other_words", "flash_forward", "", short_mods},
                       {"dirty_workspace", "decode", "", counting},
                       {"scaled_values", "flash_forward_fp32", "", saturating},
                       {"key_order", "flash_forward_tf32", "M07"},
                       {"shifted_scores", "flash_forward_tf32", "M06"},
                       {"merged_halves", "packed_forward", "M12"},
                       {"other_splits", "decode_paged", "M05"},
                       {"decode_step", "decode_paged", "M28"},
                       {"ones", "flash_forward_tf32", "M01"},
                       {"dv_sum", "packed_backward", "M12"},
                       {"dv_v", "packed_backward", "M07"},
                       {"dq_q", "flash_backward", "M47"},
                       {"dq_q", "flash_backward", "", tail_without_dq}};

/// True if a random case breaks the relation with the fault and not without.
bool finds(const Found& f) {
  const Relation& relation = relation_named(f.relation);
  RunOptions options;
  options.planted = parse_planted(f.planted);
  options.on_device = f.kernel;
  Fixed fixed;
  fixed.implementations = {f.implementation};
  for (int n = 0; n < 200; ++n) {
    const std::optional<Case> c = relation.fitted(drawn_case(fixed, 5, n).value());
    if (c && run_relation(relation, *c, options).outcome == Outcome::discrepancy &&
        !is_failure(run_relation(relation, *c).outcome))
      return true;
  }
  return false;
}

TEST(Relations, EachFindsAFault) {
  std::set<std::string_view> proved;
  for (const Found& f : found) {
    EXPECT_TRUE(finds(f)) << f.relation << " does not see " << f.planted;
    proved.insert(f.relation);
  }
  for (const Relation& relation : relations())
    EXPECT_TRUE(proved.contains(relation.name)) << "nothing breaks " << relation.name;
}

// ---- a failure is shrunk
// -------------------------------------------------------------------------

/// The first failure of a relation with a planted fault, shrunk. Neighbours to which the relation
/// can be fitted do not break it.
RelationFailure shrunk(const char* name, PlantedFault fault, const char* implementation) {
  const Relation& relation = relation_named(name);
  RunOptions options;
  options.planted = fault;
  Fixed fixed;
  fixed.implementations = {implementation};
  for (int n = 0; n < 200; ++n) {
    const rc::Shrinkable<Case> drawn = drawn_case(fixed, 5, n);
    const std::optional<Case> c = relation.fitted(drawn.value());
    if (!c) continue;
    const RelationVerdict v = run_relation(relation, *c, options);
    if (is_failure(v.outcome)) return shrunk_failure(relation, drawn, v, options, 300);
  }
  ADD_FAILURE() << name << " holds";
  return {&relation, {}, {}, {}};
}

/// What is reported is the shrunk case.
void expect_report(const RelationFailure& f, PlantedFault fault) {
  RunOptions options;
  options.planted = fault;
  EXPECT_TRUE(is_failure(f.verdict.outcome));
  EXPECT_EQ(run_relation(*f.relation, f.shrunk, options).reason, f.verdict.reason);
  const std::string text = report(f);
  for (const std::string& part :
       {f.verdict.reason, "replay '" + to_text(f.shrunk) + "' --relation ",
        "shrunk from  '" + to_text(f.original) + "'\n"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

/// h % Hkv and h / group differ from two groups of two heads on.
TEST(Relations, AFailureIsShrunkToTheSmallestCase) {
  RelationFailure f = shrunk("head_order", PlantedFault::M26, "flash_forward");
  expect_report(f, PlantedFault::M26);
  f.shrunk.seed = 0;
  EXPECT_EQ(to_text(f.shrunk),
            "v1 B1 Hq4 Hkv2 Sq1 Skv1 D1 Dv1 fp16; mod: score; mask: true; fill: gaussian; seed: 0; "
            "impl: flash_forward");
}

/// Two keys, so that dS is not 0, of which a mask or a mod tells the first.
TEST(Relations, AFailureOfGradientsIsShrunkToTheSmallestCase) {
  const RelationFailure f = shrunk("dq_q", PlantedFault::M47, "flash_backward");
  expect_report(f, PlantedFault::M47);
  const Case& c = f.shrunk;
  EXPECT_EQ(c.b * c.hq * c.sq * c.d * c.dv, 1) << to_text(c);
  EXPECT_EQ(c.skv, 2) << to_text(c);
  EXPECT_LE(c.mod->size + c.mask->size, 4) << to_text(c) << ": such as kv < 1";
  EXPECT_TRUE(c.tables.empty()) << to_text(c);
}

TEST(Relations, AreKnownByName) {
  for (const Relation& relation : relations()) EXPECT_EQ(&relation_named(relation.name), &relation);
  EXPECT_THROW(relation_named("sums"), std::invalid_argument);
}

}  // namespace
}  // namespace attn::fuzz
