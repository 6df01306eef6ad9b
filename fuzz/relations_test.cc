// Relations: they hold in the kernels that ship, on random cases of every implementation, and each
// breaks in a build with a planted fault.
#include "fuzz/relations.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "fuzz/campaign.h"
#include "fuzz/commands.h"

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

/// A relation and a fault that it finds among a few cases.
struct Found {
  const char *relation, *fault, *implementation;
};
const Found found[] = {{"key_order", "M07", "flash_forward_tf32"},
                       {"shifted_scores", "M06", "flash_forward_tf32"},
                       {"merged_halves", "M12", "packed_forward"},
                       {"other_splits", "M05", "decode_paged"},
                       {"decode_step", "M28", "decode_paged"},
                       {"ones", "M01", "flash_forward_tf32"},
                       {"dv_sum", "M12", "packed_backward"},
                       {"dv_v", "M07", "packed_backward"},
                       {"masked_keys", "M02", "flash_forward"},
                       {"head_order", "M26", "flash_forward_tf32"},
                       {"repeated_heads", "M26", "flash_forward_tf32"},
                       {"batch_order", "M45", "packed_backward"}};

/// The others are for faults that none planted here is like: what the checker of the engine does
/// not stop first leaves two copies alike.
TEST(Relations, ManyFindAPlantedFault) {
  std::set<std::string_view> proved;
  for (const Found& f : found) {
    const Relation& relation = relation_named(f.relation);
    RunOptions options;
    options.planted = parse_planted(f.fault);
    Fixed fixed;
    fixed.implementations = {f.implementation};
    for (int n = 0; n < 200 && !proved.contains(relation.name); ++n) {
      const std::optional<Case> c = relation.fitted(drawn_case(fixed, 5, n).value());
      if (c && run_relation(relation, *c, options).outcome == Outcome::discrepancy &&
          !is_failure(run_relation(relation, *c).outcome))
        proved.insert(relation.name);
    }
    EXPECT_TRUE(proved.contains(relation.name)) << relation.name << " does not see " << f.fault;
  }
}

TEST(Relations, AreKnownByName) {
  for (const Relation& relation : relations()) EXPECT_EQ(&relation_named(relation.name), &relation);
  EXPECT_THROW(relation_named("sums"), std::invalid_argument);
}

}  // namespace
}  // namespace attn::fuzz
