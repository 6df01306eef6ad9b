// The reader of files of tensors: what is whole is read back; everything else gives one clear line.
#include "fuzz/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace attn::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of_text(const std::string& text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

/// A file with this header, `data` bytes of 1 behind it, and any length told in front.
Bytes file(const std::string& header, std::size_t data, std::uint64_t told) {
  Bytes bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(told >> 8 * i & 0xff));
  const Bytes text = bytes_of_text(header);
  bytes.insert(bytes.end(), text.begin(), text.end());
  bytes.insert(bytes.end(), data, std::byte{1});
  return bytes;
}
Bytes file(const std::string& header, std::size_t data) {
  return file(header, data, header.size());
}

/// The message of the refusal, which names the file; it is one line.
std::string refusal(const Bytes& bytes) {
  try {
    Safetensors::parse(bytes, "x.safetensors");
  } catch (const std::invalid_argument& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("x.safetensors: ")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const char c : message) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << message;
    return message;
  }
  return "read";
}
void expect_refusal(const Bytes& bytes, const std::string& text) {
  const std::string message = refusal(bytes);
  EXPECT_NE(message.find(text), std::string::npos) << message << "\nexpected: " << text;
}
std::string one(const std::string& entry) { return R"({"a":)" + entry + "}"; }
std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  const std::vector<NewArray> arrays = {{"b", "F32", {2, 1}, Bytes(8, std::byte{7})},
                                        {"a", "BF16", {3}, Bytes(6, std::byte{9})},
                                        {"none", "I64", {4, 0}, {}},
                                        {"one", "BOOL", {}, Bytes(1, std::byte{1})}};
  const Safetensors read =
      Safetensors::parse(safetensors_bytes(arrays, {{"case", "v1 B1; mask: q >= kv \"x\""}}), "x");
  ASSERT_EQ(read.arrays().size(), 4u);
  for (const NewArray& array : arrays) {
    const StoredArray* found = read.find(array.name);
    ASSERT_TRUE(found) << array.name;
    EXPECT_EQ(found->dtype, array.dtype);
    EXPECT_EQ(found->shape, array.shape);
    EXPECT_TRUE(std::equal(found->bytes.begin(), found->bytes.end(), array.bytes.begin(),
                           array.bytes.end()));
  }
  EXPECT_EQ(read.find("one")->size(), 1);
  EXPECT_EQ(read.find("none")->size(), 0);
  EXPECT_FALSE(read.find("c"));
  EXPECT_EQ(read.metadata("case"), "v1 B1; mask: q >= kv \"x\"");
  EXPECT_THROW(read.metadata("seed"), std::invalid_argument);
}

TEST(Safetensors, TheDataBeginsAtAMultipleOfEight) {
  for (const char* name : {"a", "ab", "abc", "abcd", "abcde"}) {
    const Bytes bytes = safetensors_bytes({{name, "U8", {1}, Bytes(1)}}, {});
    EXPECT_EQ(bytes.size() % 8, 1u) << name;
  }
}

TEST(Safetensors, WriterRefusesBytesThatDoNotFit) {
  EXPECT_THROW(safetensors_bytes({{"a", "F32", {2}, Bytes(7)}}, {}), std::invalid_argument);
  EXPECT_THROW(safetensors_bytes({{"a", "F99", {0}, {}}}, {}), std::invalid_argument);
  EXPECT_THROW(write_safetensors("/no/such/folder/x", {}, {}), std::invalid_argument);
}

TEST(Safetensors, CutShort) {
  expect_refusal({}, "0 bytes, expected a safetensors file");
  expect_refusal(Bytes(7), "7 bytes");
  const Bytes whole = file(one(tensor("F32", "[2]", "[0,8]")), 8);
  EXPECT_EQ(refusal(whole), "read");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(refusal(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))),
              "read")
        << size;
  expect_refusal(Bytes(whole.begin(), whole.end() - 1), "only 7 are there");
}

