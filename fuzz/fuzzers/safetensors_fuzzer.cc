// Any bytes as a safetensors file: what is read lies within the bytes and is written as a file that
// gives the same, and `attnproof check` takes it as a problem or refuses it.
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fuzz/file_problem.h"
#include "fuzz/fuzzers/fuzzer.h"
#include "fuzz/safetensors.h"

namespace attn::fuzz {
namespace {

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

void check_written(const Safetensors& file) {
  std::vector<NewArray> arrays;
  for (const StoredArray& a : file.arrays())
    arrays.push_back({a.name, a.dtype, a.shape, {a.bytes.begin(), a.bytes.end()}});
  const Safetensors again = Safetensors::parse(safetensors_bytes(arrays, file.metadata()), "copy");
  require(again.metadata() == file.metadata() && again.arrays().size() == file.arrays().size(),
          "a copy has other metadata or another number of tensors");
  for (const StoredArray& a : file.arrays()) {
    const StoredArray* copy = again.find(a.name);
    require(copy && copy->dtype == a.dtype && copy->shape == a.shape &&
                same_bytes(copy->bytes, a.bytes),
            "a copy has another tensor '" + a.name + "'");
  }
}

void run(std::span<const std::byte> bytes) {
  std::optional<Safetensors> file;
  if (!accepts([&] { file = Safetensors::parse({bytes.begin(), bytes.end()}, "input"); })) return;
  check_written(*file);
  accepts([&] { read_problem(*file, FileDescription{}); });
  accepts([&] { read_problem(*file, described_by(*file)); });
}

}  // namespace
}  // namespace attn::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attn::fuzz::run(std::as_bytes(std::span(data, size)));
  return 0;
}
