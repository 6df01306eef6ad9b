// The tensors of a case in memory: what is stored is found where the contract says, and all else is
// poison.
#include "fuzz/stored_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "fuzz/campaign.h"
#include "fuzz/case_sequences.h"
#include "fuzz/inputs.h"
#include "fuzz/table_spec.h"
#include "mods/lang/tree_functor.h"

namespace attn::fuzz {
namespace {

/// The first implementation of that kind, by name; empty if there is none.
std::string name_of_row(Pass pass, Sequences how) {
  for (const Implementation& row : implementations())
    if (row.pass == pass && row.sequences == how) return std::string(row.name);
  return {};
}

StoredPass stored(const Case& c) {
  StoredPass pass(c, implementation_named(c.implementation), {});
  pass.store(inputs_of(c));
  return pass;
}

/// Numbers of a tensor that are not poison.
std::int64_t count_of_numbers(const StoredTensor& t) {
  std::int64_t n = 0;
  const Tensor<double, 4> values = t.load();
  for (const double x : values.values()) n += !std::isnan(x);
  return n;
}

TEST(StoredTensor, PoisonsWhatNoElementOwns) {
  for (int l = 0; l < layout_count; ++l) {
    Case c = parse_case("v1 B2 Hq2 Hkv1 Sq5 Skv7 D9 Dv6 fp16");
    c.layout = static_cast<Layout>(l);
    StoredTensor o = stored(c).o;
    Tensor<double, 4> values({2, 2, 5, 6});
    for (std::size_t n = 0; n < values.values().size(); ++n)
      values.values()[n] = static_cast<double>(n);
    o.store(values);
    EXPECT_EQ(o.load().values(), values.values()) << name_of(c.layout);
    EXPECT_EQ(o.trespass(), std::nullopt) << name_of(c.layout);
    // what lies behind the last element and before the first belongs to nobody, whatever the layout
    const TensorInfo& info = o.info();
    auto* first = const_cast<half*>(static_cast<const half*>(info.data));
    std::int64_t last = 0;
    for (int axis = 0; axis < 4; ++axis) last += (info.extents[axis] - 1) * info.strides[axis];
    first[last + 1] = half{0};
    EXPECT_EQ(o.trespass(), last + 1) << name_of(c.layout);
    first[-1] = half{0};
    EXPECT_EQ(o.trespass(), -1) << name_of(c.layout);
  }
}

TEST(StoredTensor, NeighboursInOneBufferDoNotTrespass) {
  const std::string row = name_of_row(Pass::backward, Sequences::dense);
  ASSERT_FALSE(row.empty()) << "no backward implementation";
  Case c = parse_case("v1 B2 Hq2 Hkv1 Sq7 Skv7 D9 Dv6 fp16; layout: fused; impl: " + row);
  const StoredPass pass = stored(c);
  for (StoredTensor t : {pass.dq, pass.dk, pass.dv}) {
    EXPECT_EQ(t.trespass(), std::nullopt);
    t.store(Tensor<double, 4>(t.info().extents));
  }
  EXPECT_EQ(pass.dq.trespass(), std::nullopt) << "what dk and dv wrote is theirs";
  // Dv < D leaves a gap behind each row of dv, which is nobody's
  auto* v = const_cast<half*>(static_cast<const half*>(pass.dv.info().data));
  v[6] = half{0};
  EXPECT_EQ(pass.dv.trespass(), 6);
}

TEST(StoredPass, FusedTensorsShareRows) {
  const StoredPass pass = stored(parse_case("v1 B2 Hq2 Hkv1 Sq7 Skv7 D8 Dv8 fp16; layout: fused"));
  const auto at = [](const StoredTensor& t) { return static_cast<const half*>(t.info().data); };
  EXPECT_EQ(at(pass.v) - at(pass.k), 8);
  EXPECT_EQ(at(pass.q) - at(pass.k), 16);
  EXPECT_EQ(pass.q.info().strides[2], 32);
}

TEST(StoredPass, PackedSequencesStandOneAfterAnother) {
  const std::string row = name_of_row(Pass::forward, Sequences::packed);
  ASSERT_FALSE(row.empty()) << "no implementation of packed sequences";
  for (const char* layout : {"bhsd", "bshd", "padded", "unaligned", "fused", "spread"}) {
    const Case c =
        parse_case("v1 B3 Hq2 Hkv1 Sq4 Skv6 D5 Dv3 bf16; qlens: 2,0,4; kvlens: 0,6,1; layout: " +
                   std::string(layout) + "; impl: " + row);
    const PassInputs in = inputs_of(c);
    const StoredPass pass = stored(c);
    EXPECT_EQ(pass.cu_q, (std::vector<std::int32_t>{0, 2, 2, 6}));
    EXPECT_EQ(pass.cu_kv, (std::vector<std::int32_t>{0, 0, 6, 7}));
    EXPECT_EQ(pass.q.info().extents, (std::array<std::int64_t, 4>{1, 2, 6, 5}));
    EXPECT_EQ(pass.v.info().extents, (std::array<std::int64_t, 4>{1, 1, 7, 3}));
    const Tensor<double, 4> q = pass.q.load(), k = pass.k.load();
    for (int d = 0; d < 5; ++d) {
      EXPECT_EQ(q(0, 1, 1, d), in.q(0, 1, 1, d)) << layout;
      EXPECT_EQ(q(0, 1, 2, d), in.q(2, 1, 0, d)) << layout;
      EXPECT_EQ(k(0, 0, 6, d), in.k(2, 0, 0, d)) << layout;
    }
    EXPECT_EQ(count_of_numbers(pass.q), 2 * 6 * 5);
  }
}

TEST(StoredPass, LogicalOutputsAreReadBackFromTheirPlaces) {
  const std::string row = name_of_row(Pass::forward, Sequences::packed);
  ASSERT_FALSE(row.empty()) << "no implementation of packed sequences";
  const StoredPass pass = stored(
      parse_case("v1 B2 Hq1 Hkv1 Sq3 Skv2 D1 Dv1 bf16; qlens: 1,3; rowmax: on; impl: " + row));
  StoredTensor o = pass.o;
  Tensor<double, 4> values({1, 1, 4, 1});
  values.values() = {1, 2, 3, 4};
  o.store(values);
  const auto outputs = pass.outputs();
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[0].name, "O");
  EXPECT_EQ(outputs[1].name, "LSE");
  EXPECT_EQ(outputs[2].name, "row max");
  const Tensor<double, 4> loaded = outputs[0].load();
  EXPECT_EQ(loaded.values(), (std::vector<double>{1, 0, 0, 2, 3, 4})) << "0 past the length";
}

TEST(StoredPass, ACacheIsPoisonPastItsLength) {
  const std::string row = name_of_row(Pass::forward, Sequences::cached);
  ASSERT_FALSE(row.empty()) << "no implementation of decode";
  const StoredPass pass =
      stored(parse_case("v1 B3 Hq2 Hkv2 Sq2 Skv9 D4 Dv3 bf16; kvlens: 3,0,9; impl: " + row));
  EXPECT_EQ(pass.lengths, (std::vector<std::int32_t>{3, 0, 9}));
  EXPECT_EQ(pass.k.info().extents, (std::array<std::int64_t, 4>{3, 2, 9, 4}));
  EXPECT_EQ(count_of_numbers(pass.k), 2 * 12 * 4);
  EXPECT_EQ(count_of_numbers(pass.v), 2 * 12 * 3);
  EXPECT_TRUE(std::isnan(pass.k.load()(0, 1, 3, 0)));
}

TEST(StoredPass, PagesAreShuffledAndTheirUnusedSlotsPoison) {
  const std::string row = name_of_row(Pass::forward, Sequences::paged);
  ASSERT_FALSE(row.empty()) << "no implementation of a paged cache";
  bool shuffled = false, unordered_layouts = false;
  for (const int page : {1, 2, 5, 16})
    for (int seed = 0; seed < 6; ++seed) {
      Case c = parse_case("v1 B3 Hq1 Hkv1 Sq2 Skv23 D4 Dv3 bf16; kvlens: 23,0,7; impl: " + row);
      c.page_size = page;
      c.seed = static_cast<std::uint64_t>(seed);
      c.layout = seed % 2 ? Layout::fused : Layout::bhsd;
      const PassInputs in = inputs_of(c);
      const StoredPass pass = stored(c);
      const auto table = pass.page_table();
      const std::int64_t pages = pass.k.info().extents[0];
      ASSERT_EQ(table.extents[0], 3);
      ASSERT_GE(table.extents[1] * page, 23);
      EXPECT_EQ(pass.k.info().extents[2], page);
      std::set<std::int32_t> used;
      const Tensor<double, 4> k = pass.k.load();
      std::int32_t before = -1;
      for (const int b : {0, 2})
        for (int j = 0; j < pass.lengths[b]; ++j) {
          const std::int32_t p = table(b, j / page);
          ASSERT_TRUE(0 <= p && p < pages);
          EXPECT_EQ(k(p, 0, j % page, 2), in.k(b, 0, j, 2));
          if (j % page == 0) {
            EXPECT_TRUE(used.insert(p).second) << "one page, two owners";
            shuffled |= p < before;
            before = p;
          }
        }
      EXPECT_LT(static_cast<std::int64_t>(used.size()), pages) << "none is left unused";
      EXPECT_EQ(count_of_numbers(pass.k), 30 * 4);
      for (int n = 0; n < table.extents[1]; ++n)
        unordered_layouts |= !(0 <= table(1, n) && table(1, n) < pages);
    }
  EXPECT_TRUE(shuffled);
  EXPECT_TRUE(unordered_layouts) << "entries that nobody may look at name no page";
}

TEST(StoredPass, HasTheOutputsOfABackwardPass) {
  const std::string row = name_of_row(Pass::backward, Sequences::dense);
  ASSERT_FALSE(row.empty()) << "no backward implementation";
  const Case c = parse_case(
      "v1 B2 Hq4 Hkv2 Sq3 Skv5 D8 Dv4 bf16; sink: on; dlse: on; layout: shared_kv; impl: " + row);
  const CapturedTensor slope{nullptr, DType::f32, 4, {2, 3}, {3, 1}, "slope"};
  StoredPass pass(c, implementation_named(row), {slope});
  pass.store(inputs_of(c));
  std::map<std::string, std::int64_t> sizes;
  for (const StoredOutput& output : pass.outputs()) {
    sizes[output.name] = output.load().view().size();
    EXPECT_EQ(count_of_numbers(output.tensor), 0) << output.name << " is not poisoned";
  }
  EXPECT_EQ(sizes, (std::map<std::string, std::int64_t>{{"dQ", 2 * 4 * 3 * 8},
                                                        {"dK", 2 * 2 * 5 * 8},
                                                        {"dV", 2 * 2 * 5 * 4},
                                                        {"d slope", 6},
                                                        {"dSink", 4}}));
  EXPECT_EQ(pass.k.info().strides[0], 0);
  EXPECT_GT(pass.dk.info().strides[0], 0) << "each batch entry has a gradient of its own";
  EXPECT_EQ(count_of_numbers(pass.d_lse), 2 * 4 * 3);
  EXPECT_EQ(count_of_numbers(pass.d_o), 2 * 4 * 3 * 4);
  EXPECT_EQ(count_of_numbers(pass.o), 0) << "until the result of the forward pass is stored";
  Tensor<double, 4> o({2, 4, 3, 4});
  Tensor<double, 3> lse({2, 4, 3});
  pass.store_forward_result(o, lse);
  EXPECT_EQ(count_of_numbers(pass.o), 2 * 4 * 3 * 4);
  EXPECT_EQ(count_of_numbers(pass.lse), 2 * 4 * 3);
}

}  // namespace
}  // namespace attn::fuzz
