#pragma once

#include <algorithm>
#include <cstdint>

#include "masks/registry.h"

/// ATTN_MASK(name, line, formula, header, expression, parameters, C++ that builds it...): an entry
/// of the registry whose code is shown as it runs. In the code `a` holds the arguments.
#define ATTN_MASK(name, line, formula, header, expression, parameters, ...)       \
  MaskEntry {                                                                     \
    {name, line, formula, header, display(#__VA_ARGS__), expression, parameters}, \
        []([[maybe_unused]] Arguments& a) -> AnyMask { return __VA_ARGS__; }      \
  }

namespace attn::detail {

using Entries = Captured<1, std::int32_t>;
using Flags = Captured<1, bool>;

/// Tables of one entry a position: [length], entry n is `of(n)`.
template <class Of>
Entries entries(Arguments& a, const char* name, std::int64_t length, const Of& of) {
  return a.table<std::int32_t, 1>(name, {length}, [&](const auto& at) { return of(at[0]); });
}
template <class Of>
Flags flags(Arguments& a, const char* name, std::int64_t length, const Of& of) {
  return a.table<bool, 1>(name, {length}, [&](const auto& at) { return of(at[0]); });
}
inline std::int64_t longer(const Arguments& a) { return std::max(a.sizes.sq, a.sizes.skv); }

/// The example of packed documents: four of them, of about equal length.
inline constexpr int example_documents = 4;
inline std::int64_t document_at(std::int64_t position, std::int64_t length) {
  return position * example_documents / std::max<std::int64_t>(length, 1);
}
/// The first position of a document, which is one past the last of the one before.
inline std::int64_t document_start(std::int64_t document, std::int64_t length) {
  return (document * length + example_documents - 1) / example_documents;
}

}  // namespace attn::detail
