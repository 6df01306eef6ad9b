#include "fuzz/file_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "fuzz/file_patterns.h"
#include "mods/lang/captured_tensors.h"
#include "mods/lang/tree_functor.h"
#include "optimized/implementations.h"

namespace attn::fuzz {
namespace {

constexpr std::pair<const char*, Rounds> rounds_names[] = {{"flash", Rounds::flash},
                                                           {"fp32", Rounds::fp32},
                                                           {"tf32", Rounds::tf32},
                                                           {"eager", Rounds::eager}};

/// A mod whose result is rounded, so that no score is exact.
struct StoredMod {
  const TreeMod& mod;
  double roundoff;

  template <class Score, class Index>
  Score operator()(Score s, Index b, Index h, Index q, Index kv) const {
    Score t = mod(s, b, h, q, kv);
    if constexpr (std::is_same_v<Score, Rounded>)
      if (std::isfinite(t.v)) t.e += roundoff * (std::abs(t.v) + t.e) + smallest_normal;
    return t;
  }
};

/// Either bound: the larger one.
void widen(Expectation& to, const Expectation& by) {
  for (std::size_t i = 0; i < to.outputs.size(); ++i) {
    ExpectedOutput& x = to.outputs[i];
    const ExpectedOutput& y = by.outputs[i];
    for (std::size_t n = 0; n < x.bound.values().size(); ++n)
      if (y.bound.values()[n] > x.bound.values()[n]) {
        x.bound.values()[n] = y.bound.values()[n];
        if (!x.term.values().empty()) x.term.values()[n] = y.term.values()[n];
      }
  }
  to.health.powerless_share = std::max(to.health.powerless_share, by.health.powerless_share);
}

/// Weights 1 and 1 of two keys are exact, and so are sums of whole numbers with them; a program
/// that divides them by their sum first has neither. Where a row is not one-hot (LSE is then
/// exact), O may be off by as much as if no weight were exact.
void allow_normalised_weights(Expectation& exact, const Expectation& rounded) {
  ExpectedOutput& o = exact.outputs[0];
  const ExpectedOutput& by = rounded.outputs[0];
  const std::vector<double>& lse_bounds = exact.outputs[1].bound.values();
  const std::size_t channels = static_cast<std::size_t>(o.reference.extents()[3]);
  for (std::size_t n = 0; n < o.bound.values().size(); ++n)
    if (lse_bounds[n / channels] > 0 && by.bound.values()[n] > o.bound.values()[n]) {
      o.bound.values()[n] = by.bound.values()[n];
      o.term.values()[n] = by.term.values()[n];
    }
}

Tensor<double, 4> load(const Safetensors& file, const StoredArray& array,
                       const ExpectedOutput& output) {
  const auto& shape = output.reference.extents();
  std::array<std::int64_t, 4> front{1, 1, 1, 1};  // the axes that it has, from the first
  int rank = 0;
  for (std::size_t axis = 0; axis < 4; ++axis)
    if (output.axes[axis]) front[rank++] = shape[axis];
  Tensor<double, 4> x(shape);
  x.values() = numbers_in(file, array, output.dtype, front, rank).values();
  return x;
}

/// Those of the outputs that the file has; the others are left out of `expected`.
JudgedOutputs find(const Safetensors& file, Expectation expected) {
  JudgedOutputs found{{{}, std::move(expected.health)}, {}};
  for (ExpectedOutput& output : expected.outputs)
    if (const StoredArray* array = file.find(file_name_of(output))) {
      found.got.push_back(load(file, *array, output));
      found.expected.outputs.push_back(std::move(output));
    }
  return found;
}

Verdict judge(const FileProblem& p, const JudgedOutputs& x,
              const std::function<Expectation()>& rigorous) {
  return judge(p.c, p.in, x.expected, x.got, rigorous);
}

/// What the program's backward pass was given: its own O and LSE, where they are right.
StoredForwardResult given_to(const FileProblem& p, const JudgedOutputs& forward, bool right) {
  const auto& outputs = forward.expected.outputs;
  if (right && outputs.size() >= 2 && outputs[0].name == "O" && outputs[1].name == "LSE") {
    Tensor<double, 3> lse({p.c.b, p.c.hq, p.c.sq});
    lse.values() = forward.got[1].values();
    return {forward.got[0], std::move(lse)};
  }
  if (right && p.forward_result) return *p.forward_result;
  return stored_forward_result(p.in, TreeMod(p.mod, p.tables), TreeMask(p.mask, p.tables),
                               p.c.dtype);
}

JudgedOutputs joined(JudgedOutputs a, const JudgedOutputs& b) {
  a.expected.outputs.insert(a.expected.outputs.end(), b.expected.outputs.begin(),
                            b.expected.outputs.end());
  a.got.insert(a.got.end(), b.got.begin(), b.got.end());
  if (!b.got.empty()) a.expected.health = b.expected.health;
  return a;
}

}  // namespace

Rounds parse_rounds(const std::string& name) {
  for (const auto& [known, rounds] : rounds_names)
    if (name == known) return rounds;
  throw std::invalid_argument(
      fmt::format("--rounds: '{}', expected flash, fp32, tf32 or eager", name));
}

void check_rounds(const FileProblem& p, Rounds rounds) {
  if (p.is_backward() && rounds == Rounds::eager)
    throw std::invalid_argument(
        "--rounds eager: no bound is known for gradients, expected flash, fp32 or tf32 for a "
        "backward pass");
}

Numerics numerics_of(Rounds rounds, DType storage) {
  const double u = unit_roundoff(storage);
  switch (rounds) {
    case Rounds::flash:
      return flash_numerics(storage);
    case Rounds::fp32:
      return implementation_named("flash_forward_fp32").numerics(storage);
    case Rounds::tf32:
      return implementation_named("flash_forward_tf32").numerics(storage);
    case Rounds::eager:  // P is an operand: what it loses is counted there
      return {.storage = storage, .input_rounding = u, .score_rounding = 2 * u};
  }
  return {};
}

Expectation forward_expectation(const FileProblem& p, Rounds rounds, BoundKind kind) {
  const TreeMod mod(p.mod, p.tables);
  const TreeMask mask(p.mask, p.tables);
  const Numerics may = numerics_of(rounds, p.c.dtype);
  const double roundoff = rounds == Rounds::eager ? unit_roundoff(p.c.dtype) : 0;
  Expectation rounded =
      expect(bound_forward(p.in, StoredMod{mod, roundoff}, mask, may, kind), p.c.dtype, true);
  if (rounds == Rounds::eager) return rounded;
  Expectation e = expect(bound_forward(p.in, mod, mask, may, kind), p.c.dtype, true);
  allow_normalised_weights(e, rounded);
  return e;
}

Expectation backward_expectation(const FileProblem& p, const StoredForwardResult& given,
                                 Rounds rounds, BoundKind kind) {
  check_rounds(p, rounds);
  const TreeMod mod(p.mod, p.tables);
  const TreeMask mask(p.mask, p.tables);
  const std::vector<CapturedTensor> captured = captured_of_mod(mod, p.c.sizes());
  const auto bounded = [&](bool stored_o) {
    Numerics may = numerics_of(rounds, p.c.dtype);
    may.delta_from_stored_o = stored_o;
    return expect(bound_backward(p.in, mod, mask, given, may, kind), p.c.dtype, captured, p.c.sink);
  };
  Expectation e = bounded(true);
  widen(e, bounded(false));
  return e;
}

std::string file_name_of(const ExpectedOutput& output) {
  if (output.name.starts_with("d ")) return "d_" + output.name.substr(2);
  if (output.name == "row max") return "row_max";
  if (output.name == "dSink") return "d_sink";
  std::string name = output.name;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

FileVerdict judge_outputs(const FileProblem& p, const Safetensors& outputs, Rounds rounds,
                          const std::vector<std::string>& required) {
  FileVerdict result;
  for (const std::string& name : required)
    if (!outputs.find(name)) result.missing.push_back(name);

  const auto forward = [&](BoundKind kind) {
    return find(outputs, forward_expectation(p, rounds, kind));
  };
  JudgedOutputs all = forward(BoundKind::working);
  StoredForwardResult given;
  if (p.is_backward()) {
    const Verdict v = judge(p, all, [&] { return all.expected; });
    given = given_to(p, all, v.outcome != Outcome::discrepancy);
    all = joined(std::move(all),
                 find(outputs, backward_expectation(p, given, rounds, BoundKind::working)));
  }
  if (all.got.empty() && result.missing.empty())
    throw std::invalid_argument(fmt::format("{}: no output, expected one of o, lse, row_max{}",
                                            outputs.what(), p.is_backward() ? ", dq, dk, dv" : ""));
  result.verdict = judge(p, all, [&] {
    JudgedOutputs strict = forward(BoundKind::rigorous);
    if (p.is_backward())
      strict = joined(std::move(strict),
                      find(outputs, backward_expectation(p, given, rounds, BoundKind::rigorous)));
    return strict.expected;
  });
  if (result.verdict.outcome == Outcome::discrepancy)
    result.looks_like = looks_like(p, all, given, rounds);
  result.outputs = std::move(all);
  return result;
}

}  // namespace attn::fuzz
