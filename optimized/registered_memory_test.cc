// What a launch may touch: exactly the elements that its views address.
#include "optimized/registered_memory.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <vector>

#include "masks/causal.h"
#include "mods/alibi.h"
#include "mods/lang/captured_tensors.h"
#include "optimized/simt/cpu_global.h"

namespace attn {
namespace {

using simt::Access;
using simt::cpu::GlobalMemory;
using simt::cpu::GlobalUse;
using Verdict = simt::cpu::Allocation::Verdict;

Verdict access(const void* p, GlobalUse use) {
  simt::cpu::Allocation* a = GlobalMemory::instance().find(p);
  if (!a) return Verdict::out_of_bounds;
  return a->access(use, static_cast<const char*>(p) - a->base(), 2, 1, 0, 0).verdict;
}

/// The elements of a buffer that a kernel may read.
std::set<int> readable(const std::vector<std::uint16_t>& buffer) {
  std::set<int> found;
  for (int i = 0; i < static_cast<int>(buffer.size()); ++i)
    if (access(&buffer[i], GlobalUse::read) == Verdict::ok) found.insert(i);
  return found;
}

using Shape = std::array<std::int64_t, 4>;

TensorInfo view(const std::vector<std::uint16_t>& buffer, std::int64_t first, const Shape& extents,
                const Shape& strides) {
  return {"x", buffer.data() + first, DType::f16, 4, extents, strides};
}

/// The elements that the view addresses, by the definition of strides.
std::set<int> addressed(std::int64_t first, const Shape& e, const Shape& s) {
  std::set<int> all;
  for (int a = 0; a < e[0]; ++a)
    for (int b = 0; b < e[1]; ++b)
      for (int c = 0; c < e[2]; ++c)
        for (int d = 0; d < e[3]; ++d)
          all.insert(static_cast<int>(first + a * s[0] + b * s[1] + c * s[2] + d * s[3]));
  return all;
}

struct Strided {
  const char* what;
  std::int64_t first;
  Shape extents, strides;
};

class Views : public testing::TestWithParam<Strided> {};

TEST_P(Views, MakeExactlyTheirElementsAddressable) {
  const auto& [what, first, extents, strides] = GetParam();
  const std::vector<std::uint16_t> buffer(400);
  EXPECT_TRUE(readable(buffer).empty());
  {
    const AccessedTensor tensors[] = {{view(buffer, first, extents, strides)}};
    const simt::Registration memory = register_tensors(tensors, {});
    EXPECT_EQ(readable(buffer), addressed(first, extents, strides)) << what;
  }
  EXPECT_TRUE(readable(buffer).empty()) << "after the launch";
}

INSTANTIATE_TEST_SUITE_P(
    Strides, Views,
    testing::Values(Strided{"contiguous", 8, {2, 3, 4, 5}, {60, 20, 5, 1}},
                    Strided{"padded rows and heads", 7, {2, 3, 4, 5}, {90, 30, 7, 1}},
                    Strided{"[B, S, H, D]", 0, {2, 3, 4, 5}, {60, 5, 15, 1}},
                    Strided{"every second element", 0, {1, 2, 4, 5}, {80, 40, 10, 2}},
                    Strided{"one batch for all", 3, {4, 2, 3, 5}, {0, 15, 5, 1}},
                    Strided{"one row for all", 3, {2, 2, 6, 5}, {10, 5, 0, 1}},
                    Strided{"one number for all", 9, {2, 2, 2, 2}, {0, 0, 0, 0}},
                    Strided{"rows backwards", 200, {2, 2, 4, 5}, {40, 20, -5, 1}},
                    Strided{"everything backwards", 399, {2, 3, 4, 5}, {-60, -20, -5, -1}},
                    Strided{"a single element", 399, {1, 1, 1, 1}, {77, 77, 77, 77}},
                    Strided{"nothing", 0, {2, 0, 4, 5}, {60, 20, 5, 1}},
                    Strided{"no rows far away", 0, {2, 3, 0, 5}, {1000000, -1000000, 5, 1}}));

TEST(RegisterTensors, GiveEachViewItsAccess) {
  const std::vector<std::uint16_t> in(8), out(8);
  const AccessedTensor tensors[] = {{view(in, 0, {1, 1, 2, 4}, {8, 8, 4, 1})},
                                    {view(out, 0, {1, 1, 2, 4}, {8, 8, 4, 1}), Access::output}};
  const simt::Registration memory = register_tensors(tensors, {});
  EXPECT_EQ(access(&in[3], GlobalUse::read), Verdict::ok);
  EXPECT_EQ(access(&in[3], GlobalUse::write), Verdict::read_only);
  EXPECT_EQ(access(&out[3], GlobalUse::read), Verdict::uninitialised);
  EXPECT_EQ(access(&out[3], GlobalUse::write), Verdict::ok);
}

/// Q, K and V side by side: one buffer, three views, and what lies between them is nobody's.
TEST(RegisterTensors, TakesInterleavedViews) {
  const std::vector<std::uint16_t> buffer(200);
  const Shape extents{1, 2, 4, 5},
      strides{160, 8, 40, 1};  // rows of 5 heads of 8; 5 elements of each
  const AccessedTensor tensors[] = {{view(buffer, 0, extents, strides)},
                                    {view(buffer, 16, {1, 1, 4, 5}, strides)},
                                    {view(buffer, 24, {1, 1, 4, 5}, strides)}};
  const simt::Registration memory = register_tensors(tensors, {});
  std::set<int> expected = addressed(0, {1, 4, 4, 5}, strides);
  EXPECT_EQ(readable(buffer), expected);
}

/// Two views of the same rows, such as K and V of one latent: readable through both.
TEST(RegisterTensors, TakesViewsOfTheSameMemory) {
  const std::vector<std::uint16_t> buffer(64);
  const AccessedTensor tensors[] = {{view(buffer, 0, {1, 1, 4, 8}, {64, 64, 8, 1})},
                                    {view(buffer, 0, {1, 1, 4, 4}, {64, 64, 8, 1})}};
  const simt::Registration memory = register_tensors(tensors, {});
  EXPECT_EQ(readable(buffer).size(), 32u);
}

TEST(RegisterTensors, TakesWhatModsAndMasksRead) {
  const std::vector<std::uint16_t> unused(4);
  std::vector<std::uint16_t> memory_of_table(12);
  CapturedTensor table;
  table.data = memory_of_table.data() + 1;
  table.element_bytes = 2;
  table.extents = {3, 2};
  table.strides = {4, 2};
  const simt::Registration memory = register_tensors({}, std::vector{table});
  EXPECT_EQ(readable(memory_of_table), (std::set<int>{1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(access(&memory_of_table[1], GlobalUse::write), Verdict::read_only);
}

TEST(CapturedTensors, AreThoseThatTheFunctorsRead) {
  const Tensor<float, 1> slope = alibi_slopes(4);
  Tensor<std::int32_t, 1> offsets({2});
  const Sizes sizes{2, 4, 4, 8, 8};
  const auto found = captured_tensors(
      alibi(slope),
      causal({Alignment::Kind::per_batch, 0, Captured<1, std::int32_t>(offsets, "offset")}), sizes);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].data, slope.view().data);
  EXPECT_STREQ(found[0].name, "alibi slope");
  EXPECT_EQ(found[1].data, offsets.view().data);
  EXPECT_EQ(found[1].element_bytes, 4u);
  const auto plain = [](float s, int, int, int, int) { return s; };
  EXPECT_TRUE(captured_tensors(plain, causal(), sizes).empty());
}

}  // namespace
}  // namespace attn
