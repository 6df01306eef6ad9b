#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/file_problem.h"
#include "fuzz/file_verdict.h"
#include "fuzz/inputs.h"
#include "fuzz/random.h"

/// For tests: files made in memory.
namespace attn::fuzz {

/// The values in a type that files have; those of an unknown type as bytes.
inline std::vector<std::byte> bytes_as(const std::string& dtype,
                                       const std::vector<double>& values) {
  std::vector<std::byte> bytes;
  const auto append = [&bytes](auto x) {
    const auto* first = reinterpret_cast<const std::byte*>(&x);
    bytes.insert(bytes.end(), first, first + sizeof x);
  };
  for (const double x : values)
    if (dtype == "F32")
      append(static_cast<float>(x));
    else if (dtype == "F16")
      append(from_float<half>(static_cast<float>(x)).bits);
    else if (dtype == "BF16")
      append(from_float<bfloat16>(static_cast<float>(x)).bits);
    else if (dtype == "I32")
      append(static_cast<std::int32_t>(x));
    else if (dtype == "I64")
      append(static_cast<std::int64_t>(x));
    else if (dtype == "F64")
      append(x);
    else
      append(static_cast<std::uint8_t>(x));
  return bytes;
}

/// An array of these values, row-major.
inline NewArray new_array(const std::string& name, const std::string& dtype,
                          const std::vector<std::int64_t>& shape,
                          const std::vector<double>& values) {
  return {name, dtype, shape, bytes_as(dtype, values)};
}
/// Normal numbers that belong to the name.
inline NewArray random_array(const std::string& name, const std::string& dtype,
                             const std::vector<std::int64_t>& shape) {
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) size *= extent;
  std::vector<double> values;
  for (std::int64_t n = 0; n < size; ++n)
    values.push_back(normal_of(hash_of(hash_of_text(name), n)));
  return new_array(name, dtype, shape, values);
}

/// The arrays as a file that was read.
inline Safetensors file_of(const std::vector<NewArray>& arrays,
                           const std::map<std::string, std::string>& metadata = {}) {
  return Safetensors::parse(safetensors_bytes(arrays, metadata), "x.safetensors");
}

/// q, k and v [2, 4 or 2, 40 or 70, 16], D = 16, Dv = 12.
inline std::vector<NewArray> small_inputs(const std::string& dtype = "BF16") {
  return {random_array("q", dtype, {2, 4, 40, 16}), random_array("k", dtype, {2, 2, 70, 16}),
          random_array("v", dtype, {2, 2, 70, 12})};
}

/// What a program that solves this problem writes: the reference, rounded to its types.
inline std::vector<NewArray> solved(const FileProblem& p) {
  Expectation e = forward_expectation(p, Rounds::flash, BoundKind::working);
  if (p.is_backward()) {
    StoredForwardResult given{e.outputs[0].reference, Tensor<double, 3>({p.c.b, p.c.hq, p.c.sq})};
    for (double& x : given.o.values()) x = rounded_to(p.c.dtype, x);
    for (std::size_t n = 0; n < given.lse.values().size(); ++n)
      given.lse.values()[n] = static_cast<float>(e.outputs[1].reference.values()[n]);
    const Expectation gradients = backward_expectation(p, given, Rounds::flash, BoundKind::working);
    e.outputs.insert(e.outputs.end(), gradients.outputs.begin(), gradients.outputs.end());
  }
  std::vector<NewArray> arrays;
  for (const ExpectedOutput& output : e.outputs) {
    std::vector<std::int64_t> shape;
    for (std::size_t axis = 0; axis < 4; ++axis)
      if (output.axes[axis]) shape.push_back(output.reference.extents()[axis]);
    arrays.push_back(new_array(file_name_of(output), file_name_of(output.dtype), shape,
                               output.reference.values()));
  }
  return arrays;
}

}  // namespace attn::fuzz
