// Any bytes as the line of a case: what is read is written as a line that gives the same case, and
// its tables are made or refused.
#include <optional>
#include <string>

#include "fuzz/case.h"
#include "fuzz/fuzzers/fuzzer.h"

namespace attn::fuzz {
namespace {

/// Whether the tables of a case are small, so that they are made for each input.
bool has_small_tables(const Case& c) {
  constexpr double most = 4096;
  double entries = 0;
  for (const TableSpec& spec : c.tables) {
    double of_one = 1;
    for (const std::int64_t extent : extents_of(spec, c.sizes()))
      of_one *= static_cast<double>(extent);
    entries += of_one;
  }
  return entries <= most;
}

void run(std::string_view bytes) {
  std::optional<Case> c;
  if (!accepts([&] { c = parse_case(bytes); })) return;
  const std::string line = to_text(*c);
  std::optional<Case> again;
  require(accepts([&] { again = parse_case(line); }), "its own line is refused: " + line);
  require(to_text(*again) == line, "two lines: " + line + " and " + to_text(*again));
  require(same_tree(c->mod, again->mod) && same_tree(c->mask, again->mask),
          "other expressions are read from " + line);
  require(c->scale == again->scale && c->dropout == again->dropout && c->seed == again->seed,
          "other numbers are read from " + line);
  accepts([&] {
    if (has_small_tables(*c)) TableStore(c->tables, c->sizes(), c->seed);
  });
}

}  // namespace
}  // namespace attn::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attn::fuzz::run(attn::fuzz::text_of(data, size));
  return 0;
}
