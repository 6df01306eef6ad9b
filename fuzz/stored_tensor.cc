#include "fuzz/stored_tensor.h"

#include <algorithm>
#include <cstring>

namespace attn::fuzz {
namespace {

using Shape = StoredTensor::Shape;

constexpr std::int64_t guard = 64;  // elements before and behind; keeps 16-byte alignment

std::int64_t bytes_of(DType t) { return t == DType::f64 ? 8 : t == DType::f32 ? 4 : 2; }

/// Strides of [B, H, S, D] kept as [B, S, H, D], rows of `row` elements.
Shape bshd(const Shape& e, std::int64_t row) { return {e[2] * e[1] * row, row, e[1] * row, 1}; }

struct Placement {
  Shape strides;
  std::int64_t first = 0;
};

Placement place(Layout layout, const Shape& e) {
  switch (layout) {
    case Layout::bshd:
      return {bshd(e, e[3])};
    case Layout::padded: {
      const std::int64_t row = (e[3] + 15) / 8 * 8, head = e[2] * row + 16;
      return {{e[1] * head + 64, head, row, 1}};
    }
    case Layout::unaligned: {
      const std::int64_t row = e[3] + 1, head = e[2] * row + 3;
      return {{e[1] * head, head, row, 1}, 1};
    }
    case Layout::spread:
      return {{2 * e[1] * e[2] * e[3], 2 * e[2] * e[3], 2 * e[3], 2}};
    default:
      return {contiguous_strides(e)};
  }
}

}  // namespace

StoredTensor::StoredTensor(const char* name, DType dtype, const Shape& extents,
                           const Shape& strides, std::int64_t first)
    : first_(first) {
  std::int64_t last = first;
  for (int axis = 0; axis < 4; ++axis)
    last += std::max<std::int64_t>(extents[axis] - 1, 0) * strides[axis];
  const std::int64_t bytes = bytes_of(dtype);
  // 16 bytes more, so that the first element can be put on a 16-byte boundary
  memory_ = std::make_shared<std::vector<std::byte>>(
      static_cast<std::size_t>((last + 1 + 2 * guard) * bytes + 16), std::byte{0xff});
  info_ = {name, nullptr, dtype, 4, extents, strides};
  info_.data = element(first);
}

std::byte* StoredTensor::element(std::int64_t offset) const {
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(memory_->data());
  const std::uintptr_t aligned = (start + 15) / 16 * 16;
  return memory_->data() + (aligned - start) + (guard + offset) * bytes_of(info_.dtype);
}

template <class F>
void StoredTensor::for_each(F f) const {
  const auto& e = info_.extents;
  const auto& s = info_.strides;
  std::size_t n = 0;
  for (std::int64_t b = 0; b < e[0]; ++b)
    for (std::int64_t h = 0; h < e[1]; ++h)
      for (std::int64_t r = 0; r < e[2]; ++r)
        for (std::int64_t d = 0; d < e[3]; ++d)
          f(element(first_ + b * s[0] + h * s[1] + r * s[2] + d * s[3]), n++);
}

void StoredTensor::store(const Tensor<double, 4>& values) {
  for_each([&](std::byte* at, std::size_t n) {
    const double x = values.values()[n];
    const auto put = [at](auto stored) { std::memcpy(at, &stored, sizeof stored); };
    switch (info_.dtype) {
      case DType::f64:
        return put(x);
      case DType::f32:
        return put(static_cast<float>(x));
      case DType::f16:
        return put(from_float<half>(static_cast<float>(x)));
      case DType::bf16:
        return put(from_float<bfloat16>(static_cast<float>(x)));
    }
  });
}

Tensor<double, 4> StoredTensor::load() const {
  Tensor<double, 4> values(info_.extents);
  for_each([&](const std::byte* at, std::size_t n) {
    const auto get = [at]<class T>(T stored) {
      std::memcpy(&stored, at, sizeof stored);
      return stored;
    };
    double& x = values.values()[n];
    switch (info_.dtype) {
      case DType::f64:
        x = get(0.0);
        break;
      case DType::f32:
        x = get(0.0f);
        break;
      case DType::f16:
        x = to_float(get(half{}));
        break;
      case DType::bf16:
        x = to_float(get(bfloat16{}));
        break;
    }
  });
  return values;
}

std::optional<std::int64_t> StoredTensor::trespass() const {
  const std::int64_t bytes = bytes_of(info_.dtype);
  std::vector<bool> owned(memory_->size());
  for_each([&](const std::byte* at, std::size_t) {
    std::fill_n(owned.begin() + (at - memory_->data()), bytes, true);
  });
  for (std::size_t i = 0; i < owned.size(); ++i)
    if (!owned[i] && (*memory_)[i] != std::byte{0xff}) {
      const std::int64_t offset = memory_->data() + i - element(first_);
      return (offset - (offset < 0 ? bytes - 1 : 0)) / bytes;
    }
  return std::nullopt;
}

TensorInfo StoredTensor::rows() const {
  TensorInfo info = info_;
  info.rank = 3;
  return info;
}

StoredTensor StoredTensor::part(const char* name, const Shape& extents, std::int64_t first) const {
  StoredTensor p = *this;
  p.info_.name = name;
  p.info_.extents = extents;
  p.first_ = first;
  p.info_.data = p.element(first);
  return p;
}

StoredForward::StoredForward(const Case& c) {
  const Shape qe{c.b, c.hq, c.sq, c.d}, ke{c.b, c.hkv, c.skv, c.d}, ve{c.b, c.hkv, c.skv, c.dv},
      oe{c.b, c.hq, c.sq, c.dv}, le{c.b, c.hq, c.sq, 1};
  const auto make = [&](const char* name, const Shape& e, Layout layout) {
    const Placement p = place(layout, e);
    return StoredTensor(name, c.dtype, e, p.strides, p.first);
  };
  const bool separate = c.layout != Layout::fused && c.layout != Layout::shared_kv;
  const Layout queries = separate                    ? c.layout
                         : c.layout == Layout::fused ? Layout::bshd
                                                     : Layout::bhsd;
  o = make("o", oe, queries);
  q = make("q", qe, queries);
  const Layout rows = c.layout == Layout::padded ? Layout::padded : Layout::bhsd;
  const Placement p = place(rows, le);
  lse = StoredTensor("lse", DType::f32, le, p.strides, p.first);

  if (separate) {
    k = make("k", ke, c.layout);
    v = make("v", ve, c.layout);
  } else if (c.layout == Layout::shared_kv) {
    const auto shared = [&](const char* name, const Shape& e) {
      Shape strides = contiguous_strides(e);
      strides[0] = 0;
      return StoredTensor(name, c.dtype, e, strides);
    };
    k = shared("k", ke);
    v = shared("v", ve);
  } else {  // K and V side by side, and Q too where the lengths agree
    const bool all = c.sq == c.skv;
    const std::int64_t width = std::max(c.d, c.dv), heads = 2 * c.hkv + (all ? c.hq : 0);
    const Shape together{c.b, heads, c.skv, width};
    const StoredTensor buffer("fused", c.dtype, together, bshd(together, width));
    k = buffer.part("k", ke, 0);
    v = buffer.part("v", ve, c.hkv * width);
    if (all) q = buffer.part("q", qe, 2 * c.hkv * width);
  }
}

}  // namespace attn::fuzz
