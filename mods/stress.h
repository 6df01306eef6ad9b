#pragma once

#include <cstdint>

#include "mods/arguments_check.h"

namespace attn {

/// Four mods that nobody trains with, made to break code generators: after the stress tests of
/// FlashAttention 4. d = i - j.
///
///     stress_arithmetic()   t = (s * (8 + |d|) - d / 2) / (1 + |d|)
///     stress_parity()       t = i even ? (j mod 3 == 0 ? 2 s : s + 1) : -s / 2
///     stress_buffers(...)   t = s + head[h] * query[i] + batch[b] * key[j]
///     stress_xor(n)         t = s + (i xor j) / 8, of the lowest n bits
///
/// i xor j of two bits:
///
///       keys j
///     i 0123
///       1032
///       2301
///       3210

/// Long arithmetic that mixes scores and indices.
struct StressArithmetic {
  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index, Index q, Index kv) const {
    const Index distance = q - kv, length = attn::abs(distance);
    return (s * (8 + length) - 0.5f * distance) / (1 + length);
  }
};

/// Branches inside branches; neighbours in a row and in a column take different ones.
struct StressParity {
  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index, Index q, Index kv) const {
    const Score even_row = attn::select(attn::floor_mod(kv, 3) == 0, 2 * s, s + 1);
    return attn::select(attn::floor_mod(q, 2) == 0, even_row, -s / 2);
  }
};

/// Four captured tables, one for each index.
struct StressBuffers {
  Captured<1> batch;  ///< [B]
  Captured<1> head;   ///< [Hq]
  Captured<1> query;  ///< [Sq]
  Captured<1> key;    ///< [Skv]

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index b, Index h, Index q, Index kv) const {
    return s + head(h) * query(q) + batch(b) * key(kv);
  }
  /// @throws std::invalid_argument if a table has neither the length of its axis nor 1.
  void check(const Sizes& sizes) const {
    check_table("stress_buffers", "batch", batch, one_or("B", sizes.b));
    check_table("stress_buffers", "head", head, one_or("Hq", sizes.hq));
    check_table("stress_buffers", "query", query, one_or("Sq", sizes.sq));
    check_table("stress_buffers", "key", key, one_or("Skv", sizes.skv));
  }
};

/// Bit arithmetic on indices, by division: a bit of i xor j is a + c - 2 a c.
struct StressXor {
  std::int32_t bits;  ///< how many of each index, from the lowest

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index, Index q, Index kv) const {
    Index sum = q * 0;
    for (std::int32_t bit = 1; bit < (1 << bits); bit *= 2) {
      const Index a = attn::floor_mod(attn::floor_div(q, bit), 2);
      const Index c = attn::floor_mod(attn::floor_div(kv, bit), 2);
      sum = sum + (a + c - 2 * a * c) * bit;
    }
    return s + sum / 8.0f;
  }
  /// @throws std::invalid_argument if the number of bits is not 0 to 30.
  void check(const Sizes&) const {
    if (bits < 0 || bits > 30)
      throw std::invalid_argument("stress_xor: bits = " + std::to_string(bits) +
                                  ", expected 0 to 30");
  }
};

/// (s * (8 + |d|) - d / 2) / (1 + |d|), d = i - j.
inline StressArithmetic stress_arithmetic() { return {}; }
/// i even ? (j mod 3 == 0 ? 2 s : s + 1) : -s / 2.
inline StressParity stress_parity() { return {}; }
/// [B], [Hq], [Sq] and [Skv]. The memory stays the caller's.
inline StressBuffers stress_buffers(const Captured<1>& batch, const Captured<1>& head,
                                    const Captured<1>& query, const Captured<1>& key) {
  return {batch, head, query, key};
}
/// @throws std::invalid_argument if `bits` is not 0 to 30.
inline StressXor stress_xor(std::int32_t bits) {
  const StressXor mod{bits};
  mod.check({});
  return mod;
}

}  // namespace attn
