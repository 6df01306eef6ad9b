#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mods/lang/tables.h"

/// What the registries of mods and masks have in common: entries that are built by name, with
/// parameters and example tables.
namespace attn {

/// A number that an entry takes. Real parameters are fp32, as mods store them.
struct Parameter {
  enum class Kind { whole, real };  ///< of numbers
  const char* name;                 ///< "width", as `--param width=8` takes it
  Kind kind;                        ///< which numbers it may be
  double value;                     ///< default
  double least, most;               ///< both included
  const char* what;                 ///< one line, with the unit
};
/// A parameter of Kind::whole, `least` to 2^24: fp32 holds each.
Parameter whole(const char* name, int value, int least, const char* what);
/// A parameter of Kind::real.
Parameter real(const char* name, double value, double least, double most, const char* what);

/// The parameters of an entry, in order.
template <class... P>
std::vector<Parameter> takes(const P&... parameters) {
  return {parameters...};
}

/// Parameters by name, where they are not to have their default.
using ParameterValues = std::map<std::string, double>;

/// What one instance of an entry is built from: numbers, lengths and tables. It owns the memory of
/// the example tables that it makes; tables that were given stay their owner's.
class Arguments {
 public:
  /// @throws std::invalid_argument naming a parameter that is unknown, out of range or not whole.
  Arguments(std::string entry, const std::vector<Parameter>& parameters, const Sizes& sizes,
            const ParameterValues& values, const Tables& given);
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  const Sizes sizes;                                           ///< of the problem
  std::int32_t operator[](const char* whole_parameter) const;  ///< of Kind::whole
  float operator()(const char* real_parameter) const;          ///< of Kind::real

  /// The table of that name: the one that was given, or an example of these extents whose entries
  /// are `fill(array of subscripts)`. Asked for twice, it is the same table.
  /// @throws std::invalid_argument if the given table has another rank or type.
  template <class T, int Rank, class Fill>
  Captured<Rank, T> table(const char* name, const std::array<std::int64_t, Rank>& extents,
                          const Fill& fill) {
    if (!tables_.find(name) && !adopt(name, Rank, value_type_of<T>)) {
      TensorView<T, Rank> view{static_cast<T*>(allocate(size_of(extents) * sizeof(T))), extents,
                               contiguous_strides(extents)};
      std::array<std::int64_t, Rank> at{};
      for (std::int64_t n = 0; n < size_of(extents); ++n) {
        view.data[n] = static_cast<T>(fill(at));
        for (std::size_t axis = Rank; axis-- > 0;) {
          if (++at[axis] < extents[axis]) break;
          at[axis] = 0;
        }
      }
      tables_.add(name, view);
    }
    Captured<Rank, T> captured = tables_.find(name)->captured<Rank, T>();
    captured.name = name;
    return captured;
  }

  /// The tables that were asked for so far.
  const Tables& tables() const { return tables_; }
  /// @throws std::invalid_argument if a table was given that nobody asked for.
  void require_all_used() const;
  /// `text` with each `$name` replaced by the value of that parameter, and then each `${...}`, an
  /// expression of whole numbers, by its value.
  std::string substituted(const std::string& text) const;

 private:
  template <std::size_t Rank>
  static std::int64_t size_of(const std::array<std::int64_t, Rank>& extents) {
    std::int64_t size = 1;
    for (const std::int64_t extent : extents) size *= extent;
    return size;
  }
  bool adopt(const std::string& name, int rank, ValueType type);
  void* allocate(std::int64_t bytes);
  double value(const char* name) const;

  std::string entry_;
  std::vector<Parameter> parameters_;
  ParameterValues values_;
  Tables given_, tables_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

/// What an entry says of itself.
struct EntryText {
  std::string name;        ///< "sliding_window"
  std::string line;        ///< what it is called, and by whom: "sliding window (attention-gym)"
  std::string formula;     ///< plain mathematics
  std::string header;      ///< where it has a file of its own; empty: made of those that have
  std::string code;        ///< the C++ that builds it: for a combination, its one line
  std::string expression;  ///< the same as an expression, `$name` for each parameter
  std::vector<Parameter> parameters;  ///< in the order in which they are shown
};

/// Something of a public system that is no mod or mask, with the reason.
struct Excluded {
  const char* name;    ///< as its system calls it
  const char* reason;  ///< why it is none
};

/// The C++ text of a builder as people write it: `a["width"]` is the parameter, `ids(a)` the table.
std::string display(std::string code);

/// ", did you mean 'causal' or 'full'?", or a list of all, for a name that is none of `known`.
std::string suggestion(const std::string& name, const std::vector<std::string>& known);

}  // namespace attn