TEST(Safetensors, LyingLengthOfTheHeader) {
  expect_refusal(file("{}", 0, 3), "but only 2 follow");
  expect_refusal(file("{}", 0, ~std::uint64_t{0}), "a header of 18446744073709551615 bytes");
  expect_refusal(file("{}", 0, Safetensors::max_header + 1), "expected at most 16777216");
  expect_refusal(file("{}", 0, Safetensors::max_header), "cut short");
  expect_refusal(file("{}", 0, 0), "no JSON");
  expect_refusal(file("{}", 0, 1), "no JSON");
  EXPECT_EQ(refusal(file("{}", 0)), "read");
}

TEST(Safetensors, HeaderOfAnotherForm) {
  expect_refusal(file("[]", 0), "no JSON object of objects");
  expect_refusal(file("7", 0), "no JSON object");
  expect_refusal(file(one("[]"), 0), "no JSON object of objects");
  expect_refusal(file("{\"a\":}", 0), "no JSON");
  expect_refusal(file("\xff\xfe\n", 0), "no JSON");
  expect_refusal(file(one("7"), 0), "expected dtype, shape and data_offsets");
  expect_refusal(file(one(R"({"dtype":"F32","shape":[1]})"), 0), "expected dtype, shape");
  expect_refusal(file(one(R"({"dtype":7,"shape":[0],"data_offsets":[0,0]})"), 0),
                 "dtype is no string");
  expect_refusal(file(R"({"__metadata__":7})", 0), "no object of strings");
  expect_refusal(file(R"({"__metadata__":{"a":7}})", 0), "'a' is no string");
  expect_refusal(file(R"({"":)" + tensor("F32", "[0]", "[0,0]") + "}", 0), "a tensor of name ''");
  expect_refusal(file(R"({"a\u0000b":)" + tensor("F32", "[0]", "[0,0]") + "}", 0), "'a\\x00b'");
  expect_refusal(file("{\"a\xc2\x9b\":" + tensor("F32", "[0]", "[0,0]") + "}", 0),
                 "'a\\xc2\\x9b'");  // U+009B, which a terminal may act on
  const std::string twice = R"("a":)" + tensor("F32", "[0]", "[0,0]");
  expect_refusal(file("{" + twice + "," + twice + "}", 0), "two tensors 'a'");
  expect_refusal(file(one(R"({"dtype":"F32","dtype":"U8","shape":[0],"data_offsets":[0,0]})"), 0),
                 "two entries 'dtype'");
}

TEST(Safetensors, NulBytes) {
  expect_refusal(file(std::string("{}\0\0", 4), 0), "a NUL byte");
  expect_refusal(file(std::string(16, '\0'), 0), "a NUL byte");
  EXPECT_THROW(Safetensors::read(std::string("a\0b", 3)), std::invalid_argument);
}

TEST(Safetensors, Deep) {
  expect_refusal(file(std::string(1 << 20, '['), 0), "no JSON object");
  expect_refusal(file(one(tensor("U8", std::string(1 << 20, '['), "[0,1]")), 1), "too deeply");
  std::string objects;
  for (int i = 0; i < 1 << 16; ++i) objects += "{\"a\":";
  expect_refusal(file(objects, 0), "nested too deeply");
  std::string longest = "[1";
  for (int i = 0; i < 1 << 16; ++i) longest += ",1";
  expect_refusal(file(one(tensor("U8", longest + "]", "[0,1]")), 1), "more than 8 numbers");
}

TEST(Safetensors, UnknownDtype) {
  expect_refusal(file(one(tensor("F12", "[2]", "[0,3]")), 3), "dtype 'F12' is not known");
  expect_refusal(file(one(tensor("f32", "[1]", "[0,4]")), 4), "dtype 'f32'");
  expect_refusal(file(one(tensor(std::string(1000, 'x'), "[1]", "[0,4]")), 4), "x...'");
}

