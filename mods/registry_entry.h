#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "mods/registry.h"

/// ATTN_MOD(name, line, formula, header, expression, parameters, C++ that builds it...): an entry
/// of the registry whose code is shown as it runs. In the code `a` holds the arguments.
#define ATTN_MOD(name, line, formula, header, expression, parameters, ...)        \
  ModEntry {                                                                      \
    {name, line, formula, header, display(#__VA_ARGS__), expression, parameters}, \
        []([[maybe_unused]] Arguments& a) -> AnyMod { return __VA_ARGS__; }       \
  }

namespace attn::detail {

/// An example table of real numbers: multiples of 1/16 from -1/2 to 1/2, exact in every type.
template <int Rank>
Captured<Rank> reals(Arguments& a, const char* name,
                     const std::array<std::int64_t, Rank>& extents) {
  return a.table<float, Rank>(name, extents, [](const auto& at) {
    std::int64_t n = 0;
    for (const std::int64_t i : at) n = 7 * n + (i + 1) * (i + 1);
    return static_cast<double>(n % 17 - 8) / 16;
  });
}

}  // namespace attn::detail
