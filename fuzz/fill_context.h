#pragma once

#include <cstdint>

#include "fuzz/case.h"
#include "fuzz/pass_inputs.h"
#include "fuzz/random.h"
#include "mods/lang/call.h"
#include "mods/lang/environments.h"

namespace attn::fuzz {

constexpr double largest_filled = 0x1p15;  ///< of what a fill computes: finite in every type

/// A stream of random numbers for each tensor, and for what holds for a case or a row.
enum class Stream : int { q, k, v, choice, order, sink, dropout, d_o, d_lse };

/// What the fills ask of a mod and a mask, whatever their types.
class PairQuestions {
 public:
  virtual ~PairQuestions() = default;
  /// Whether the pair attends: query index q, with the offset of its sequence.
  virtual bool attends(const Sizes& sizes, int b, int h, int q, int kv) const = 0;
  /// The modified score where the score is 0.
  virtual double mod_at_zero(const Sizes& sizes, int b, int h, int q, int kv) const = 0;
};

/// The functors outlive this object.
template <class Mod, class Mask>
class QuestionsAbout final : public PairQuestions {
 public:
  /// Keeps references to both.
  QuestionsAbout(const Mod& mod, const Mask& mask) : mod_(mod), mask_(mask) {}
  bool attends(const Sizes& sizes, int b, int h, int q, int kv) const override {
    ExactEnv env{sizes};
    const auto at = [&env](int i) { return Index<ExactEnv>{i, &env}; };
    return call_mask(mask_, at(b), at(h), at(q), at(kv));
  }
  double mod_at_zero(const Sizes& sizes, int b, int h, int q, int kv) const override {
    ExactEnv env{sizes};
    const auto at = [&env](int i) { return Index<ExactEnv>{i, &env}; };
    return call_mod(mod_, 0.0, at(b), at(h), at(q), at(kv));
  }

 private:
  const Mod& mod_;
  const Mask& mask_;
};

/// What the fills work on: the tensors of one case, and random numbers that are a pure function of
/// the seed, the tensor and the position.
struct FillContext {
  const Case& c;             ///< whose fill it is
  const PairQuestions& ask;  ///< about the case's mod and mask
  PassInputs& in;            ///< what is filled: sizes and sequences are there already

  /// The batch entry whose K and V entry b has: with one for the whole batch, entry 0 speaks.
  int key_batch(int b) const { return c.layout == Layout::shared_kv ? 0 : b; }
  /// The random bits of one element: row s and channel d of head h.
  std::uint64_t hash(Stream stream, int b, int h, int s, int d) const {
    if (stream == Stream::k || stream == Stream::v) b = key_batch(b);
    return hash_of(c.seed, static_cast<int>(stream), b, h, s, d);
  }
  /// A choice that holds for the whole case.
  std::uint64_t choice() const { return hash_of(c.seed, static_cast<int>(Stream::choice)); }

  /// Sets every element of `x` to value(b, h, s, d).
  template <class F>
  static void set(Tensor<double, 4>& x, F value) {
    const auto e = x.extents();
    double* at = x.values().data();
    for (int b = 0; b < e[0]; ++b)
      for (int h = 0; h < e[1]; ++h)
        for (int s = 0; s < e[2]; ++s)
          for (int d = 0; d < e[3]; ++d) *at++ = value(b, h, s, d);
  }
  /// Multiplies every element of `x`.
  static void scale_by(Tensor<double, 4>& x, double factor) {
    for (double& value : x.values()) value *= factor;
  }
  /// For `set`: normal numbers of one stream.
  auto normal(Stream stream) const {
    return
        [this, stream](int b, int h, int s, int d) { return normal_of(hash(stream, b, h, s, d)); };
  }
  /// For `set`: whole numbers from low to high, both included.
  auto ints(Stream stream, int low, int high) const {
    return [=, this](int b, int h, int s, int d) {
      return static_cast<double>(int_of(hash(stream, b, h, s, d), low, high));
    };
  }

  /// Row i and key j of sequence b, as its mask and mod see them.
  bool attends(int b, int h, int i, int j) const {
    const Sizes& sizes = in.sequences[b].sizes;
    return ask.attends(sizes, b, h, sizes.q_offset + i, j);
  }
  /// Of such a pair: its modified score where the score is 0.
  double mod_at_zero(int b, int h, int i, int j) const {
    const Sizes& sizes = in.sequences[b].sizes;
    return ask.mod_at_zero(sizes, b, h, sizes.q_offset + i, j);
  }
};

/// The fills that propose inputs with answers known to the last bit (fuzz/exact_fills.cc).
void fill_exact(const FillContext& f);
/// True for those.
constexpr bool is_exact(Fill fill) { return fill >= Fill::exact_code; }

/// dO, dLSE and the sink (fuzz/gradient_fills.cc), in the regime of the case's fill.
void fill_output_gradients(const FillContext& f);
/// One logit a query head, in numbers of fp32; none unless the case has a sink.
void fill_sink(const FillContext& f);

}  // namespace attn::fuzz
