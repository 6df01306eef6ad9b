#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Files of tensors that other programs read and write
/// (https://github.com/huggingface/safetensors): 8 bytes, the length of the header, little endian;
/// the header, JSON; the data, without a gap.
namespace attn::fuzz {

/// A tensor in a file, row-major.
struct StoredArray {
  std::string name;                  ///< of the tensor, UTF-8
  std::string dtype;                 ///< "F32", "F16", "BF16", "I32", "BOOL", ...
  std::vector<std::int64_t> shape;   ///< no axis: a scalar
  std::span<const std::byte> bytes;  ///< not aligned

  std::int64_t size() const;  ///< elements
};

/// One file in memory. Copies share it.
class Safetensors {
 public:
  /// The longest header that is read, in bytes.
  static constexpr std::uint64_t max_header = std::uint64_t{16} << 20;
  /// The most axes of a tensor.
  static constexpr int max_rank = 8;

  /// Checks everything that the header says against what is there; `what` names the bytes in
  /// messages. Sizes that the header tells are never allocated.
  /// @throws std::invalid_argument with one line that names the fault: a length, header or offset
  ///     that does not fit, JSON of another form, an unknown dtype, a gap or an overlap, a NUL
  ///     byte.
  static Safetensors parse(std::vector<std::byte> bytes, const std::string& what);
  /// @throws std::invalid_argument also if `path` is no regular file or cannot be read.
  static Safetensors read(const std::string& path);

  /// All of them, ordered by name.
  const std::vector<StoredArray>& arrays() const { return arrays_; }
  /// Null if there is none of that name.
  const StoredArray* find(std::string_view name) const;
  /// The `__metadata__` of the header; empty if it has none.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// @throws std::invalid_argument if there is none of that key.
  const std::string& metadata(const std::string& key) const;
  const std::string& what() const { return what_; }  ///< names the file in messages

 private:
  std::string what_;
  std::shared_ptr<const std::vector<std::byte>> bytes_;
  std::vector<StoredArray> arrays_;
  std::map<std::string, std::string> metadata_;
};

/// A tensor to be written.
struct NewArray {
  std::string name, dtype;          ///< "q", "BF16"
  std::vector<std::int64_t> shape;  ///< row-major
  std::vector<std::byte> bytes;     ///< little endian
};

/// The bytes of a file. @throws std::invalid_argument if the bytes of a tensor are not as many as
/// its shape and dtype need.
std::vector<std::byte> safetensors_bytes(const std::vector<NewArray>& arrays,
                                         const std::map<std::string, std::string>& metadata);
/// @throws std::invalid_argument also if the file cannot be written.
void write_safetensors(const std::string& path, const std::vector<NewArray>& arrays,
                       const std::map<std::string, std::string>& metadata);

}  // namespace attn::fuzz
