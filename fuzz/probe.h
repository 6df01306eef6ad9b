#pragma once

#include <optional>
#include <type_traits>

#include "mods/lang/call.h"
#include "mods/lang/environments.h"

/// One mod and one mask, run on whatever number type a question needs: what an examination
/// (fuzz/examination.h) works with, so that it is compiled once for all types of mods.
namespace attn::fuzz {

/// A pair: query index q as a mod sees it.
struct Pair {
  int b = 0, h = 0, q = 0, kv = 0;  ///< h is the query head
};
/// Pairs first to last, both included.
struct PairBox {
  Pair first, last;  ///< in each of the four axes
};
/// A captured read that is moved: the `read`-th floating one of a call, by so much. Of a number
/// with an error the error is `by`. -1: none.
struct Moved {
  int read = -1;  ///< counted from 0 in the order of the call's floating reads
  double by = 0;  ///< added to the entry
};

/// Scalar numbers one by one, with one captured read moved.
template <class Number>
struct ProbeEnv {
  using Int = int;       ///< what an index holds
  using Score = Number;  ///< what a score is
  Sizes sizes;           ///< of the problem, as the functor asks for them
  Moved moved{};         ///< the read that is moved, if any
  int reads = 0;         ///< floating reads so far in this call

  /// An index as a score.
  Number to_score(int i) const {
    if constexpr (std::is_same_v<Number, float>)
      return static_cast<float>(i);
    else
      return Number(static_cast<double>(i));
  }
  /// Whatever a functor captures, checked against the tensor's extents. Floating entries become
  /// scores.
  template <int Rank, class T>
  auto read(const Captured<Rank, T>& c, const int (&at)[Rank]) {
    const T& entry = c.tensor.data[checked_offset(c, at)];
    if constexpr (!is_floating_storage<T>) {
      return entry;
    } else {
      const double value = stored_score<double>(entry);
      const bool mine = reads++ == moved.read;
      if constexpr (std::is_same_v<Number, Rounded>)
        return mine ? Rounded(value, moved.by) : Rounded(value);
      else
        return static_cast<Number>(mine ? value + moved.by : value);
    }
  }
  /// A functor that is no template is called once: there is one number.
  template <class F, class... A>
  static auto each(F f, const A&... a) {
    return f(a...);
  }
};

/// True for a functor that has, beside its template or instead of it, an operator on plain numbers:
/// a template cannot take `{}` for what it deduces.
template <class Mod>
inline constexpr bool has_plain_mod = requires(const Mod& mod, float s, int i) {
  mod({s}, {i}, {i}, {i}, {i});
};
/// The same of a mask.
template <class Mask>
inline constexpr bool has_plain_mask = requires(const Mask& mask, int i) {
  mask({i}, {i}, {i}, {i});
};

/// What a mod and a mask may be asked: `s` is the score, `at` the pair, `sizes` the problem.
/// Answers come from the functor's own code on the number type that the question names.
class Probe {
 public:
  virtual ~Probe() = default;
  /// The modified score in fp64.
  /// @throws std::invalid_argument as every function here: a captured tensor is read outside of it
  virtual double exact(const Sizes& sizes, const Pair& at, double s, Moved moved = {}) const = 0;
  /// The modified score in fp32, as a kernel computes it.
  virtual float single(const Sizes& sizes, const Pair& at, float s) const = 0;
  /// The modified score with the error that fp32 may give it.
  virtual Rounded rounded(const Sizes& sizes, const Pair& at, const Rounded& s,
                          Moved moved = {}) const = 0;
  /// The value and its derivative: to the score, or to captured read `read`. `reads` becomes their
  /// number.
  virtual Dual<double> dual(const Sizes& sizes, const Pair& at, double s, int read,
                            int& reads) const = 0;
  /// The same with rounding errors, as the oracle bounds a derivative.
  virtual Dual<Rounded> rounded_dual(const Sizes& sizes, const Pair& at, double s,
                                     int read) const = 0;
  /// An interval that holds the modified scores of all pairs of the box, for all scores of `s`.
  virtual Range<double> range(const Sizes& sizes, const PairBox& box,
                              const Range<double>& s) const = 0;
  /// By the operator on plain numbers, where there is one.
  virtual std::optional<float> plain(const Pair& at, float s) const = 0;

