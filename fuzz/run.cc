#include "fuzz/run.h"

#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "fuzz/inputs.h"
#include "fuzz/random.h"
#include "fuzz/stored_tensor.h"
#include "fuzz/table_spec.h"
#include "mods/lang/compile.h"
#include "mods/lang/tree_functor.h"
#include "optimized/simt/fault.h"

namespace attn::fuzz {
namespace {

/// Everything that one case is made of, before a kernel runs.
struct Setup {
  const Implementation& implementation;
  TableStore tables;
  TreeMod mod;
  TreeMask mask;
  ForwardInputs in;
  StoredForward stored;

  explicit Setup(const Case& c)
      : implementation(implementation_named(c.implementation)),
        tables(c.tables, c.sizes(), c.seed),
        mod(c.mod, tables.tables()),
        mask(c.mask, tables.tables()),
        in(make_inputs(c, mod, mask)),
        stored(c) {
    stored.q.store(in.q);
    stored.k.store(in.k);
    stored.v.store(in.v);
  }

  ForwardCall call(const Case& c, const RunOptions& options) const {
    ForwardCall call{stored.q.info(),
                     stored.k.info(),
                     stored.v.info(),
                     stored.o.info(),
                     stored.lse.rows(),
                     compile_mod(c.mod, tables.tables()),
                     compile_mask(c.mask, tables.tables()),
                     {}};
    call.options.scale = c.scale;
    call.options.tile = c.small_tile ? TileChoice::small : TileChoice::production;
    if (options.random_schedule) {
      const std::uint64_t schedule = hash_of(c.seed, 0x5c4ed);
      call.options.launch.schedule_seed = schedule | 1;
      call.options.launch.lazy_copies = schedule >> 32 & 3;  // early one time in four
    }
    return call;
  }

  std::string_view run(const Case& c, const RunOptions& options) const {
    if (options.planted == PlantedFault::none)
      return implementation.run(call(c, options), options.engine);
    struct Planted {
      explicit Planted(PlantedFault fault) { active_fault() = fault; }
      ~Planted() { active_fault() = PlantedFault::none; }
    } planted(options.planted);
    return implementation.run_planted(call(c, options));
  }
};

Verdict failed(Outcome outcome, const std::string& reason, const RunOptions& options) {
  Verdict v;
  v.outcome = outcome;
  v.reason = reason;
  v.target = options.planted == PlantedFault::none ? name_of(options.engine) : "warp_planted";
  return v;
}

std::vector<std::uint64_t> bits_of(const Tensor<double, 4>& values) {
  std::vector<std::uint64_t> bits;
  for (const double x : values.values())
    bits.push_back(
        std::bit_cast<std::uint64_t>(std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x));
  return bits;
}

/// A case that violates the contract before any kernel runs.
void check_case(const Case& c) {
  if (c.hkv == 0 ? c.hq != 0 : c.hq % c.hkv != 0)
    throw std::invalid_argument("Hq: " + std::to_string(c.hq) +
                                ", expected a multiple of Hkv = " + std::to_string(c.hkv));
}

}  // namespace

Verdict run_case(const Case& c, const RunOptions& options) {
  try {
    check_case(c);
    const Setup setup(c);
    Problem problem;
    problem.d = c.d;
    problem.dv = c.dv;
    problem.dtype = c.dtype;
    if (const auto refusal = setup.implementation.refusal(problem))
      return failed(Outcome::refused, *refusal, options);
    const Numerics numerics = setup.implementation.numerics(c.dtype);
    const ForwardBounds bounds = bound_forward(setup.in, setup.mod, setup.mask, numerics);
    const std::string_view target = setup.run(c, options);
    Verdict verdict =
        judge(c, setup.in, bounds, setup.stored.o.load(), setup.stored.lse.load(), [&] {
          return bound_forward(setup.in, setup.mod, setup.mask, numerics, BoundKind::rigorous);
        });
    verdict.target = target;
    for (const auto& [name, tensor] : {std::pair("O", &setup.stored.o), {"LSE", &setup.stored.lse}})
      if (const auto at = tensor->trespass())
        return failed(Outcome::checker_fault,
                      std::string(name) + ": element " + std::to_string(*at) +
                          " of the memory around it was written",
                      options);
    return verdict;
  } catch (const simt::CheckerFault& fault) {
    return failed(Outcome::checker_fault, fault.what(), options);
  } catch (const std::invalid_argument& refusal) {
    return failed(Outcome::refused, refusal.what(), options);
  }
}

RawOutputs run_raw(const Case& c, const RunOptions& options) {
  check_case(c);
  const Setup setup(c);
  const std::string_view target = setup.run(c, options);
  return {bits_of(setup.stored.o.load()), bits_of(setup.stored.lse.load()), target};
}

}  // namespace attn::fuzz
