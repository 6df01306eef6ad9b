#include <algorithm>
#include <cmath>

#include "fuzz/examination.h"
#include "fuzz/examined.h"

namespace attn::fuzz {
namespace {

class MaskExamination {
 public:
  MaskExamination(const Case& c, const FixedLengths& fixed) : c_(c), fixed_(fixed) {}

  MaskReport run() {
    std::int64_t attended = 0;
    for (const Sizes& sizes : examined_sizes(fixed_)) {
      const Examined x(c_, sizes), again(c_, sizes);
      attended += every_pair(x);
      purity(x, again);
      for (const Pair& at : pairs_of(sizes, 200, c_.seed)) box(x, at);
    }
    report_.attended =
        report_.pairs > 0 ? static_cast<double>(attended) / static_cast<double>(report_.pairs) : 0;
    overflow();
    if (faults_.lines.empty()) costs();
    report_.wrong = faults_.lines;
    return report_;
  }

 private:
  std::optional<bool> attends(const Examined& x, const Pair& at) {
    return faults_.tried("captured read", name_of(at, x.sizes),
                         [&] { return x.probe().attends(x.sizes, at); });
  }

  /// The number of attended pairs.
  std::int64_t every_pair(const Examined& x) {
    std::int64_t count = 0;
    Pair at;
    for (at.b = 0; at.b < x.sizes.b; ++at.b)
      for (at.h = 0; at.h < x.sizes.hq; ++at.h)
        for (at.q = 0; at.q < x.sizes.sq; ++at.q) {
          std::int64_t of_row = 0;
          for (at.kv = 0; at.kv < x.sizes.skv; ++at.kv) {
            const bool yes = attends(x, at).value_or(false);
            of_row += yes;
            compare(x, at, yes);
          }
          report_.pairs += x.sizes.skv;
          count += of_row;
          ++report_.rows;
          report_.empty_rows += of_row == 0;
        }
    return count;
  }

  void compare(const Examined& x, const Pair& at, bool yes) {
    faults_.tried("captured read", name_of(at, x.sizes), [&] {
      const auto plain = x.probe().plain_attends(at);
      if (x.probe().attends_rounded(x.sizes, at) != yes || plain.value_or(yes) != yes)
        faults_.add("number types differ",
                    fmt::format("{} as the reference calls it, {} {}, at {}", yes, !yes,
                                plain.value_or(yes) != yes ? "by its operator on plain numbers"
                                                           : "as the oracle does",
                                name_of(at, x.sizes)));
      return true;
    });
  }

  void purity(const Examined& x, const Examined& again) {
    std::vector<Pair> pairs = pairs_of(x.sizes, 200, c_.seed);
    const auto all = [&](const Examined& of) {
      std::vector<bool> answers;
      for (const Pair& at : pairs) answers.push_back(attends(of, at).value_or(false));
      return answers;
    };
    const std::vector<bool> first = all(x), second = all(x), copied = all(again);
    std::reverse(pairs.begin(), pairs.end());
    std::vector<bool> backwards = all(x);
    std::reverse(backwards.begin(), backwards.end());
    std::reverse(pairs.begin(), pairs.end());
    for (std::size_t n = 0; n < pairs.size(); ++n)
      if (first[n] != second[n] || first[n] != copied[n] || first[n] != backwards[n])
        faults_.add("not pure", fmt::format("{}, and {} when it is called again, at {}",
                                            bool(first[n]), !first[n], name_of(pairs[n], x.sizes)));
  }

  /// What the mask says of a box, against its pairs.
  void box(const Examined& x, const Pair& at) {
    const PairBox box = box_at(x.sizes, at, hash_of(c_.seed, at.q, at.kv));
    const auto said = faults_.tried("index arithmetic", name_of(box, x.sizes),
                                    [&] { return x.probe().attends_range(x.sizes, box); });
    if (!said) return;
    ++report_.boxes;
    report_.undecided_boxes += said->can_be_true && said->can_be_false;
    for (int q = box.first.q; q <= box.last.q; ++q)
      for (int kv = box.first.kv; kv <= box.last.kv; ++kv) {
        const Pair pair{at.b, at.h, q, kv};
        const bool yes = attends(x, pair).value_or(false);
        if (!(yes ? said->can_be_true : said->can_be_false))
          faults_.add("range unsound", fmt::format("{} for all of {}, but {} at {}",
                                                   yes ? "no" : "yes", name_of(box, x.sizes),
                                                   yes ? "yes" : "no", name_of(pair, x.sizes)));
      }
  }

  void overflow() {
    const Sizes sizes = largest_examined(c_, fixed_);
    const Examined x(c_, sizes);
    for (const Pair& at : pairs_of(sizes, 48, c_.seed))
      faults_.tried("index arithmetic", name_of(at, sizes), [&] {
        return x.probe().attends_range(sizes, {at, at}).can_be_true;
      });
  }

  /// Block masks of longer and longer problems, while they are cheap: a mask that intervals do not
  /// decide costs 16 times as much at each step.
  void costs() {
    constexpr double most_questions = 1 << 22, most_pairs = 1 << 26;
    report_.intervals = true;
    for (int length = 1 << 8; length <= 1 << 20; length *= 4) {
      const Sizes sizes = with_fixed({1, 1, 1, length, length, 0, 0}, fixed_);
      if (!tables_fit(c_, sizes)) break;
      const Examined x(c_, sizes);
      const auto built = faults_.tried("block mask", fmt::format("{} tokens", sizes.skv),
                                       [&] { return x.functors().blocks(sizes, {}).statistics(); });
      if (!built) return;
      BlockCost cost{
          sizes.skv, built->interval_questions, built->scanned_elements, built->partial_blocks, 0,
          0};
      cost.blocks = built->partial_blocks + built->full_blocks + built->empty_blocks;
      cost.scanned_share = static_cast<double>(cost.scanned) /
                           (static_cast<double>(sizes.sq) * sizes.skv * sizes.b * sizes.hq);
      report_.costs.push_back(cost);
      report_.intervals &= cost.scanned == 0;
      if (fixed_.sq + fixed_.skv > 0) break;
      if (16.0 * static_cast<double>(cost.scanned) > most_pairs ||
          16.0 * static_cast<double>(cost.questions) > most_questions)
        break;
    }
  }

  const Case& c_;
  const FixedLengths& fixed_;
  MaskReport report_;
  Faults faults_;
};

}  // namespace

MaskReport examine_mask(const Case& c, const FixedLengths& fixed) {
  return MaskExamination(c, fixed).run();
}

}  // namespace attn::fuzz
