#include <cmath>
#include <limits>

#include "fuzz/fill_context.h"

namespace attn::fuzz {
namespace {

/// Small whole numbers, three of four zero, so that sums of products stay exact.
double sparse_int(std::uint64_t hash) { return hash % 4 ? 0 : int_of(hash >> 8, -3, 3); }

bool has_whole_gradients(Fill fill) { return is_exact(fill) || fill == Fill::small_ints; }

}  // namespace

void fill_output_gradients(const FillContext& f) {
  const Case& c = f.c;
  Tensor<double, 4>& d_o = f.in.d_o;
  d_o = Tensor<double, 4>({c.b, c.hq, c.sq, c.dv});
  f.set(d_o, f.normal(Stream::d_o));
  if (has_whole_gradients(c.fill))
    f.set(d_o,
          [&](int b, int h, int s, int d) { return sparse_int(f.hash(Stream::d_o, b, h, s, d)); });
  switch (c.fill) {
    case Fill::cancelling:  // rows in pairs with opposite gradients: dK and dV cancel
      f.set(d_o, [&](int b, int h, int s, int d) {
        return (s & 1 ? -1 : 1) * normal_of(f.hash(Stream::d_o, b, h, s & ~1, d));
      });
      break;
    case Fill::large:
      f.scale_by(d_o, 24);
      break;
    case Fill::denormal:
      f.scale_by(d_o, c.dtype == DType::f16 ? 0x1p-12 : 0x1p-60);
      break;
    case Fill::offsets:  // the same gradient for every row, almost: delta matters
      for (double& value : d_o.values()) value += 8;
      break;
    case Fill::outlier: {
      const int channel = c.dv > 0 ? static_cast<int>(f.choice() % c.dv) : 0;
      f.set(d_o, [&](int b, int h, int s, int d) {
        return normal_of(f.hash(Stream::d_o, b, h, s, d)) * (d == channel ? 30 : 1);
      });
      break;
    }
    default:
      break;
  }
  f.in.d_lse = Tensor<double, 3>({c.b, c.hq, c.sq});
  if (!c.d_lse) return;
  double* at = f.in.d_lse.values().data();
  for (int b = 0; b < c.b; ++b)
    for (int h = 0; h < c.hq; ++h)
      for (int s = 0; s < c.sq; ++s) {
        const std::uint64_t hash = f.hash(Stream::d_lse, b, h, s, 0);
        *at++ =
            has_whole_gradients(c.fill) ? int_of(hash, -2, 2) : static_cast<float>(normal_of(hash));
      }
}

void fill_sink(const FillContext& f) {
  for (int h = 0; h < f.c.hq; ++h) {
    const std::uint64_t hash = f.hash(Stream::sink, 0, h, 0, 0);
    const double near = 2 * normal_of(hash >> 8);
    double logit = near;
    switch (hash % 6) {
      case 0:  // none: takes no probability
        logit = -std::numeric_limits<double>::infinity();
        break;
      case 1:  // far below the scores
        logit = -200;
        break;
      case 2:  // far above: takes everything
        logit = 200;
        break;
      case 3:
        logit = std::round(near);
        break;
      default:
        break;
    }
    f.in.sink.push_back(static_cast<float>(logit));
  }
}

}  // namespace attn::fuzz
