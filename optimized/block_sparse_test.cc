// Block-sparse attention is dense attention that leaves out what attends to nothing: the same bits,
// whatever the blocks.
#include <gtest/gtest.h>

#include "masks/block_mask_builder.h"
#include "optimized/path_fixtures.h"
#include "optimized/simt/fault.h"

namespace attn::path_test {
namespace {

struct Case {
  const char* mask;
  Lengths n;
};

const Case cases[] = {
    {"kv <= q + (Skv - Sq)", {1, 2, 1, 70, 100, 16, 16}},
    {"q >= 40 && kv / 16 == q / 16", {1, 1, 1, 100, 70, 24, 8}},  // block rows and columns of none
    {"b == 0 ? kv <= q : (h == 1 ? kv >= q : kv > 200)", {2, 2, 2, 70, 70, 16, 40}},
    {"(kv + 5 * h) % 3 == 0 && kv / 40 != 1", {1, 4, 2, 33, 130, 72, 16}},
    {"false", {1, 2, 2, 40, 40, 16, 16}},
    {"true", {2, 1, 1, 70, 66, 16, 16}},
};

template <class T>
void prepare(Attention<T>& x, const Case& c) {
  x.fill_all();
  x.mod = "score + slope[h] * (kv - q)";
  x.mask = c.mask;
  x.give_sink();
  if (c.n.d == 24) x.options.dropout = {0.25, 3};
}

template <class T>
Sizes sizes_of(const Attention<T>& x) {
  return {x.n.b, x.n.hq, x.n.hkv, x.n.sq, x.n.skv};
}

template <class T>
BlockMask blocks_of(Attention<T>& x, int q_block, int kv_block,
                    Sharing sharing = Sharing::automatic) {
  return make_block_mask(x.call().mask, sizes_of(x), {q_block, kv_block, sharing, sharing});
}

/// Both passes.
template <class T>
void run_sparse(Attention<T>& x, const BlockMask& blocks, Engine engine) {
  AttentionCall forward = x.forward_call();
  forward.blocks = &blocks;
  implementation_named("block_sparse_forward").run(forward, engine);
  AttentionCall backward = x.backward_call();
  backward.blocks = &blocks;
  implementation_named("block_sparse_backward").run(backward, engine);
}

TEST(BlockSparse, GivesTheBitsOfDenseAttentionForEveryBlockSize) {
  for (const Case& c : cases) {
#if defined(ATTN_FIRST_INSTANCE_ONLY)
    if (c.n.d > 64) continue;
#endif
    SCOPED_TRACE(c.mask);
    for (const TileChoice tile : {TileChoice::small, TileChoice::production}) {
      Attention<half> dense(c.n);
      prepare(dense, c);
      dense.options.tile = tile;
      dense.forward(Engine::warp);
      dense.backward(Engine::warp);
      ASSERT_FALSE(has_nan(dense.o) || has_nan(dense.dq) || has_nan(dense.dk) || has_nan(dense.dv));
      for (const auto& [q_block, kv_block] :
           {std::pair{16, 16}, {24, 40}, {64, 32}, {128, 128}, {1, 7}, {200, 3}}) {
        Attention<half> sparse(c.n);
        prepare(sparse, c);
        sparse.options.tile = tile;
        run_sparse(sparse, blocks_of(sparse, q_block, kv_block), Engine::warp);
        EXPECT_TRUE(same_outputs(dense, sparse)) << q_block << " x " << kv_block;
        EXPECT_TRUE(same_gradients(dense, sparse)) << q_block << " x " << kv_block;
      }
    }
  }
}

TEST(BlockSparse, GivesTheBitsOfDenseAttentionInEveryBuild) {
  for_each_build([&](auto t, Engine engine) {
    Attention<decltype(t)> dense(cases[2].n), sparse(cases[2].n);
    prepare(dense, cases[2]);
    prepare(sparse, cases[2]);
    dense.forward(engine);
    dense.backward(engine);
    run_sparse(sparse, blocks_of(sparse, 24, 40), engine);
    EXPECT_TRUE(same_outputs(dense, sparse) && same_gradients(dense, sparse));
  });
}

/// One plane for all heads and batch entries, or one for each: the same.
TEST(BlockSparse, SharedPlanesAreLikePlanesOfOnesOwn) {
  const Case c{"kv <= q", {2, 2, 1, 70, 70, 16, 16}};
  Attention<half> shared(c.n), own(c.n);
  prepare(shared, c);
  prepare(own, c);
  const BlockMask one = blocks_of(shared, 32, 32, Sharing::required);
  const BlockMask each = blocks_of(own, 32, 32, Sharing::never);
  ASSERT_EQ(one.row_begin().size(), 4u);
  ASSERT_EQ(each.row_begin().size(), 13u);
  run_sparse(shared, one, Engine::warp);
  run_sparse(own, each, Engine::warp);
  EXPECT_TRUE(same_outputs(shared, own) && same_gradients(shared, own));
}

/// What the blocks call empty is not read: NaN in it is without effect.
TEST(BlockSparse, UnvisitedBlocksAreNotRead) {
  const Case c{"kv < 64 && q < 64", {1, 1, 1, 128, 128, 16, 16}};
  Attention<half> x(c.n), clean(c.n);
  prepare(x, c);
  prepare(clean, c);
  for (int i = 64; i < 128; ++i)
    for (int d = 0; d < 16; ++d) x.k(0, 0, i, d) = x.v(0, 0, i, d) = half{0x7e00};
  for (Attention<half>* y : {&x, &clean}) {
    y->options.tile = TileChoice::small;
    run_sparse(*y, blocks_of(*y, 64, 64), Engine::warp);
  }
  EXPECT_TRUE(same_outputs(x, clean) && same_gradients(x, clean));
}

/// The comparison notices what can go wrong with blocks.
TEST(BlockSparse, EqualityShowsPlantedFaults) {
  struct Planted {
    PlantedFault fault;
    bool backward;
    int which;
  };
  for (const auto& [fault, backward, which] :
       {Planted{PlantedFault::M49, false, 0}, Planted{PlantedFault::M49, true, 0},
        Planted{PlantedFault::M51, false, 2}, Planted{PlantedFault::M51, true, 2},
        Planted{PlantedFault::M52, false, 4}, Planted{PlantedFault::M61, true, 0},
        Planted{PlantedFault::none, false, 2}, Planted{PlantedFault::none, true, 2}}) {
    Attention<half> dense(cases[which].n), sparse(cases[which].n);
    for (Attention<half>* x : {&dense, &sparse}) {
      prepare(*x, cases[which]);
      x->options.tile = TileChoice::small;
      x->forward(Engine::warp);
      x->backward(Engine::warp);
    }
    ASSERT_TRUE(same_outputs(dense, sparse) && same_gradients(dense, sparse));
    if (!backward) sparse.poison_outputs();
    const BlockMask blocks = blocks_of(sparse, 24, 40);
    AttentionCall call = backward ? sparse.backward_call() : sparse.forward_call();
    call.blocks = &blocks;
    const Plant plant(fault);
    bool same = false;
    try {
      implementation_named(backward ? "block_sparse_backward" : "block_sparse_forward")
          .run_planted(call);
      same = backward ? same_gradients(dense, sparse) : same_outputs(dense, sparse);
    } catch (const simt::CheckerFault&) {
    }
    EXPECT_EQ(same, fault == PlantedFault::none) << static_cast<int>(fault) << " " << backward;
  }
}

}  // namespace
}  // namespace attn::path_test
