// Runs a mod of one's own through the reference and through the emulated kernel.
#include <attn/masks/full.h>
#include <attn/reference/forward.h>

#include <cstdio>

#include "every_other.h"

void run_kernel(attn::TensorView<const attn::half, 4> q, attn::TensorView<const attn::half, 4> k,
                attn::TensorView<const attn::half, 4> v, attn::TensorView<attn::half, 4> o,
                attn::TensorView<float, 3> lse, const EveryOther& mod);

int main() {
  // Q = 0: every attended key weighs the same, so that both answers are exact.
  attn::Tensor<attn::half, 4> q({1, 2, 3, 16}), k({1, 1, 8, 16}), v({1, 1, 8, 16}),
      o({1, 2, 3, 16});
  attn::Tensor<float, 3> lse({1, 2, 3});
  attn::Tensor<float, 1> bias({2});
  bias(1) = 0.5f;
  for (int j = 0; j < 8; ++j)
    for (int d = 0; d < 16; ++d)
      v(0, 0, j, d) = attn::from_float<attn::half>(static_cast<float>(j + d));

  const EveryOther mod{bias};
  const auto reference =
      attn::reference::forward(std::as_const(q).view(), k.view(), v.view(), mod, attn::full());
  run_kernel(q.view(), k.view(), v.view(), o.view(), lse.view(), mod);

  int wrong = 0;
  for (std::size_t i = 0; i < o.values().size(); ++i)
    wrong += attn::to_float(o.values()[i]) != reference.o.values()[i];
  std::printf("%zu outputs, %d differ\n", o.values().size(), wrong);
  return wrong != 0;
}
