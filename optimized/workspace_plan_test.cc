// The workspace: how large it is, where its parts lie, and whose memory is accepted.
#include "optimized/workspace_plan.h"

#include <gtest/gtest.h>

#include <new>

#include "optimized/path_fixtures.h"
#include "optimized/simt/fault.h"
#include "optimized/source.h"

namespace attn::path_test {
namespace {

TEST(WorkspacePlan, PartsAreAlignedAndApart) {
  WorkspacePlan plan;
  const std::int32_t* uploaded = nullptr;
  const std::int32_t* nothing = nullptr;
  float* scratch = nullptr;
  double* last = nullptr;
  const std::vector<std::int32_t> values(65, 7);
  EXPECT_EQ(plan.bytes(), 0u);
  plan.upload(uploaded, std::span<const std::int32_t>(values));
  plan.upload(nothing, std::span<const std::int32_t>());
  plan.scratch(scratch, 1);
  plan.scratch(last, 32);
  EXPECT_EQ(plan.bytes(), 512u + 256u + 256u);
  ASSERT_EQ(plan.parts().size(), 3u) << "an empty part takes no place";
  std::size_t end = 0;
  for (const WorkspacePlan::Part& part : plan.parts()) {
    EXPECT_EQ(part.offset % 256, 0u);
    EXPECT_GE(part.offset, end);
    end = part.offset + part.bytes;
  }
  EXPECT_LE(end, plan.bytes());
  EXPECT_EQ(plan.parts()[0].values, values.data());
  EXPECT_EQ(plan.parts()[0].bytes, 65u * 4);
  EXPECT_EQ(plan.parts()[1].values, nullptr) << "scratch";
  *plan.parts()[2].pointer = &end;
  EXPECT_EQ(static_cast<void*>(last), &end) << "the pointer that was named is set";
}

struct Free {
  void operator()(std::byte* p) const { operator delete[](p, std::align_val_t{256}); }
};
using Memory = std::unique_ptr<std::byte[], Free>;

/// Runs a row with a workspace of `bytes` at `offset`; the message of a refusal.
std::string run_with(const char* row, std::size_t bytes, std::size_t offset, Attention<half>& x,
                     const std::vector<std::int32_t>& lengths) {
  const Memory memory(new (std::align_val_t{256}) std::byte[1 << 20]);
  const bool decode = !lengths.empty();
  x.options.splits = decode ? 3 : 0;
  x.options.workspace = {memory.get() + offset, bytes};
  AttentionCall call = decode ? x.forward_call() : x.backward_call();
  call.lengths = lengths;
  return refusal([&] { implementation_named(row).run(call, Engine::warp); });
}

/// The size that a refusal asks for.
std::size_t asked_for(const std::string& message) {
  const std::string before = "expected ";
  const auto at = message.find(before);
  EXPECT_NE(at, std::string::npos) << message;
  return at == std::string::npos ? 0 : std::stoul(message.substr(at + before.size()));
}

TEST(Workspace, OfTheExactSizeIsAcceptedAndOfLessRefused) {
  const std::vector<std::int32_t> lengths = {100, 70};
  for (const auto& [row, given] :
       {std::pair{"decode", lengths}, {"flash_backward", std::vector<std::int32_t>{}}}) {
    SCOPED_TRACE(row);
    Attention<half> own({2, 2, 1, 5, 100, 16, 16}), theirs(own.n);
    for (Attention<half>* x : {&own, &theirs}) {
      x->fill_all();
      x->mod = "score + slope[h] * (kv - q)";
      x->give_sink();
      x->forward(Engine::warp);
    }
    const std::string message = run_with(row, 1, 0, theirs, given);
    expect_names(message, {"workspace: 1 bytes, expected ", "bytes aligned to 256"});
    const std::size_t bytes = asked_for(message);
    ASSERT_GT(bytes, 256u);
    ASSERT_LT(bytes, std::size_t{1} << 19);
    expect_names(run_with(row, bytes - 1, 0, theirs, given), {"workspace: ", "expected "});
    expect_names(run_with(row, bytes, 128, theirs, given), {"not aligned to 256"});
    EXPECT_EQ(run_with(row, bytes, 256, theirs, given), "");

    AttentionCall call = given.empty() ? own.backward_call() : own.forward_call();
    call.lengths = given;
    call.options.splits = given.empty() ? 0 : 3;
    call.options.workspace = {};
    implementation_named(row).run(call, Engine::warp);  // memory of the call's own
    EXPECT_TRUE(same_outputs(own, theirs));
    EXPECT_TRUE(same_gradients(own, theirs) || !given.empty());
  }
}

/// What one call leaves in the workspace is not read by the next.
TEST(Workspace, CanBeUsedAgain) {
  const Memory memory(new (std::align_val_t{256}) std::byte[1 << 20]);
  Attention<half> first({1, 2, 1, 40, 40, 16, 16}), second(first.n);
  for (Attention<half>* x : {&first, &second}) {
    x->fill_all();
    x->mod = "score + slope[h] * (kv - q)";
    x->options.workspace = {memory.get(), 1 << 20};
    x->forward(Engine::warp);
    x->backward(Engine::warp);
  }
  EXPECT_TRUE(same_gradients(first, second));
  EXPECT_FALSE(has_nan(second.dq));
}

}  // namespace
}  // namespace attn::path_test
