#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fuzz/case.h"
#include "fuzz/expectation.h"
#include "fuzz/functors.h"
#include "fuzz/pass_inputs.h"
#include "fuzz/stored_pass.h"
#include "masks/block_mask.h"
#include "optimized/implementations.h"

namespace attn::fuzz {

/// Everything that one case is made of, before a kernel runs.
class Setup {
 public:
  /// @throws std::invalid_argument for whatever the contract or the implementation refuses: parts
  ///     that do not fit, sizes, tables that cannot be made.
  explicit Setup(const Case& c) : Setup(c, nullptr) {}
  /// On other inputs than the case's own; a backward pass starts from `forward`.
  Setup(const Case& c, const PassInputs& in, StoredForwardResult forward) : Setup(c, &in) {
    forward_result_ = std::move(forward);
  }

  /// What the outputs should hold, in the order of `StoredPass::outputs`.
  Expectation expected(BoundKind kind = BoundKind::working) const;
  /// The tensors, inputs written and outputs poisoned.
  StoredPass stored() const;
  /// The call on them, but for the schedule. They, this setup and the pointers that it writes to
  /// `d_captured` must outlive it.
  AttentionCall call(const StoredPass& stored, std::vector<float*>& d_captured) const;

  /// Runs the kernel on such a call, with this case's mod and mask.
  std::string_view run(const AttentionCall& call, Engine engine) const {
    return functors_->run(implementation_, call, engine);
  }
  /// True where the mod or the mask is a type of the user's.
  bool has_types() const { return !c_.mod_type.empty() || !c_.mask_type.empty(); }

  const Case& c() const { return c_; }  ///< as it was given
  /// The row that runs it, which has accepted its problem.
  const Implementation& implementation() const { return implementation_; }
  const PassInputs& inputs() const { return in_; }  ///< what `stored` writes
  /// Whether query row q of sequence b attends key kv, both counted from the sequence's first.
  bool attends(int b, int h, int q, int kv) const;

 private:
  Setup(const Case& c, const PassInputs* in);
  bool is_backward() const { return implementation_.pass == Pass::backward; }

  Case c_;
  const Implementation& implementation_;  // which has accepted the problem
  TableStore tables_;
  std::unique_ptr<Functors> functors_;
  std::vector<CapturedTensor> captured_;
  PassInputs in_;
  std::optional<BlockMask> blocks_;
  Numerics numerics_;
  StoredForwardResult forward_result_;  // of a backward pass: its inputs O and LSE
};

}  // namespace attn::fuzz
