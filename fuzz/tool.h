#pragma once

namespace attn::fuzz {

/// The whole tool `attnproof`: runs the command that the arguments name and returns its exit
/// status, 0 clean, 1 a discrepancy was found, 2 bad usage, 3 it could not do what was asked.
/// Prints; what went wrong goes to the standard error as one line.
int tool_main(int argc, char** argv);

}  // namespace attn::fuzz
