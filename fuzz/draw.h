#pragma once

#include <rapidcheck.h>

#include <cstddef>

/// Draws for the generators of cases. All must run inside a RapidCheck generator.
namespace attn::fuzz {

/// A whole number from low to high, both included.
inline int drawn(int low, int high) { return *rc::gen::inRange(low, high + 1); }
/// True `percent` times in a hundred.
inline bool chance(int percent) { return drawn(0, 99) < percent; }
/// One of the options, all equally likely.
template <class T, std::size_t N>
T one_of(const T (&options)[N]) {
  return options[drawn(0, static_cast<int>(N) - 1)];
}

}  // namespace attn::fuzz
