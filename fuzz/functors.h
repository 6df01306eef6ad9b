#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/backward_bounds.h"
#include "fuzz/case.h"
#include "fuzz/fill_context.h"
#include "fuzz/forward_bounds.h"
#include "fuzz/probe.h"
#include "masks/block_mask_builder.h"
#include "mods/lang/captured_tensors.h"
#include "mods/lang/tree_functor.h"
#include "optimized/implementations.h"

/// The mod and the mask of a case behind one interface: expressions, which every program has, or
/// C++ types of the user's, which are built into a program of their own (fuzz/functor_main.h).
namespace attn::fuzz {

/// What the fuzzer needs of the mod and the mask of one case.
class Functors {
 public:
  virtual ~Functors() = default;
  virtual const PairQuestions& ask() const = 0;  ///< for the fills, one pair at a time
  virtual const Probe& probe() const = 0;        ///< for examinations, on any number type
  /// The floating tensors that the mod reads, in order of first read.
  virtual std::vector<CapturedTensor> captured(const Sizes& sizes) const = 0;
  /// The mask's block mask, built by intervals.
  virtual BlockMask blocks(const Sizes& sizes, const BlockMaskOptions& options) const = 0;
  /// What a backward pass starts from (fuzz/backward_bounds.h).
  virtual StoredForwardResult forward_result(const PassInputs& in, DType storage) const = 0;
  /// The oracle of a forward pass (fuzz/forward_bounds.h).
  virtual ForwardBounds bound_forward(const PassInputs& in, const Numerics& may,
                                      BoundKind kind) const = 0;
  /// The oracle of a backward pass that starts from `forward_result`.
  virtual BackwardBounds bound_backward(const PassInputs& in, const Numerics& may,
                                        BoundKind kind) const = 0;
  /// Runs the kernels of `row` with these functors. `call` holds their expressions, if they are
  /// expressions. @throws as Implementation::run.
  virtual std::string_view run(const Implementation& row, const AttentionCall& call,
                               Engine engine) const = 0;
};

/// All of it but the kernels.
template <class Mod, class Mask>
class TypedFunctors : public Functors {
 public:
  /// Keeps copies of both.
  TypedFunctors(Mod mod, Mask mask) : mod_(std::move(mod)), mask_(std::move(mask)) {}
  TypedFunctors(const TypedFunctors&) = delete;
  TypedFunctors& operator=(const TypedFunctors&) = delete;

  const PairQuestions& ask() const override { return questions_; }
  const Probe& probe() const override { return probe_; }
  std::vector<CapturedTensor> captured(const Sizes& sizes) const override {
    return captured_of_mod(mod_, sizes);
  }
  BlockMask blocks(const Sizes& sizes, const BlockMaskOptions& options) const override {
    return make_block_mask(mask_, sizes, options);
  }
  StoredForwardResult forward_result(const PassInputs& in, DType storage) const override {
    return stored_forward_result(in, mod_, mask_, storage);
  }
  ForwardBounds bound_forward(const PassInputs& in, const Numerics& may,
                              BoundKind kind) const override {
    return fuzz::bound_forward(in, mod_, mask_, may, kind);
  }
  BackwardBounds bound_backward(const PassInputs& in, const Numerics& may,
                                BoundKind kind) const override {
    return fuzz::bound_backward(in, mod_, mask_, may, kind);
  }

 protected:
  const Mod mod_;    ///< the functor itself
  const Mask mask_;  ///< the functor itself

 private:
  const QuestionsAbout<Mod, Mask> questions_{mod_, mask_};
  const ProbeOf<Mod, Mask> probe_{mod_, mask_};
};

/// Types of the user's that a program has built in.
class BuiltInTypes {
 public:
  virtual ~BuiltInTypes() = default;
  /// As cases name them; empty: the case's expression.
  virtual std::string mod_type() const = 0;
  virtual std::string mask_type() const = 0;  ///< the same of the mask
  /// How many tables they capture.
  virtual std::size_t tables() const = 0;
  /// The largest D and Dv that kernels were compiled for.
  virtual int largest_head() const = 0;
  /// The rows of the table of implementations that have kernels with them.
  virtual std::vector<std::string> rows() const = 0;
  /// The functors of one case. The tables' memory stays the caller's.
  /// @throws std::invalid_argument if the tables do not fit the types.
  virtual std::unique_ptr<Functors> functors(const Case& c, const Tables& tables) const = 0;
};
/// Those of this program, set before any case is made; null: none.
const BuiltInTypes*& built_in_types();

/// How many of a case's tables, the first, are captured by its types.
std::size_t tables_of_types(const Case& c);

/// @throws std::invalid_argument also if a type of the case is not built into this program.
std::unique_ptr<Functors> functors_of(const Case& c, const Tables& tables);

}  // namespace attn::fuzz
