#include "fuzz/file_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "mods/lang/environments.h"
#include "mods/lang/parse.h"
#include "mods/lang/tree_functor.h"

namespace attn::fuzz {
namespace {

constexpr const char* wrong_mask = "attended_by_mistake";

/// `wrong(old, b, h, i, j)` in place of the mask.
using WrongMask = std::function<bool(const Pairs&, int, int, int, int)>;
Fault mask_fault(const std::string& what, const Pairs& old, WrongMask wrong) {
  return {what, [&old, wrong](FileProblem& p) {
            const auto pairs = std::make_shared<Pairs>(old);
            for (int b = 0; b < old.b; ++b)
              for (int h = 0; h < old.hq; ++h)
                for (int i = 0; i < old.sq; ++i)
                  for (int j = 0; j < old.skv; ++j) pairs->at(b, h, i, j) = wrong(old, b, h, i, j);
            if (pairs->attends == old.attends) return false;
            TensorView<const bool, 4> view;
            view.data = reinterpret_cast<const bool*>(pairs->attends.data());
            view.extents = {old.b, old.hq, old.sq, old.skv};
            view.strides = contiguous_strides(view.extents);
            p.tables.add(wrong_mask, view);
            p.memory.push_back(pairs);
            p.mask =
                parse_mask(fmt::format("{}[b, h, q, kv]", wrong_mask), p.tables.declarations());
            return true;
          }};
}

int first_key(const Pairs& x, int b, int h, int i) {
  int j = 0;
  while (j < x.skv && !x.at(b, h, i, j)) ++j;
  return j;
}

void add_mask_faults(const Pairs& old, std::vector<Fault>& faults) {
  const auto add = [&](const std::string& what, WrongMask wrong) {
    faults.push_back(mask_fault(what, old, std::move(wrong)));
  };
  add("the mask is left out (M40)", [](auto&, int, int, int, int) { return true; });
  add("the mask is inverted (M33)",
      [](auto& x, int b, int h, int i, int j) { return !x.at(b, h, i, j); });
  add("the last key of each row is left out: < for <= on the diagonal (M18)",
      [](auto& x, int b, int h, int i, int j) {
        const int last = last_key(x, b, h, i);
        const bool edge = last < x.skv - 1 || i == 0 || last_key(x, b, h, i - 1) < last;
        return x.at(b, h, i, j) && !(edge && j == last);
      });
  add("each row attends one key too many at its end: <= for < (M18)",
      [](auto& x, int b, int h, int i, int j) {
        const int last = last_key(x, b, h, i);
        const bool reached = last >= 0 || (i + 1 < x.sq && last_key(x, b, h, i + 1) == 0);
        return x.at(b, h, i, j) || (reached && j == last + 1);
      });
  add("the first key of each row is left out: the left edge is off by one (M22)",
      [](auto& x, int b, int h, int i, int j) {
        const int first = first_key(x, b, h, i);
        const bool edge = first > 0 || (i + 1 < x.sq && first_key(x, b, h, i + 1) > first);
        return x.at(b, h, i, j) && !(edge && j == first);
      });
  add("each row attends one key too many at its start: the left edge is off by one (M22)",
      [](auto& x, int b, int h, int i, int j) {
        return x.at(b, h, i, j) || j == first_key(x, b, h, i) - 1;
      });
  add("the mask is causal, aligned top left (M16)",
      [](auto&, int, int, int i, int j) { return j <= i; });
  add("the mask is causal, aligned bottom right (M16)",
      [](auto& x, int, int, int i, int j) { return j <= i + x.skv - x.sq; });
  add("queries and keys of the mask are exchanged",
      [](auto& x, int b, int h, int i, int j) { return x.sq == x.skv && x.at(b, h, j, i); });
  add("the mask of batch entry 0 is used for all (M33)",
      [](auto& x, int, int h, int i, int j) { return x.at(0, h, i, j); });
  add("the mask of head 0 is used for all (M33)",
      [](auto& x, int b, int, int i, int j) { return x.at(b, 0, i, j); });
  add("keys from Sq on are left out: the loop over keys counts queries (M21)",
      [](auto& x, int b, int h, int i, int j) { return j < x.sq && x.at(b, h, i, j); });
  for (const int tile : common_tiles)
    if (old.skv > tile)
      add(fmt::format("the last, partial tile of keys is left out (tile {})", tile),
          [tile](auto& x, int b, int h, int i, int j) {
            return j < x.skv / tile * tile && x.at(b, h, i, j);
          });
}

/// Key/value heads by `head_of` of the query head.
Fault head_fault(const std::string& what, std::function<int(const Case&, int h)> head_of) {
  return {what, [head_of](FileProblem& p) {
            const Case c = p.c;
            if (c.hkv < 2) return false;
            bool changes = false;
            const auto expand = [&](Tensor<double, 4>& x) {
              const auto e = x.extents();
              Tensor<double, 4> y({e[0], c.hq, e[2], e[3]});
              for (int b = 0; b < c.b; ++b)
                for (int h = 0; h < c.hq; ++h) {
                  const int from = head_of(c, h);
                  changes = changes || from != h / (c.hq / c.hkv);
                  for (std::int64_t j = 0; j < e[2]; ++j)
                    for (std::int64_t d = 0; d < e[3]; ++d) y(b, h, j, d) = x(b, from, j, d);
                }
              x = std::move(y);
            };
            expand(p.in.k);
            expand(p.in.v);
            p.c.hkv = p.in.sizes.hkv = c.hq;
            return changes;
          }};
}

Fault scale_fault(const std::string& what, std::function<double(const FileProblem&)> wrong) {
  return {what, [wrong](FileProblem& p) {
            const double scale = wrong(p);
            if (scale == p.in.scale || !std::isfinite(scale)) return false;
            p.in.scale = scale;
            return true;
          }};
}

double padded(int d) { return std::exp2(std::ceil(std::log2(std::max(d, 16)))); }

void add_scale_faults(std::vector<Fault>& faults) {
  const auto add = [&](const char* what, std::function<double(const FileProblem&)> wrong) {
    faults.push_back(scale_fault(what, std::move(wrong)));
  };
  add("the scale is 1/sqrt(D) whatever is asked for (M15)",
      [](const FileProblem& p) { return 1 / std::sqrt(p.c.d); });
  add("the scale is left out", [](const FileProblem&) { return 1.0; });
  add("the scale is applied twice", [](const FileProblem& p) { return p.in.scale * p.in.scale; });
  add("the scale is 1/sqrt(Dv) (M15)", [](const FileProblem& p) { return 1 / std::sqrt(p.c.dv); });
  add("the scale is that of a padded head (M15)",
      [](const FileProblem& p) { return 1 / std::sqrt(padded(p.c.d)); });
  add("the scale has the wrong sign", [](const FileProblem& p) { return -p.in.scale; });
  add("weights are powers of 2 in place of e (M55)", [](const FileProblem& p) {
    return p.mod->op == Op::score ? p.in.scale * std::log(2.0) : p.in.scale;
  });
}

/// Every entry becomes that of index 0 along the axis. False if there is no such bias.
bool repeat_bias(FileProblem& p, int axis) {
  Tables tables;
  bool changes = false;
  for (Table table : p.tables.all()) {
    if (table.name == bias_table && table.rank == 4 && table.extents[axis] > 1) {
      const auto& e = table.extents;
      const auto* from = static_cast<const float*>(table.data);
      const auto memory = std::make_shared<std::vector<float>>();
      std::array<std::int64_t, 4> i{};
      for (i[0] = 0; i[0] < e[0]; ++i[0])
        for (i[1] = 0; i[1] < e[1]; ++i[1])
          for (i[2] = 0; i[2] < e[2]; ++i[2])
            for (i[3] = 0; i[3] < e[3]; ++i[3]) {
              std::int64_t offset = 0;
              for (int a = 0; a < 4; ++a) offset += a == axis ? 0 : i[a] * table.strides[a];
              memory->push_back(from[offset]);
            }
      table.data = memory->data();
      p.memory.push_back(memory);
      changes = true;
    }
    tables.add(table);
  }
  p.tables = tables;
  return changes;
}

void add_mod_faults(std::vector<Fault>& faults) {
  faults.push_back({"the mod is left out", [](FileProblem& p) {
                      const bool changes = p.mod->op != Op::score;
                      p.mod = variable(Op::score);
                      return changes;
                    }});
  faults.push_back({"the bias is added before the scale", [](FileProblem& p) {
                      if (!p.tables.find(bias_table) || p.in.scale == 1) return false;
                      p.mod = parse_mod(
                          fmt::format("score + {} * {}[b, h, q, kv]", p.in.scale, bias_table),
                          p.tables.declarations());
                      return true;
                    }});
  for (const int axis : {0, 1})
    faults.push_back(
        {fmt::format("the bias of {} 0 is used for all (M33)", axis == 0 ? "batch entry" : "head"),
         [axis](FileProblem& p) { return repeat_bias(p, axis); }});
  faults.push_back({"the sink is left out", [](FileProblem& p) {
                      const bool changes = p.c.sink;
                      p.in.sink.clear();
                      return changes;
                    }});
  for (const int tile : common_tiles)
    faults.push_back({fmt::format("keys past the end attend with score 0 (M10, tile {})", tile),
                      [tile](FileProblem& p) {
                        const int past = (tile - p.c.skv % tile) % tile;
                        if (p.c.sink || past == 0) return false;
                        p.in.sink.assign(p.c.hq, std::log(static_cast<float>(past)));
                        return true;
                      }});
}

}  // namespace

Pairs pairs_of(const FileProblem& p) {
  const Case& c = p.c;
  Pairs pairs{c.b, c.hq, c.sq, c.skv, {}};
  const TreeMask mask(p.mask, p.tables);
  for (int b = 0; b < c.b; ++b) {
    ExactEnv env{p.in.sequences[b].sizes};
    using I = Index<ExactEnv>;
    for (int h = 0; h < c.hq; ++h)
      for (int i = 0; i < c.sq; ++i)
        for (int j = 0; j < c.skv; ++j)
          pairs.attends.push_back(mask(I{b, &env}, I{h, &env}, I{i, &env}, I{j, &env}));
  }
  return pairs;
}

int last_key(const Pairs& x, int b, int h, int i) {
  int j = x.skv - 1;
  while (j >= 0 && !x.at(b, h, i, j)) --j;
  return j;
}

std::vector<Fault> known_faults(const Pairs& pairs) {
  std::vector<Fault> faults;
  add_mask_faults(pairs, faults);
  faults.push_back(head_fault("the KV head is h % Hkv in place of h / (Hq / Hkv) (M26)",
                              [](const Case& c, int h) { return h % c.hkv; }));
  faults.push_back(head_fault("KV head 0 is used for all", [](const Case&, int) { return 0; }));
  add_scale_faults(faults);
  add_mod_faults(faults);
  return faults;
}

}  // namespace attn::fuzz
