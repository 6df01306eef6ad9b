#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <stdexcept>
#include <string>

/// What a test asks of a refusal.
namespace attn {

/// The message of std::invalid_argument; empty if nothing was thrown.
template <class F>
std::string refusal(F f) {
  try {
    f();
    return {};
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}
inline void expect_names(const std::string& message, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
}

}  // namespace attn
