#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mods/lang/index.h"
#include "mods/lang/tables.h"

namespace attn::fuzz {

/// How a table of a mod or mask is made, as text: `slope[Hq]=uniform(0,0.5)`.
///
///   NAME[DIM, ...] = uniform(low, high)    reals
///                    dyadic(low, high)     reals that are multiples of 1/4, exact in every type
///                    alibi                 the slopes of the ALiBi paper, one a head
///                    ints(low, high)       whole numbers (an index)
///                    documents(length)     0 0 0 1 1 2 ...: ids that grow along the last axis
///                    bits(share)           conditions, true with that probability
///                    FILE                  numbers separated by white space, row by row; an index
///                                          if all are whole
///
/// A DIM is a sum of integers and of B, H, Hq, Hkv, Sq, Skv, each with an optional factor:
/// `2*Sq-1`. An axis of extent 1 broadcasts.
struct TableSpec {
  enum class Source { uniform, dyadic, alibi, ints, documents, bits, file };  ///< as above
  std::string name;                 ///< as expressions read it
  std::vector<std::string> dims;    ///< one text an axis: "Hq", "2*Sq-1"
  Source source = Source::uniform;  ///< where entries come from
  double low = 0, high = 1;         ///< the arguments of the source
  std::string path;                 ///< of a file

  /// Of an entry: a real, an index or a condition.
  /// @throws std::invalid_argument if its file cannot be read
  ValueType type() const;
};

/// The longest text of a table that is read, in bytes.
inline constexpr std::size_t max_table_text = 4096;
/// @throws std::invalid_argument naming what is wrong and where.
TableSpec parse_table_spec(std::string_view text);
/// What parse_table_spec reads back as the same.
std::string to_text(const TableSpec& spec);

/// The extents of the table in a problem of these sizes.
/// @throws std::invalid_argument if a DIM cannot be read, is below zero or has no 32 bits.
std::vector<std::int64_t> extents_of(const TableSpec& spec, const Sizes& sizes);

/// The tables of one case, with the memory they live in. Entries are a pure function of the seed,
/// the name and the position, so that a smaller table holds the same leading entries.
class TableStore {
 public:
  TableStore() = default;
  /// @throws std::invalid_argument as above, if a file has too few numbers or none can be read, or
  ///     if all the tables together have more than 2^28 entries.
  TableStore(const std::vector<TableSpec>& specs, const Sizes& sizes, std::uint64_t seed);
  const Tables& tables() const { return tables_; }  ///< in the order of `specs`

 private:
  void fill(const TableSpec& spec, const std::vector<std::int64_t>& extents, std::uint64_t seed,
            std::vector<std::byte>& memory) const;
  std::vector<std::vector<std::byte>> memory_;
  Tables tables_;
};

}  // namespace attn::fuzz
