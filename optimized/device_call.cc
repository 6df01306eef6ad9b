#include "optimized/device_call.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "optimized/simt/fault.h"

namespace attn {
namespace {

constexpr std::byte poison{0xff};
constexpr std::size_t guard_bytes = DeviceMemory::alignment;

/// The instruction that reads table `which` of a program; `load_index`: none does.
Code read_of(const Program& program, int which) {
  for (int i = 0; i < program.instruction_count; ++i) {
    const Instruction& in = program.instructions[i];
    const bool reads = in.code == Code::read_real || in.code == Code::read_index ||
                       in.code == Code::read_condition;
    if (reads && in.which == which) return in.code;
  }
  return Code::load_index;
}

std::int64_t entries_of(const ProgramTable& table) {
  std::int64_t n = 1;
  for (int axis = 0; axis < table.rank; ++axis) n *= table.extents[axis];
  return n;
}

/// Offsets of the lowest and the highest element, in elements.
struct Reach {
  std::int64_t low = 0, high = 0;
  void extend(std::int64_t extent, std::int64_t stride) {
    (stride < 0 ? low : high) += (extent - 1) * stride;
  }
};

[[noreturn]] void written(const char* name, const char* what) {
  const std::string text = std::string("out of bounds  ") + what + " of " + name + " was written";
  throw simt::CheckerFault(simt::FaultKind::out_of_bounds, "", 0, {}, text);
}

}  // namespace

DeviceCall::DeviceCall(const AttentionCall& host, Pass pass, DeviceMemory& memory)
    : memory_(memory), call_(host) {
  call_.options.workspace = {};  // the host's is of no use to the device
  const bool backward = pass == Pass::backward;
  for (const TensorInfo* input : {&host.q, &host.k, &host.v, &host.d_o, &host.d_lse})
    add(*input, false);
  for (const TensorInfo* either : {&host.o, &host.lse}) add(*either, !backward);
  for (const TensorInfo* output : {&host.row_max, &host.dq, &host.dk, &host.dv}) add(*output, true);
  std::vector<std::size_t> captured;  // entries of each floating tensor that the mod reads
  for (int i = 0; i < host.mod.program.table_count; ++i)
    if (read_of(host.mod.program, i) == Code::read_real && captured.size() < host.d_captured.size())
      captured.push_back(static_cast<std::size_t>(entries_of(host.mod.program.tables[i])));
  for (std::size_t i = 0; i < captured.size(); ++i)
    add(host.d_captured[i], captured[i] * sizeof(float), "d_captured", true);
  add(host.d_sink, static_cast<std::size_t>(host.q.extents[1]) * sizeof(float), "d_sink", true);
  merge_and_copy();

  for (TensorInfo* tensor : {&call_.q, &call_.k, &call_.v, &call_.o, &call_.lse, &call_.row_max,
                             &call_.d_o, &call_.d_lse, &call_.dq, &call_.dk, &call_.dv})
    mirror(*tensor);
  for (float* gradient : host.d_captured)
    d_captured_.push_back(static_cast<float*>(mirrored(gradient)));
  call_.d_captured = d_captured_;
  call_.d_sink = static_cast<float*>(mirrored(host.d_sink));

  share_tables(call_.mod.program);
  share_tables(call_.mask.program);
  if (call_.options.sink && call_.options.sink->extents[0] > 0) {
    auto& sink = *call_.options.sink;
    Reach reach;
    reach.extend(sink.extents[0], sink.strides[0]);
    sink.data = share(sink.data + reach.low, static_cast<std::size_t>(reach.high - reach.low + 1)) -
                reach.low;
  }
  call_.cu_q = {share(host.cu_q.data(), host.cu_q.size()), host.cu_q.size()};
  call_.cu_kv = {share(host.cu_kv.data(), host.cu_kv.size()), host.cu_kv.size()};
  call_.lengths = {share(host.lengths.data(), host.lengths.size()), host.lengths.size()};
  if (host.page_table.data != nullptr) {
    const auto& t = host.page_table;
    Reach reach;
    for (int axis = 0; axis < 2; ++axis) reach.extend(t.extents[axis], t.strides[axis]);
    if (t.size() > 0)
      call_.page_table.data =
          share(t.data + reach.low, static_cast<std::size_t>(reach.high - reach.low + 1)) -
          reach.low;
  }
}

void DeviceCall::add(const TensorInfo& tensor, bool is_written) {
  if (tensor.data == nullptr || tensor.empty()) return;
  Reach reach;
  for (int axis = 0; axis < tensor.rank; ++axis)
    reach.extend(tensor.extents[axis], tensor.strides[axis]);
  const std::int64_t size = static_cast<std::int64_t>(bytes_of(tensor.dtype));
  add(static_cast<const std::byte*>(tensor.data) + reach.low * size,
      static_cast<std::size_t>((reach.high - reach.low + 1) * size), tensor.name, is_written);
}

void DeviceCall::add(const void* data, std::size_t bytes, const char* name, bool is_written) {
  if (data == nullptr || bytes == 0) return;
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  stretches_.push_back({first, first + bytes, is_written, name});
}

void DeviceCall::merge_and_copy() {
  std::sort(stretches_.begin(), stretches_.end(),
            [](const Stretch& a, const Stretch& b) { return a.first < b.first; });
  std::vector<Stretch> merged;
  for (const Stretch& s : stretches_) {
    if (!merged.empty() && s.first < merged.back().last) {
      merged.back().last = std::max(merged.back().last, s.last);
      merged.back().written |= s.written;
    } else {
      merged.push_back(s);
    }
  }
  stretches_ = std::move(merged);
  for (Stretch& s : stretches_) {
    const std::size_t bytes = s.last - s.first, before = guard_bytes + s.first % guard_bytes;
    s.block_bytes = before + bytes + guard_bytes;
    s.block = memory_.allocate(s.block_bytes);
    s.start = s.block + before;
    std::vector<std::byte> image(s.block_bytes, poison);
    std::memcpy(image.data() + before, reinterpret_cast<const void*>(s.first), bytes);
    memory_.to_device(s.block, image.data(), image.size());
  }
}

void* DeviceCall::mirrored(const void* host) const {
  const auto address = reinterpret_cast<std::uintptr_t>(host);
  for (const Stretch& s : stretches_)
    if (s.first <= address && address < s.last) return s.start + (address - s.first);
  return const_cast<void*>(host);  // no element: nothing will be read or written through it
}

void DeviceCall::mirror(TensorInfo& tensor) const {
  if (tensor.data != nullptr && !tensor.empty()) tensor.data = mirrored(tensor.data);
}

template <class T>
const T* DeviceCall::share(const T* data, std::size_t count) {
  if (data == nullptr || count == 0) return data;
  std::byte* copy = memory_.allocate_shared(count * sizeof(T));
  std::memcpy(copy, data, count * sizeof(T));
  return reinterpret_cast<const T*>(copy);
}

void DeviceCall::share_tables(Program& program) {
  for (int i = 0; i < program.table_count; ++i) {
    ProgramTable& table = program.tables[i];
    const Code read = read_of(program, i);
    const std::int64_t size = read == Code::read_condition ? sizeof(bool) : sizeof(float);
    if (table.data == nullptr || read == Code::load_index || entries_of(table) == 0) continue;
    Reach reach;
    for (int axis = 0; axis < table.rank; ++axis)
      reach.extend(table.extents[axis], table.strides[axis]);
    const auto* lowest = static_cast<const std::byte*>(table.data) + reach.low * size;
    table.data = share(lowest, static_cast<std::size_t>((reach.high - reach.low + 1) * size)) -
                 reach.low * size;
  }
}

void DeviceCall::copy_back() {
  memory_.synchronise();
  for (const Stretch& s : stretches_) {
    std::vector<std::byte> image(s.block_bytes);
    memory_.to_host(image.data(), s.block, image.size());
    const std::byte* begin = image.data() + (s.start - s.block);
    const std::byte* end = begin + (s.last - s.first);
    const auto is_poison = [](std::byte b) { return b == poison; };
    if (!std::all_of(static_cast<const std::byte*>(image.data()), begin, is_poison))
      written(s.name, "memory before the first element");
    if (!std::all_of(end, static_cast<const std::byte*>(image.data()) + image.size(), is_poison))
      written(s.name, "memory behind the last element");
    void* host = reinterpret_cast<void*>(s.first);
    const std::size_t bytes = s.last - s.first;
    if (!s.written && std::memcmp(host, begin, bytes) != 0) written(s.name, "an element");
    if (s.written) std::memcpy(host, begin, bytes);
  }
}

}  // namespace attn
