#include <algorithm>
#include <cmath>

#include "fuzz/examination.h"
#include "fuzz/examined.h"
#include "fuzz/inputs.h"

namespace attn::fuzz {
namespace {

/// The oracle's bounds on a few cases of ordinary inputs.
Determination determined(const Case& of, const FixedLengths& fixed, const char* name,
                         const Numerics& may) {
  Determination result{name, 0, 0, 1, ""};
  std::vector<double> shares, amplifications;
  for (const Fill fill : {Fill::gaussian, Fill::large, Fill::rising, Fill::ties}) {
    Case c = of;
    const Sizes sizes = examined_sizes(fixed).front();
    c.b = sizes.b, c.hq = sizes.hq, c.hkv = sizes.hkv, c.sq = sizes.sq, c.skv = sizes.skv;
    c.d = c.dv = 32;
    c.dtype = may.storage;
    c.fill = fill;
    c.implementation = may.storage == DType::f32 ? "flash_forward_fp32" : "flash_forward";
    const Examined x(c, sizes);
    const ForwardBounds bounds =
        x.functors().bound_forward(make_inputs(c, x.functors().ask()), may, BoundKind::working);
    double scale = 0;
    for (const double o : bounds.o.values()) scale = std::max(scale, std::abs(o));
    amplifications.push_back(bounds.amplification);
    const auto e = bounds.o.extents();
    for (int b = 0; b < e[0] && scale > 0; ++b)
      for (int h = 0; h < e[1]; ++h)
        for (int q = 0; q < e[2]; ++q)
          for (int d = 0; d < e[3]; ++d) {
            shares.push_back(bounds.o_bound(b, h, q, d) / scale);
            if (shares.back() <= result.largest) continue;
            result.largest = shares.back();
            result.worst = fmt::format("O[b{} h{} q{} d{}], fill {}", b, h, q, d, name_of(fill));
          }
  }
  result.median = median_or_one(shares);
  result.amplification = median_or_one(amplifications);
  return result;
}

}  // namespace

std::vector<Determination> determinations(const Case& c, const FixedLengths& fixed) {
  const std::pair<const char*, Numerics> types[] = {
      {"fp16", flash_numerics(DType::f16)},
      {"bf16", flash_numerics(DType::bf16)},
      {"tf32", implementation_named("flash_forward_tf32").numerics(DType::f32)},
      {"fp32", implementation_named("flash_forward_fp32").numerics(DType::f32)}};
  std::vector<Determination> all;
  for (const auto& [name, may] : types) all.push_back(determined(c, fixed, name, may));
  return all;
}

}  // namespace attn::fuzz
