#pragma once

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
  const Case& c;
  const PassInputs& in;
  const RunOptions& options;

  Outputs run(const Case& other, const PassInputs& on, Workspace workspace = {}) const {
    return run_on(other, on, options, workspace);
  }
};

struct Relation {
  std::string_view name;
  std::string_view says;
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
  Outcome outcome = Outcome::pass;
  std::string reason;
};
/// `fitted`: what `relation.fitted` gave.
RelationVerdict run_relation(const Relation& relation, const Case& fitted,
                             const RunOptions& options = {});
/// What is wrong, and the line that runs it again.
std::string report(const Relation& relation, const Case& fitted, const RelationVerdict& verdict);

/// What came of one random case after another, each with the next relation.
struct RelationsResult {
  std::uint64_t held = 0;
  std::string failure;  ///< the report of the first relation that is broken; it is the last
};
/// `cases`: to draw; those that a relation cannot be fitted to, or are refused, do not count.
RelationsResult run_relations(const Fixed& fixed, std::uint64_t seed, std::uint64_t cases,
                              const RunOptions& options = {});

/// The two kinds, each in a file of its own.
std::span<const Relation> bitwise_relations();
std::span<const Relation> bounded_relations();

/// For their files: the mod and the mask become plain where they use what they must not.
void forbid(Case& c, std::initializer_list<Op> ops);
/// Every `axis` index moved on by `by`, the last ones to the front.
Tensor<double, 4> rotated(const Tensor<double, 4>& x, int axis, std::int64_t by);
/// Rows appended by copies of the first one.
Tensor<double, 4> with_rows(const Tensor<double, 4>& x, std::int64_t rows);

}  // namespace attn::fuzz
