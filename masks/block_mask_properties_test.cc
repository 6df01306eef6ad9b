#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "masks/block_brute_force.h"
#include "masks/block_convert.h"
#include "masks/block_mask_builder.h"
#include "masks/causal.h"
#include "masks/document.h"
#include "masks/window.h"
#include "mods/lang/parse.h"
#include "mods/lang/tree_functor.h"

/// Random masks, shapes and block sizes: every answer of a block mask is held against every pair.
namespace attn {
namespace {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int in(int low, int high) {
    return low + static_cast<int>(engine_() % static_cast<unsigned>(high - low + 1));
  }
  bool coin() { return in(0, 1) == 1; }
  std::string constant(int low, int high) { return "(" + std::to_string(in(low, high)) + ")"; }

  /// A whole number that stays within 32 bits; divisors are constants.
  std::string index(int depth) {
    if (depth == 0) {
      const char* leaves[] = {"q",      "kv",      "q",           "kv",  "b", "h",
                              "doc[q]", "doc[kv]", "rows[b, kv]", "Skv", "Sq"};
      return in(0, 5) == 0 ? constant(-9, 9) : leaves[in(0, 10)];
    }
    const auto a = [&] { return index(depth - 1); };
    const std::string divisor = coin() ? constant(1, 9) : constant(-7, -1);
    switch (in(0, 10)) {
      case 0:
        return "(" + a() + " + " + a() + ")";
      case 1:
        return "(" + a() + " - " + a() + ")";
      case 2:
        return "(" + a() + " * " + constant(-4, 4) + ")";
      case 3:
        return "(" + a() + " / " + divisor + ")";
      case 4:
        return "(" + a() + " % " + divisor + ")";
      case 5:
        return "floor_div(" + a() + ", " + divisor + ")";
      case 6:
        return "floor_mod(" + a() + ", " + divisor + ")";
      case 7:
        return "max(" + a() + ", " + a() + ")";
      case 8:
        return "doc[clamp(" + a() + ", 0, 40)]";
      case 9:
        return "abs(" + a() + ")";
      default:
        return "(" + relation() + " ? " + a() + " : " + a() + ")";
    }
  }
  std::string relation() {
    const char* relations[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    return "(" + index(in(0, 2)) + relations[in(0, 5)] + index(in(0, 2)) + ")";
  }
  std::string condition(int depth) {
    if (depth == 0) return in(0, 7) > 0 ? relation() : coin() ? "keep[kv]" : "(gate[q] > gate[kv])";
    const std::string a = condition(depth - 1);
    switch (in(0, 4)) {
      case 0:
        return "(" + a + " && " + condition(depth - 1) + ")";
      case 1:
        return "(" + a + " || " + condition(depth - 1) + ")";
      case 2:
        return "(!" + a + ")";
      case 3:
        return "(" + a + " == " + condition(0) + ")";
      default:
        return a;
    }
  }

 private:
  std::mt19937 engine_;
};

/// Tables for every case: lengths up to 40, up to 3 batch entries.
struct Memory {
  Tensor<std::int32_t, 1> doc{{41}};
  Tensor<std::int32_t, 2> rows{{3, 41}};
  Tensor<float, 1> gate{{41}};
  bool keep[41];
  Tables tables;

