#include "optimized/device_call.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "mods/lang/compile.h"
#include "mods/lang/parse.h"
#include "optimized/simt/fault.h"

namespace attn {
namespace {

constexpr float poison_value = -77;

/// A call on tensors of fp32 [1, 2, 3, 4] that lie in one buffer, with gaps, and what a kernel does
/// with it: it reads and writes through the pointers of the mirrored call.
struct Fixture {
  std::vector<float> buffer = std::vector<float>(400, poison_value);
  std::vector<float> outputs = std::vector<float>(100, poison_value);
  AttentionCall call{};
  HostMemory memory;

  TensorInfo tensor(const char* name, std::vector<float>& in, std::int64_t first,
                    std::array<std::int64_t, 4> strides) {
    return {name, in.data() + first, DType::f32, 4, {1, 2, 3, 4}, strides};
  }
  Fixture() {
    for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<float>(i);
    call.q = tensor("q", buffer, 40, {72, 12, 24, 1});  // K lies in the gaps of Q
    call.k = tensor("k", buffer, 44, {72, 12, 24, 1});
    call.v = tensor("v", buffer, 339, {0, -16, -32, 1});  // backwards
    call.o = tensor("o", outputs, 8, {24, 12, 4, 1});
  }
};

float& at(const TensorInfo& t, int h, int s, int d) {
  return static_cast<float*>(
      const_cast<void*>(t.data))[h * t.strides[1] + s * t.strides[2] + d * t.strides[3]];
}

TEST(DeviceCall, EveryElementIsMirroredAndViewsOfOneBufferStayTogether) {
  Fixture f;
  DeviceCall mirror(f.call, Pass::forward, f.memory);
  const AttentionCall& there = mirror.call();
  for (const auto& [host, device] :
       {std::pair(&f.call.q, &there.q), {&f.call.k, &there.k}, {&f.call.v, &there.v}}) {
    EXPECT_NE(host->data, device->data);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(host->data) % DeviceMemory::alignment,
              reinterpret_cast<std::uintptr_t>(device->data) % DeviceMemory::alignment);
    for (int h = 0; h < 2; ++h)
      for (int s = 0; s < 3; ++s)
        for (int d = 0; d < 4; ++d) EXPECT_EQ(at(*host, h, s, d), at(*device, h, s, d));
  }
  EXPECT_EQ(static_cast<const float*>(there.k.data) - static_cast<const float*>(there.q.data), 4);
}

TEST(DeviceCall, OnlyOutputsComeBackWithWhatLiesBetweenTheirElements) {
  Fixture f;
  DeviceCall mirror(f.call, Pass::forward, f.memory);
  at(mirror.call().o, 1, 2, 3) = 5;
  mirror.copy_back();
  EXPECT_EQ(at(f.call.o, 1, 2, 3), 5);
  EXPECT_EQ(at(f.call.o, 1, 2, 2), poison_value);
  EXPECT_EQ(f.outputs[7], poison_value);
}

/// The message of the fault that `write` leads to.
template <class Write>
std::string fault_of(Pass pass, Write write) {
  Fixture f;
  DeviceCall mirror(f.call, pass, f.memory);
  write(mirror.call());
  try {
    mirror.copy_back();
  } catch (const simt::CheckerFault& fault) {
    return fault.what();
  }
  return "none";
}

TEST(DeviceCall, WritesOutsideAreFaults) {
  const auto write_o = [](std::int64_t offset) {
    return [offset](const AttentionCall& c) {
      static_cast<float*>(const_cast<void*>(c.o.data))[offset] = 1;
    };
  };
  EXPECT_EQ(fault_of(Pass::forward, write_o(23)), "none");
  EXPECT_NE(fault_of(Pass::forward, write_o(24)).find("behind the last element of o"),
            std::string::npos);
  EXPECT_NE(fault_of(Pass::forward, write_o(-1)).find("before the first element of o"),
            std::string::npos);
}

TEST(DeviceCall, InputsMustNotBeWritten) {
  const auto write_k = [](const AttentionCall& c) { at(c.k, 1, 1, 1) = -1; };
  const auto write_o = [](const AttentionCall& c) { at(c.o, 1, 1, 1) = -1; };
  EXPECT_NE(fault_of(Pass::forward, write_k).find("an element of"), std::string::npos);
  EXPECT_EQ(fault_of(Pass::forward, write_o), "none");
  EXPECT_NE(fault_of(Pass::backward, write_o).find("an element of o"), std::string::npos);
}

TEST(DeviceCall, AnOutputAmongTheElementsOfAnInputComesBack) {
  Fixture f;
  f.call.o = f.tensor("o", f.buffer, 48, {72, 12, 24, 1});  // in the gaps of Q and K
  DeviceCall mirror(f.call, Pass::forward, f.memory);
  at(mirror.call().o, 1, 0, 0) = -5;
  mirror.copy_back();
  EXPECT_EQ(at(f.call.o, 1, 0, 0), -5);
  EXPECT_EQ(f.buffer[40], 40);
}

TEST(DeviceCall, TablesAndWhatSurroundsTheTensorsMove) {
  Fixture f;
  Tensor<float, 1> slope({2});
  slope(1) = 0.25f;
  Tensor<std::int32_t, 1> document({3});
  document(2) = 9;
  Tables tables;
  tables.add("document", document.view());
  tables.add("slope", slope.view());
  const auto declared = tables.declarations();
  f.call.mod = compile_mod(parse_mod("score + document[kv] * slope[h]", declared), tables);
  f.call.mask = compile_mask(parse_mask("document[q] == document[kv]", declared), tables);
  // The gradient of slope is the first: document has none.
  std::vector<float> gradient(2, poison_value), sink_gradient(2, poison_value);
  const std::vector<float> sink = {1, 2, 3};
  float* const gradients[] = {gradient.data()};
  f.call.d_captured = gradients;
  f.call.d_sink = sink_gradient.data();
  f.call.options.sink = {sink.data(), {2}, {2}};
  const std::vector<std::int32_t> lengths = {3};
  f.call.lengths = lengths;
  Tensor<std::int32_t, 2> pages({1, 2});
  pages(0, 1) = 4;
  f.call.page_table = static_cast<const Tensor<std::int32_t, 2>&>(pages).view();

  DeviceCall mirror(f.call, Pass::backward, f.memory);
  const AttentionCall& there = mirror.call();
  EXPECT_NE(there.lengths.data(), lengths.data());
  EXPECT_EQ(there.lengths[0], 3);
  EXPECT_EQ(there.page_table(0, 1), 4);
  EXPECT_NE(there.options.sink->data, sink.data());
  EXPECT_EQ((*there.options.sink)(1), 3);
  const Program& mod = there.mod.program;
  ASSERT_EQ(mod.table_count, 2);
  for (int i = 0; i < 2; ++i) {
    const ProgramTable &moved = mod.tables[i], &host = f.call.mod.program.tables[i];
    EXPECT_NE(moved.data, host.data);
    EXPECT_EQ(std::memcmp(moved.data, host.data, host.extents[0] * sizeof(float)), 0);
  }
  EXPECT_NE(there.mask.program.tables[0].data, f.call.mask.program.tables[0].data);

  there.d_captured[0][1] = 6;
  there.d_sink[0] = 7;
  mirror.copy_back();
  EXPECT_EQ(gradient[1], 6);
  EXPECT_EQ(gradient[0], poison_value);
  EXPECT_EQ(sink_gradient[0], 7);
  there.d_captured[0][2] = 8;  // slope has two entries
  EXPECT_THROW(mirror.copy_back(), simt::CheckerFault);
}

TEST(DeviceCall, EmptyTensorsHaveNoMemory) {
  Fixture f;
  f.call.k.extents[2] = f.call.v.extents[2] = 0;
  f.call.k.data = f.call.v.data = nullptr;
  DeviceCall mirror(f.call, Pass::forward, f.memory);
  EXPECT_EQ(mirror.call().k.data, nullptr);
  mirror.copy_back();
}

}  // namespace
}  // namespace attn
