#pragma once

#include <Eigen/Core>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/pass_inputs.h"
#include "fuzz/rounded_to.h"
#include "mods/lang/call.h"
#include "mods/lang/captured_tensors.h"
#include "mods/lang/environments.h"
#include "optimized/numerics.h"

/// What the bounds of both passes are made of: scores that carry a rounding error, and the errors
/// of sums, of products and of stored numbers.
namespace attn::fuzz {

/// Which of the two bounds: `working` is what a verdict uses; `rigorous` cannot be exceeded by a
/// correct kernel in any order of summation and labels a failure as proved. The first is by
/// probabilistic rounding analysis (N. J. Higham and T. Mary, SIAM J. Sci. Comput. 41(5), 2019).
enum class BoundKind { working, rigorous };

/// The term that contributes most to a bound.
enum class Term : std::uint8_t {
  none,           ///< nothing: the value is exact
  scores,         ///< of S, and of exponentials
  probabilities,  ///< P rounded for the tensor core
  derivative,     ///< of the derivative of the mod
  delta,          ///< dot(dO, O) with the stored O
  gradients,      ///< dS rounded for the tensor core
  accumulation,
  output,  ///< the result rounded to its type
  poison,  ///< a NaN in a masked row of an operand, which may spread in its tile: any value, NaN
           ///< too
};
/// As reports name it: "mostly P rounding".
const char* name_of(Term term);

/// How the rows of a case fell out; each row is counted once.
struct RowCounts {
  std::int64_t empty = 0;       ///< no key attended: O = 0, LSE = -inf or the sink exactly
  std::int64_t one_hot = 0;     ///< proved one-hot: O is a row of V, LSE = 0, bit for bit
  std::int64_t counted = 0;     ///< proved uniform: LSE = log of a whole number
  std::int64_t powers = 0;      ///< every weight a power of two: P is not rounded
  std::int64_t general = 0;     ///< nothing special is proved
  std::int64_t not_finite = 0;  ///< a NaN or +inf at an attended pair
  std::int64_t one_key = 0;     ///< of the rows above: those that attend a single key
};

// ---- scores ------------------------------------------------------------------------------------

/// A modified score with its error bound, and whether its pair is attended.
struct BoundedScore {
  Rounded value;          ///< the modified score
  Fuzzy attended = true;  ///< not `sure`: the condition may fall either way in fp32
};

/// Where a row of scores lies: `row` of query head `h` of a sequence, whose index q is
/// row + q_offset.
struct ScoreRow {
  const Sequence& sequence;  ///< its batch entry and the sizes that mods see
  int h, row;                ///< query head; row from the sequence's first

