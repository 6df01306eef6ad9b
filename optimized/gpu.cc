#include "optimized/gpu.h"

#include <stdexcept>

namespace attn {
namespace {
Gpu*& linked() {
  static Gpu* gpu = nullptr;
  return gpu;
}
}  // namespace

Gpu* linked_gpu() { return linked(); }
void link_gpu(Gpu* gpu) { linked() = gpu; }

std::string_view run_on_linked_gpu(const Implementation& implementation,
                                   const AttentionCall& call) {
  if (linked() == nullptr) throw std::runtime_error("no GPU: built without CUDA");
  return linked()->run(implementation, call);
}

}  // namespace attn
