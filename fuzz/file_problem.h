#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/backward_bounds.h"
#include "fuzz/case.h"
#include "fuzz/pass_inputs.h"
#include "fuzz/safetensors.h"
#include "mods/lang/tables.h"

/// Attention problems that stand in files: those of `attnproof emit`, and tensors dumped from a run
/// of another program. Tensors by name, each [B, H, S, X] and contiguous:
///
///     q k v        of one storage type
///     d_o          of that type: a backward pass; with d_lse [B, Hq, Sq], F32, where there is one
///     o lse        of the forward pass: what a backward pass may start from; lse [B, Hq, Sq], F32
///     sink         [Hq], F32
///
/// and any other is a table that the mod and the mask may read by its name.
namespace attn::fuzz {

/// What the tensors do not say themselves.
struct FileDescription {
  std::string mod = "score", mask = "true";  ///< names of the registries, or expressions
  std::vector<std::string> parameters;       ///< of these names: "width=8"
  std::vector<std::string> tables;           ///< that are not in the file: "slope[Hq]=alibi"
  std::optional<double> scale;               ///< 1/sqrt(D) if absent
};

/// The version of the files that `attnproof emit` writes, under this key of their metadata.
inline constexpr const char* file_version_key = "attnproof";
/// The value there; a file with another is refused.
inline constexpr const char* file_version = "1";
/// What is written behind the mod and the mask of an emitted file.
inline constexpr const char* bias_table = "mod_bias";
/// The same for the mask: true where a pair attends.
inline constexpr const char* mask_table = "mask";

/// One problem, independent of the file that it came from.
struct FileProblem {
  Case c;  ///< its shape; its implementation is the flash kernel of its pass, whoever computes it
  PassInputs in;         ///< Q, K, V and what else the file holds, as exact numbers
  Expression mod, mask;  ///< of the description, parsed
  Tables tables;         ///< that the two read: of the file, and of the description
  std::vector<std::shared_ptr<const void>> memory;  ///< of the tables
  /// Of a backward pass: O and LSE where the file has them.
  std::optional<StoredForwardResult> forward_result;

  bool is_backward() const { return c.implementation == backward_name; }  ///< the file has a dO
  /// The row that stands for a backward pass, whoever computes it.
  static constexpr const char* backward_name = "flash_backward";
};

/// @throws std::invalid_argument naming the tensor, its shape or dtype and what was expected, or
///     the part of the description that cannot be used.
FileProblem read_problem(const Safetensors& file, const FileDescription& description);
/// What an emitted file says of itself. @throws std::invalid_argument if it is of another version.
FileDescription described_by(const Safetensors& file);

/// "BF16": how files call a storage type.
const char* file_name_of(DType t);
/// Whether a tensor of this name is one of those above, or an output: no table.
bool is_tensor_name(const std::string& name);
/// The elements of an array as numbers. @throws std::invalid_argument if its dtype is not
/// `expected` or its shape not `extents`
Tensor<double, 4> numbers_in(const Safetensors& file, const StoredArray& array, DType expected,
                             const std::array<std::int64_t, 4>& extents, int rank = 4);

}  // namespace attn::fuzz
