#include "reference/problem.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

namespace attn {
namespace {

using Axes = std::span<const std::int64_t>;

void require(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument(message);
}

std::string list(Axes values) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < values.size(); ++axis)
    text += (axis ? ", " : "") + std::to_string(values[axis]);
  return text + "]";
}

Axes extents(const TensorInfo& t) { return Axes(t.extents).first(t.rank); }
Axes strides(const TensorInfo& t) { return Axes(t.strides).first(t.rank); }

std::int64_t bytes(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 8;
    case DType::f32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
  }
  return 0;
}

/// The memory of a view with elements: from the first byte to just past the last one.
struct Interval {
  std::int64_t begin, end;
};

/// False if an offset, in bytes, leaves 64 bits.
bool footprint(const TensorInfo& t, Interval& out) {
  std::int64_t low = 0, high = 0;
  for (int axis = 0; axis < t.rank; ++axis) {
    std::int64_t reach;
    if (__builtin_mul_overflow(t.extents[axis] - 1, t.strides[axis], &reach)) return false;
    std::int64_t& side = reach < 0 ? low : high;
    if (__builtin_add_overflow(side, reach, &side)) return false;
  }
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(t.data));
  const std::int64_t size = bytes(t.dtype);
  return !__builtin_mul_overflow(low, size, &low) && !__builtin_mul_overflow(high, size, &high) &&
         !__builtin_add_overflow(address, low, &out.begin) &&
         !__builtin_add_overflow(address + size, high, &out.end);
}

/// What every tensor of a problem must be: 32-bit extents, memory, offsets of 64 bits.
void check_view(const TensorInfo& t) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (int axis = 0; axis < t.rank; ++axis)
    require(t.extents[axis] >= 0 && t.extents[axis] <= most,
            std::string(t.name) + ": extent " + std::to_string(t.extents[axis]) + " in axis " +
                std::to_string(axis) + " of shape " + t.shape() + ", expected 0 to " +
                std::to_string(most));
  if (t.empty()) return;
  require(t.data != nullptr, std::string(t.name) + ": null data for shape " + t.shape() +
                                 ", expected the address of its first element");
  Interval unused;
  require(footprint(t, unused), std::string(t.name) + ": strides " + list(strides(t)) +
                                    " for shape " + t.shape() +
                                    ", expected offsets that fit in 64 bits");
}

/// The view as runs of consecutive bytes, sorted by address: along an axis of stride 1 where there
/// is one, else element by element.
std::vector<Interval> runs(Axes extents, Axes strides, std::int64_t address, std::int64_t size) {
  const auto along = std::find_if(strides.begin(), strides.end(),
                                  [](std::int64_t s) { return s == 1 || s == -1; });
  const std::size_t run_axis = along - strides.begin();
  Interval run{0, 1};
  if (along != strides.end())
    run = *along > 0 ? Interval{0, extents[run_axis]} : Interval{1 - extents[run_axis], 1};
  std::vector<Interval> found{{address + run.begin * size, address + run.end * size}};
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (axis == run_axis || strides[axis] == 0) continue;
    const std::size_t count = found.size();
    for (std::int64_t i = 1; i < extents[axis]; ++i)
      for (std::size_t r = 0; r < count; ++r) {
        const std::int64_t shift = i * strides[axis] * size;
        found.push_back({found[r].begin + shift, found[r].end + shift});
      }
  }
  std::sort(found.begin(), found.end(),
            [](const Interval& x, const Interval& y) { return x.begin < y.begin; });
  return found;
}

std::vector<Interval> runs(const TensorInfo& t) {
  return runs(extents(t), strides(t),
              static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(t.data)), bytes(t.dtype));
}

bool share_memory(const TensorInfo& x, const TensorInfo& y) {
  if (x.empty() || y.empty()) return false;
  Interval all_x, all_y;
  footprint(x, all_x);
  footprint(y, all_y);
  if (all_x.end <= all_y.begin || all_y.end <= all_x.begin) return false;
  const std::vector<Interval> runs_x = runs(x), runs_y = runs(y);
  for (std::size_t i = 0, j = 0; i < runs_x.size() && j < runs_y.size();) {
    if (runs_x[i].end <= runs_y[j].begin)
      ++i;
    else if (runs_y[j].end <= runs_x[i].begin)
      ++j;
    else
      return true;
  }
  return false;
}

}  // namespace

bool TensorInfo::empty() const {
  return std::any_of(extents.begin(), extents.begin() + rank, [](auto e) { return e == 0; });
}

std::string TensorInfo::shape() const { return list(attn::extents(*this)); }

