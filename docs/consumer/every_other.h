#pragma once

#include <attn/mods/lang/captured.h>
#include <attn/mods/lang/number.h>

/// A mod of one's own: every other key is masked, the others are shifted by a bias a head.
struct EveryOther {
  attn::Captured<1> bias;  // [Hq]

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index h, Index, Index kv) const {
    return attn::select(kv % 2 == 0, s + bias(h), -attn::infinity);
  }
};
