#pragma once

#include <string>
#include <vector>

#include "fuzz/campaign.h"

/// A user's own cases: a folder with one file a case, `*.case`. A line that begins with # is a
/// remark, one other line is the case.
namespace attn::fuzz {

/// One case of the folder, and the file that it stands in.
struct UserCase {
  std::string file;  ///< its path
  Case value;        ///< as it was parsed
};

/// Those in the folder, by name; the folder is made if it is not there.
/// @throws std::invalid_argument naming the file and the line that is no case, or the folder that
///     cannot be read or made.
std::vector<UserCase> read_user_corpus(const std::string& folder);

/// Adds a failure under a name that its shrunk case decides, so that none is there twice; returns
/// the file.
/// @throws std::invalid_argument if it cannot be written.
std::string add_to_user_corpus(const std::string& folder, const Failure& failure);

}  // namespace attn::fuzz
