#include "fuzz/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "fuzz/text.h"

namespace attn::fuzz {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t prefix = 8;  // the length of the header

struct ElementType {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr ElementType element_types[] = {{"BOOL", 1},    {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1},
                                         {"F8_E4M3", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
                                         {"BF16", 2},    {"I32", 4}, {"U32", 4}, {"F32", 4},
                                         {"F64", 8},     {"I64", 8}, {"U64", 8}};

const ElementType* element_type(std::string_view name) {
  const auto known = std::find_if(std::begin(element_types), std::end(element_types),
                                  [&](const ElementType& t) { return t.name == name; });
  return known == std::end(element_types) ? nullptr : known;
}

/// Whether the product is below 2^63, and what it is.
bool multiply(std::uint64_t& x, std::uint64_t by) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  if (by != 0 && x > most / by) return false;
  x *= by;
  return true;
}

class HeaderReader {
 public:
  HeaderReader(const std::vector<std::byte>& bytes, const std::string& what)
      : bytes_(bytes), what_(what) {}

  void read(std::vector<StoredArray>& arrays, std::map<std::string, std::string>& metadata) {
    find_header();
    const Json header = parse_header();
    for (const auto& [name, entry] : header.items())
      if (name == "__metadata__")
        read_metadata(entry, metadata);
      else
        arrays.push_back(read_array(name, entry));
    check_places(arrays);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw std::invalid_argument(fmt::format("{}: {}", what_, why));
  }

  void find_header() {
    if (bytes_.size() < prefix)
      refuse(
          fmt::format("{} bytes, expected a safetensors file, which begins with 8 bytes that "
                      "tell the length of its header",
                      bytes_.size()));
    for (std::uint64_t i = prefix; i-- > 0;)
      length_ = length_ << 8 | std::to_integer<std::uint64_t>(bytes_[i]);
    if (length_ > Safetensors::max_header)
      refuse(fmt::format("a header of {} bytes, expected at most {}", length_,
                         Safetensors::max_header));
    if (length_ > bytes_.size() - prefix)
      refuse(
          fmt::format("a header of {} bytes, but only {} follow: the file is cut short or no "
                      "safetensors file",
                      length_, bytes_.size() - prefix));
  }

  /// Refuses what no header holds while it is read, so that little is kept of it: deep nesting,
  /// long lists, a name that comes twice.
  Json parse_header() const {
    const char* first = reinterpret_cast<const char*>(bytes_.data()) + prefix;
    if (std::memchr(first, 0, length_)) refuse("a NUL byte in the header");
    std::set<std::string> names[2];  // of tensors, and of what one of them has
    int numbers = 0;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
      using Event = Json::parse_event_t;
      const bool list = event == Event::array_start;
      if (depth > (list ? 2 : 1) && (list || event == Event::object_start))
        refuse("the header is nested too deeply");
      if (list && depth < 2) refuse("the header is no JSON object of objects");
      if (list) numbers = 0;
      if (event == Event::value && depth == 3 && ++numbers > Safetensors::max_rank)
        refuse(fmt::format("a list of more than {} numbers in the header", Safetensors::max_rank));
      if (event == Event::object_start && depth == 1) names[1].clear();
      if (event == Event::key && depth <= 2 &&
          !names[depth - 1].insert(parsed.get<std::string>()).second)
        refuse(fmt::format("two {} {}", depth == 1 ? "tensors" : "entries",
                           shown(parsed.get<std::string>())));
      return true;
    };
    try {
      Json header = Json::parse(first, first + length_, watch);
      if (!header.is_object()) refuse("the header is no JSON object");
      return header;
    } catch (const Json::exception& error) {
      refuse(fmt::format("the header is no JSON: {}", reason_in(error.what())));
    }
  }
  /// Without the number of the library's error, on one line.
  static std::string reason_in(std::string_view text) {
    const std::size_t end = text.find("] ");
    std::string reason(end == std::string_view::npos ? text : text.substr(end + 2));
    for (char& c : reason)
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
    return reason.substr(0, 200);
  }

