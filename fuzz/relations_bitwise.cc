// Relations that hold to the last bit: the kernels are deterministic, and what changes here must
// not reach the arithmetic.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "fuzz/case_sequences.h"
#include "fuzz/relations.h"

namespace attn::fuzz {
namespace {

using Values = Tensor<double, 4>;
using At = std::array<std::int64_t, 4>;

bool is_backward(const Case& c) { return row_of(c).pass == Pass::backward; }

/// A NaN is a NaN whatever its payload.
bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// The first element of `x` that is not the one of `y` at `place(index)`.
template <class Place>
std::string difference(const std::string& name, const Values& x, const Values& y, Place place) {
  const At& e = x.extents();
  At i;
  for (i[0] = 0; i[0] < e[0]; ++i[0])
    for (i[1] = 0; i[1] < e[1]; ++i[1])
      for (i[2] = 0; i[2] < e[2]; ++i[2])
        for (i[3] = 0; i[3] < e[3]; ++i[3]) {
          const At j = place(i);
          const double a = x(i[0], i[1], i[2], i[3]), b = y(j[0], j[1], j[2], j[3]);
          if (!same(a, b))
            return fmt::format("{}[{}] is {:.9g}, but {:.9g} at [{}]", name, fmt::join(i, " "), a,
                               b, fmt::join(j, " "));
        }
  return {};
}
std::string difference(const std::string& name, const Values& x, const Values& y) {
  if (x.extents() != y.extents()) return name + " has another shape";
  return difference(name, x, y, [](At i) { return i; });
}
std::string difference(const Outputs& one, const Outputs& other) {
  for (const auto& [name, x] : one)
    if (const std::string d = difference(name, x, other.at(name)); !d.empty()) return d;
  return {};
}
/// Not the gradients of captured tensors and of the sink, which are sums over heads and batch.
bool is_per_head(const std::string& name) { return !name.starts_with("d ") && name != "dSink"; }

void set_lengths(std::vector<int>& lengths) {
  std::fill(lengths.begin(), lengths.end(), lengths.empty() ? 0 : lengths.front());
}
void resize_batch(Case& c, int b) {
  if (!c.query_lengths.empty()) c.query_lengths.resize(b, c.query_lengths.front());
  if (!c.key_lengths.empty()) c.key_lengths.resize(b, c.key_lengths.front());
  c.b = b;
}

// ---- copies, and their order -------------------------------------------------------------------

/// Batch entries (axis 0) or heads (axis 1) that nothing but their data can tell apart.
std::optional<Case> alike(Case c, int axis) {
  if (!has_rows(c)) return {};
  forbid(c, {axis == 0 ? Op::b : Op::h});
  c.dropout = 0;  // drawn by b and h
  if (axis == 0 && c.b < 2) resize_batch(c, 2);
  if (axis == 1 && c.hkv < 2) c.hq = 2 * c.hq, c.hkv = 2;
  if (axis == 0 && c.layout == Layout::shared_kv) c.layout = Layout::bhsd;
  return c;
}
std::optional<Case> with_copies(Case c, int axis) {
  std::optional<Case> fitted = alike(std::move(c), axis);
  if (!fitted) return {};
  if (axis == 0) set_lengths(fitted->query_lengths), set_lengths(fitted->key_lengths);
  fitted->sink &= axis == 0;
  return fitted;
}

std::string broken_copies(const RelationRun& r, int axis) {
  const auto first = [axis](At i) {
    i[axis] = 0;
    return i;
  };
  PassInputs in = r.in;
  for (Values* x : {&in.q, &in.k, &in.v, &in.d_o}) *x = gathered(*x, x->extents(), first);
  std::fill(in.d_lse.values().begin(), in.d_lse.values().end(), 0.25);
  for (const auto& [name, x] : r.run(r.c, in))
    if (is_per_head(name))
      if (const std::string d = difference(name, x, x, first); !d.empty()) return d;
  return {};
}

/// Every `axis` index moved on by `by`, the last ones to the front.
Values rotated(const Values& x, int axis, std::int64_t by) {
  const std::int64_t n = x.extents()[axis];
  return gathered(x, x.extents(), [=](At i) {
    i[axis] = (i[axis] - by + n) % n;
    return i;
  });
}
template <class T>
void rotate_list(std::vector<T>& list, int by) {
  if (!list.empty()) std::rotate(list.begin(), list.end() - by, list.end());
}
std::string broken_order(const RelationRun& r, int axis) {
  const int group = axis == 0 ? 1 : r.c.hq / r.c.hkv;
  PassInputs in = r.in;
  Case c = r.c;
  in.q = rotated(in.q, axis, group);
  in.k = rotated(in.k, axis, 1);
  in.v = rotated(in.v, axis, 1);
  if (is_backward(c)) in.d_o = rotated(in.d_o, axis, group);
  std::fill(in.d_lse.values().begin(), in.d_lse.values().end(), 0.25);
  PassInputs before = r.in;
  before.d_lse = in.d_lse;
  if (axis == 0) {
    rotate_list(c.query_lengths, 1), rotate_list(c.key_lengths, 1);
    in.sequences = logical_sequences(c);
  } else {
    rotate_list(in.sink, group);
  }
  const Outputs one = r.run(r.c, before), other = r.run(c, in);
  for (const auto& [name, x] : one) {
    if (name == "dSink") continue;
    const int by = name == "dK" || name == "dV" || axis == 0 ? 1 : group;
    const Values moved = is_per_head(name) ? rotated(other.at(name), axis, -by) : other.at(name);
    if (const std::string d = difference(name, x, moved); !d.empty()) return d;
  }
  return {};
}

// ---- the same problem in other words -----------------------------------------------------------

/// Splits that do not follow from what the relation changes.
void fix_splits(Case& c) {
  if (has_cache(row_of(c)) && c.splits == 0) c.splits = 3;
}

std::optional<Case> grouped(Case c) {
  if (!has_rows(c)) return {};
  forbid(c, {Op::length_hkv});
  if (c.hq == c.hkv) c.hq *= 2;
  fix_splits(c);
  return c;
}
std::string broken_groups(const RelationRun& r) {
  Case c = r.c;
  c.hkv = c.hq;
  PassInputs in = r.in;
  in.sizes = c.sizes();
  in.sequences = logical_sequences(c);
  const int group = r.c.hq / r.c.hkv;
  for (Values* x : {&in.k, &in.v}) {
    const At& e = x->extents();
    *x = gathered(*x, {e[0], c.hq, e[2], e[3]}, [group](At i) {
      i[1] /= group;
      return i;
    });
  }
  const Outputs one = r.run(r.c, r.in), other = r.run(c, in);
  for (const char* name : {"O", "LSE", "row max", "dQ"})
    if (one.contains(name))
      if (const std::string d = difference(name, one.at(name), other.at(name)); !d.empty())
        return d;
  return {};
}

/// More keys, copies of the first one.
void add_keys(Case& c, PassInputs& in) {
  c.skv += 37;
  in.sizes = c.sizes();
  in.sequences = logical_sequences(c);
  for (Values* x : {&in.k, &in.v}) {
    const At e = x->extents();
    *x = gathered(*x, {e[0], e[1], c.skv, e[3]}, [&e](At i) {
      if (i[2] >= e[2]) i[2] = 0;
      return i;
    });
  }
}

std::optional<Case> dense(Case c) {
  if (sequences_of(c) != Sequences::dense || !has_rows(c) || c.skv == 0) return {};
  forbid(c, {Op::length_skv});
  return c;
}
/// The outputs of `one`, where those of `other` have more keys of gradient 0.
std::string difference_but_for_keys(const Outputs& one, const Outputs& other) {
  for (const auto& [name, x] : one) {
    if (!is_per_head(name)) continue;
    const Values& y = other.at(name);
    if (const std::string d = difference(name, x, y, [](At i) { return i; }); !d.empty()) return d;
    const At& e = y.extents();
    for (std::int64_t b = 0; b < e[0]; ++b)
      for (std::int64_t h = 0; h < e[1]; ++h)
        for (std::int64_t s = x.extents()[2]; s < e[2]; ++s)
          for (std::int64_t d = 0; d < e[3]; ++d)
            if (y(b, h, s, d) != 0)
              return fmt::format("{}[{} {} {} {}] is {:.9g}, but no row attends its key", name, b,
                                 h, s, d, y(b, h, s, d));
  }
  return {};
}
std::string broken_by_masked_keys(const RelationRun& r) {
  Case c = r.c;
  PassInputs in = r.in;
  add_keys(c, in);
  c.mask = apply_op(Op::logical_and,
                    {c.mask, apply_op(Op::less, {variable(Op::kv), index_constant(r.c.skv)})});
  return difference_but_for_keys(r.run(r.c, r.in), r.run(c, in));
}

std::optional<Case> cached(Case c) {
  if (!has_cache(row_of(c)) || !has_rows(c) || c.skv == 0) return {};
  if (c.key_lengths.empty()) c.key_lengths.assign(c.b, c.skv);
  fix_splits(c);
  return c;
}
std::string broken_by_capacity(const RelationRun& r) {
  Case c = r.c;
  PassInputs in = r.in;
  add_keys(c, in);
  return difference(r.run(r.c, r.in), r.run(c, in));
}
std::optional<Case> paged(Case c) {
  return sequences_of(c) == Sequences::paged ? cached(std::move(c)) : std::nullopt;
}
std::string broken_by_pages(const RelationRun& r) {
  Case c = r.c;
  c.page_size = c.page_size == 16 ? 32 : 16;
  return difference(r.run(r.c, r.in), r.run(c, r.in));
}

/// A mod that is not the score alone, which kernels may treat apart.
std::optional<Case> with_mod(Case c) {
  if (!has_rows(c)) return {};
  if (c.mod->op == Op::score) c.mod = apply_op(Op::multiply, {c.mod, real_constant(0.5)});
  fix_splits(c);
  return c;
}
std::string broken_by_words(const RelationRun& r) {
  Case c = r.c;  // kv == kv ? mod * 1.0 : 0.0
  c.mod =
      apply_op(Op::select, {apply_op(Op::equal, {variable(Op::kv), variable(Op::kv)}),
                            apply_op(Op::multiply, {c.mod, real_constant(1)}), real_constant(0)});
  return difference(r.run(r.c, r.in), r.run(c, r.in));
}

// ---- memory and range --------------------------------------------------------------------------

std::optional<Case> any(Case c) { return c; }
std::string broken_by_dirt(const RelationRun& r) {
  const double rows = 1.0 * std::max(1, r.c.b) * std::max(1, r.c.hq) * (r.c.sq + r.c.skv + 256);
  const double parts = has_cache(row_of(r.c)) ? most_splits + 2 : 8;
  const auto bytes = static_cast<std::size_t>(4 * parts * rows * (r.c.d + r.c.dv + 8)) + (1 << 22);
  constexpr std::size_t alignment = 256;
  std::vector<std::byte> memory(bytes + alignment, std::byte{0xff});
  const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
  const Workspace workspace{memory.data() + (alignment - at % alignment), bytes};
  const Outputs one = r.run(r.c, r.in);
  if (const std::string d = difference(one, r.run(r.c, r.in, workspace)); !d.empty())
    return "in a workspace of NaN: " + d;
  PassInputs other = r.in;
  for (double& x : other.q.values()) x = -x;
  r.run(r.c, other, workspace);
  if (const std::string d = difference(one, r.run(r.c, r.in, workspace)); !d.empty())
    return "in a workspace that another call left: " + d;
  return {};
}

std::optional<Case> with_wide_range(Case c) {
  if (is_backward(c) || c.dtype == DType::f16) return {};
  c.fill = Fill::gaussian;
  return c;
}
std::string broken_by_scaling(const RelationRun& r) {
  PassInputs in = r.in;
  for (double& x : in.v.values()) x *= 4;
  Outputs one = r.run(r.c, r.in), other = r.run(r.c, in);
  // what is tiny may have been rounded as a subnormal number on its way
  Values &a = one.at("O"), &b = other.at("O");
  for (std::size_t n = 0; n < a.values().size(); ++n) {
    const bool tiny = std::abs(a.values()[n]) < 0x1p-60;
    a.values()[n] = tiny ? 0 : 4 * a.values()[n];
    if (tiny) b.values()[n] = 0;
  }
  return difference(one, other);
}

constexpr std::string_view no_bit = "not a bit";

}  // namespace

std::span<const Relation> bitwise_relations() {
  static constexpr Relation all[] = {
      {"head_copies", "heads of the same data give the same", no_bit,
       [](Case c) { return with_copies(std::move(c), 1); },
       [](const RelationRun& r) { return broken_copies(r, 1); }},
      {"batch_copies", "batch entries of the same data give the same", no_bit,
       [](Case c) { return with_copies(std::move(c), 0); },
       [](const RelationRun& r) { return broken_copies(r, 0); }},
      {"head_order", "heads in another order give the same in that order", no_bit,
       [](Case c) { return alike(std::move(c), 1); },
       [](const RelationRun& r) { return broken_order(r, 1); }},
      {"batch_order", "batch entries in another order give the same in that order", no_bit,
       [](Case c) { return alike(std::move(c), 0); },
       [](const RelationRun& r) { return broken_order(r, 0); }},
      {"repeated_heads", "K and V repeated for each head of a group give the same O, LSE and dQ",
       no_bit, grouped, broken_groups},
      {"masked_keys", "more keys that no row attends change nothing", no_bit, dense,
       broken_by_masked_keys},
      {"longer_cache", "a cache with more room gives the same", no_bit, cached, broken_by_capacity},
      {"page_size", "pages of another size give the same", no_bit, paged, broken_by_pages},
      {"other_words", "kv == kv ? mod * 1 : 0 is the mod", no_bit, with_mod, broken_by_words},
      {"dirty_workspace", "what stands in a workspace before a call has no effect", no_bit, any,
       broken_by_dirt},
      {"scaled_values", "V times 4 gives O times 4", "not a bit, where O is not below 2^-60",
       with_wide_range, broken_by_scaling},
  };
  return all;
}

}  // namespace attn::fuzz
