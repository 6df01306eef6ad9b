#include "fuzz/stored_pass.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "fuzz/case_sequences.h"
#include "fuzz/random.h"

namespace attn::fuzz {
namespace {

using Shape = StoredTensor::Shape;

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

StoredTensor make(const char* name, DType dtype, const Shape& e, Layout layout) {
  const Placement p = place(layout, e);
  return {name, dtype, e, p.strides, p.first};
}

/// The layout of a tensor that stands alone.
Layout alone(Layout layout) {
  return layout == Layout::fused       ? Layout::bshd
         : layout == Layout::shared_kv ? Layout::bhsd
                                       : layout;
}
/// Of fp32 numbers, one a row.
Layout of_rows(Layout layout) { return layout == Layout::padded ? layout : Layout::bhsd; }

/// fp32 numbers one after another.
StoredTensor make_list(const char* name, std::int64_t count) {
  return make(name, DType::f32, {1, 1, 1, count}, Layout::bhsd);
}

RowPlaces places_of(const std::vector<std::int32_t>& lengths, bool packed) {
  RowPlaces places;
  std::int64_t total = 0;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    places.emplace_back();
    for (std::int64_t s = 0; s < lengths[b]; ++s)
      places.back().push_back(packed ? RowPlace{0, total + s}
                                     : RowPlace{static_cast<std::int64_t>(b), s});
    total += lengths[b];
  }
  return places;
}

}  // namespace

StoredPass::StoredPass(const Case& c, const Implementation& implementation,
                       const std::vector<CapturedTensor>& captured)
    : c_(c), pass_(implementation.pass) {
  lay_out_sequences(implementation.sequences);
  KeysAndValues in = make_inputs_of_layout("q", "k", "v", c.layout);
  q = in.q, k = in.k, v = in.v;
  const Shape o_shape{q_shape_[0], q_shape_[1], q_shape_[2], c.dv},
      rows{q_shape_[0], q_shape_[1], q_shape_[2], 1};
  o = make("o", c.dtype, o_shape, alone(c.layout));
  lse = make("lse", DType::f32, rows, of_rows(c.layout));
  if (c.row_max) row_max = make("row_max", DType::f32, rows, of_rows(c.layout));
  if (pass_ == Pass::forward) return;
  d_o = make("d_o", c.dtype, o_shape, alone(c.layout));
  if (c.d_lse) d_lse = make("d_lse", DType::f32, rows, of_rows(c.layout));
  // gradients of shared keys are those of each batch entry
  const bool shared = c.layout == Layout::shared_kv;
  KeysAndValues d = make_inputs_of_layout("dq", "dk", "dv", shared ? Layout::bhsd : c.layout);
  dq = d.q, dk = d.k, dv = d.v;
  for (const CapturedTensor& t : captured)
    d_captured.push_back(make_list(t.name, std::accumulate(t.extents.begin(), t.extents.end(),
                                                           std::int64_t{1}, std::multiplies<>())));
  if (c.sink) d_sink = make_list("d_sink", c.hq);
}

void StoredPass::lay_out_sequences(Sequences how) {
  const std::vector<std::int32_t> queries = query_lengths(c_), keys = key_lengths(c_);
  const bool packed = how == Sequences::packed;
  query_rows_ = places_of(queries, packed);
  key_rows_ = places_of(keys, packed);
  q_shape_ = {c_.b, c_.hq, c_.sq, c_.d};
  k_shape_ = {c_.b, c_.hkv, c_.skv, c_.d};
  if (packed) {
    cu_q = cumulative(queries), cu_kv = cumulative(keys);
    q_shape_ = {1, c_.hq, cu_q.back(), c_.d};
    k_shape_ = {1, c_.hkv, cu_kv.back(), c_.d};
  } else if (how != Sequences::dense) {
    lengths = keys;
    if (how == Sequences::paged) lay_out_pages();
  }
}

