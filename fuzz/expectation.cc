#include "fuzz/expectation.h"

#include <utility>

#include "fuzz/stored_tensor.h"

namespace attn::fuzz {
namespace {

using Axes = std::array<const char*, 4>;
constexpr Axes query_channels{"b", "h", "q", "d"}, key_channels{"b", "h", "k", "d"},
    query_rows{"b", "h", "q", nullptr};

Tensor<double, 4> shaped(const std::vector<double>& values,
                         const std::array<std::int64_t, 4>& extents) {
  Tensor<double, 4> x(extents);
  x.values() = values;
  return x;
}

template <class Bounds>
Health health_of(const Bounds& bounds) {
  return {bounds.ambiguous_mass, bounds.finding,         bounds.amplification,
          bounds.zero_share,     bounds.powerless_share, bounds.rows};
}

ExpectedOutput of(const char* name, const Axes& axes, DType storage, BackwardBounds::Bounded x) {
  return {name, axes, storage, std::move(x.value), std::move(x.bound), std::move(x.term)};
}

/// Indices of one captured tensor, by number; the leading axes that it has not are not told.
ExpectedOutput of(const std::string& name, const std::vector<std::int64_t>& extents,
                  const BackwardBounds::BoundedVector& x) {
  std::array<std::int64_t, 4> shape{1, 1, 1, 1};
  Axes axes{};
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const std::size_t at = 4 - extents.size() + axis;
    shape[at] = extents[axis];
    axes[at] = "";
  }
  return {name, axes, DType::f32, shaped(x.value, shape), shaped(x.bound, shape), {}};
}

}  // namespace

Expectation expect(ForwardBounds bounds, DType storage, bool row_max) {
  Expectation e;
  e.health = health_of(bounds);
  e.outputs.push_back({"O", query_channels, storage, std::move(bounds.o), std::move(bounds.o_bound),
                       std::move(bounds.o_term)});
  const auto add_rows = [&e](const char* name, const Tensor<double, 3>& value,
                             const Tensor<double, 3>& bound) {
    e.outputs.push_back(
        {name, query_rows, DType::f32, with_one_channel(value), with_one_channel(bound), {}});
  };
  add_rows("LSE", bounds.lse, bounds.lse_bound);
  if (row_max) add_rows("row max", bounds.row_max, bounds.row_max_bound);
  return e;
}

Expectation expect(BackwardBounds bounds, DType storage,
                   const std::vector<CapturedTensor>& captured, bool sink) {
  Expectation e;
  e.health = health_of(bounds);
  e.outputs.push_back(of("dQ", query_channels, storage, std::move(bounds.dq)));
  e.outputs.push_back(of("dK", key_channels, storage, std::move(bounds.dk)));
  e.outputs.push_back(of("dV", key_channels, storage, std::move(bounds.dv)));
  for (std::size_t i = 0; i < captured.size(); ++i)
    e.outputs.push_back(
        of(std::string("d ") + captured[i].name, captured[i].extents, bounds.captured[i]));
  if (sink)
    e.outputs.push_back(
        of("dSink", {static_cast<std::int64_t>(bounds.d_sink.value.size())}, bounds.d_sink));
  return e;
}

}  // namespace attn::fuzz
