// Runs a mod of one's own through the reference and through the emulated kernels, and a kernel of
// one's own under the checker.
#include <attn/masks/full.h>
#include <attn/optimized/attention_arguments.h>
#include <attn/reference/backward.h>

#include <cstdio>

#include "every_other.h"
#include "every_other_kernels.h"

std::vector<float> scaled(const std::vector<float>& values, float scale);  // kernel.cc

namespace {

int differing(const std::vector<attn::half>& got, const std::vector<double>& exact) {
  int wrong = got.size() != exact.size();
  for (std::size_t i = 0; i < got.size() && i < exact.size(); ++i)
    wrong += attn::to_float(got[i]) != exact[i];
  return wrong;
}

}  // namespace

int main() {
  // Q = 0: every attended key weighs the same, so that both answers are exact.
  attn::Tensor<attn::half, 4> q({1, 2, 3, 16}), k({1, 1, 8, 16}), v({1, 1, 8, 16}),
      o({1, 2, 3, 16}), d_o(o), dq(q), dk(k), dv(v);
  attn::Tensor<float, 3> lse({1, 2, 3});
  attn::Tensor<float, 1> bias({2});
  bias(1) = 0.5f;
  for (int j = 0; j < 8; ++j)
    for (int d = 0; d < 16; ++d)
      v(0, 0, j, d) = attn::from_float<attn::half>(static_cast<float>(j + d));
  for (attn::half& x : d_o.values()) x = attn::from_float<attn::half>(1);

  const EveryOther mod{bias};
  const auto reference =
      attn::reference::forward(std::as_const(q).view(), k.view(), v.view(), mod, attn::full());
  every_other_kernels::warp::run(
      attn::forward_arguments<attn::half>(q.view(), k.view(), v.view(), o.view(), lse.view()),
      attn::forward_row<attn::half>(), mod, attn::full());
  int wrong = differing(o.values(), reference.o.values());

  const auto gradients = attn::reference::backward(std::as_const(q).view(), k.view(), v.view(),
                                                   std::as_const(d_o).view(), mod, attn::full());
  every_other_kernels::warp::run(
      attn::backward_arguments<attn::half>({q.view(), k.view(), v.view(), o.view(), lse.view(),
                                            d_o.view(), dq.view(), dk.view(), dv.view()}),
      attn::backward_row(), mod, attn::full());
  wrong += differing(dv.values(), gradients.dv.values());  // each P is 1/4

  wrong += scaled({1, 2, 3}, 2) != std::vector<float>{2, 4, 6};
  std::printf("%d differences\n", wrong);
  return wrong != 0;
}
