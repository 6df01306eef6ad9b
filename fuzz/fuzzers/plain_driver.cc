// X_fuzzer_plain SEEDS DICTIONARY RUNS: the body of a fuzzer without libFuzzer. Runs every file of
// the folder, then RUNS inputs that RapidCheck draws from them: pieces cut, copied, exchanged,
// words of the dictionary put in. The same RUNS are the same inputs.
#include <rapidcheck.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/draw.h"
#include "fuzz/fuzzers/fuzzer.h"
#include "fuzz/random.h"

namespace attn::fuzz {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> seeds_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const auto& path : paths) seeds.push_back(contents(path));
  return seeds;
}

/// The words of a dictionary of libFuzzer: one a line, in quotes, \xHH a byte.
std::vector<std::string> words_in(const std::string& path) {
  std::vector<std::string> words;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.size() < 2 || line[0] != '"') continue;
    std::string word;
    for (std::size_t at = 1; at + 1 < line.size(); ++at) {
      if (line[at] == '\\' && line[at + 1] == 'x') {
        word += static_cast<char>(std::stoi(line.substr(at + 2, 2), nullptr, 16));
        at += 3;
      } else {
        word += line[at] == '\\' ? line[++at] : line[at];
      }
    }
    words.push_back(word);
  }
  return words;
}

/// A piece of a text: where it begins and how long it is.
std::pair<std::size_t, std::size_t> piece_of(const std::string& text) {
  const int size = static_cast<int>(text.size()), at = drawn(0, size);
  return {at, drawn(0, std::min(size - at, chance(80) ? 8 : size))};
}

std::string repeated(const std::string& piece, int times) {
  std::string all;
  for (; times > 0; --times) all += piece;
  return all;
}

void change(std::string& text, const std::vector<std::string>& seeds,
            const std::vector<std::string>& words) {
  const auto any = [](const std::vector<std::string>& list) -> const std::string& {
    return list[drawn(0, static_cast<int>(list.size()) - 1)];
  };
  const auto [at, length] = piece_of(text);
  switch (drawn(0, 5)) {
    case 0:
      text.erase(at, length);
      break;
    case 1:
      text.insert(at, any(words));
      break;
    case 2:
      text.replace(at, length, any(words));
      break;
    case 3:  // the piece again, many times now and then
      text.insert(at, repeated(text.substr(at, length), chance(5) ? 300 : 1));
      break;
    case 4: {
      const std::string& other = any(seeds);
      const auto [from, count] = piece_of(other);
      text.replace(at, length, other, from, count);
      break;
    }
    default:
      if (at < text.size()) text[at] = static_cast<char>(drawn(0, 255));
  }
}

rc::Gen<std::string> changed(const std::vector<std::string>& seeds,
                             const std::vector<std::string>& words) {
  return rc::gen::exec([&] {
    std::string text = seeds[drawn(0, static_cast<int>(seeds.size()) - 1)];
    for (int n = drawn(1, 5); n > 0; --n) change(text, seeds, words);
    return text;
  });
}

void run(const std::string& input) {
  try {
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  } catch (const std::exception& failure) {
    std::printf("FAILED: %s\ninput: ", failure.what());
    for (const unsigned char c : input)
      std::printf(c >= ' ' && c <= '~' && c != '\\' ? "%c" : "\\x%02x", c);
    std::printf("\n");
    std::exit(1);
  }
}

}  // namespace
}  // namespace attn::fuzz

int main(int argc, char** argv) {
  using namespace attn::fuzz;
  if (argc != 4) return 2;
  const std::vector<std::string> seeds = seeds_in(argv[1]), words = words_in(argv[2]);
  if (seeds.empty() || words.empty()) return 2;
  for (const std::string& seed : seeds) run(seed);
  const rc::Gen<std::string> generator = changed(seeds, words);
  const int runs = std::atoi(argv[3]);
  for (int i = 0; i < runs; ++i) run(generator(rc::Random(hash_of(1, i)), 100).value());
  std::printf("%zu seeds and %d inputs drawn from them: none fails\n", seeds.size(), runs);
}