  int q() const { return sequence.sizes.q_offset + row; }  ///< as mods and masks see the row
};

/// A mod and a mask, run on numbers that carry a rounding error, one query row at a time.
class RowScorer {
 public:
  virtual ~RowScorer() = default;
  /// `scores` [keys of the sequence] hold the scaled scores on entry and the modified ones on
  /// return.
  virtual void score(const ScoreRow& at, std::vector<BoundedScore>& scores) const = 0;
};

/// One captured entry that a mod reads, and d mod / d entry there.
struct CapturedSlope {
  const void* data;  ///< the tensor, with its extents and strides, zeros after its rank
  const std::array<std::int64_t, 4>&extents, &strides;  ///< of the tensor, in elements
  std::int64_t offset;                                  ///< of the entry in it
  Rounded slope;                                        ///< d mod / d entry
};

/// The same with derivatives.
class DifferentiableScorer : public RowScorer {
 public:
  /// As `score`, and d mod / d score of each key.
  virtual void differentiate(const ScoreRow& at, std::vector<BoundedScore>& scores,
                             std::vector<Rounded>& slopes) const = 0;
  /// Calls `add` for every captured entry that the mod reads at key `kv`, where the scaled score is
  /// `raw`.
  virtual void each_captured(const ScoreRow& at, int kv, const Rounded& raw,
                             const std::function<void(const CapturedSlope&)>& add) const = 0;
  /// The floating tensors that the mod reads, in order of first read.
  virtual std::vector<CapturedTensor> captured(const Sizes& sizes) const = 0;
};

/// Calls f(kv, b, h, q, kv) for every key of a row, the last four being indices of `env`.
template <class Env, class F>
void for_each_key(const ScoreRow& at, std::size_t keys, Env& env, F f) {
  const Index<Env> b{at.sequence.b, &env}, h{at.h, &env}, q{at.q(), &env};
  for (int kv = 0; kv < static_cast<int>(keys); ++kv) f(kv, b, h, q, Index<Env>{kv, &env});
}

/// The scorer of two functors, which must outlive it: their own code runs on numbers with errors.
template <class Mod, class Mask, class Base = RowScorer>
class FunctorScorer : public Base {
 public:
  /// Keeps references to both.
  FunctorScorer(const Mod& mod, const Mask& mask) : mod_(mod), mask_(mask) {}
  void score(const ScoreRow& at, std::vector<BoundedScore>& scores) const override {
    RoundedEnv env{at.sequence.sizes};
    for_each_key(at, scores.size(), env, [&](int kv, auto b, auto h, auto q, auto k) {
      scores[kv].attended = call_mask(mask_, b, h, q, k);
      scores[kv].value = call_mod(mod_, scores[kv].value, b, h, q, k);
    });
  }

 protected:
  const Mod& mod_;    ///< the caller's
  const Mask& mask_;  ///< the caller's
};

/// The mod's own code runs on dual numbers whose parts carry rounding errors, once seeded on the
/// score and once on each captured entry that it reads.
template <class Mod, class Mask>
class DualScorer final : public FunctorScorer<Mod, Mask, DifferentiableScorer> {
 public:
  using FunctorScorer<Mod, Mask, DifferentiableScorer>::FunctorScorer;
  void differentiate(const ScoreRow& at, std::vector<BoundedScore>& scores,
                     std::vector<Rounded>& slopes) const override {
    RoundedEnv mask_env{at.sequence.sizes};
    for_each_key(at, scores.size(), mask_env, [&](int kv, auto b, auto h, auto q, auto k) {
      scores[kv].attended = call_mask(this->mask_, b, h, q, k);
    });
    Env env{at.sequence.sizes};
    for_each_key(at, scores.size(), env, [&](int kv, auto b, auto h, auto q, auto k) {
      BoundedScore& s = scores[kv];
      if (!s.attended.value && s.attended.sure) return;
      const Score y = call_mod(this->mod_, Score(s.value, Rounded(1)), b, h, q, k);
      s.value = y.v;
      slopes[kv] = y.d;
    });
  }
  void each_captured(const ScoreRow& at, int kv, const Rounded& raw,
                     const std::function<void(const CapturedSlope&)>& add) const override {
    Env env{at.sequence.sizes};
    const Index<Env> b{at.sequence.b, &env}, h{at.h, &env}, q{at.q(), &env}, k{kv, &env};
    int reads = 1;
    for (env.seeded = 0; env.seeded < reads; ++env.seeded) {
      env.reads = 0;
      const Score y = call_mod(this->mod_, Score(raw), b, h, q, k);
      reads = env.reads;
      if (reads > 0)
        add({env.seeded_data, env.seeded_extents, env.seeded_strides, env.seeded_offset, y.d});
    }
  }
  std::vector<CapturedTensor> captured(const Sizes& sizes) const override {
    return captured_of_mod(this->mod_, sizes);
  }

