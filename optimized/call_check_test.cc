// Every refusal of a call, by its message: the argument, what it is and what was expected.
#include "optimized/call_check.h"

#include <gtest/gtest.h>

#include <functional>

#include "masks/block_mask_builder.h"
#include "optimized/path_fixtures.h"

namespace attn::path_test {
namespace {

constexpr Lengths lengths_of_call{2, 4, 2, 5, 7, 16, 8};

/// A call that passes, of any kind, to be spoilt.
struct ValidCall {
  Lengths n;
  Attention<half> x;
  Tensor<std::int32_t, 2> table;
  std::vector<std::int32_t> lengths, cu_q, cu_kv;
  BlockMask blocks;
  const Implementation& row;
  AttentionCall call;

  static Lengths lengths_for(Sequences kind) {
    Lengths n = lengths_of_call;
    if (kind == Sequences::packed) n.b = 1;
    return n;
  }
  explicit ValidCall(const char* name)
      : n(lengths_for(implementation_named(name).sequences)),
        x(n),
        table({2, 3}),
        row(implementation_named(name)) {
    call = row.pass == Pass::forward ? x.forward_call() : x.backward_call();
    if (has_cache(row)) call.lengths = lengths = {7, 3};
    if (row.sequences == Sequences::packed) {
      call.cu_q = cu_q = {0, 2, 5};
      call.cu_kv = cu_kv = {0, 7, 7};
    }
    if (row.sequences == Sequences::paged) {  // 2 pages of 7 slots, in a table of 3 a sequence
      table(0, 0) = 1;
      call.page_table = std::as_const(table).view();
    }
    if (row.block_sparse) {
      blocks = make_block_mask(call.mask, {n.b, n.hq, n.hkv, n.sq, n.skv});
      call.blocks = &blocks;
    }
  }
  std::string message() const {
    return refusal([&] { check_call(call, row); });
  }
};

/// What the call says once it is spoilt.
std::string spoilt(const char* name, const std::function<void(ValidCall&)>& spoil) {
  ValidCall valid(name);
  EXPECT_EQ(valid.message(), "") << name;
  spoil(valid);
  return valid.message();
}

const char* const paths[] = {"flash_forward",  "flash_backward",  "block_sparse_forward",
                             "packed_forward", "packed_backward", "block_sparse_backward",
                             "decode",         "decode_paged"};

TEST(CheckCall, GivesTheProblemAndItsSequences) {
  for (const char* name : paths) {
    const ValidCall valid(name);
    const CheckedCall checked = check_call(valid.call, valid.row);
    EXPECT_EQ(checked.problem.hq, 4);
    EXPECT_EQ(checked.problem.dv, 8);
    EXPECT_EQ(checked.problem.skv, valid.row.sequences == Sequences::paged ? 21 : 7);
    const bool dense = valid.row.sequences == Sequences::dense;
    EXPECT_EQ(checked.sequences.size(), dense ? 0u : 2u) << name;
  }
  const ValidCall cached("decode");
  EXPECT_EQ(check_call(cached.call, cached.row).sequences[1].sizes.q_offset, 3 - 5);
}

TEST(CheckCall, RefusesTensorsThatDoNotFit) {
  for (const char* name : paths) {
    const auto says = [&](auto spoil, std::initializer_list<const char*> parts) {
      SCOPED_TRACE(name);
      expect_names(spoilt(name, spoil), parts);
    };
    says([](ValidCall& v) { v.call.q.extents[3] = 0; }, {"q: ", "head size D of at least 1"});
    says([](ValidCall& v) { v.call.k.extents[3] = 15; }, {"k: ", "16"});
    says([](ValidCall& v) { v.call.v.extents[1] = 3; }, {"v: ", "Dv"});
    says([](ValidCall& v) { v.call.k.extents[1] = v.call.v.extents[1] = 3; }, {"k: 3 heads", "4"});
    says([](ValidCall& v) { v.call.q.data = nullptr; }, {"q: null data"});
    says([](ValidCall& v) { v.call.o.extents[2] = 4; }, {"o: shape", "4, 8]", "5, 8]"});
    says([](ValidCall& v) { v.call.lse.extents[1] = 2; }, {"lse: shape", "2, 5]", "4, 5]"});
    says([](ValidCall& v) { v.call.o.dtype = DType::f32; }, {"o: fp32, expected fp16"});
    says([](ValidCall& v) { v.call.lse.dtype = DType::f64; }, {"lse: fp64, expected fp32"});
    says([](ValidCall& v) { v.call.q.dtype = DType::f64; }, {"dtype: fp64", name});
    says([](ValidCall& v) { v.call.options.scale = INFINITY; }, {"scale: inf"});
    says([](ValidCall& v) { v.call.options.dropout.p = 1; }, {"dropout: p = 1", "0 <= p < 1"});
    says(
        [](ValidCall& v) {
          v.x.sink = Tensor<float, 1>({3}), v.x.give_sink(), v.call.options.sink = v.x.options.sink;
        },
        {"sink: shape [3]", "[4]"});
  }
}

/// K and V are of the dtype of Q: the kernels read all three as one type.
TEST(CheckCall, RefusesKeysAndValuesOfAnotherType) {
  for (const char* name : paths) {
    EXPECT_NE(spoilt(name, [](ValidCall& v) { v.call.k.dtype = DType::bf16; }), "") << name;
    EXPECT_NE(spoilt(name, [](ValidCall& v) { v.call.v.dtype = DType::f32; }), "") << name;
  }
}

TEST(CheckCall, RefusesHeadsThatAreTooLarge) {
  for (const auto& [d, dv] : {std::pair{257, 8}, {8, 257}}) {
    Attention<half> x({1, 1, 1, 2, 2, d, dv});
    expect_names(refusal([&] { check_call(x.call(), implementation_named("flash_forward")); }),
                 {"head size", "257", "flash_forward"});
  }
}

TEST(CheckCall, RefusesForwardTensorsThatDoNotFit) {
  expect_names(spoilt("flash_forward", [](ValidCall& v) { v.call.row_max.extents[0] = 3; }),
               {"row_max: shape [3, 4, 5]", "[2, 4, 5]"});
  expect_names(spoilt("decode", [](ValidCall& v) { v.call.row_max.dtype = DType::f64; }),
               {"row_max: fp64, expected fp32"});
  EXPECT_EQ(spoilt("flash_forward", [](ValidCall& v) { v.call.row_max = {}; }), "");
}

TEST(CheckCall, RefusesBackwardTensorsThatDoNotFit) {
  const auto says = [](auto spoil, std::initializer_list<const char*> parts) {
    expect_names(spoilt("flash_backward", spoil), parts);
  };
  says([](ValidCall& v) { v.call.d_o.extents[3] = 16; }, {"d_o: shape [2, 4, 5, 16]", "5, 8]"});
  says([](ValidCall& v) { v.call.d_o.dtype = DType::bf16; }, {"d_o: bf16, expected fp16"});
  says([](ValidCall& v) { v.call.dq.extents[2] = 7; }, {"dq: shape", "[2, 4, 5, 16]"});
  says([](ValidCall& v) { v.call.dk.extents[1] = 4; }, {"dk: shape", "[2, 2, 7, 16]"});
  says([](ValidCall& v) { v.call.dv.extents[3] = 16; }, {"dv: shape", "[2, 2, 7, 8]"});
  says([](ValidCall& v) { v.call.dk.dtype = DType::f32; }, {"dk: fp32, expected fp16"});
  says([](ValidCall& v) { v.call.d_lse.extents[2] = 1; }, {"d_lse: shape", "[2, 4, 5]"});
  says([](ValidCall& v) { v.call.d_lse.dtype = DType::f64; }, {"d_lse: fp64"});
  says([](ValidCall& v) { v.call.d_sink = v.x.d_sink.data(); }, {"d_sink", "no sink"});
  EXPECT_EQ(spoilt("flash_backward", [](ValidCall& v) { v.call.d_lse = {}; }), "");
}

TEST(CheckCall, RefusesOutputsThatOverlap) {
  expect_names(spoilt("flash_forward", [](ValidCall& v) { v.call.v.data = v.call.o.data; }),
               {"o: shape", "overlaps v"});
  expect_names(spoilt("flash_forward", [](ValidCall& v) { v.call.row_max.data = v.call.lse.data; }),
               {"row_max: shape", "overlaps lse"});
  expect_names(spoilt("flash_forward", [](ValidCall& v) { v.call.o.strides[1] = 0; }),
               {"o: strides", "address of its own"});
  expect_names(spoilt("flash_backward", [](ValidCall& v) { v.call.dq.data = v.call.q.data; }),
               {"dq: shape", "overlaps q"});
  expect_names(spoilt("flash_backward", [](ValidCall& v) { v.call.dv.data = v.call.d_o.data; }),
               {"dv: shape", "overlaps d_o"});
  expect_names(spoilt("flash_backward", [](ValidCall& v) { v.call.dv.data = v.call.dk.data; }),
               {"dv: shape", "overlaps dk"});
}

TEST(CheckCall, RefusesWhatAPathHasNoUseFor) {
  const std::vector<std::int32_t> some = {0, 1};
  const Tensor<std::int32_t, 2> table({2, 3});
  const BlockMask blocks;
  for (const char* name : paths) {
    const Implementation& row = implementation_named(name);
    const auto unused = [&](const char* argument, auto give) {
      expect_names(spoilt(name, give), {argument, "given, but not used by", name});
    };
    if (row.sequences != Sequences::packed) {
      unused("cu_q: ", [&](ValidCall& v) { v.call.cu_q = some; });
      unused("cu_kv: ", [&](ValidCall& v) { v.call.cu_kv = some; });
    }
    if (!has_cache(row)) {
      unused("lengths: ", [&](ValidCall& v) { v.call.lengths = some; });
      unused("splits: ", [&](ValidCall& v) { v.call.options.splits = 2; });
    }
    if (row.sequences != Sequences::paged)
      unused("page_table: ", [&](ValidCall& v) { v.call.page_table = table.view(); });
    if (!row.block_sparse) unused("blocks: ", [&](ValidCall& v) { v.call.blocks = &blocks; });
  }
}

TEST(CheckCall, RefusesSequencesThatDoNotFit) {
  const auto packed = [](std::vector<std::int32_t> q, std::vector<std::int32_t> kv) {
    return spoilt("packed_forward", [&](ValidCall& v) {
      v.call.cu_q = v.cu_q = q;
      v.call.cu_kv = v.cu_kv = kv;
    });
  };
  EXPECT_EQ(packed({0, 5}, {0, 7}), "");
  expect_names(packed({}, {0, 7}), {"cu_q: no entries"});
  expect_names(packed({1, 5}, {0, 7}), {"cu_q: entry 0 is 1, expected 0"});
  expect_names(packed({0, 4, 3, 5}, {0, 1, 2, 7}), {"cu_q: entry 2 is 3", "at least 4"});
  expect_names(packed({0, 4}, {0, 7}), {"cu_q: entry 1 is 4", "5"});
  expect_names(packed({0, 5}, {0, 3, 7}), {"cu_kv: 3 entries, expected 2"});
  expect_names(spoilt("packed_forward",
                      [](ValidCall& v) {
                        for (TensorInfo* t : {&v.call.q, &v.call.k, &v.call.v}) t->extents[0] = 2;
                      }),
               {"q: 2 batch entries"});
  const auto cached = [](std::vector<std::int32_t> lengths) {
    return spoilt("decode", [&](ValidCall& v) { v.call.lengths = v.lengths = lengths; });
  };
  EXPECT_EQ(cached({0, 7}), "");
  expect_names(cached({}), {"lengths: 0 entries", "2"});
  expect_names(cached({7, 8}), {"lengths: entry 1 is 8", "capacity 7"});
  expect_names(cached({-1, 7}), {"lengths: entry 0 is -1"});
}

TEST(CheckCall, RefusesPagesThatDoNotFit) {
  const auto says = [](auto spoil, std::initializer_list<const char*> parts) {
    expect_names(spoilt("decode_paged", spoil), parts);
  };
  says([](ValidCall& v) { v.table(0, 0) = 2; }, {"page_table: entry [0, 0] is 2", "0 to 1"});
  says([](ValidCall& v) { v.table(1, 0) = -1; }, {"page_table: entry [1, 0] is -1"});
  says([](ValidCall& v) { v.lengths[0] = 8, v.table(0, 1) = 9; },
       {"page_table: entry [0, 1] is 9"});
  says([](ValidCall& v) { v.lengths[0] = 22; }, {"lengths: entry 0 is 22", "capacity 21"});
  says([](ValidCall& v) { v.call.page_table.extents[0] = 1; }, {"page_table: shape [1, 3]", "[2"});
  says([](ValidCall& v) { v.call.page_table.data = nullptr; }, {"page_table", "null data"});
  EXPECT_EQ(spoilt("decode_paged", [](ValidCall& v) { v.table(0, 1) = 99; }), "")
      << "an entry that no row needs";
}

TEST(CheckCall, RefusesSplitsBelowZero) {
  expect_names(spoilt("decode", [](ValidCall& v) { v.call.options.splits = -1; }),
               {"splits: -1, expected 0"});
}

TEST(CheckCall, RefusesBlocksOfAnotherProblem) {
  for (const char* name : {"block_sparse_forward", "block_sparse_backward"}) {
    expect_names(spoilt(name, [](ValidCall& v) { v.call.blocks = nullptr; }),
                 {"blocks: none", name});
    for (const Sizes& other :
         {Sizes{1, 4, 2, 5, 7}, Sizes{2, 2, 2, 5, 7}, Sizes{2, 4, 2, 6, 7}, Sizes{2, 4, 2, 5, 8}})
      expect_names(
          spoilt(name, [&](ValidCall& v) { v.blocks = make_block_mask(v.call.mask, other); }),
          {"blocks: made for B = ", "expected 2, 4, 5, 7"});
  }
}

TEST(CheckCall, ListsTheTensorsThatArePresent) {
  ValidCall forward("flash_forward"), backward("flash_backward");
  const auto names = [](const std::vector<TensorInfo>& list) {
    std::string text;
    for (const TensorInfo& t : list) text += std::string(t.name) + " ";
    return text;
  };
  EXPECT_EQ(names(inputs_of(forward.call, Pass::forward)), "q k v ");
  EXPECT_EQ(names(outputs_of(forward.call, Pass::forward)), "o lse row_max ");
  EXPECT_EQ(names(inputs_of(backward.call, Pass::backward)), "q k v o lse d_o d_lse ");
  EXPECT_EQ(names(outputs_of(backward.call, Pass::backward)), "dq dk dv ");
  forward.call.row_max = backward.call.d_lse = {};
  EXPECT_EQ(names(outputs_of(forward.call, Pass::forward)), "o lse ");
  EXPECT_EQ(names(inputs_of(backward.call, Pass::backward)), "q k v o lse d_o ");
}

/// A refusal is before any work: no output is touched, on any path.
TEST(CheckCall, NothingIsWrittenBeforeARefusal) {
  for (const char* name : paths) {
    ValidCall v(name);
    v.call.options.scale = NAN;
    EXPECT_NE(refusal([&] { v.row.run(v.call, Engine::warp); }), "");
    v.call.options.scale = 1;
    v.call.mask = compile_mask(parse_mask("kv * 2000000000 <= q"), {});
    if (!v.row.block_sparse)
      expect_names(refusal([&] { v.row.run(v.call, Engine::warp); }), {"mask"});
    for (const auto* t : {&v.x.o, &v.x.dq, &v.x.dk, &v.x.dv})
      for (const half& entry : t->values()) ASSERT_EQ(entry.bits, 0xffff) << name;
  }
}

/// Each tensor that the mod reads has a gradient, or none has.
TEST(CheckCall, RefusesAnotherNumberOfCapturedGradients) {
  ValidCall v("flash_backward");
  float* const one[] = {v.x.d_slope.data()};
  v.call.d_captured = one;
  expect_names(refusal([&] { v.row.run(v.call, Engine::warp); }),
               {"d_captured: 1 gradients, expected 0"});
}

}  // namespace
}  // namespace attn::path_test