  /// Whether the mask attends, exactly.
  virtual bool attends(const Sizes& sizes, const Pair& at) const = 0;
  /// The same as the oracle asks: its conditions on numbers with errors.
  virtual bool attends_rounded(const Sizes& sizes, const Pair& at) const = 0;
  /// By the operator on plain numbers, where there is one.
  virtual std::optional<bool> plain_attends(const Pair& at) const = 0;
  /// Of all pairs of the box: yes, no or maybe; maybe, too, where a table might be read outside.
  virtual Maybe attends_range(const Sizes& sizes, const PairBox& box) const = 0;
};

/// The functors outlive this object.
template <class Mod, class Mask>
class ProbeOf final : public Probe {
 public:
  /// Keeps references to both.
  ProbeOf(const Mod& mod, const Mask& mask) : mod_(mod), mask_(mask) {}

  double exact(const Sizes& sizes, const Pair& at, double s, Moved moved) const override {
    ProbeEnv<double> env{sizes, moved};
    return modified(env, at, s);
  }
  float single(const Sizes& sizes, const Pair& at, float s) const override {
    ProbeEnv<float> env{sizes};
    return modified(env, at, s);
  }
  Rounded rounded(const Sizes& sizes, const Pair& at, const Rounded& s,
                  Moved moved) const override {
    ProbeEnv<Rounded> env{sizes, moved};
    return modified(env, at, s);
  }
  Dual<double> dual(const Sizes& sizes, const Pair& at, double s, int read,
                    int& reads) const override {
    DualEnv env{sizes, read};
    const Dual<double> y = modified(env, at, Dual<double>(s, read < 0 ? 1.0 : 0.0));
    reads = env.reads;
    return y;
  }
  Dual<Rounded> rounded_dual(const Sizes& sizes, const Pair& at, double s,
                             int read) const override {
    BasicDualEnv<Rounded> env{sizes, read};
    return modified(env, at, Dual<Rounded>(Rounded(s, 0.0), Rounded(read < 0 ? 1 : 0)));
  }
  Range<double> range(const Sizes& sizes, const PairBox& box,
                      const Range<double>& s) const override {
    RangeEnv env{sizes};
    const auto i = [&env](int first, int last) {
      return Index<RangeEnv>{RangeEnv::Int(first, last), &env};
    };
    return call_mod(mod_, s, i(box.first.b, box.last.b), i(box.first.h, box.last.h),
                    i(box.first.q, box.last.q), i(box.first.kv, box.last.kv));
  }
  std::optional<float> plain([[maybe_unused]] const Pair& at,
                             [[maybe_unused]] float s) const override {
    if constexpr (has_plain_mod<Mod>)
      return static_cast<float>(mod_({s}, {at.b}, {at.h}, {at.q}, {at.kv}));
    return std::nullopt;
  }

  bool attends(const Sizes& sizes, const Pair& at) const override {
    ExactEnv env{sizes};
    return asked(env, at);
  }
  bool attends_rounded(const Sizes& sizes, const Pair& at) const override {
    RoundedEnv env{sizes};
    return Fuzzy(asked(env, at)).value;
  }
  std::optional<bool> plain_attends([[maybe_unused]] const Pair& at) const override {
    if constexpr (has_plain_mask<Mask>)
      return static_cast<bool>(mask_({at.b}, {at.h}, {at.q}, {at.kv}));
    return std::nullopt;
  }
  Maybe attends_range(const Sizes& sizes, const PairBox& box) const override {
    RangeEnv env{sizes};
    const auto i = [&env](int first, int last) {
      return Index<RangeEnv>{RangeEnv::Int(first, last), &env};
    };
    const Maybe answer(call_mask(mask_, i(box.first.b, box.last.b), i(box.first.h, box.last.h),
                                 i(box.first.q, box.last.q), i(box.first.kv, box.last.kv)));
    return env.may_read_outside ? Maybe(true, true) : answer;
  }

 private:
  template <class Env>
  typename Env::Score modified(Env& env, const Pair& at, const typename Env::Score& s) const {
    const auto i = [&env](int value) { return Index<Env>{value, &env}; };
    return call_mod(mod_, s, i(at.b), i(at.h), i(at.q), i(at.kv));
  }
  template <class Env>
  auto asked(Env& env, const Pair& at) const {
    const auto i = [&env](int value) { return Index<Env>{value, &env}; };
    return call_mask(mask_, i(at.b), i(at.h), i(at.q), i(at.kv));
  }

  const Mod& mod_;
  const Mask& mask_;
};

}  // namespace attn::fuzz
