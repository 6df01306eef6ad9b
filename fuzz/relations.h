#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/generate.h"
#include "fuzz/run.h"

/// Relations between runs of a kernel, which need no reference: what two runs, or two outputs of
/// one, must have to do with each other whatever the right answer is. They cost no pass over the
/// scores in fp64, so that they check sizes that the oracle cannot reach. (T. Chen, S. Cheung and
/// S. Yiu, Metamorphic testing, 1998.)
namespace attn::fuzz {

/// One run of a relation: the case, its inputs, and how its kernel is run.
struct RelationRun {
  const Case& c;              ///< fitted to the relation
  const PassInputs& in;       ///< its own
  const RunOptions& options;  ///< the engine, and a planted fault

  /// Runs the kernel of `other`, a case near `c`, on `on`.
  Outputs run(const Case& other, const PassInputs& on, Workspace workspace = {}) const {
    return run_on(other, on, options, workspace);
  }
};

/// What two runs, or two outputs of one, must have to do with each other, and how that is asked.
struct Relation {
  std::string_view name;        ///< as `replay --relation` takes it
  std::string_view says;        ///< in a sentence
  std::string_view may_differ;  ///< "not a bit", or what bounds the difference
  /// The nearest case to which it applies; nothing: none of that implementation.
  std::optional<Case> (*fitted)(Case);
  /// What is wrong; empty if the relation holds.
  std::string (*broken)(const RelationRun&);
};

/// All of them.
std::span<const Relation> relations();
/// @throws std::invalid_argument if there is none of that name; the message lists them.
const Relation& relation_named(std::string_view name);

/// What came of it: `pass`, `discrepancy`, `checker_fault` or `refused`, with the reason.
struct RelationVerdict {
  Outcome outcome = Outcome::pass;  ///< one of these four
  std::string reason;               ///< empty where it holds
};
/// `fitted`: what `relation.fitted` gave.
RelationVerdict run_relation(const Relation& relation, const Case& fitted,
                             const RunOptions& options = {});
/// What is wrong, and the line that runs it again.
std::string report(const Relation& relation, const Case& fitted, const RelationVerdict& verdict);

/// A relation that is broken.
struct RelationFailure {
  const Relation* relation = nullptr;  ///< one of `relations()`
  Case original, shrunk;               ///< as they were fitted
  RelationVerdict verdict;             ///< of the shrunk case
};
/// The simplest neighbour of neighbours to which the relation can be fitted and where it is still
/// broken. `drawn`: before it was fitted; `verdict`: its own. Stops looking after `most_seconds`.
RelationFailure shrunk_failure(const Relation& relation, const rc::Shrinkable<Case>& drawn,
                               const RelationVerdict& verdict, const RunOptions& options = {},
                               double most_seconds = 60);
/// The report of its shrunk case, and what that was shrunk from.
std::string report(const RelationFailure& failure);

/// What came of one random case after another, each with the next relation.
struct RelationsResult {
  std::uint64_t held = 0;                  ///< cases on which their relation held
  std::optional<RelationFailure> failure;  ///< the first; the run ends there
};
/// `cases`: to draw; those that a relation cannot be fitted to, or are refused, do not count.
RelationsResult run_relations(const Fixed& fixed, std::uint64_t seed, std::uint64_t cases,
                              const RunOptions& options = {});

/// The three kinds, each in a file of its own.
std::span<const Relation> bitwise_relations();
/// Those whose sides may differ by a bound (fuzz/relation_errors.h).
std::span<const Relation> bounded_relations();
/// Those of one backward pass, between its gradients and its inputs.
std::span<const Relation> gradient_relations();

/// For their files: the row of the table that a case is for, and whether it has a query row.
const Implementation& row_of(const Case& c);
/// False if no output has a row: an extent of Q is 0.
bool has_rows(const Case& c);
/// The mod and the mask become plain where they use what they must not.
void forbid(Case& c, std::initializer_list<Op> ops);
/// The score as it is, any mask, and neither sink, dropout nor dLSE; nothing where there is no row.
std::optional<Case> plain(Case c);
/// A tensor of these extents whose element at an index is that of x at `place(index)`.
template <class Place>
Tensor<double, 4> gathered(const Tensor<double, 4>& x, const std::array<std::int64_t, 4>& extents,
                           Place place) {
  Tensor<double, 4> y(extents);
  std::array<std::int64_t, 4> i;
  for (i[0] = 0; i[0] < extents[0]; ++i[0])
    for (i[1] = 0; i[1] < extents[1]; ++i[1])
      for (i[2] = 0; i[2] < extents[2]; ++i[2])
        for (i[3] = 0; i[3] < extents[3]; ++i[3]) {
          const std::array<std::int64_t, 4> from = place(i);
          y(i[0], i[1], i[2], i[3]) = x(from[0], from[1], from[2], from[3]);
        }
  return y;
}

}  // namespace attn::fuzz
