#include "fuzz/stored_tensor.h"

#include <algorithm>
#include <cstring>

namespace attn::fuzz {
namespace {

using Shape = StoredTensor::Shape;

constexpr std::int64_t guard = 64;  // elements before and behind; keeps 16-byte alignment

}  // namespace

StoredTensor StoredTensor::buffer(DType dtype, const Shape& extents, const Shape& strides) {
  StoredTensor t;
  std::int64_t last = 0;
  for (int axis = 0; axis < 4; ++axis)
    last += std::max<std::int64_t>(extents[axis] - 1, 0) * strides[axis];
  // 16 bytes more, so that the first element can be put on a 16-byte boundary
  const std::size_t bytes = static_cast<std::size_t>(last + 1 + 2 * guard) * bytes_of(dtype) + 16;
  t.memory_ = std::make_shared<Memory>();
  t.memory_->bytes.assign(bytes, std::byte{0xff});
  t.memory_->owned.assign(bytes, false);
  t.info_ = {"buffer", nullptr, dtype, 4, extents, strides};
  return t;
}

StoredTensor StoredTensor::part(const char* name, const Shape& extents, std::int64_t first) const {
  StoredTensor p = *this;
  p.info_.name = name;
  p.info_.extents = extents;
  p.first_ = first;
  p.info_.data = p.element(first);
  p.own_elements();
  return p;
}

StoredTensor::StoredTensor(const char* name, DType dtype, const Shape& extents,
                           const Shape& strides, std::int64_t first) {
  Shape reach = extents;  // of a buffer that begins `first` elements earlier
  reach[3] += first;
  *this = buffer(dtype, reach, strides).part(name, extents, first);
}

void StoredTensor::own_elements() {
  const auto bytes = static_cast<std::int64_t>(bytes_of(info_.dtype));
  for_each([&](const std::byte* at, std::size_t) {
    std::fill_n(memory_->owned.begin() + (at - memory_->bytes.data()), bytes, true);
  });
}

std::byte* StoredTensor::element(std::int64_t offset) const {
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(memory_->bytes.data());
  const std::uintptr_t aligned = (start + 15) / 16 * 16;
  return memory_->bytes.data() + (aligned - start) +
         (guard + offset) * static_cast<std::int64_t>(bytes_of(info_.dtype));
}

std::byte* StoredTensor::element(std::int64_t b, std::int64_t h, std::int64_t r,
                                 std::int64_t d) const {
  const auto& s = info_.strides;
  return element(first_ + b * s[0] + h * s[1] + r * s[2] + d * s[3]);
}

template <class F>
void StoredTensor::for_each(F f) const {
  const auto& e = info_.extents;
  std::size_t n = 0;
  for (std::int64_t b = 0; b < e[0]; ++b)
    for (std::int64_t h = 0; h < e[1]; ++h)
      for (std::int64_t r = 0; r < e[2]; ++r)
        for (std::int64_t d = 0; d < e[3]; ++d) f(element(b, h, r, d), n++);
}

void StoredTensor::put(std::byte* at, double x) const {
  const auto write = [at](auto stored) { std::memcpy(at, &stored, sizeof stored); };
  switch (info_.dtype) {
    case DType::f64:
      return write(x);
    case DType::f32:
      return write(static_cast<float>(x));
    case DType::f16:
      return write(from_float<half>(static_cast<float>(x)));
    case DType::bf16:
      return write(from_float<bfloat16>(static_cast<float>(x)));
  }
}

double StoredTensor::get(const std::byte* at) const {
  const auto read = [at]<class T>(T stored) {
    std::memcpy(&stored, at, sizeof stored);
    return stored;
  };
  switch (info_.dtype) {
    case DType::f64:
      return read(0.0);
    case DType::f32:
      return read(0.0f);
    case DType::f16:
      return to_float(read(half{}));
    case DType::bf16:
      return to_float(read(bfloat16{}));
  }
  return 0;
}

void StoredTensor::store(const Tensor<double, 4>& values) {
  for_each([&](std::byte* at, std::size_t n) { put(at, values.values()[n]); });
}

void StoredTensor::store(const Tensor<double, 4>& values, const RowPlaces& places) {
  const auto e = values.extents();
  for (std::size_t b = 0; b < places.size(); ++b)
    for (std::int64_t h = 0; h < e[1]; ++h)
      for (std::size_t s = 0; s < places[b].size(); ++s)
        for (std::int64_t d = 0; d < e[3]; ++d)
          put(element(places[b][s].entry, h, places[b][s].row, d), values(b, h, s, d));
}

Tensor<double, 4> StoredTensor::load() const {
  Tensor<double, 4> values(info_.extents);
  for_each([&](const std::byte* at, std::size_t n) { values.values()[n] = get(at); });
  return values;
}

Tensor<double, 4> StoredTensor::load(const Shape& extents, const RowPlaces& places) const {
  Tensor<double, 4> values(extents);
  for (std::size_t b = 0; b < places.size(); ++b)
    for (std::int64_t h = 0; h < extents[1]; ++h)
      for (std::size_t s = 0; s < places[b].size(); ++s)
        for (std::int64_t d = 0; d < extents[3]; ++d)
          values(b, h, s, d) = get(element(places[b][s].entry, h, places[b][s].row, d));
  return values;
}

std::optional<std::int64_t> StoredTensor::trespass() const {
  const auto bytes = static_cast<std::int64_t>(bytes_of(info_.dtype));
  for (std::size_t i = 0; i < memory_->bytes.size(); ++i)
    if (!memory_->owned[i] && memory_->bytes[i] != std::byte{0xff}) {
      const std::int64_t offset = memory_->bytes.data() + i - element(first_);
      return (offset - (offset < 0 ? bytes - 1 : 0)) / bytes;
    }
  return std::nullopt;
}

TensorInfo StoredTensor::rows() const {
  TensorInfo info = info_;
  if (info.data) info.rank = 3;
  return info;
}

Tensor<double, 4> with_one_channel(const Tensor<double, 3>& x) {
  const auto e = x.extents();
  Tensor<double, 4> y({e[0], e[1], e[2], 1});
  y.values() = x.values();
  return y;
}

}  // namespace attn::fuzz
