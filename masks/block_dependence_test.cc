#include "masks/block_dependence.h"

#include <gtest/gtest.h>

#include "masks/causal.h"
#include "masks/dense.h"
#include "masks/document.h"
#include "masks/full.h"
#include "masks/window.h"
#include "mods/lang/parse.h"
#include "mods/lang/tree_functor.h"

namespace attn {
namespace {

/// "b h q kv", those that the mask may depend on.
template <class Mask>
std::string depends_on(const Mask& mask) {
  const unsigned on = dependence_of(mask, {2, 4, 2, 8, 8}).on;
  std::string text;
  if (on & Dependence::on_b) text += "b ";
  if (on & Dependence::on_h) text += "h ";
  if (on & Dependence::on_q) text += "q ";
  if (on & Dependence::on_kv) text += "kv ";
  return text;
}

TEST(BlockDependence, of_the_masks) {
  Tensor<std::int32_t, 1> one({1}), two({2}), ids({8});
  Tensor<std::int32_t, 2> rows({2, 8});
  const bool flags[2 * 8] = {};
  EXPECT_EQ(depends_on(full()), "");
  EXPECT_EQ(depends_on(causal()), "q kv ");
  EXPECT_EQ(depends_on(causal(bottom_right)), "q kv ");
  EXPECT_EQ(depends_on(causal(diagonal_offset(one))), "q kv ");
  EXPECT_EQ(depends_on(causal(diagonal_offset(two))), "b q kv ");
  EXPECT_EQ(depends_on(window(2, unbounded)), "q kv ");
  EXPECT_EQ(depends_on(document(ids)), "q kv ");
  EXPECT_EQ(depends_on(document(rows)), "b q kv ");
  EXPECT_EQ(depends_on(causal() && !document(rows)), "b q kv ");
  EXPECT_EQ(depends_on(dense(TensorView<const bool, 4>{flags, {2, 1, 1, 8}, {8, 0, 0, 1}})),
            "b kv ");
}

TEST(BlockDependence, of_lambdas_and_plain_functions) {
  EXPECT_EQ(depends_on([](auto, auto h, auto, auto kv) { return select(h < 2, kv, 0) == 0; }),
            "h kv ");
  EXPECT_EQ(depends_on([](auto, auto h, auto, auto kv) { return h * 0.5 < tanh(kv * 1.0); }),
            "h kv ");
  // A plain function may look at all it is given.
  EXPECT_EQ(depends_on([](int, int, int q, int kv) { return kv <= q; }), "b h q kv ");
}

TEST(BlockDependence, of_expressions) {
  Tensor<std::int32_t, 2> rows({2, 8});
  Tensor<float, 1> gate({4});
  Tables tables;
  tables.add("rows", rows.view());
  tables.add("gate", gate.view());
  const auto of = [&](const char* text) {
    return depends_on(TreeMask(parse_mask(text, tables.declarations()), tables));
  };
  EXPECT_EQ(of("true"), "");
  EXPECT_EQ(of("kv <= q + (Skv - Sq)"), "q kv ");
  EXPECT_EQ(of("rows[b, kv] > 0 ? kv < 3 : q < 3"), "b q kv ");
  EXPECT_EQ(of("tanh(gate[h]) < 0.5 || max(q, 3) == floor_mod(q, 2)"), "h q ");
  EXPECT_EQ(of("(kv < 3) == (b % 2 == 0)"), "b kv ");
  EXPECT_EQ(of("abs(h - 1) < 2 && (h < 2 ? q : kv) < clamp(b, 0, 1)"), "b h q kv ");
}

}  // namespace
}  // namespace attn