  explicit Memory(Random& random) {
    int id = 0;
    for (int i = 0; i < 41; ++i) {
      doc(i) = id += random.in(0, 9) == 0;
      gate(i) = static_cast<float>(random.in(-8, 8)) / 4;
      keep[i] = random.in(0, 5) != 0;
      for (int b = 0; b < 3; ++b) rows(b, i) = random.in(-3, 3) * (i % 7 == 0);
    }
    tables.add("doc", doc.view());
    tables.add("rows", rows.view());
    tables.add("gate", gate.view());
    tables.add("keep", TensorView<const bool, 1>{keep, {41}, {1}});
  }
};

Sizes random_sizes(Random& random) {
  const int heads = random.in(1, 2);
  return {random.in(1, 3), heads, heads, random.in(0, 40), random.in(0, 40)};
}

/// Everything that is promised of the block mask of one mask.
template <class Mask>
void check_everything(const Mask& mask, const Sizes& sizes, Random& random) {
  const BlockMask built = make_block_mask(mask, sizes, {random.in(1, 17), random.in(1, 17)});
  ASSERT_EQ(first_wrong_block(built, mask, sizes), "");
  const BlockMaskShape& shape = built.shape();

  if (shape.stored_rows() > 0 && sizes.skv > 0)
    for (int n = 0; n < 20; ++n) {  // on any box, several heads included
      Box box;
      const int lengths[] = {sizes.b, sizes.hq, sizes.sq, sizes.skv};
      for (int axis = 0; axis < 4; ++axis) {
        box.first[axis] = random.in(0, lengths[axis] - 1);
        box.last[axis] = random.in(box.first[axis], lengths[axis] - 1);
      }
      ASSERT_EQ(wrong_verdict(mask, sizes, box, Verdicts::sound), "");
    }

  const BlockMask transposed = transpose(built);
  ASSERT_EQ(first_wrong_block(transposed,
                              [&](int b, int h, int r, int c) { return built.kind(b, h, c, r); }),
            "");
  ASSERT_EQ(transpose(transposed), built);

  const BlockMask tiles = retile(built, random.in(1, 20), random.in(1, 20));
  ASSERT_EQ(first_wrong_cut(tiles, built, 0, 0, 0, 0), "");
  ASSERT_EQ(retile(built, shape.q_block, shape.kv_block), built);

  BlockMaskPart part{random.in(0, sizes.b - 1), 1, random.in(0, sizes.hq - 1), 1};
  part.q_first = random.in(0, sizes.sq);
  part.q_count = random.in(0, sizes.sq - part.q_first);
  part.kv_first = random.in(0, sizes.skv);
  part.kv_count = random.in(0, sizes.skv - part.kv_first);
  ASSERT_EQ(first_wrong_cut(slice(built, part), built, part.b_first, part.h_first, part.q_first,
                            part.kv_first),
            "");

  Tensor<std::uint8_t, 4> memory({sizes.b, sizes.hq, sizes.sq, sizes.skv});
  const TensorView<bool, 4> dense{reinterpret_cast<bool*>(memory.values().data()), memory.extents(),
                                  contiguous_strides(memory.extents())};
  write_dense(built, mask, sizes, dense);
  for (int b = 0; b < sizes.b; ++b)
    for (int h = 0; h < sizes.hq; ++h)
      for (int i = 0; i < sizes.sq; ++i)
        for (int j = 0; j < sizes.skv; ++j)
          ASSERT_EQ(dense(b, h, i, j), attends<ExactEnv>(mask, sizes, b, h, i, j));
  ASSERT_EQ(block_mask_from_dense(dense, shape), built);
  const Tensor<BlockKind, 4> kinds = block_kinds(built);
  ASSERT_EQ(block_mask_from_kinds(kinds.view(), shape), built);
  ASSERT_EQ(block_mask_from_flex(to_flex(built), shape), built);

  // Cut at whole blocks, a slice is the mask of that part built anew.
  BlockMaskPart whole{random.in(0, sizes.b - 1), 1};
  whole.q_first = random.in(0, sizes.sq / shape.q_block) * shape.q_block;
  whole.kv_first = random.in(0, sizes.skv / shape.kv_block) * shape.kv_block;
  TensorView<const bool, 4> rest = dense;
  rest.data = rest.data + rest.offset(whole.b_first, 0, whole.q_first, whole.kv_first);
  rest.extents = {1, sizes.hq, sizes.sq - whole.q_first, sizes.skv - whole.kv_first};
  ASSERT_EQ(slice(built, whole), block_mask_from_dense(rest, {1, sizes.hq, sizes.sq - whole.q_first,
                                                              sizes.skv - whole.kv_first,
                                                              shape.q_block, shape.kv_block}));
}

TEST(BlockMaskProperties, random_expressions) {
  int full = 0, partial = 0, empty = 0, decided = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    const Memory memory(random);
    const std::string text = random.condition(random.in(0, 3));
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text);
    const TreeMask mask(parse_mask(text, memory.tables.declarations()), memory.tables);
    const Sizes sizes = random_sizes(random);
    check_everything(mask, sizes, random);
    if (HasFatalFailure()) return;
    const BlockMaskStatistics s = make_block_mask(mask, sizes, {4, 4}).statistics();
    full += s.full_blocks > 0;
    partial += s.partial_blocks > 0;
    empty += s.empty_blocks > 0;
    decided += s.scanned_elements < std::int64_t{sizes.sq} * sizes.skv / 4;
  }
  // The generator covers all kinds, and intervals decide most.
  EXPECT_GT(full, 100);
  EXPECT_GT(partial, 100);
  EXPECT_GT(empty, 100);
  EXPECT_GT(decided, 200);
}

TEST(BlockMaskProperties, random_masks_of_the_algebra) {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    const Memory memory(random);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Sizes sizes = random_sizes(random);
    Tensor<std::int32_t, 1> offsets({sizes.b});
    for (auto& offset : offsets.values()) offset = random.in(-20, 20);
    const Alignment aligns[] = {top_left, bottom_right, diagonal_offset(random.in(-9, 9)),
                                diagonal_offset(offsets)};
    const auto diagonal = causal(aligns[random.in(0, 3)]);
    const auto band = window(random.in(0, 20), random.in(0, 20), aligns[random.in(0, 3)]);
    const auto documents = document(memory.doc);
    switch (random.in(0, 6)) {
      case 0:
        check_everything(diagonal, sizes, random);
        break;
      case 1:
        check_everything(band, sizes, random);
        break;
      case 2:
        check_everything(diagonal && documents, sizes, random);
        break;
      case 3:
        check_everything(band || documents, sizes, random);
        break;
      case 4:
        check_everything(diagonal != documents, sizes, random);
        break;
      case 5:
        check_everything(!band && diagonal, sizes, random);
        break;
      default:
        check_everything(!(documents && band) || diagonal, sizes, random);
        break;
    }
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace attn
