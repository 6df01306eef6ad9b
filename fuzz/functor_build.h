#pragma once

#include <string>
#include <vector>

namespace attn::fuzz {

/// A mod, a mask or both as C++ types of the user's.
struct TypeArguments {
  std::string mod_file, mod_type, mask_file, mask_type;  ///< a header, and a type in it: "my::Mod"
  std::vector<std::string> includes;  ///< folders for the includes of these files
  std::string cache;                  ///< empty: $XDG_CACHE_HOME/attnproof or ~/.cache/attnproof

  /// True if one of the four is given.
  bool any() const { return !(mod_file + mod_type + mask_file + mask_type).empty(); }
};

/// Compiles this tool with the types built in, by $CXX or c++, unless that has been done before:
/// the program is kept under a name made of the preprocessed source, the flags and the libraries.
/// Returns where it lies. What the compiler says goes to the standard error.
/// @throws std::invalid_argument if the arguments do not go together, a file is not there or does
///     not compile; std::runtime_error if no compiler, or none of attnproof's headers and libraries
///     are found.
std::string built_tool(const TypeArguments& types);

/// Becomes that program, with the same arguments. Returns only by an exception.
[[noreturn]] void become_built_tool(const TypeArguments& types, char** argv);

}  // namespace attn::fuzz