TEST(Safetensors, ShapesThatLie) {
  const auto shaped = [](const std::string& shape) {
    return file(one(tensor("F32", shape, "[0,8]")), 8);
  };
  EXPECT_EQ(refusal(shaped("[2]")), "read");
  const std::string none = "[0,4611686018427387904,4611686018427387904]";
  expect_refusal(file(one(tensor("U8", none, "[0,0]")), 0), "more elements than any file");
  expect_refusal(shaped("[3]"), "8 bytes, but its shape and dtype need 12");
  expect_refusal(shaped("[]"), "need 4");
  expect_refusal(shaped("[0]"), "need 0");
  expect_refusal(shaped("[-2]"), "shape, expected a list of whole numbers");
  expect_refusal(shaped("[2.0]"), "shape, expected");
  expect_refusal(shaped("[\"2\"]"), "shape, expected");
  expect_refusal(shaped("2"), "shape, expected");
  expect_refusal(shaped("[18446744073709551615]"), "below 2^63");
  expect_refusal(shaped("[1e400]"), "no JSON");
  expect_refusal(shaped("[4611686018427387904]"), "more elements than any file");
  expect_refusal(shaped("[4294967296,4294967296]"), "more elements than any file");
  // a product that would be right modulo 2^64
  expect_refusal(shaped("[2147483648,2147483648,2,2]"), "more elements than any file");
}

TEST(Safetensors, OffsetsThatLie) {
  const auto placed = [](const std::string& offsets) {
    return file(one(tensor("F32", "[2]", offsets)), 8);
  };
  EXPECT_EQ(refusal(placed("[0,8]")), "read");
  expect_refusal(placed("[8,0]"), "data_offsets");
  expect_refusal(placed("[0]"), "data_offsets");
  expect_refusal(placed("[0,8,8]"), "data_offsets");
  expect_refusal(placed("[-8,0]"), "data_offsets, expected a list");
  expect_refusal(placed("[4,12]"), "ends at byte 12 of the data, but only 8 are there");
  expect_refusal(placed("[9223372036854775800,9223372036854775807]"), "only 8 are there");
  expect_refusal(placed("[0,7]"), "7 bytes, but its shape and dtype need 8");
}

TEST(Safetensors, OverlapAndGap) {
  const auto two = [](const std::string& a, const std::string& b, std::size_t data) {
    return file(R"({"a":)" + tensor("U8", "[4]", a) + R"(,"b":)" + tensor("U8", "[4]", b) + "}",
                data);
  };
  EXPECT_EQ(refusal(two("[4,8]", "[0,4]", 8)), "read");
  expect_refusal(two("[0,4]", "[2,6]", 6), "tensor 'b': shares bytes with another");
  expect_refusal(two("[0,4]", "[0,4]", 4), "shares bytes with another");
  expect_refusal(two("[0,4]", "[5,9]", 9), "tensor 'b': bytes before it belong to no tensor");
  expect_refusal(two("[1,5]", "[5,9]", 9), "tensor 'a': bytes before it");
  expect_refusal(two("[0,4]", "[4,8]", 11), "3 bytes at the end belong to no tensor");
}

TEST(Safetensors, FilesThatAreNone) {
  EXPECT_THROW(Safetensors::read("/no/such/file"), std::invalid_argument);
  EXPECT_THROW(Safetensors::read("/"), std::invalid_argument);
  EXPECT_THROW(Safetensors::read("/dev/zero"), std::invalid_argument);  // which has no end
  const std::string path =
      (std::filesystem::path(testing::TempDir()) / "some.safetensors").string();
  write_safetensors(path, {{"a", "F32", {1}, Bytes(4, std::byte{5})}}, {});
  EXPECT_EQ(Safetensors::read(path).find("a")->bytes[3], std::byte{5});
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_THROW(Safetensors::read(path), std::invalid_argument);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace attn::fuzz