/// Pages in shuffled order, some of them unused. Entries of the table that no row needs hold page
/// numbers that do not exist, or those of other sequences.
void StoredPass::lay_out_pages() {
  const std::int64_t page = c_.page_size;
  const auto pages_for = [page](std::int64_t rows) { return (rows + page - 1) / page; };
  const std::uint64_t seed = hash_of(c_.seed, 0x9a6e5);
  std::int64_t needed = 0;
  for (const std::int32_t length : lengths) needed += pages_for(length);
  std::vector<std::int32_t> free(needed + 1 + seed % 3);
  std::iota(free.begin(), free.end(), 0);
  for (std::size_t i = free.size(); i-- > 1;) std::swap(free[i], free[hash_of(seed, i) % (i + 1)]);
  k_shape_ = {static_cast<std::int64_t>(free.size()), c_.hkv, page, c_.d};

  pages_per_row_ = pages_for(c_.skv) + seed / 3 % 2;
  page_stride_ = pages_per_row_ + seed / 6 % 3;
  const std::int32_t none[] = {std::numeric_limits<std::int32_t>::max(), -1,
                               static_cast<std::int32_t>(free.size()), 0};
  for (std::int64_t i = 0; i < std::max<std::int64_t>(1, c_.b * page_stride_); ++i)
    pages_.push_back(none[hash_of(seed, 1, i) % 4]);
  std::size_t next = 0;
  for (std::size_t b = 0; b < lengths.size(); ++b)
    for (std::int64_t s = 0; s < lengths[b]; ++s) {
      std::int32_t& entry = pages_[b * page_stride_ + s / page];
      if (s % page == 0) entry = free[next++];
      key_rows_[b][s] = {entry, s % page};
    }
}

TensorView<const std::int32_t, 2> StoredPass::page_table() const {
  if (pages_.empty()) return {};
  return {pages_.data(), {c_.b, pages_per_row_}, {page_stride_, 1}};
}

StoredPass::KeysAndValues StoredPass::make_inputs_of_layout(const char* q_name, const char* k_name,
                                                            const char* v_name,
                                                            Layout layout) const {
  const Shape &qe = q_shape_, &ke = k_shape_, ve{ke[0], ke[1], ke[2], c_.dv};
  const bool fused = layout == Layout::fused;
  // K and V side by side, and Q too where the rows agree
  const bool all = fused && pages_.empty() && qe[0] == ke[0] && qe[2] == ke[2];
  KeysAndValues t;
  if (!all) t.q = make(q_name, c_.dtype, qe, alone(layout));
  if (layout == Layout::shared_kv) {
    const auto shared = [&](const char* name, const Shape& e) {
      Shape strides = contiguous_strides(e);
      strides[0] = 0;
      return StoredTensor(name, c_.dtype, e, strides);
    };
    t.k = shared(k_name, ke);
    t.v = shared(v_name, ve);
  } else if (fused) {
    const std::int64_t width = std::max(c_.d, c_.dv), heads = 2 * c_.hkv + (all ? c_.hq : 0);
    const Shape together{ke[0], heads, ke[2], width};
    const StoredTensor buffer = StoredTensor::buffer(c_.dtype, together, bshd(together, width));
    t.k = buffer.part(k_name, ke, 0);
    t.v = buffer.part(v_name, ve, c_.hkv * width);
    if (all) t.q = buffer.part(q_name, qe, 2 * c_.hkv * width);
  } else {
    t.k = make(k_name, c_.dtype, ke, layout);
    t.v = make(v_name, c_.dtype, ve, layout);
  }
  return t;
}

void StoredPass::store(const PassInputs& in) {
  q.store(in.q, query_rows_);
  k.store(in.k, key_rows_);
  v.store(in.v, key_rows_);
  if (pass_ == Pass::forward) return;
  d_o.store(in.d_o, query_rows_);
  if (c_.d_lse) d_lse.store(with_one_channel(in.d_lse), query_rows_);
}

void StoredPass::store_forward_result(const Tensor<double, 4>& o_values,
                                      const Tensor<double, 3>& lse_values) {
  o.store(o_values, query_rows_);
  lse.store(with_one_channel(lse_values), query_rows_);
}

std::vector<StoredOutput> StoredPass::outputs() const {
  const Shape q_logical{c_.b, c_.hq, c_.sq, c_.d}, o_logical{c_.b, c_.hq, c_.sq, c_.dv},
      rows{c_.b, c_.hq, c_.sq, 1}, k_logical{c_.b, c_.hkv, c_.skv, c_.d},
      v_logical{c_.b, c_.hkv, c_.skv, c_.dv};
  std::vector<StoredOutput> all;
  if (pass_ == Pass::forward) {
    all = {{"O", o, o_logical, query_rows_}, {"LSE", lse, rows, query_rows_}};
    if (c_.row_max) all.push_back({"row max", row_max, rows, query_rows_});
    return all;
  }
  all = {{"dQ", dq, q_logical, query_rows_},
         {"dK", dk, k_logical, key_rows_},
         {"dV", dv, v_logical, key_rows_}};
  for (const StoredTensor& t : d_captured)
    all.push_back({std::string("d ") + t.info().name, t, {}, {}});
  if (c_.sink) all.push_back({"dSink", d_sink, {}, {}});
  return all;
}

}  // namespace attn::fuzz
