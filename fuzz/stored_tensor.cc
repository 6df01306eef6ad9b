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
  t.memory_->owned.assign(bytes, std::byte{0});
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
  const std::int64_t count = info_.extents[3], step = row_step();
  for_each_row([&](const std::byte* at) {
    const auto first = memory_->owned.begin() + (at - memory_->bytes.data());
    if (step == bytes)
      std::fill_n(first, count * bytes, std::byte{0xff});
    else
      for (std::int64_t d = 0; d < count; ++d)
        std::fill_n(first + d * step, bytes, std::byte{0xff});
  });
}

std::byte* StoredTensor::element(std::int64_t offset) const {
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(memory_->bytes.data());
  const std::uintptr_t aligned = (start + 15) / 16 * 16;
  return memory_->bytes.data() + (aligned - start) +
         (guard + offset) * static_cast<std::int64_t>(bytes_of(info_.dtype));
}

std::byte* StoredTensor::row(std::int64_t b, std::int64_t h, std::int64_t r) const {
  const auto& s = info_.strides;
  return element(first_ + b * s[0] + h * s[1] + r * s[2]);
}

std::int64_t StoredTensor::row_step() const {
  return info_.strides[3] * static_cast<std::int64_t>(bytes_of(info_.dtype));
}

template <class F>
void StoredTensor::for_each_row(F f) const {
  const auto& e = info_.extents;
  if (e[3] == 0) return;
  for (std::int64_t b = 0; b < e[0]; ++b)
    for (std::int64_t h = 0; h < e[1]; ++h)
      for (std::int64_t r = 0; r < e[2]; ++r) f(row(b, h, r));
}

void StoredTensor::put_row(std::byte* at, const double* x, std::int64_t count) const {
  const std::int64_t step = row_step();
  const auto write = [&](auto stored_as) {
    for (std::int64_t d = 0; d < count; ++d) {
      const auto stored = stored_as(x[d]);
      std::memcpy(at + d * step, &stored, sizeof stored);
    }
  };
  switch (info_.dtype) {
    case DType::f64:
      return write([](double v) { return v; });
    case DType::f32:
      return write([](double v) { return static_cast<float>(v); });
    case DType::f16:
      return write([](double v) { return from_float<half>(static_cast<float>(v)); });
    case DType::bf16:
      return write([](double v) { return from_float<bfloat16>(static_cast<float>(v)); });
  }
}

void StoredTensor::get_row(const std::byte* at, double* x, std::int64_t count) const {
  const std::int64_t step = row_step();
  const auto read = [&]<class T>(T stored, auto value_of) {
    for (std::int64_t d = 0; d < count; ++d) {
      std::memcpy(&stored, at + d * step, sizeof stored);
      x[d] = value_of(stored);
    }
  };
  const auto itself = [](auto v) { return v; };
  const auto widened = [](auto v) { return to_float(v); };
  switch (info_.dtype) {
    case DType::f64:
      return read(0.0, itself);
    case DType::f32:
      return read(0.0f, itself);
    case DType::f16:
      return read(half{}, widened);
    case DType::bf16:
      return read(bfloat16{}, widened);
  }
}

void StoredTensor::store(const Tensor<double, 4>& values) {
  const double* x = values.values().data();
  const std::int64_t count = info_.extents[3];
  for_each_row([&](std::byte* at) { put_row(at, x, count), x += count; });
}

void StoredTensor::store(const Tensor<double, 4>& values, const RowPlaces& places) {
  const auto e = values.extents();
  if (e[3] == 0) return;
  for (std::size_t b = 0; b < places.size(); ++b)
    for (std::int64_t h = 0; h < e[1]; ++h)
      for (std::size_t s = 0; s < places[b].size(); ++s)
        put_row(row(places[b][s].entry, h, places[b][s].row), &values(b, h, s, 0), e[3]);
}

Tensor<double, 4> StoredTensor::load() const {
  Tensor<double, 4> values(info_.extents);
  double* x = values.values().data();
  const std::int64_t count = info_.extents[3];
  for_each_row([&](const std::byte* at) { get_row(at, x, count), x += count; });
  return values;
}

Tensor<double, 4> StoredTensor::load(const Shape& extents, const RowPlaces& places) const {
  Tensor<double, 4> values(extents);
  if (extents[3] == 0) return values;
  for (std::size_t b = 0; b < places.size(); ++b)
    for (std::int64_t h = 0; h < extents[1]; ++h)
      for (std::size_t s = 0; s < places[b].size(); ++s)
        get_row(row(places[b][s].entry, h, places[b][s].row), &values(b, h, s, 0), extents[3]);
  return values;
}

std::optional<std::int64_t> StoredTensor::trespass() const {
  const std::vector<std::byte>&bytes = memory_->bytes, &owned = memory_->owned;
  std::byte written{0};  // bits that are no poison where nobody owns them
  for (std::size_t i = 0; i < bytes.size(); ++i) written |= ~bytes[i] & ~owned[i];
  if (written == std::byte{0}) return std::nullopt;
  std::size_t i = 0;
  while ((~bytes[i] & ~owned[i]) == std::byte{0}) ++i;
  const auto size = static_cast<std::int64_t>(bytes_of(info_.dtype));
  const std::int64_t offset = bytes.data() + i - element(first_);
  return (offset - (offset < 0 ? size - 1 : 0)) / size;
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
