#include "fuzz/gpu_check.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "fuzz/commands.h"
#include "fuzz/gpu_watchdog.h"
#include "optimized/device_call.h"
#include "optimized/gpu.h"

namespace attn::fuzz {
namespace {

/// A GPU that is the CPU engine, reached through mirrored memory as a real one is. What a test
/// breaks is wrong with it.
class EmulatedGpu final : public Gpu {
 public:
  bool there = true, writes_past_o = false, wrong_primitive = false, flips_bits = false;
  int calls = 0;

  EmulatedGpu() { link_gpu(this); }
  ~EmulatedGpu() override { link_gpu(nullptr); }

  GpuInfo info() override {
    if (!there) throw std::runtime_error("no GPU: none is plugged in");
    return {"emulated", 9, 0, 1, 1 << 30, 13000, 13000};
  }
  std::string_view run(const Implementation& implementation, const AttentionCall& call) override {
    const std::lock_guard guard(lock_);
    memory_.reset();
    DeviceCall mirror(call, implementation.pass, memory_);
    const std::string_view target = implementation.run(mirror.call(), Engine::warp);
    ++calls;
    const TensorInfo& o = mirror.call().o;
    if (writes_past_o && !o.empty() && implementation.pass == Pass::forward)
      static_cast<char*>(const_cast<void*>(o.data))[-1] = 0;
    if (flips_bits && calls % 2 == 0)
      flip(implementation.pass == Pass::forward ? o : mirror.call().dq);
    mirror.copy_back();
    return target;
  }
  std::vector<ConformanceResult> conformance() override {
    const std::lock_guard guard(lock_);
    memory_.reset();
    auto results = thread::run_conformance(memory_);
    if (wrong_primitive) results[3].words[0] ^= 1;
    return results;
  }
  std::optional<GpuTiming> bench(const GpuBench& shape, double) override {
    if (shape.skv > 100000) return std::nullopt;
    return GpuTiming{3, 2, 0.5, 1, 4, 1000, "flash_forward"};
  }

 private:
  static void flip(const TensorInfo& tensor) {
    if (!tensor.empty()) static_cast<char*>(const_cast<void*>(tensor.data))[0] ^= 1;
  }
  std::mutex lock_;
  HostMemory memory_;
};

/// Runs the command and reads its file.
struct Ran {
  int status = 0;
  nlohmann::json json;
};
Ran check(GpuCheckArguments arguments = {}) {
  arguments.json = testing::TempDir() + "gpu_check_test.json";
  std::remove(arguments.json.c_str());
  arguments.cases = 4;
  arguments.jobs = 2;
  Ran ran;
  ran.status = gpu_check_command(arguments);
  ran.json = nlohmann::json::parse(std::ifstream(arguments.json));
  return ran;
}

TEST(GpuCheck, WithoutCudaItSaysSo) {
  ASSERT_EQ(linked_gpu(), nullptr);
  const Ran ran = check();
  EXPECT_EQ(ran.status, 3);
  EXPECT_EQ(ran.json["status"], "no GPU");
  EXPECT_NE(ran.json["reason"].get<std::string>().find("built without CUDA"), std::string::npos);
}

TEST(GpuCheck, WithoutAGpuItSaysSo) {
  EmulatedGpu gpu;
  gpu.there = false;
  const Ran ran = check();
  EXPECT_EQ(ran.status, 3);
  EXPECT_EQ(ran.json["status"], "no GPU");
  EXPECT_EQ(ran.json["reason"], "no GPU: none is plugged in");
  EXPECT_EQ(gpu.calls, 0);
}

TEST(GpuCheck, RightKernelsAreClean) {
  EmulatedGpu gpu;
  const Ran ran = check();
  EXPECT_EQ(ran.status, 0) << ran.json.dump(2);
  EXPECT_EQ(ran.json["status"], "clean");
  EXPECT_EQ(ran.json["gpu"]["name"], "emulated");
  EXPECT_GT(ran.json["conformance"]["primitives"], 70);
  EXPECT_GT(ran.json["corpus"]["cases"], 100);
  EXPECT_EQ(ran.json["corpus"]["targets"], nlohmann::json({"warp"}));
  ASSERT_EQ(ran.json["fuzz"].size(), implementations().size());
  ASSERT_EQ(ran.json["determinism"].size(), implementations().size());
  for (std::size_t i = 0; i < implementations().size(); ++i) {
    EXPECT_EQ(ran.json["fuzz"][i]["implementation"], implementations()[i].name);
    EXPECT_GT(ran.json["fuzz"][i]["cases"], 0);
    EXPECT_GT(ran.json["determinism"][i]["cases"], 0);
  }
  ASSERT_EQ(ran.json["bench"].size(), gpu_benches().size());
  for (const auto& row : ran.json["bench"]) {
    if (row["Skv"] > 100000) {
      EXPECT_EQ(row["skipped"], "does not fit in memory");
    } else if (!row.contains("skipped")) {
      EXPECT_DOUBLE_EQ(row["tflops"], row["flops"].get<double>() / 2e9);
      EXPECT_EQ(row["ms"]["std"], 0.5);
    }
  }
}

TEST(GpuCheck, WhatIsWrongIsFound) {
  EmulatedGpu gpu;
  gpu.wrong_primitive = true;
  gpu.writes_past_o = true;
  Ran ran = check();
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.json["status"], "discrepancy");
  EXPECT_EQ(ran.json["conformance"]["differences"].size(), 1u);
  EXPECT_GT(ran.json["corpus"]["failures"].size(), 0u);
  EXPECT_EQ(ran.json["fuzz"][0]["failure"]["outcome"], "checker fault");
  // The line of a report can be run again alone.
  GpuCheckArguments again;
  again.replay = ran.json["fuzz"][0]["failure"]["case"];
  ran = check(again);
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.json["replay"]["outcome"], "checker fault");
  gpu.writes_past_o = false;
  ran = check(again);
  EXPECT_EQ(ran.status, 0);
  const std::string outcome = ran.json["replay"]["outcome"];
  EXPECT_TRUE(outcome == "pass" || outcome == "mistrusted") << outcome;
}

TEST(GpuCheck, OtherBitsInASecondRunAreFound) {
  EmulatedGpu gpu;
  gpu.flips_bits = true;
  const Ran ran = check();
  EXPECT_EQ(ran.status, 1);
  std::size_t different = 0;
  for (const auto& row : ran.json["determinism"]) different += row["different"].size();
  EXPECT_GT(different, 0u);
}

TEST(GpuCheck, BadUsage) {
  EmulatedGpu gpu;
  GpuCheckArguments arguments;
  arguments.seconds = 0;
  EXPECT_THROW(gpu_check_command(arguments), std::invalid_argument);
  arguments = {};
  arguments.replay = "v0";
  EXPECT_THROW(gpu_check_command(arguments), std::invalid_argument);
  arguments = {};
  arguments.json = "no/such/folder/x.json";
  EXPECT_THROW(gpu_check_command(arguments), std::invalid_argument);
}

TEST(Watchdog, BarksOnlyWhenLate) {
  std::atomic<bool> barked = false;
  {
    const Watchdog watchdog(60, [&] { barked = true; });
  }
  EXPECT_FALSE(barked);
  const Watchdog watchdog(0.001, [&] { barked = true; });
  while (!barked) std::this_thread::yield();
}

}  // namespace
}  // namespace attn::fuzz
