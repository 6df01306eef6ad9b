// make_seeds FOLDER: what the fuzzers start from, a folder for each of them, a file an input: the
// cases of the corpus, their expressions, and small safetensors files.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "fuzz/case.h"
#include "fuzz/corpus.h"
#include "fuzz/safetensors.h"

namespace attn::fuzz {
namespace {

class Folder {
 public:
  explicit Folder(const std::filesystem::path& path) : path_(path) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  void add(const std::string& input) {
    std::ofstream(path_ / std::to_string(count_++), std::ios::binary) << input;
  }

 private:
  std::filesystem::path path_;
  int count_ = 0;
};

/// As expression_fuzzer.cc takes it.
std::string expression_input(const Case& c, bool is_mask) {
  std::string line = is_mask ? "mask" : "mod";
  for (const TableDeclaration& t : c.declarations())
    line += " " + t.name + "/" + std::to_string(t.rank) + name_of(t.type)[0];
  return line + "\n" + to_text(is_mask ? c.mask : c.mod);
}

NewArray zeros(const char* name, const char* dtype, std::vector<std::int64_t> shape, int width) {
  std::int64_t bytes = width;
  for (const std::int64_t extent : shape) bytes *= extent;
  return {name, dtype, std::move(shape), std::vector<std::byte>(static_cast<std::size_t>(bytes))};
}

std::string file_of(const std::vector<NewArray>& arrays,
                    const std::map<std::string, std::string>& metadata) {
  const std::vector<std::byte> bytes = safetensors_bytes(arrays, metadata);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void make_files(Folder folder) {
  std::vector<NewArray> arrays{zeros("q", "BF16", {1, 2, 3, 2}, 2),
                               zeros("k", "BF16", {1, 1, 2, 2}, 2),
                               zeros("v", "BF16", {1, 1, 2, 1}, 2)};
  folder.add(file_of({}, {}));
  folder.add(file_of(arrays, {}));
  arrays.push_back(zeros("slope", "F32", {2}, 4));
  arrays.push_back(zeros("doc", "I32", {3}, 4));
  arrays.push_back(zeros("keep", "BOOL", {3, 2}, 1));
  folder.add(file_of(arrays, {{"attnproof", "1"},
                              {"mod", "score + slope[h]"},
                              {"mask", "doc[q] == 0 && !keep[q, kv]"},
                              {"scale", "0.5"}}));
  arrays.push_back(zeros("d_o", "BF16", {1, 2, 3, 1}, 2));
  arrays.push_back(zeros("o", "BF16", {1, 2, 3, 1}, 2));
  arrays.push_back(zeros("lse", "F32", {1, 2, 3}, 4));
  arrays.push_back(zeros("d_lse", "F32", {1, 2, 3}, 4));
  arrays.push_back(zeros("sink", "F32", {2}, 4));
  folder.add(
      file_of(arrays, {{"attnproof", "1"}, {"mod", "alibi"}, {"mask", "causal"}, {"scale", "1"}}));
}

void make_seeds(const std::filesystem::path& path) {
  Folder cases(path / "case_text"), expressions(path / "expression"), run(path / "case");
  int n = 0;
  for (const CorpusEntry& entry : corpus()) {
    if (entry.line.empty()) continue;
    cases.add(entry.line);
    if (n++ % 20 == 0) run.add(entry.line);  // these take longer
    const Case c = parse_case(entry.line);
    expressions.add(expression_input(c, false));
    expressions.add(expression_input(c, true));
  }
  make_files(Folder(path / "safetensors"));
}

}  // namespace
}  // namespace attn::fuzz

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  attn::fuzz::make_seeds(argv[1]);
}
