#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mods/catalogue.h"
#include "mods/check.h"
#include "mods/lang/call.h"
#include "mods/lang/environments.h"

/// Every score mod of the public systems, by name: built with parameters and example tables, looked
/// at pair by pair or as a range, and said as an expression.
namespace attn {

/// A mod whose type is forgotten, for the eye and for tools. Kernels take the mod itself.
class AnyMod {
 public:
  template <class Mod>
  AnyMod(const Mod& mod) : face_(std::make_shared<Holder<Mod>>(mod)) {}
  /// The modified score at one pair, in fp64.
  double score(const Sizes& sizes, double s, int b, int h, int q, int kv) const {
    return face_->score(sizes, s, b, h, q, kv);
  }
  /// Holds the result for every score of `s` at every pair of the problem.
  Range<double> range(const Sizes& sizes, const Range<double>& s) const {
    return face_->range(sizes, s);
  }
  /// @throws std::invalid_argument as the mod does.
  void check(const Sizes& sizes) const { face_->check(sizes); }

 private:
  struct Face {
    virtual ~Face() = default;
    virtual double score(const Sizes& sizes, double s, int b, int h, int q, int kv) const = 0;
    virtual Range<double> range(const Sizes& sizes, const Range<double>& s) const = 0;
    virtual void check(const Sizes& sizes) const = 0;
  };
  template <class Mod>
  struct Holder : Face {
    Mod mod;
    explicit Holder(const Mod& m) : mod(m) {}
    double score(const Sizes& sizes, double s, int b, int h, int q, int kv) const override {
      ExactEnv env{sizes};
      const auto at = [&env](int i) { return Index<ExactEnv>{i, &env}; };
      return call_mod(mod, s, at(b), at(h), at(q), at(kv));
    }
    Range<double> range(const Sizes& sizes, const Range<double>& s) const override {
      RangeEnv env{sizes};
      const auto all = [&env](int extent) {
        return Index<RangeEnv>{RangeEnv::Int(0, extent - 1), &env};
      };
      return call_mod(mod, s, all(sizes.b), all(sizes.hq), all(sizes.sq), all(sizes.skv));
    }
    void check(const Sizes& sizes) const override { check_mod(mod, sizes); }
  };
  std::shared_ptr<const Face> face_;
};

/// A mod of the registry: its texts, and how it is built.
struct ModEntry : EntryText {
  AnyMod (*build)(Arguments& arguments);  ///< @throws std::invalid_argument if tables do not fit
};

/// The score mods, in the order of their families. Those with a header have a file of their own;
/// the others are one-line combinations of these.
const std::vector<ModEntry>& mod_registry();
/// @throws std::invalid_argument with the closest names if there is none of that name.
const ModEntry& mod_named(const std::string& name);
/// What public systems list among score mods and is none.
const std::vector<Excluded>& excluded_mods();

/// A mod of the registry, bound to one problem.
class NamedMod {
 public:
  double score(double s, int b, int h, int q, int kv) const {  /// the modified score at one pair
    return mod_.score(arguments_->sizes, s, b, h, q, kv);
  }
  /// Holds the result for every score of `s` at every pair of the problem.
  Range<double> range(const Range<double>& s) const { return mod_.range(arguments_->sizes, s); }
  const Sizes& sizes() const { return arguments_->sizes; }  ///< of the problem it was made for
  /// The tables that the mod and its expression read; this object owns the examples among them.
  const Tables& tables() const { return arguments_->tables(); }
  /// The mod as an expression, parameters filled in.
  std::string expression() const { return arguments_->substituted(entry_->expression); }

 private:
  friend NamedMod make_mod(const ModEntry& entry, const Sizes& sizes,
                           const ParameterValues& parameters, const Tables& tables);
  NamedMod(const ModEntry& entry, std::shared_ptr<Arguments> arguments)
      : entry_(&entry), arguments_(std::move(arguments)), mod_(entry.build(*arguments_)) {}
  const ModEntry* entry_;
  std::shared_ptr<Arguments> arguments_;
  AnyMod mod_;
};

/// Builds a mod with these parameters; tables that are not given are examples.
/// @throws std::invalid_argument if a parameter or table does not suit the mod or the problem.
NamedMod make_mod(const ModEntry& entry, const Sizes& sizes, const ParameterValues& parameters = {},
                  const Tables& tables = {});

namespace detail {
/// The parts of the registry.
std::vector<ModEntry> plain_mods();
std::vector<ModEntry> table_mods();
}  // namespace detail

}  // namespace attn
