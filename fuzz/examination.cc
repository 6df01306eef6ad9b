#include "fuzz/examination.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace attn::fuzz {
namespace {

std::string faults(const std::vector<std::string>& wrong) {
  std::string text;
  for (const std::string& line : wrong) text += fmt::format("wrong        {}\n", line);
  return text;
}

/// JSON has no infinity.
nlohmann::json number(double x) {
  return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(fmt::format("{}", x));
}

std::string derivative_line(const ModReport& r) {
  std::string text = fmt::format(
      "derivative   by the score at {} places, to captured tensors at {}: compared with "
      "differences",
      r.derivatives, r.captured_derivatives);
  if (r.near_branches) text += fmt::format("; {} places beside a branch left out", r.near_branches);
  if (r.not_comparable) text += fmt::format("; at {} fp32 overflows", r.not_comparable);
  return text + '\n';
}

std::string jump_lines(const ModReport& r) {
  if (r.jumps.empty()) return "continuous   no jump was found for scores of -32 to 32\n";
  std::string text = fmt::format("jumps        {} found, where rounding decides:\n", r.jumps_found);
  for (const Jump& j : r.jumps)
    text += fmt::format("             by {:.3g} at score {:.9g}, {}\n", j.size, j.score, j.where);
  return text;
}

std::string range_lines(const ModReport& r) {
  std::string text =
      fmt::format("results      {:.3g} to {:.3g}, within {:.3g} for scores of -100 to 100", r.least,
                  r.greatest, r.greatest_of_small);
  if (r.greatest_of_small > 65504) text += ", beyond fp16";
  if (r.masked) text += fmt::format("; masks: {} results of -inf", r.masked);
  text += fmt::format("\nranges       {} boxes asked, {} answered by 'anything'\n", r.boxes,
                      r.unknown_boxes);
  return text;
}

}  // namespace

std::string to_text(const ModReport& r) {
  std::string text = fmt::format("score mod    {} attended pairs looked at\n", r.pairs);
  text += derivative_line(r) + jump_lines(r) + range_lines(r);
  if (r.reads_other_operator) text += "operators    it has one on plain numbers too\n";
  for (const Determination& d : r.determined)
    text += fmt::format(
        "{:<12} determines the output only to {:.1g} of its size (median), {:.1g} at worst: {}; "
        "the mod amplifies rounding by {:.3g}\n",
        d.dtype, d.median, d.largest, d.worst, d.amplification);
  return text + faults(r.wrong);
}

std::string to_text(const MaskReport& r) {
  std::string text =
      fmt::format("mask         {} pairs looked at, {:.3g} % attended; {} of {} rows empty\n",
                  r.pairs, 100 * r.attended, r.empty_rows, r.rows);
  text += fmt::format("ranges       {} boxes asked, {} undecided\n", r.boxes, r.undecided_boxes);
  for (const BlockCost& c : r.costs)
    text += fmt::format(
        "block mask   {:>7} tokens: {} questions, {} of {} blocks partial, {} pairs looked at "
        "({:.3g} %)\n",
        c.tokens, c.questions, c.partial_blocks, c.blocks, c.scanned, 100 * c.scanned_share);
  if (!r.costs.empty())
    text +=
        r.intervals
            ? "intervals    decide every block off its boundary\n"
            : fmt::format("intervals    do not decide it: {:.3g} % of the pairs are looked at\n",
                          100 * r.costs.back().scanned_share);
  return text + faults(r.wrong);
}

nlohmann::json to_json(const ModReport& r) {
  nlohmann::json jumps = nlohmann::json::array(), determined = nlohmann::json::array();
  for (const Jump& j : r.jumps)
    jumps.push_back({{"score", j.score}, {"size", number(j.size)}, {"where", j.where}});
  for (const Determination& d : r.determined)
    determined.push_back({{"dtype", d.dtype},
                          {"median", number(d.median)},
                          {"largest", number(d.largest)},
                          {"worst", d.worst},
                          {"amplification", number(d.amplification)}});
  return {{"pairs", r.pairs},
          {"derivatives", r.derivatives},
          {"captured_derivatives", r.captured_derivatives},
          {"near_branches", r.near_branches},
          {"not_comparable", r.not_comparable},
          {"jumps", jumps},
          {"jumps_found", r.jumps_found},
          {"least", number(r.least)},
          {"greatest", number(r.greatest)},
          {"greatest_of_small_scores", number(r.greatest_of_small)},
          {"masked", r.masked},
          {"boxes", r.boxes},
          {"unknown_boxes", r.unknown_boxes},
          {"determined", determined},
          {"wrong", r.wrong}};
}

nlohmann::json to_json(const MaskReport& r) {
  nlohmann::json costs = nlohmann::json::array();
  for (const BlockCost& c : r.costs)
    costs.push_back({{"tokens", c.tokens},
                     {"interval_questions", c.questions},
                     {"partial_blocks", c.partial_blocks},
                     {"blocks", c.blocks},
                     {"scanned_pairs", c.scanned},
                     {"scanned_share", c.scanned_share}});
  return {{"pairs", r.pairs},     {"attended", r.attended},
          {"rows", r.rows},       {"empty_rows", r.empty_rows},
          {"boxes", r.boxes},     {"undecided_boxes", r.undecided_boxes},
          {"block_costs", costs}, {"intervals_decide", r.intervals},
          {"wrong", r.wrong}};
}

}  // namespace attn::fuzz
