#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "fuzz/case.h"
#include "fuzz/forward_bounds.h"
#include "mods/lang/tensor.h"

namespace attn::fuzz {

enum class Outcome {
  pass,
  mistrusted,     ///< nothing wrong was seen, but the bounds had no power here: not a pass
  finding,        ///< the mod itself yields NaN or +inf at an attended pair
  discrepancy,    ///< an output element is outside its bound
  checker_fault,  ///< the checker of the CPU engine stopped the kernel
  refused,        ///< the implementation or the contract refuses the case
};
const char* name_of(Outcome outcome);
/// True for what makes a fuzz run fail.
constexpr bool is_failure(Outcome o) {
  return o == Outcome::finding || o == Outcome::discrepancy || o == Outcome::checker_fault;
}

/// What is wrong with one output, at its worst element.
struct Discrepancy {
  std::string tensor;                ///< "O" or "LSE"
  std::array<std::int64_t, 4> at{};  ///< b, h, q, d (d = 0 for LSE)
  double got = 0, reference = 0, bound = 0;
  Term term = Term::none;  ///< of the bound
  bool proved = false;     ///< outside the rigorous bound too
  std::string where;       ///< the pattern of all elements outside their bounds
};

struct Verdict {
  Outcome outcome = Outcome::pass;
  std::string reason;       ///< of every outcome but pass and discrepancy
  Discrepancy discrepancy;  ///< of a discrepancy
  ForwardBounds::Rows rows;
  std::string_view target;  ///< where the kernel really ran
};

/// Compares O [B, Hq, Sq, Dv] and LSE [B, Hq, Sq, 1] with their bounds: classes (NaN, infinities,
/// finite) first, then |got - reference| <= bound, so that a NaN never passes.
/// `rigorous` is called only for a discrepancy, to tell whether it is proved.
Verdict judge(const Case& c, const ForwardInputs& in, const ForwardBounds& bounds,
              const Tensor<double, 4>& o, const Tensor<double, 4>& lse,
              const std::function<ForwardBounds()>& rigorous);

/// The report of a failure: what, where, and the line that runs it again.
std::string report(const Case& c, const Verdict& verdict);

}  // namespace attn::fuzz
