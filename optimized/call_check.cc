#include "optimized/call_check.h"

#include <algorithm>
#include <stdexcept>

namespace attn {
namespace {

void keep_present(std::vector<TensorInfo>& list, std::initializer_list<TensorInfo> tensors) {
  for (const TensorInfo& t : tensors)
    if (t.data != nullptr) list.push_back(t);
}

/// An argument that this kind of call has no use for: nothing is ignored silently.
void refuse_if(bool given, const char* argument, const std::string& name) {
  if (given)
    throw std::invalid_argument(std::string(argument) + ": given, but not used by " + name);
}

void check_dtype(const TensorInfo& t, DType expected) {
  if (t.data != nullptr && t.dtype != expected)
    throw std::invalid_argument(std::string(t.name) + ": " + name_of(t.dtype) + ", expected " +
                                name_of(expected));
}

void check_optional(const TensorInfo& t, std::span<const std::int64_t> extents) {
  if (t.data != nullptr) check_tensor(t, extents);
}

void check_blocks(const AttentionArguments& call, const Problem& p, const std::string& name) {
  if (call.blocks == nullptr)
    throw std::invalid_argument("blocks: none, expected the block mask that " + name + " visits");
  const BlockMaskShape& s = call.blocks->shape();
  if (s.b != p.b || s.hq != p.hq || s.sq != p.sq || s.skv != p.skv)
    throw std::invalid_argument(
        "blocks: made for B = " + std::to_string(s.b) + ", Hq = " + std::to_string(s.hq) +
        ", Sq = " + std::to_string(s.sq) + ", Skv = " + std::to_string(s.skv) + ", expected " +
        std::to_string(p.b) + ", " + std::to_string(p.hq) + ", " + std::to_string(p.sq) + ", " +
        std::to_string(p.skv));
}

/// Row-major, without gaps; the stride of an axis with one entry says nothing.
bool is_contiguous(const TensorInfo& t) {
  std::int64_t stride = 1;
  for (int axis = t.rank - 1; axis >= 0; --axis) {
    if (t.extents[axis] == 0) return true;
    if (t.extents[axis] != 1 && t.strides[axis] != stride) return false;
    stride *= t.extents[axis];
  }
  return true;
}

/// What the row says that it does not do.
void check_abilities(const AttentionArguments& call, const Implementation& row,
                     const std::string& name) {
  refuse_if(call.options.sink && !row.sink, "sink", name);
  refuse_if(call.options.dropout.p != 0 && !row.dropout, "dropout", name);
  if (row.pass == Pass::forward) {
    refuse_if(call.lse.data != nullptr && !row.lse, "lse", name);
    refuse_if(call.row_max.data != nullptr && !row.row_max, "row_max", name);
  }
  if (row.strides) return;
  for (const std::vector<TensorInfo>& tensors :
       {inputs_of(call, row.pass), outputs_of(call, row.pass)})
    for (const TensorInfo& t : tensors)
      if (!is_contiguous(t))
        throw std::invalid_argument(std::string(t.name) + ": has gaps or another order, expected " +
                                    t.shape() + " contiguous in " + name);
}

void check_forward_tensors(const AttentionArguments& call, const Problem& p, bool lse) {
  check_tensor(call.o, p.o_extents());
  if (lse) check_tensor(call.lse, p.lse_extents());
  check_optional(call.row_max, p.lse_extents());
  check_dtype(call.o, p.dtype);
  check_dtype(call.lse, DType::f32);
  check_dtype(call.row_max, DType::f32);
}

void check_backward_tensors(const AttentionArguments& call, const Problem& p) {
  for (const auto& [tensor, extents] : {std::pair(&call.o, p.o_extents()),
                                        {&call.d_o, p.o_extents()},
                                        {&call.dq, p.q_extents()},
                                        {&call.dk, p.k_extents()},
                                        {&call.dv, p.v_extents()}}) {
    check_tensor(*tensor, extents);
    check_dtype(*tensor, p.dtype);
  }
  check_tensor(call.lse, p.lse_extents());
  check_optional(call.d_lse, p.lse_extents());
  check_dtype(call.lse, DType::f32);
  check_dtype(call.d_lse, DType::f32);
  if (call.d_sink != nullptr && !call.options.sink)
    throw std::invalid_argument("d_sink: wanted, but there is no sink");
}

}  // namespace

std::vector<TensorInfo> inputs_of(const AttentionArguments& call, Pass pass) {
  std::vector<TensorInfo> list;
  keep_present(list, {call.q, call.k, call.v});
  if (pass == Pass::backward) keep_present(list, {call.o, call.lse, call.d_o, call.d_lse});
  return list;
}

std::vector<TensorInfo> outputs_of(const AttentionArguments& call, Pass pass,
                                   std::span<const CapturedTensor> captured) {
  std::vector<TensorInfo> list;
  if (pass == Pass::forward) {
    keep_present(list, {call.o, call.lse, call.row_max});
    return list;
  }
  keep_present(list, {call.dq, call.dk, call.dv});
  const auto add_flat = [&list](const char* name, const float* data, std::int64_t count) {
    list.push_back({name, data, DType::f32, 3, {1, 1, count, 0}, {count, count, 1, 0}});
  };
  for (std::size_t i = 0; i < std::min(captured.size(), call.d_captured.size()); ++i)
    add_flat("d_captured", call.d_captured[i], entries_of(captured[i]));
  if (call.d_sink != nullptr) add_flat("d_sink", call.d_sink, call.q.extents[1]);
  return list;
}

CheckedCall check_call(const AttentionArguments& call, const Implementation& row) {
  const std::string name(row.name);
  const Sequences kind = row.sequences;
  CheckedCall checked;
  Problem& p = checked.problem;
  p = kind == Sequences::paged
          ? make_paged_problem(call.q, call.k, call.v, call.page_table, call.options)
          : make_problem(call.q, call.k, call.v, call.options);
  if (const auto refusal = row.refusal(p)) throw std::invalid_argument(*refusal + " in " + name);
  check_dtype(call.k, p.dtype);
  check_dtype(call.v, p.dtype);
  check_abilities(call, row, name);
  const bool cache = has_cache(row);
  refuse_if(!call.cu_q.empty() && kind != Sequences::packed, "cu_q", name);
  refuse_if(!call.cu_kv.empty() && kind != Sequences::packed, "cu_kv", name);
  refuse_if(!call.lengths.empty() && !cache, "lengths", name);
  refuse_if(call.page_table.data != nullptr && kind != Sequences::paged, "page_table", name);
  refuse_if(call.blocks != nullptr && !row.block_sparse, "blocks", name);
  refuse_if(call.options.splits != 0 && !cache, "splits", name);
  if (call.options.splits < 0 || call.options.splits > most_splits)
    throw std::invalid_argument("splits: " + std::to_string(call.options.splits) +
                                ", expected 0 (chosen) to " + std::to_string(most_splits));
  if (row.pass == Pass::forward) {
    for (const TensorInfo* t : {&call.d_o, &call.d_lse, &call.dq, &call.dk, &call.dv})
      refuse_if(t->data != nullptr, t->name, name);
    refuse_if(!call.d_captured.empty(), "d_captured", name);
    refuse_if(call.d_sink != nullptr, "d_sink", name);
  } else {
    refuse_if(call.row_max.data != nullptr, "row_max", name);
  }
  if (kind == Sequences::packed) checked.sequences = packed_sequences(p, call.cu_q, call.cu_kv);
  if (cache) checked.sequences = cached_sequences(p, call.lengths);
  if (kind == Sequences::paged)
    check_page_table(call.page_table, checked.sequences, call.k.extents[0],
                     static_cast<int>(call.k.extents[2]));
  if (row.block_sparse) check_blocks(call, p, name);
  if (row.pass == Pass::forward)
    check_forward_tensors(call, p, row.lse);
  else
    check_backward_tensors(call, p);
  check_outputs(outputs_of(call, row.pass), inputs_of(call, row.pass));
  return checked;
}

}  // namespace attn
