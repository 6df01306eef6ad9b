#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mods/lang/call.h"
#include "mods/lang/environments.h"
#include "mods/lang/tensor.h"
#include "optimized/numerics.h"

namespace attn::fuzz {

/// The inputs of one forward pass, as the exact values of the storage type.
struct ForwardInputs {
  Sizes sizes;
  double scale = 1;
  Tensor<double, 4> q, k, v;  // [B, Hq, Sq, D], [B, Hkv, Skv, D], [B, Hkv, Skv, Dv]
};

/// A modified score with its error bound, and whether its pair is attended.
struct BoundedScore {
  Rounded value;
  Fuzzy attended = true;
};

/// A mod and a mask, run on numbers that carry a rounding error, one query row at a time.
class RowScorer {
 public:
  virtual ~RowScorer() = default;
  /// `row` [Skv] holds the scaled scores on entry and the modified ones on return.
  virtual void score_row(int b, int h, int q, std::vector<BoundedScore>& row) const = 0;
};

template <class Mod, class Mask>
class FunctorRowScorer final : public RowScorer {
 public:
  FunctorRowScorer(Mod mod, Mask mask, const Sizes& sizes)
      : mod_(std::move(mod)), mask_(std::move(mask)), sizes_(sizes) {}
  void score_row(int b, int h, int q, std::vector<BoundedScore>& row) const override {
    RoundedEnv env{sizes_};
    using I = Index<RoundedEnv>;
    for (int kv = 0; kv < static_cast<int>(row.size()); ++kv) {
      BoundedScore& s = row[kv];
      s.attended = call_mask(mask_, I{b, &env}, I{h, &env}, I{q, &env}, I{kv, &env});
      s.value = call_mod(mod_, s.value, I{b, &env}, I{h, &env}, I{q, &env}, I{kv, &env});
    }
  }

 private:
  Mod mod_;
  Mask mask_;
  Sizes sizes_;
};

/// Which of the two bounds: `working` is what a verdict uses (probabilistic rounding analysis,
/// N. J. Higham and T. Mary, SIAM J. Sci. Comput. 41(5), 2019); `rigorous` cannot be exceeded by a
/// correct kernel in any order of summation and labels a failure as proved.
enum class BoundKind { working, rigorous };

/// The term that contributes most to a bound.
enum class Term : std::uint8_t { none, scores, probabilities, accumulation, output };
const char* name_of(Term term);

/// What exact arithmetic gives, and how far a correct kernel may be from it.
struct ForwardBounds {
  Tensor<double, 4> o, o_bound;      // [B, Hq, Sq, Dv]
  Tensor<Term, 4> o_term;            // the dominating term of o_bound
  Tensor<double, 3> lse, lse_bound;  // [B, Hq, Sq]

  /// How the rows fell out; each row is counted once.
  struct Rows {
    std::int64_t empty = 0;    ///< no key attended: O = 0, LSE = -inf exactly
    std::int64_t one_hot = 0;  ///< proved one-hot: O is a row of V, LSE = 0, bit for bit
    std::int64_t counted = 0;  ///< proved uniform: LSE = log of a whole number
    std::int64_t powers = 0;   ///< every weight a power of two: P is not rounded
    std::int64_t general = 0;
    std::int64_t not_finite = 0;  ///< a NaN or +inf at an attended pair
  } rows;
  double ambiguous_mass = 0;  ///< the largest share of a row's weight whose branch may flip
  /// The first attended pair whose modified score is NaN or +inf; empty if there is none.
  std::string finding;
  /// Median over elements of bound / (the same bound with an identity mod's score error).
  double amplification = 1;
  double zero_share = 0;       ///< of O in rows that attend a key
  double powerless_share = 0;  ///< of O elements whose bound reaches sum p|v|
};

ForwardBounds bound_forward(const ForwardInputs& in, const RowScorer& scorer, const Numerics& may,
                            BoundKind kind = BoundKind::working);

template <class Mod, class Mask>
ForwardBounds bound_forward(const ForwardInputs& in, const Mod& mod, const Mask& mask,
                            const Numerics& may, BoundKind kind = BoundKind::working) {
  return bound_forward(in, FunctorRowScorer<Mod, Mask>(mod, mask, in.sizes), may, kind);
}

}  // namespace attn::fuzz
