#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "mods/lang/call.h"
#include "mods/lang/environments.h"

/// Which captured tensors a mod and a mask read.
namespace attn {

/// The same sizes, none of them 0: a mod may divide by one, although it is never called then.
inline Sizes at_least_one(Sizes sizes) {
  for (auto* n : {&sizes.b, &sizes.hq, &sizes.hkv, &sizes.sq, &sizes.skv}) *n = std::max(*n, 1);
  return sizes;
}

/// What a mod reads (it may have nothing that can be traced: a plain function).
template <class Mod>
void trace_mod(TraceEnv& env, const Mod& mod) {
  using I = Index<TraceEnv>;
  const I zero{0, &env};
  if constexpr (!is_plain_functor<Mod> && std::is_invocable_v<const Mod&, double, I, I, I, I>)
    (void)call_mod(mod, 0.0, zero, zero, zero, zero);
}

/// The captured tensors that a mod and a mask read, whatever their type.
template <class Mod, class Mask>
std::vector<CapturedTensor> captured_tensors(const Mod& mod, const Mask& mask, const Sizes& sizes) {
  TraceEnv env;
  env.sizes = at_least_one(sizes);
  trace_mod(env, mod);
  using I = Index<TraceEnv>;
  const I zero{0, &env};
  if constexpr (!is_plain_functor<Mask> && std::is_invocable_v<const Mask&, I, I, I, I>)
    (void)call_mask(mask, zero, zero, zero, zero);
  env.tensors.insert(env.tensors.end(), env.tables.begin(), env.tables.end());
  return env.tensors;
}

/// The floating tensors that a mod reads, in order of first read: those that have a gradient.
template <class Mod>
std::vector<CapturedTensor> captured_of_mod(const Mod& mod, const Sizes& sizes) {
  TraceEnv env;
  env.sizes = at_least_one(sizes);
  trace_mod(env, mod);
  return env.tensors;
}

/// Entries of a captured tensor; an axis that broadcasts has one.
inline std::int64_t entries_of(const CapturedTensor& t) {
  std::int64_t entries = 1;
  for (const std::int64_t extent : t.extents) entries *= extent;
  return entries;
}

}  // namespace attn
