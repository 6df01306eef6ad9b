// Rows more than 2^31 elements apart: offsets are 64-bit.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "optimized/path_fixtures.h"

namespace attn::path_test {
namespace {

/// 2^31 elements of 2 bytes: a row further on, an offset in 32 bits points as far back.
constexpr std::int64_t far = std::int64_t{1} << 31, far_bytes = 2 * far;
constexpr std::int64_t place = 1 << 16;  // bytes for the row of one tensor

/// Addresses for rows `far` elements before and after the first one. Only the pages that are
/// touched take memory, and all else reads as zeros.
class FarMemory {
 public:
  FarMemory()
      : data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~FarMemory() {
    if (there()) munmap(data_, bytes);
  }
  FarMemory(const FarMemory&) = delete;
  bool there() const { return data_ != MAP_FAILED; }
  /// [1, 1, 2, columns]: two rows, `far` elements apart.
  TensorView<half, 4> rows(int number, int columns) const {
    auto* middle = static_cast<std::byte*>(data_) + far_bytes + number * place;
    return {reinterpret_cast<half*>(middle), {1, 1, 2, columns}, {far, far, far, 1}};
  }

 private:
  static constexpr std::size_t bytes = 2 * far_bytes + 8 * place;
  void* data_;
};

/// Two queries on two keys, each of which attends to its own key: O is V.
struct FarAttention {
  FarMemory memory;
  Tensor<half, 4> o{{1, 1, 2, 16}};
  Tensor<float, 3> lse{{1, 1, 2}};
  AttentionCall call;

  FarAttention() {
    if (!memory.there()) return;
    const TensorView<half, 4> q = memory.rows(0, 16), k = memory.rows(1, 16),
                              v = memory.rows(2, 16);
    for (int i = 0; i < 2; ++i)
      for (int c = 0; c < 16; ++c) {
        q(0, 0, i, c) = k(0, 0, i, c) = from_float<half>(c == i ? 64 : 0);
        v(0, 0, i, c) = from_float<half>(value(i, c));
      }
    call.q = describe("q", q);
    call.k = describe("k", k);
    call.v = describe("v", v);
    call.o = describe("o", o.view());
    call.lse = describe("lse", lse.view());
    call.mod = compile_mod(parse_mod("score"), {});
    call.mask = compile_mask(parse_mask("true"), {});
    call.options.scale = 1;
    poison(o);
  }
  static float value(int i, int c) { return static_cast<float>(20 * i + c + 1); }
  bool is_right() const {
    for (int i = 0; i < 2; ++i)
      for (int c = 0; c < 16; ++c)
        if (to_float(o(0, 0, i, c)) != value(i, c)) return false;
    return true;
  }
};

TEST(FarStrides, AreFollowedIn64Bits) {
  FarAttention x;
  if (!x.memory.there()) GTEST_SKIP() << "no address space of 8 GiB";
  x.call.options.launch.check = false;  // the checker keeps a byte for each byte of a tensor's span
  const Implementation& flash = implementation_named("flash_forward");
  flash.run(x.call, Engine::warp);
  EXPECT_TRUE(x.is_right());
  const Plant plant(PlantedFault::M32);  // a product in 32 bits points to zeros
  flash.run_planted(x.call);
  EXPECT_FALSE(x.is_right());
}

}  // namespace
}  // namespace attn::path_test