 private:
  using Env = BasicDualEnv<Rounded>;
  using Score = Env::Score;
};

// ---- errors ------------------------------------------------------------------------------------

/// A matrix of the oracle, [rows, columns], row-major.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// One number a column, for arithmetic element by element.
using RowVector = Eigen::Array<double, 1, Eigen::Dynamic>;

inline constexpr double u32 = 0x1p-24;  ///< unit roundoff of fp32, to nearest
/// The bound where any value is right.
inline constexpr double unbounded = std::numeric_limits<double>::infinity();
/// How many standard deviations a working bound takes. Hoeffding: exceeded with probability 2
/// exp(-8) at worst; 6.9 sigma if the errors are uniform.
inline constexpr double deviations = 4;
/// exp(-104) < 2^-150: a weight so far below the row's largest is exactly 0 in a kernel.
inline constexpr double vanishes = 104;
inline constexpr double smallest_normal = 0x1p-126;  ///< of fp32 and bf16

/// An n-term fp32 sum, in any order, is within accumulation(n) * sum |terms|. Rigorous: n + 4
/// truncations; working: Higham and Mary's sqrt(n) for rounding to nearest, and one truncation for
/// each group of 16 (as the tensor cores add) where they are used.
struct Accumulation {
  BoundKind kind;                     ///< which n-dependence
  bool tensor_core;                   ///< sums in groups of 16, truncated
  double operator()(double n) const;  ///< the factor of sum |terms|
};

/// The largest power of two that divides every entry (infinity if all are zero, 0 if one is not
/// finite): a sum of such numbers whose magnitudes stay below 2^24 of it is exact in fp32.
double quantum(const Matrix& x);
/// Of either sign. A product with one is not rounded.
bool is_power_of_two(double x);

/// The absolute error of storing a number too small for relative ones. Except for fp16, whose
/// subnormals are in daily use, they may be flushed to zero.
double underflow_error(DType t);
/// What a product rounds `x` to where its operands lose `input_rounding`, beside being stored.
double as_operand(const Numerics& may, double x);
/// The relative error of the entries of `x` as operands of a product: 0 if they have none to lose.
double operand_rounding(const Numerics& may, const Matrix& x);

/// The bound of a result that is within `inner` of `value` before it is rounded to `storage`. A
/// value which the type holds is hit exactly as soon as every number that near rounds to it.
double stored_bound(DType storage, double value, double inner);

/// The rounding errors of numbers x, each at most r, are independent except among those that round
/// to the same number, which form a cell: the variance of sum x_i y_i is that of sum r_i y_i,
///
///     sum_i (r_i y_i)^2 + sum over cells (sum_{i in cell} r_i y_i)^2,   r_i with the sign of x_i,
///
/// of which this adds the second part to `variance`, one channel of y [n, D] a column.
struct CellMember {
  float rounded;  ///< what x became
  int i;          ///< its row of y
  double r;       ///< r_i with the sign of x_i
};
/// Sorts `members` by their rounded numbers to find the cells.
void add_cells(std::vector<CellMember>& members, const Matrix& y, Eigen::Ref<RowVector> variance);

/// Head h of the first `rows` rows of batch entry b, x [B, H, S, X].
Matrix rows_of(const Tensor<double, 4>& x, int b, int h, int rows);

/// A matrix of products and how far a kernel may be from each.
struct BoundedMatrix {
  Matrix value, error;  ///< as exact arithmetic gives it; what a kernel may be off
  Matrix magnitude;     ///< the sum of the sizes of the products, without the scale
};
/// A B^T [rows, columns], each element a sum over the columns of A and B.
BoundedMatrix bounded_products(const Matrix& a, const Matrix& b, const Numerics& may,
                               BoundKind kind);
/// S = scale Q K^T [rows, keys].
BoundedMatrix bounded_scores(const Matrix& q, const Matrix& k, double scale, const Numerics& may,
                             BoundKind kind);

/// The term with the largest share of a bound; none where the bound is 0.
Term dominating_term(std::initializer_list<std::pair<double, Term>> terms, double bound);
/// "score 2 becomes nan at b=0 h=1 q=2 kv=3".
std::string describe_pair(double raw, double modified, int b, int h, int q, int kv);
/// The median; 1 of nothing.
double median_or_one(std::vector<double>& x);

/// What exp(x) may be off by, x itself by `e`: exp(x + e) - exp(x), for any e up to infinity.
double exponential_spread(double x, double e);

}  // namespace attn::fuzz
