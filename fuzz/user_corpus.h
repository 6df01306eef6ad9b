#pragma once

#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/relations.h"

/// A user's own cases: a folder with one file a case, `*.case`. A line that begins with # is a
/// remark, one other line is the case, followed by ` --relation NAME` if it is held to a relation
/// (fuzz/relations.h) and not to the oracle.
namespace attn::fuzz {

/// One case of the folder, and the file that it stands in.
struct UserCase {
  std::string file;                    ///< its path
  Case value;                          ///< as it was parsed
  const Relation* relation = nullptr;  ///< null: held to the oracle
};

/// Those in the folder, by name; the folder is made if it is not there.
/// @throws std::invalid_argument naming the file and the line that is no case or names no relation,
///     or the folder that cannot be read or made.
std::vector<UserCase> read_user_corpus(const std::string& folder);

/// Adds a failure under a name that its shrunk case decides, so that none is there twice; returns
/// the file.
/// @throws std::invalid_argument if it cannot be written.
std::string add_to_user_corpus(const std::string& folder, const Failure& failure);
/// The same for a relation that is broken: its name stands behind the case.
std::string add_to_user_corpus(const std::string& folder, const RelationFailure& failure);

}  // namespace attn::fuzz