  void read_metadata(const Json& entry, std::map<std::string, std::string>& metadata) const {
    if (!entry.is_object()) refuse("__metadata__ is no object of strings");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) refuse(fmt::format("__metadata__: {} is no string", shown(key)));
      metadata[key] = value.get<std::string>();
    }
  }

  StoredArray read_array(const std::string& name, const Json& entry) const {
    if (name.empty() || first_not_text(name) != std::string_view::npos)
      refuse(
          fmt::format("a tensor of name {}, expected one without control characters", shown(name)));
    const auto wrong = [&](const std::string& why) {
      refuse(fmt::format("tensor {}: {}", shown(name), why));
    };
    if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") ||
        !entry.contains("shape") || !entry.contains("data_offsets"))
      wrong("expected dtype, shape and data_offsets, and nothing else");
    if (!entry["dtype"].is_string()) wrong("dtype is no string");
    StoredArray array{name, entry["dtype"].get<std::string>(), {}, {}};
    const ElementType* type = element_type(array.dtype);
    if (!type) wrong(fmt::format("dtype {} is not known", shown(array.dtype)));
    std::uint64_t needed = type->bytes, span = type->bytes;  // span: an extent of 0 counts as 1
    for (const std::uint64_t extent : whole_numbers(name, entry["shape"], "shape")) {
      array.shape.push_back(static_cast<std::int64_t>(extent));
      if (!multiply(span, std::max<std::uint64_t>(1, extent)))
        wrong("the shape has more elements than any file");
      needed *= extent;
    }
    const std::vector<std::uint64_t> offsets =
        whole_numbers(name, entry["data_offsets"], "data_offsets");
    const std::uint64_t there = bytes_.size() - prefix - length_;
    if (offsets.size() != 2 || offsets[0] > offsets[1])
      wrong("data_offsets, expected a first and a last one that is not before it");
    if (offsets[1] > there)
      wrong(
          fmt::format("ends at byte {} of the data, but only {} are there: the file is cut "
                      "short or lies",
                      offsets[1], there));
    if (offsets[1] - offsets[0] != needed)
      wrong(fmt::format("{} bytes, but its shape and dtype need {}", offsets[1] - offsets[0],
                        needed));
    array.bytes = std::span(bytes_).subspan(prefix + length_ + offsets[0], needed);
    return array;
  }

  std::vector<std::uint64_t> whole_numbers(const std::string& name, const Json& list,
                                           const char* part) const {
    const auto wrong = [&] {
      refuse(fmt::format("tensor {}: {}, expected a list of whole numbers below 2^63", shown(name),
                         part));
    };
    if (!list.is_array()) wrong();
    std::vector<std::uint64_t> numbers;
    for (const Json& x : list) {
      if (!x.is_number_unsigned() || x.get<std::uint64_t>() >> 63) wrong();
      numbers.push_back(x.get<std::uint64_t>());
    }
    return numbers;
  }

  /// The tensors lie one after another and fill the data.
  void check_places(const std::vector<StoredArray>& arrays) const {
    std::vector<const StoredArray*> order;
    for (const StoredArray& array : arrays) order.push_back(&array);
    const auto ends = [](const StoredArray* a) {
      return std::pair(a->bytes.data(), a->bytes.data() + a->bytes.size());
    };
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return ends(a) < ends(b); });
    const std::byte* at = bytes_.data() + prefix + length_;
    for (const StoredArray* array : order) {
      if (array->bytes.data() < at)
        refuse(fmt::format("tensor {}: shares bytes with another", shown(array->name)));
      if (array->bytes.data() > at)
        refuse(fmt::format("tensor {}: bytes before it belong to no tensor", shown(array->name)));
      at += array->bytes.size();
    }
    if (const auto left = bytes_.data() + bytes_.size() - at)
      refuse(fmt::format("{} bytes at the end belong to no tensor", left));
  }

  const std::vector<std::byte>& bytes_;
  const std::string& what_;
  std::uint64_t length_ = 0;
};

}  // namespace

std::int64_t StoredArray::size() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  return n;
}

Safetensors Safetensors::parse(std::vector<std::byte> bytes, const std::string& what) {
  Safetensors file;
  file.what_ = what;
  const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  file.bytes_ = kept;
  HeaderReader(*kept, what).read(file.arrays_, file.metadata_);
  return file;
}

Safetensors Safetensors::read(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto refuse = [&](const char* why) {
    throw std::invalid_argument(fmt::format("{}: {}", path, why));
  };
  if (path.find('\0') != std::string::npos || !fs::is_regular_file(path, error))
    refuse("is no file, expected a safetensors file");
  const std::uintmax_t size = fs::file_size(path, error);
  std::ifstream stream(path, std::ios::binary);
  if (error || !stream) refuse("cannot be read");
  std::vector<std::byte> bytes(size);
  if (!stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
    refuse("cannot be read to its end");
  return parse(std::move(bytes), path);
}

const StoredArray* Safetensors::find(std::string_view name) const {
  const auto found = std::find_if(arrays_.begin(), arrays_.end(),
                                  [&](const StoredArray& a) { return a.name == name; });
  return found == arrays_.end() ? nullptr : &*found;
}

const std::string& Safetensors::metadata(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end())
    throw std::invalid_argument(fmt::format("{}: no '{}' in its metadata", what_, key));
  return found->second;
}

std::vector<std::byte> safetensors_bytes(const std::vector<NewArray>& arrays,
                                         const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const NewArray& array : arrays) {
    const ElementType* type = element_type(array.dtype);
    std::uint64_t needed = type ? type->bytes : 0;
    for (const std::int64_t extent : array.shape) needed *= static_cast<std::uint64_t>(extent);
    if (!type || needed != array.bytes.size())
      throw std::invalid_argument(fmt::format("tensor '{}': {} bytes of {}, expected {}",
                                              array.name, array.bytes.size(), array.dtype, needed));
    header[array.name] = {
        {"dtype", array.dtype}, {"shape", array.shape}, {"data_offsets", {at, at + needed}}};
    at += needed;
  }
  std::string text = header.dump();
  text.resize((text.size() + prefix - 1) / prefix * prefix, ' ');
  std::vector<std::byte> bytes;
  bytes.reserve(prefix + text.size() + at);
  for (std::uint64_t i = 0; i < prefix; ++i)
    bytes.push_back(static_cast<std::byte>(text.size() >> 8 * i & 0xff));
  const auto add = [&bytes](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  add(std::as_bytes(std::span(text)));
  for (const NewArray& array : arrays) add(array.bytes);
  return bytes;
}

void write_safetensors(const std::string& path, const std::vector<NewArray>& arrays,
                       const std::map<std::string, std::string>& metadata) {
  const std::vector<std::byte> bytes = safetensors_bytes(arrays, metadata);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.flush();
  if (!file) throw std::invalid_argument(fmt::format("'{}': cannot be written", path));
}

}  // namespace attn::fuzz
