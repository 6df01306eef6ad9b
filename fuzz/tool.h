#pragma once

#include <span>
#include <string>

#include "optimized/implementations.h"

namespace attn::fuzz {

/// The whole tool `attnproof`: runs the command that the arguments name and returns its exit
/// status, 0 clean, 1 a discrepancy was found, 2 bad usage, 3 it could not do what was asked.
/// Prints; what went wrong goes to the standard error as one line.
/// @param name of the program, as its messages and replay lines call it
/// @param rows of the user's, to add to the table of implementations (`add_implementation`)
int tool_main(int argc, char** argv, const std::string& name = "attnproof",
              std::span<const Implementation> rows = {});

/// The name of the program that is running: what a replay line begins with.
const std::string& tool_name();

}  // namespace attn::fuzz
