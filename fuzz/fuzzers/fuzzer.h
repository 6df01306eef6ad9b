#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "fuzz/text.h"

/// Hostile input. Each `*_fuzzer.cc` is one body that takes any bytes, run by two drivers:
/// libFuzzer where clang has it, and plain_driver.cc everywhere. A body returns, or throws what is
/// a failure: libFuzzer ends on it with the input, the plain driver prints it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace attn::fuzz {

/// Something that no input may bring about.
struct FuzzerFailure : std::logic_error {
  using std::logic_error::logic_error;
};
/// @throws FuzzerFailure saying `what`, unless it holds
inline void require(bool holds, const std::string& what) {
  if (!holds) throw FuzzerFailure(what);
}

/// The bytes of an input as they are: NULs and all.
inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// What a refusal must be: something to read that no terminal acts on, whatever was refused.
inline void require_clear(const std::invalid_argument& refusal) {
  constexpr std::size_t longest = 2000;
  const std::string_view message = refusal.what();
  require(!message.empty() && message.size() <= longest,
          "a message of " + std::to_string(message.size()) + " bytes");
  for (std::size_t at = 0; at <= message.size();) {
    const std::size_t end = std::min(message.find('\n', at), message.size());
    require(first_not_text(message.substr(at, end - at)) == std::string_view::npos,
            "a message that is no text: " + std::string(message));
    at = end + 1;
  }
}

/// Runs `f`; false if it refuses.
template <class F>
bool accepts(F f) {
  try {
    f();
    return true;
  } catch (const std::invalid_argument& refusal) {
    require_clear(refusal);
    return false;
  }
}

}  // namespace attn::fuzz
