#include "optimized/simt/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "optimized/simt/cpu_global.h"

namespace attn::simt {
namespace {

using cpu::Allocation;
using cpu::GlobalMemory;
using cpu::GlobalUse;
using Verdict = Allocation::Verdict;

Verdict access(const void* p, GlobalUse use, std::uint32_t block = 0, std::uint32_t launch = 1) {
  Allocation* a = GlobalMemory::instance().find(p);
  if (!a) return Verdict::out_of_bounds;
  return a->access(use, static_cast<const char*>(p) - a->base(), 1, launch, block, 0).verdict;
}

TEST(DeviceBuffer, BeginsPoisonedAndUnwritten) {
  const DeviceBuffer<float> b(5);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(b[i] != b[i]);
    EXPECT_FALSE(b.initialised(i));
  }
  EXPECT_EQ(access(b.data() + 4, GlobalUse::read), Verdict::uninitialised);
  EXPECT_EQ(access(b.data() + 5, GlobalUse::read), Verdict::out_of_bounds);
}
TEST(DeviceBuffer, CopiesValues) {
  const DeviceBuffer<int> b(std::vector<int>{3, 4, 5}, Access::input);
  EXPECT_EQ(b[2], 5);
  EXPECT_EQ(access(&b[1], GlobalUse::read), Verdict::ok);
  EXPECT_EQ(access(&b[1], GlobalUse::write), Verdict::read_only);
}
TEST(DeviceBuffer, MayBeEmpty) {
  const DeviceBuffer<int> b(0);
  EXPECT_EQ(b.size(), 0u);
  EXPECT_EQ(GlobalMemory::instance().find(b.data()), nullptr);
}

TEST(Registration, LastsAsLongAsTheObject) {
  std::vector<int> v(4);
  {
    const Registration r(v.data(), v.size(), Access::in_out);
    EXPECT_EQ(access(&v[3], GlobalUse::read), Verdict::ok);
    Registration moved;
    moved = Registration(v.data(), 0, Access::in_out);
    EXPECT_EQ(access(&v[3], GlobalUse::read), Verdict::ok);
  }
  EXPECT_EQ(GlobalMemory::instance().find(&v[3]), nullptr);
}
TEST(Registration, RowsOfAViewWithPadding) {
  std::vector<float> v(4 * 10);
  Registration r({MemorySpan{v.data(), v.size() * sizeof(float), sizeof(float)}});
  for (int row = 0; row < 4; ++row) r.mark(&v[row * 10], 7 * sizeof(float), Access::output);
  EXPECT_EQ(access(&v[16], GlobalUse::write), Verdict::ok);
  EXPECT_EQ(access(&v[17], GlobalUse::write), Verdict::guard);
  EXPECT_TRUE(r.initialised(&v[16], 1));
  EXPECT_FALSE(r.initialised(&v[16], sizeof(float)));
}
TEST(Registration, OverlappingSpansAreOne) {
  std::vector<int> v(100);
  const std::size_t n = 50 * sizeof(int);
  Registration r({{&v[25], n, 4}, {&v[0], n, 4}, {&v[80], 20 * sizeof(int), 4}}, Access::input);
  Allocation* a = GlobalMemory::instance().find(&v[0]);
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a, GlobalMemory::instance().find(&v[74]));
  EXPECT_EQ(a->bytes(), 75 * sizeof(int));
  EXPECT_EQ(GlobalMemory::instance().find(&v[75]), nullptr);
  EXPECT_NE(a, GlobalMemory::instance().find(&v[80]));
}
TEST(Registration, RefusesOverlapWithAnother) {
  std::vector<int> v(100);
  const Registration first(&v[10], 10, Access::input);
  EXPECT_THROW(Registration(&v[19], 10, Access::input), std::invalid_argument);
  EXPECT_THROW(Registration(&v[0], 11, Access::input), std::invalid_argument);
  EXPECT_THROW(Registration(&v[0], 100, Access::input), std::invalid_argument);
  EXPECT_THROW(Registration({{&v[50], 8, 4}, {&v[12], 8, 4}}), std::invalid_argument);
  const Registration before(&v[0], 10, Access::input), after(&v[20], 80, Access::input);
}
TEST(Registration, MarksOnlyItsOwn) {
  std::vector<int> v(8);
  Registration r(v.data(), 4, Access::input);
  EXPECT_THROW(r.mark(&v[3], 8, Access::none), std::invalid_argument);
  EXPECT_THROW(r.mark(&v[6], 4, Access::none), std::invalid_argument);
  r.mark(&v[6], 0, Access::none);
}

TEST(ElementHistory, BlocksConflictUnlessTheyOnlyReadOrOnlyAddAtomically) {
  const GlobalUse uses[] = {GlobalUse::read, GlobalUse::write, GlobalUse::atomic};
  std::uint32_t launch = 10;
  for (const GlobalUse first : uses)
    for (const GlobalUse second : uses) {
      DeviceBuffer<int> b(1, Access::in_out);
      EXPECT_EQ(access(&b[0], first, 0, ++launch), Verdict::ok);
      EXPECT_EQ(access(&b[0], second, 0, launch), Verdict::ok) << "the same block";
      const bool fine = first == second && first != GlobalUse::write;
      EXPECT_EQ(access(&b[0], second, 1, launch), fine ? Verdict::ok : Verdict::race);
      EXPECT_EQ(access(&b[0], GlobalUse::write, 2, ++launch), Verdict::ok) << "another launch";
    }
}
TEST(ElementHistory, RemembersAllReadersAndAdders) {
  DeviceBuffer<int> b(2, Access::in_out);
  for (std::uint32_t block = 0; block < 3; ++block) {
    EXPECT_EQ(access(&b[0], GlobalUse::read, block), Verdict::ok);
    EXPECT_EQ(access(&b[1], GlobalUse::atomic, block), Verdict::ok);
  }
  EXPECT_EQ(access(&b[0], GlobalUse::write, 2), Verdict::race);
  EXPECT_EQ(access(&b[1], GlobalUse::write, 2), Verdict::race);
}
TEST(ElementHistory, NeighbouringElementsAreApart) {
  DeviceBuffer<std::uint16_t> b(4);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(access(&b[i], GlobalUse::write, i), Verdict::ok);
}

}  // namespace
}  // namespace attn::simt
