// The public face, on one engine, with a mod of one's own: the overloads that return tensors, the
// ones that write into views, and the workspace that the caller brings.
#define ATTN_LARGEST_HEAD 64  // fewer kernels to compile
#include "optimized/attention.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "masks/causal.h"
#include "mods/lang/captured.h"
#include "optimized/simt/memory.h"
#include "reference/backward.h"

namespace {

//! [mod]
struct CappedAlibi {        // 30 tanh(s / 30) + slope[h] (j - i)
  attn::Captured<1> slope;  // [Hq]
  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index b, Index h, Index q, Index kv) const {
    return 30 * attn::tanh(s / 30) + slope(h) * (kv - q);
  }
};
//! [mod]

}  // namespace

namespace attn {
inline namespace ATTN_TARGET {
namespace attention_test {

constexpr int heads = 4, queries = 4, keys = 8, head = 16;

/// Q = 0 and slopes 0, so that each query weighs the keys it attends to alike: with bottom-right
/// alignment query i sees keys 0 to i + 4. V[j] = 840 if j is 0, else 0: row i of O is 840 / (i +
/// 5).
struct Problem4 {
  Tensor<half, 4> q{{1, heads, queries, head}}, k{{1, 2, keys, head}}, v{{1, 2, keys, head}},
      d_o{{1, heads, queries, head}};
  Tensor<float, 1> slope{{heads}};

  Problem4() {
    for (int h = 0; h < 2; ++h)
      for (int d = 0; d < head; ++d) v(0, h, 0, d) = from_float<half>(840);
    for (half& x : d_o.values()) x = from_float<half>(1);
  }
  CappedAlibi mod() const { return {slope}; }
};
const auto mask = causal(bottom_right);

void expect_means(const Tensor<half, 4>& o) {
  for (int h = 0; h < heads; ++h)
    for (int i = 0; i < queries; ++i)
      for (int d = 0; d < head; ++d)
        ASSERT_EQ(to_float(o(0, h, i, d)), to_float(from_float<half>(840.0f / (i + 5)))) << i;
}

TEST(Attention, ReturnsTensors) {
  const Problem4 x;
  const auto out = forward<half>(x.q.view(), x.k.view(), x.v.view(), x.mod(), mask);
  expect_means(out.o);
  const auto grad =
      backward<half>(x.q.view(), x.k.view(), x.v.view(), out, x.d_o.view(), x.mod(), mask);
  ASSERT_EQ(grad.d_captured.size(), 1u);
  EXPECT_EQ(grad.d_captured[0].size(), std::size_t{heads});
  EXPECT_TRUE(grad.d_sink.empty());
  // dV[j] = sum over rows and the two heads of a group of P: key 7 is seen by the last row alone.
  for (int d = 0; d < head; ++d) EXPECT_EQ(to_float(grad.dv(0, 1, 7, d)), 0.25f);
  for (const half& y : grad.dq.values()) EXPECT_EQ(to_float(y), 0) << "K = 0";
}

/// What the README shows.
TEST(Attention, IsCalledAsTheReadmeSays) {
  const Problem4 x;
  const auto q = x.q.view(), k = x.k.view(), v = x.v.view(), d_o = x.d_o.view();
  const auto& slopes = x.slope;
  //! [use]
  const CappedAlibi mod{slopes};
  const auto mask = attn::causal(attn::bottom_right);
  const auto out = attn::forward<attn::half>(q, k, v, mod, mask);              // out.o, out.lse
  const auto grad = attn::backward<attn::half>(q, k, v, out, d_o, mod, mask);  // dq, dk, dv, ...
  const auto truth = attn::reference::backward(q, k, v, d_o, mod, mask);       // fp64, same names
  //! [use]
  expect_means(out.o);
  // key 7 is seen by the last row alone, with weight 1/8, in the two heads of a group
  for (int d = 0; d < head; ++d) {
    EXPECT_EQ(to_float(grad.dv(0, 1, 7, d)), 0.25f);
    EXPECT_EQ(static_cast<float>(truth.dv(0, 1, 7, d)), 0.25f);
  }
  ASSERT_EQ(grad.d_captured.size(), truth.d_captured.size());
}

TEST(Attention, DecodesWhatForwardGives) {
  const Problem4 x;
  const std::int32_t lengths[] = {keys};
  DecodeOptions options;
  options.splits = 3;
  expect_means(decode<half>(x.q.view(), x.k.view(), x.v.view(), lengths, x.mod(), mask, options).o);
}

/// A workspace of the size that was asked for is enough, and one byte less is not.
template <class Run>
void expect_exact_workspace(std::size_t bytes, AttentionOptions& options, Run run) {
  ASSERT_GT(bytes, 0u);
  struct Free {
    void operator()(std::byte* p) const { operator delete[](p, std::align_val_t{256}); }
  };
  const std::unique_ptr<std::byte[], Free> memory(new (std::align_val_t{256}) std::byte[bytes]);
  options.workspace = {memory.get(), bytes};
  EXPECT_NO_THROW(run());
  options.workspace.bytes = bytes - 1;
  EXPECT_THROW(run(), std::invalid_argument);
}

TEST(Attention, TakesTheWorkspaceItAskedFor) {
  Problem4 x;
  Tensor<half, 4> o({1, heads, queries, head}), dq(x.q), dk(x.k), dv(x.v);
  Tensor<float, 3> lse({1, heads, queries});
  const auto q = std::as_const(x.q).view(), k = std::as_const(x.k).view(),
             v = std::as_const(x.v).view();
  EXPECT_EQ((forward_workspace<half>(q, k, v, o.view(), lse.view(), x.mod(), mask)), 0u)
      << "a dense forward pass needs none";
  forward<half>(q, k, v, o.view(), lse.view(), x.mod(), mask);
  expect_means(o);

  const std::int32_t lengths[] = {keys};
  DecodeOptions step;
  step.splits = 2;
  expect_exact_workspace(
      decode_workspace<half>(q, k, v, lengths, o.view(), lse.view(), x.mod(), mask, step), step,
      [&] { decode<half>(q, k, v, lengths, o.view(), lse.view(), x.mod(), mask, step); });
  expect_means(o);

  const BackwardViews<half> views{q,
                                  k,
                                  v,
                                  std::as_const(o).view(),
                                  std::as_const(lse).view(),
                                  std::as_const(x.d_o).view(),
                                  dq.view(),
                                  dk.view(),
                                  dv.view()};
  BackwardOptions options;
  expect_exact_workspace(backward_workspace<half>(views, x.mod(), mask, options), options,
                         [&] { backward<half>(views, x.mod(), mask, options); });
  EXPECT_EQ(to_float(dv(0, 0, 7, 0)), 0.25f);
}

TEST(Attention, RefusesAHeadThatWasNotCompiled) {
  Tensor<half, 4> q({1, 1, 1, 80}), o(q);
  Tensor<float, 3> lse({1, 1, 1});
  const Tensor<float, 1> slope({1});
  const auto view = std::as_const(q).view();
  EXPECT_THROW(forward<half>(view, view, view, o.view(), lse.view(), CappedAlibi{slope}, causal()),
               std::invalid_argument);
}

}  // namespace attention_test
}  // namespace ATTN_TARGET
}  // namespace attn
