#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "fuzz/case.h"
#include "fuzz/expectation.h"
#include "fuzz/pass_inputs.h"
#include "mods/lang/tensor.h"

namespace attn::fuzz {

/// What came of one case; `is_failure` tells which of these make a run fail.
enum class Outcome {
  pass,
  mistrusted,         ///< nothing wrong was seen, but the bounds had no power here: not a pass
  finding,            ///< the mod itself yields NaN or +inf at an attended pair
  discrepancy,        ///< an output element is outside its bound
  not_deterministic,  ///< two runs gave different bits
  checker_fault,      ///< the checker of the CPU engine stopped the kernel
  refused,            ///< the implementation or the contract refuses the case
};
/// As reports name it: "not deterministic".
const char* name_of(Outcome outcome);
/// True for what makes a fuzz run fail.
constexpr bool is_failure(Outcome o) {
  return o == Outcome::finding || o == Outcome::discrepancy || o == Outcome::not_deterministic ||
         o == Outcome::checker_fault;
}

/// What is wrong with one output, at its worst element.
struct Discrepancy {
  std::string tensor;  ///< "O", "LSE", "dK", ...
  /// The index of the element, 0 along an axis that is not there.
  std::array<std::int64_t, 4> at{};
  std::string element;                       ///< "O[b0 h1 q63 d5]", "d slope[3]"
  double got = 0, reference = 0, bound = 0;  ///< of that element
  Term term = Term::none;                    ///< of the bound
  bool proved = false;                       ///< outside the rigorous bound too
  std::string where;                         ///< the pattern of all elements outside their bounds
  std::int64_t suspect_key = -1;  ///< whose weight in the row of O explains the error; -1: none
};

/// What came of one case, and why.
struct Verdict {
  Outcome outcome = Outcome::pass;  ///< the worst thing that was seen
  std::string reason;               ///< of every outcome but pass and discrepancy
  Discrepancy discrepancy;          ///< of a discrepancy
  RowCounts rows;                   ///< how the rows of the case fell out
  std::string_view target;          ///< where the kernel really ran
};

/// |got - reference| / bound of one element: above 1, it is outside its bound; infinity for a wrong
/// class or a bound of 0, and 0 where any value goes.
double error_over_bound(const ExpectedOutput& expected, double got,
                        const std::array<std::int64_t, 4>& at);

/// Compares outputs with what is expected, one by one: classes (NaN, infinities, finite) first,
/// then |got - reference| <= bound, so that a NaN never passes. The first output that is off is
/// reported, at its worst element. `rigorous` is called only then, to tell whether that is proved.
Verdict judge(const Case& c, const PassInputs& in, const Expectation& expected,
              const std::vector<Tensor<double, 4>>& got,
              const std::function<Expectation()>& rigorous);

/// The report of a failure: what, where, and the line that runs it again.
std::string report(const Case& c, const Verdict& verdict);

}  // namespace attn::fuzz
