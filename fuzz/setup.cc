#include "fuzz/setup.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "fuzz/case_sequences.h"
#include "fuzz/inputs.h"
#include "mods/lang/compile.h"

namespace attn::fuzz {
namespace {

/// A tensor of which only the shape is looked at.
TensorInfo shape(const char* name, DType dtype, const StoredTensor::Shape& extents) {
  static const double no_memory = 0;
  TensorInfo t;
  t.name = name, t.dtype = dtype, t.rank = 4, t.data = &no_memory;
  t.extents = extents, t.strides = contiguous_strides(extents);
  return t;
}

/// The implementation of a case, which has accepted its sizes and parts. What it has against the
/// tensors themselves, it says when it is called.
const Implementation& accepted_by(const Case& c) {
  const Implementation& implementation = implementation_named(c.implementation);
  check_parts(c, implementation);
  Options options;
  options.scale = c.scale;
  options.dropout.p = c.dropout;
  const Problem problem = make_problem(shape("q", c.dtype, {c.b, c.hq, c.sq, c.d}),
                                       shape("k", c.dtype, {c.b, c.hkv, c.skv, c.d}),
                                       shape("v", c.dtype, {c.b, c.hkv, c.skv, c.dv}), options);
  if (const auto refusal = implementation.refusal(problem)) throw std::invalid_argument(*refusal);
  return implementation;
}

}  // namespace

Setup::Setup(const Case& c, const PassInputs* in)
    : c_(c),
      implementation_(accepted_by(c)),
      tables_(c.tables, c.sizes(), c.seed),
      functors_(functors_of(c, tables_.tables())),
      captured_(is_backward() ? functors_->captured(c.sizes()) : std::vector<CapturedTensor>{}),
      in_(in ? *in : make_inputs(c, functors_->ask())),
      numerics_(implementation_.numerics(c.dtype)) {
  if (c.blocks) {
    BlockMaskOptions options;
    options.q_block = c.blocks->q, options.kv_block = c.blocks->kv;
    blocks_ = functors_->blocks(c.sizes(), options);
  }
  if (is_backward() && !in) forward_result_ = functors_->forward_result(in_, c.dtype);
}

Expectation Setup::expected(BoundKind kind) const {
  if (is_backward())
    return expect(functors_->bound_backward(in_, numerics_, kind), c_.dtype, captured_, c_.sink);
  return expect(functors_->bound_forward(in_, numerics_, kind), c_.dtype, c_.row_max);
}

bool Setup::attends(int b, int h, int q, int kv) const {
  const Sizes& sizes = in_.sequences[b].sizes;
  return functors_->ask().attends(sizes, b, h, sizes.q_offset + q, kv);
}

StoredPass Setup::stored() const {
  StoredPass stored(c_, implementation_, captured_);
  stored.store(in_);
  if (is_backward()) stored.store_forward_result(forward_result_.o, forward_result_.lse);
  return stored;
}

AttentionCall Setup::call(const StoredPass& stored, std::vector<float*>& d_captured) const {
  AttentionCall call;
  call.q = stored.q.info();
  call.k = stored.k.info();
  call.v = stored.v.info();
  call.o = stored.o.info();
  call.lse = stored.lse.rows();
  call.row_max = stored.row_max.rows();
  call.d_o = stored.d_o.info();
  call.d_lse = stored.d_lse.rows();
  call.dq = stored.dq.info();
  call.dk = stored.dk.info();
  call.dv = stored.dv.info();
  const auto floats = [](const StoredTensor& t) {
    return static_cast<float*>(const_cast<void*>(t.info().data));
  };
  d_captured.clear();
  for (const StoredTensor& t : stored.d_captured) d_captured.push_back(floats(t));
  call.d_captured = d_captured;
  call.d_sink = floats(stored.d_sink);
  call.mod = compile_mod(c_.mod, tables_.tables());
  call.mask = compile_mask(c_.mask, tables_.tables());
  call.options.scale = c_.scale;
  if (c_.sink) call.options.sink = TensorView<const float, 1>{in_.sink.data(), {c_.hq}, {1}};
  call.options.dropout = in_.dropout;
  call.options.tile = c_.small_tile ? TileChoice::small : TileChoice::production;
  call.options.splits = c_.splits;
  call.cu_q = stored.cu_q;
  call.cu_kv = stored.cu_kv;
  call.lengths = stored.lengths;
  call.page_table = stored.page_table();
  call.blocks = blocks_ ? &*blocks_ : nullptr;
  return call;
}

}  // namespace attn::fuzz
