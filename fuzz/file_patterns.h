#pragma once

#include <string>

#include "fuzz/file_verdict.h"

namespace attn::fuzz {

/// Which known faults would give these outputs: the problem is posed again with one thing wrong
/// (the mask a diagonal off, the KV head taken modulo, the scale of another head size, ...), and
/// what fits every output then is named. Where none fits, or the problem is too large to try: where
/// the wrong elements lie, or the ratio they have to what is right. Empty if nothing is seen.
/// `given`: what a backward pass was given.
std::string looks_like(const FileProblem& p, const JudgedOutputs& outputs,
                       const StoredForwardResult& given, Rounds rounds);

}  // namespace attn::fuzz