namespace {

/// What dense and paged problems have in common; k and v begin with the axes [batches, Hkv, rows].
Problem make_problem(const TensorInfo& q, const TensorInfo& k, const TensorInfo& v,
                     std::int64_t batches, const char* rows, const Options& options) {
  for (const TensorInfo* t : {&q, &k, &v}) check_view(*t);
  const auto [b, hq, sq, d] = q.extents;
  const auto [bk, hkv, skv, dk] = k.extents;
  require(d > 0, "q: shape " + q.shape() + ", expected a head size D of at least 1");
  require(bk == batches && dk == d, "k: shape " + k.shape() + ", expected [" +
                                        std::to_string(batches) + ", Hkv, " + rows + ", " +
                                        std::to_string(d) + "] beside q " + q.shape());
  require(v.extents[0] == batches && v.extents[1] == hkv && v.extents[2] == skv,
          "v: shape " + v.shape() + ", expected [" + std::to_string(batches) + ", " +
              std::to_string(hkv) + ", " + std::to_string(skv) + ", Dv] beside k " + k.shape());
  require(hkv == 0 ? hq == 0 : hq % hkv == 0, "k: " + std::to_string(hkv) + " heads in shape " +
                                                  k.shape() + ", expected a divisor of the " +
                                                  std::to_string(hq) + " heads of q " + q.shape());
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(d)));
  require(std::isfinite(scale), "scale: " + std::to_string(scale) + ", expected a finite number");
  const double p = options.dropout.p;
  require(p >= 0 && p < 1, "dropout: p = " + std::to_string(p) + ", expected 0 <= p < 1");
  if (options.sink) {
    const auto& sink = *options.sink;
    require(sink.extents[0] == hq, "sink: shape " + shape_string(sink.extents) +
                                       ", expected one logit a query head, [" + std::to_string(hq) +
                                       "]");
    require(hq == 0 || sink.data != nullptr, "sink: null data for shape " +
                                                 shape_string(sink.extents) +
                                                 ", expected the address of its first element");
  }
  const auto narrow = [](std::int64_t extent) { return static_cast<int>(extent); };
  return {narrow(b), narrow(hq),           narrow(hkv), narrow(sq), narrow(skv),
          narrow(d), narrow(v.extents[3]), scale,       q.dtype};
}

}  // namespace

Problem make_problem(const TensorInfo& q, const TensorInfo& k, const TensorInfo& v,
                     const Options& options) {
  return make_problem(q, k, v, q.extents[0], "Skv", options);
}

Problem make_paged_problem(const TensorInfo& q, const TensorInfo& k, const TensorInfo& v,
                           TensorView<const std::int32_t, 2> page_table, const Options& options) {
  Problem problem = make_problem(q, k, v, k.extents[0], "page_size", options);
  require(problem.skv >= 1, "k: shape " + k.shape() + ", expected pages of at least 1 slot");
  const std::string table = "page_table: shape " + shape_string(page_table.extents);
  const std::int64_t max_pages = page_table.extents[1],
                     most = std::numeric_limits<std::int32_t>::max();
  require(
      page_table.extents[0] == problem.b && max_pages >= 0,
      table + ", expected [" + std::to_string(problem.b) + ", max_pages] beside q " + q.shape());
  require(page_table.size() == 0 || page_table.data != nullptr,
          table + " and null data, expected the address of its first element");
  require(max_pages <= most / problem.skv, table + " with pages of " + std::to_string(problem.skv) +
                                               " slots, expected at most " + std::to_string(most) +
                                               " slots a sequence");
  problem.skv *= static_cast<int>(max_pages);
  return problem;
}

void refuse_sink_and_dropout(const Options& options, const char* implementation) {
  require(!options.sink, "sink: given, expected none in " + std::string(implementation));
  require(options.dropout.p == 0, "dropout: p = " + std::to_string(options.dropout.p) +
                                      ", expected 0 in " + implementation);
}

void check_tensor(const TensorInfo& tensor, std::span<const std::int64_t> expected) {
  require(std::equal(expected.begin(), expected.end(), tensor.extents.begin(),
                     tensor.extents.begin() + tensor.rank),
          std::string(tensor.name) + ": shape " + tensor.shape() + ", expected " + list(expected));
  check_view(tensor);
}

bool shares_memory_with_itself(std::span<const std::int64_t> extents,
                               std::span<const std::int64_t> strides) {
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return false;
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] > 1 && strides[axis] == 0) return true;
    if (extents[axis] > 1) axes.push_back(axis);
  }
  // The usual case: each axis steps over all that the axes inside it span.
  std::sort(axes.begin(), axes.end(), [&](std::size_t x, std::size_t y) {
    return std::abs(strides[x]) < std::abs(strides[y]);
  });
  std::int64_t span = 1;
  bool nested = true;
  for (std::size_t axis : axes) {
    nested &= std::abs(strides[axis]) >= span;
    span += (extents[axis] - 1) * std::abs(strides[axis]);
  }
  if (nested) return false;
  const std::vector<Interval> sorted = runs(extents, strides, 0, 1);
  return std::adjacent_find(sorted.begin(), sorted.end(), [](const auto& x, const auto& y) {
           return y.begin < x.end;
         }) != sorted.end();
}

void check_outputs(std::span<const TensorInfo> outputs, std::span<const TensorInfo> inputs) {
  const auto apart = [](const TensorInfo& output, const TensorInfo& other) {
    require(!share_memory(output, other), std::string(output.name) + ": shape " + output.shape() +
                                              " overlaps " + other.name + " " + other.shape() +
                                              ", expected memory of its own");
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorInfo& output = outputs[i];
    require(!shares_memory_with_itself(extents(output), strides(output)),
            std::string(output.name) + ": strides " + list(strides(output)) + " for shape " +
                output.shape() + ", expected every element at an address of its own");
    for (const TensorInfo& input : inputs) apart(output, input);
    for (const TensorInfo& earlier : outputs.first(i)) apart(output, earlier);
  }
}

}  // namespace attn
