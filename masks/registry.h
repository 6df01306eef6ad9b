#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "masks/check.h"
#include "masks/dense_construction.h"
#include "mods/catalogue.h"

/// Every mask of the public systems, by name: built with parameters and example tables, looked at
/// pair by pair or box by box, and said as an expression.
namespace attn {

/// A mask whose type is forgotten, for the eye and for tools. Kernels take the mask itself.
class AnyMask {
 public:
  template <class Mask>
  AnyMask(const Mask& mask) : face_(std::make_shared<Holder<Mask>>(mask)) {}
  /// Whether one pair attends.
  bool attends(const Sizes& sizes, int b, int h, int q, int kv) const {
    return face_->attends(sizes, b, h, q, kv);
  }
  /// Yes, no or undecided for a whole box; see `RangeEnv`.
  Maybe verdict(const Sizes& sizes, const Box& box) const { return face_->verdict(sizes, box); }
  /// @throws std::invalid_argument as the mask does.
  void check(const Sizes& sizes) const { face_->check(sizes); }

 private:
  struct Face {
    virtual ~Face() = default;
    virtual bool attends(const Sizes& sizes, int b, int h, int q, int kv) const = 0;
    virtual Maybe verdict(const Sizes& sizes, const Box& box) const = 0;
    virtual void check(const Sizes& sizes) const = 0;
  };
  template <class Mask>
  struct Holder : Face {
    Mask mask;
    explicit Holder(const Mask& m) : mask(m) {}
    bool attends(const Sizes& sizes, int b, int h, int q, int kv) const override {
      return attn::attends<ExactEnv>(mask, sizes, b, h, q, kv);
    }
    Maybe verdict(const Sizes& sizes, const Box& box) const override {
      return attn::verdict(mask, sizes, box);
    }
    void check(const Sizes& sizes) const override { check_mask(mask, sizes); }
  };
  std::shared_ptr<const Face> face_;
};

/// A mask of the registry: its texts, and how it is built.
struct MaskEntry : EntryText {
  AnyMask (*build)(Arguments& arguments);  ///< @throws std::invalid_argument if tables do not fit
};

/// The masks, in the order of their families. Those with a header have a file of their own; the
/// others are one-line combinations of these.
const std::vector<MaskEntry>& mask_registry();
/// @throws std::invalid_argument with the closest names if there is none of that name.
const MaskEntry& mask_named(const std::string& name);

/// A mask of the registry, bound to one problem.
class NamedMask {
 public:
  bool attends(int b, int h, int q, int kv) const {  /// one pair
    return mask_.attends(arguments_->sizes, b, h, q, kv);
  }
  /// Yes, no or undecided for a whole box; see `RangeEnv`.
  Maybe verdict(const Box& box) const { return mask_.verdict(arguments_->sizes, box); }
  const Sizes& sizes() const { return arguments_->sizes; }  ///< of the problem it was made for
  /// The tables that the mask and its expression read; this object owns the examples among them.
  const Tables& tables() const { return arguments_->tables(); }
  /// The mask as an expression, parameters filled in.
  std::string expression() const { return arguments_->substituted(entry_->expression); }

 private:
  friend NamedMask make_mask(const MaskEntry& entry, const Sizes& sizes,
                             const ParameterValues& parameters, const Tables& tables);
  NamedMask(const MaskEntry& entry, std::shared_ptr<Arguments> arguments)
      : entry_(&entry), arguments_(std::move(arguments)), mask_(entry.build(*arguments_)) {}
  const MaskEntry* entry_;
  std::shared_ptr<Arguments> arguments_;
  AnyMask mask_;
};

/// Builds a mask with these parameters; tables that are not given are examples.
/// @throws std::invalid_argument if a parameter or table does not suit the mask or the problem.
NamedMask make_mask(const MaskEntry& entry, const Sizes& sizes,
                    const ParameterValues& parameters = {}, const Tables& tables = {});

namespace detail {
/// The parts of the registry.
std::vector<MaskEntry> position_masks();
std::vector<MaskEntry> table_masks();
std::vector<MaskEntry> grid_masks();
std::vector<MaskEntry> xformers_masks();
}  // namespace detail

}  // namespace attn
