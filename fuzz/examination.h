#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fuzz/case.h"

/// What can be said of one mod or mask before any kernel runs with it: `attnproof examine`.
namespace attn::fuzz {

/// How far rounding of one storage type reaches into O, by the oracle's own bounds.
struct Determination {
  std::string dtype;               ///< "fp16", "bf16", "tf32", "fp32"
  double median = 0, largest = 0;  ///< of bound / the largest |O|
  double amplification = 1;        ///< of the score's rounding, by the mod
  std::string worst;               ///< where the largest is
};

/// A score where the mod jumps by more than its own rounding in fp32.
struct Jump {
  double score = 0, size = 0;  ///< where, and by how much
  std::string where;           ///< the pair, and the lengths of the problem
};

/// Lines in `wrong` each name a fault of the mod and where it shows: a fuzz run fails on them.
struct ModReport {
  std::vector<std::string> wrong;  ///< empty: nothing was found
  std::int64_t pairs = 0;          ///< attended pairs that were looked at, each at several scores

  // the derivative against difference quotients
  std::int64_t derivatives = 0, captured_derivatives = 0;  ///< compared: by the score; by entries
  std::int64_t near_branches = 0;   ///< a branch lies within the step: not compared
  std::int64_t not_comparable = 0;  ///< fp32 overflows there

  std::vector<Jump> jumps;       ///< the largest first
  std::int64_t jumps_found = 0;  ///< `jumps` holds a few of them

  double least = 0, greatest = 0;             ///< of the finite results
  double greatest_of_small = 0;               ///< |result| for scores within 100
  std::int64_t masked = 0;                    ///< results of -inf
  std::int64_t boxes = 0, unknown_boxes = 0;  ///< asked as ranges; answered "anything"
  bool reads_other_operator = false;          ///< it has an operator on plain numbers too
  std::vector<Determination> determined;      ///< one for each storage type
};

/// What a block mask costs at one length.
struct BlockCost {
  /// `tokens` queries and keys: intervals asked, pairs looked at one by one, blocks of the mask's
  /// boundary, and blocks in all.
  std::int64_t tokens = 0, questions = 0, scanned = 0, partial_blocks = 0, blocks = 0;
  double scanned_share = 0;  ///< of all pairs of the planes that are stored
};

/// What a mask is like. Lines in `wrong` each name a fault and where it shows: a fuzz run fails on
/// them.
struct MaskReport {
  std::vector<std::string> wrong;         ///< empty: nothing was found
  std::int64_t pairs = 0;                 ///< that were looked at
  double attended = 0;                    ///< share of the pairs
  std::int64_t rows = 0, empty_rows = 0;  ///< whole rows looked at, and those that attend no key
  std::int64_t boxes = 0, undecided_boxes = 0;  ///< asked as ranges; answered "maybe"
  std::vector<BlockCost> costs;                 ///< by growing length
  bool intervals = false;                       ///< no pair was looked at, at any length
};

/// Lengths that a mod or mask is made for, as its tables may be; 0: any.
struct FixedLengths {
  int b = 0, hq = 0, hkv = 0, sq = 0, skv = 0;  ///< each by itself
};

/// How far each storage type determines the output with the mod and the mask of a case.
std::vector<Determination> determinations(const Case& c, const FixedLengths& fixed = {});

/// Examines the mod, and the mask, of a case: of it count these two and the tables. Pairs that the
/// mask hides do not matter to a mod.
/// @throws std::invalid_argument if the tables do not fit.
ModReport examine_mod(const Case& c, const FixedLengths& fixed = {});
/// The same for the mask.
MaskReport examine_mask(const Case& c, const FixedLengths& fixed = {});

/// What the report says, for people: a line or more for each subject.
std::string to_text(const ModReport& report);
/// The same of a mask.
std::string to_text(const MaskReport& report);
/// The report for other programs; what is not finite is text.
nlohmann::json to_json(const ModReport& report);
/// The same of a mask.
nlohmann::json to_json(const MaskReport& report);

}  // namespace attn::fuzz
