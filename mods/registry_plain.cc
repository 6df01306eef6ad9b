#include "masks/causal.h"
#include "mods/activation.h"
#include "mods/checkerboard.h"
#include "mods/distance_bias.h"
#include "mods/identity.h"
#include "mods/masked.h"
#include "mods/registry_entry.h"
#include "mods/silu.h"
#include "mods/soft_cap.h"
#include "mods/squared.h"
#include "mods/stress.h"
#include "mods/trig.h"

/// Mods without tables.
namespace attn::detail {
namespace {

std::vector<ModEntry> of_score() {
  return {
      ATTN_MOD("identity", "identity", "s", "mods/identity.h", "score", takes(), identity()),
      ATTN_MOD("times_two", "times two (PyTorch, FlashAttention 4 tests)", "2 s", "", "2 * score",
               takes(), [](auto s, auto, auto, auto, auto) { return 2 * s; }),
      ATTN_MOD("squared", "squared (PyTorch tests)", "s^2", "mods/squared.h", "score * score",
               takes(), squared()),
      ATTN_MOD("scaled_squared", "scaled squared (FlashAttention 4 tests)", "a s^2",
               "mods/squared.h", "$factor * (score * score)",
               takes(real("factor", 0.5, -1e6, 1e6, "factor of the square")), squared(a("factor"))),
      ATTN_MOD("soft_cap",
               "soft cap (attention-gym, FlashAttention, FlashInfer, cuDNN, splash, ggml)",
               "c tanh(s / c)", "mods/soft_cap.h", "$cap * tanh(score / $cap)",
               takes(real("cap", 30, 1e-6, 1e6, "largest score")), soft_cap(a("cap"))),
      ATTN_MOD("silu", "SiLU (PyTorch tests)", "s sigmoid(s)", "mods/silu.h",
               "score * sigmoid(score)", takes(), silu()),
      ATTN_MOD("trig", "trig (PyTorch tests)", "sin(cos s) + tan b", "mods/trig.h",
               "sin(cos(score)) + sin(b) / cos(b)", takes(), trig()),
      ATTN_MOD("trig2", "trig2 (PyTorch tests)", "cos s sin s + tan b", "mods/trig.h",
               "cos(score) * sin(score) + sin(b) / cos(b)", takes(), trig2()),
      ATTN_MOD("activation_sigmoid", "activation without softmax, sigmoid (attention-gym)",
               "log(sigmoid(s) + n)", "mods/activation.h", "log(sigmoid(score) + $floor)",
               takes(real("floor", 0, 0, 1e6, "added to the activation")),
               activation(SigmoidOfScore{}, a("floor"))),
      ATTN_MOD("activation_relu", "activation without softmax, ReLU (attention-gym)",
               "log(max(s, 0) + n)", "mods/activation.h", "log(max(score, 0.0) + $floor)",
               takes(real("floor", 0.001, 0, 1e6, "added to the activation")),
               activation(Relu{}, a("floor"))),
  };
}

std::vector<ModEntry> of_distance() {
  return {
      ATTN_MOD("checkerboard", "checkerboard (flaxattention benchmark)",
               "floor_mod(kv - q, 2) == 0 ? s / 2 : 2 s", "mods/checkerboard.h",
               "floor_mod(kv - q, 2) == 0 ? score / 2 : 2 * score", takes(), checkerboard()),
      ATTN_MOD("rel_bias", "relative bias (PyTorch tests)", "s + (q - kv)", "mods/distance_bias.h",
               "score + (q - kv)", takes(), distance_bias()),
      ATTN_MOD("rel_bias_abs", "relative bias, absolute (FlashAttention 4 tests)", "s + |q - kv|",
               "mods/distance_bias.h", "score + abs(q - kv)", takes(), absolute_distance()),
      ATTN_MOD("rel_causal", "relative causal bias (PyTorch tests)",
               "kv <= q ? s + (q - kv) : -inf", "mods/masked.h",
               "kv <= q ? score + (q - kv) : -inf", takes(), masked(causal(), distance_bias())),
      ATTN_MOD("clamped_rel", "clamped relative bias (FlashAttention 4 tests)",
               "s + clamp(q - kv, lo, hi)", "mods/distance_bias.h",
               "score + clamp(q - kv, $low, $high)",
               takes(whole("low", -8, -(1 << 24), "least bias"),
                     whole("high", 8, -(1 << 24), "greatest bias")),
               distance_bias(a["low"], a["high"])),
      ATTN_MOD("stress_arithmetic", "stress set: complex arithmetic (FlashAttention 4 tests)",
               "(s (8 + |d|) - d / 2) / (1 + |d|), d = q - kv", "mods/stress.h",
               "(score * (8 + abs(q - kv)) - 0.5 * (q - kv)) / (1 + abs(q - kv))", takes(),
               stress_arithmetic()),
      ATTN_MOD(
          "stress_parity", "stress set: conditional on parity (FlashAttention 4 tests)",
          "q even ? (kv mod 3 == 0 ? 2 s : s + 1) : -s / 2", "mods/stress.h",
          "floor_mod(q, 2) == 0 ? (floor_mod(kv, 3) == 0 ? 2 * score : score + 1) : -score / 2",
          takes(), stress_parity()),
      ATTN_MOD("stress_xor", "stress set: exclusive or of indices (FlashAttention 4 tests)",
               "s + (q xor kv) / 8, of the lowest 4 bits", "mods/stress.h",
               "score + ((floor_mod(q, 2) + floor_mod(kv, 2) - 2 * floor_mod(q, 2) * "
               "floor_mod(kv, 2)) + (floor_mod(q / 2, 2) + floor_mod(kv / 2, 2) - 2 * "
               "floor_mod(q / 2, 2) * floor_mod(kv / 2, 2)) * 2 + (floor_mod(q / 4, 2) + "
               "floor_mod(kv / 4, 2) - 2 * floor_mod(q / 4, 2) * floor_mod(kv / 4, 2)) * 4 + "
               "(floor_mod(q / 8, 2) + floor_mod(kv / 8, 2) - 2 * floor_mod(q / 8, 2) * "
               "floor_mod(kv / 8, 2)) * 8) / 8.0",
               takes(), stress_xor(4)),
  };
}

}  // namespace

std::vector<ModEntry> plain_mods() {
  std::vector<ModEntry> all = of_score();
  for (ModEntry& entry : of_distance()) all.push_back(std::move(entry));
  return all;
}

}  // namespace attn::detail
