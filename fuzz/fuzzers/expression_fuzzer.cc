// Any bytes as a mod or a mask over declared tables: what is read prints as a text that gives the
// same tree, and compiles or is refused.
//
//     mask slope/1r doc/1i        "mask" or not; tables as name/RANK TYPE, of r, i and c
//     q >= kv && doc[q] == 3      the expression
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "fuzz/fuzzers/fuzzer.h"
#include "mods/lang/compile.h"
#include "mods/lang/parse.h"

namespace attn::fuzz {
namespace {

struct Input {
  bool is_mask = false;
  std::vector<TableDeclaration> tables;
  std::string text;
};

TableDeclaration declaration_in(const std::string& word, std::size_t slash) {
  const auto after = [&](std::size_t n) { return slash + n < word.size() ? word[slash + n] : ' '; };
  return {word.substr(0, slash), after(1) - '0',
          after(2) == 'i'   ? ValueType::index
          : after(2) == 'c' ? ValueType::condition
                            : ValueType::real};
}

Input input_in(std::string_view bytes) {
  Input input;
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  std::istringstream words{std::string(bytes.substr(0, end))};
  for (std::string word; words >> word;)
    if (const std::size_t slash = word.find('/'); slash != std::string::npos)
      input.tables.push_back(declaration_in(word, slash));
    else
      input.is_mask |= word == "mask";
  input.text = bytes.substr(std::min(end + 1, bytes.size()));
  return input;
}

Expression parse(const Input& input, const std::string& text) {
  return input.is_mask ? parse_mask(text, input.tables) : parse_mod(text, input.tables);
}

/// The declared tables, one entry each.
Tables bound(const Input& input) {
  static const double memory = 0;
  Tables tables;
  for (const TableDeclaration& t : input.tables)
    if (!tables.find(t.name)) tables.add({t.name, t.type, t.rank, &memory, {1, 1, 1, 1}, {}});
  return tables;
}

void run(const Input& input) {
  std::optional<Expression> tree;
  if (!accepts([&] { tree = parse(input, input.text); })) return;
  const std::string text = to_text(*tree);
  Expression again;
  require(accepts([&] { again = parse(input, text); }), "its own text is refused: " + text);
  require(same_tree(*tree, again), "another tree is read from " + text);
  require(to_text(again) == text, "two texts: " + text + " and " + to_text(again));
  accepts([&] {
    if (input.is_mask)
      (void)compile_mask(again, bound(input));
    else
      (void)compile_mod(again, bound(input));
  });
}

}  // namespace
}  // namespace attn::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attn::fuzz::run(attn::fuzz::input_in(attn::fuzz::text_of(data, size)));
  return 0;
}
