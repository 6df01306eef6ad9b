// The conformance kernels on fixed arguments, for each target; see conformance_run.h.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "optimized/simt/conformance.h"
#include "optimized/simt/conformance_run.h"

namespace attn {
inline namespace ATTN_TARGET {
namespace {

/// Whole numbers and bits that look random and are the same everywhere.
class Numbers {
 public:
  std::uint32_t bits() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 32);
  }
  int whole(int low, int high) {
    return low + static_cast<int>(bits() % static_cast<std::uint32_t>(high - low + 1));
  }

 private:
  std::uint64_t state_ = 1;
};

template <class T>
bool is_nan(const T& x) {
  if constexpr (std::is_floating_point_v<T>)
    return x != x;
  else
    return false;
}

class Run {
 public:
  explicit Run(DeviceMemory& memory) : memory_(memory) { options_.check = false; }

  /// An argument that kernels read, or read and write.
  template <class T>
  T* in(const std::vector<T>& values) {
    T* device = reinterpret_cast<T*>(memory_.allocate(values.size() * sizeof(T)));
    memory_.to_device(device, values.data(), values.size() * sizeof(T));
    return device;
  }
  /// `count` values that `value(i)` gives.
  template <class T, class F>
  T* in(int count, F value) {
    std::vector<T> values;
    for (int i = 0; i < count; ++i) values.push_back(static_cast<T>(value(i)));
    return in(values);
  }
  template <class T>
  T* out(int count) {
    return in(std::vector<T>(static_cast<std::size_t>(count)));
  }

  template <class... Parameters, class... Args>
  void launch(simt::Grid grid, int threads, int shared_bytes, void (*kernel)(Parameters...),
              Args... args) {
    simt::launch(grid, threads, static_cast<std::size_t>(shared_bytes), options_, kernel, args...);
    memory_.synchronise();
  }

  /// Takes `count` values from `device` as the result of a primitive.
  template <class T>
  void take(const std::string& primitive, const T* device, int count,
            Precision precision = Precision::exact, std::vector<float> arguments = {}) {
    std::vector<T> values(static_cast<std::size_t>(count));
    memory_.to_host(values.data(), device, values.size() * sizeof(T));
    ConformanceResult result{primitive, {}, precision, std::move(arguments)};
    for (const T& value : values) {
      constexpr std::size_t words = (sizeof(T) + 3) / 4;
      std::uint32_t word[words] = {};
      std::memcpy(word, &value, sizeof(T));
      if (is_nan(value)) word[words - 1] = 0x7fffffff;
      result.words.insert(result.words.end(), word, word + words);
    }
    results_.push_back(std::move(result));
  }

  std::vector<ConformanceResult> results() { return std::move(results_); }

 private:
  DeviceMemory& memory_;
  simt::LaunchOptions options_;
  std::vector<ConformanceResult> results_;
};

/// Zeros, infinities, NaN, subnormal numbers, halfway cases, whole numbers and random bits.
std::vector<float> special_numbers(Numbers& numbers) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> v = {
      0.0f,       -0.0f,     1.0f,      -1.0f,      infinity,        -infinity,
      nan,        0x1p-149f, 0x1p-126f, -0x1p-127f, 0x1.fffffep127f, -126.0f,
      -127.0f,    -149.0f,   -150.0f,   127.0f,     128.0f,          127.5f,
      65504.0f,   65519.0f,  65520.0f,  0x1p-14f,   0x1p-24f,        0x1p-25f,
      0x1.8p-25f, 0x1.01p0f, 0x1.03p0f, 0x1.002p0f, 0x1.001p0f,      0x1.003p0f};
  for (int i = 0; i < 2000; ++i)
    v.push_back(static_cast<float>(numbers.whole(-1 << 23, 1 << 23)) * 0x1p-16f);
  for (int i = 0; i < 2000; ++i) v.push_back(std::bit_cast<float>(numbers.bits()));
  return v;
}

void threads_and_warps(Run& run, Numbers& numbers) {
  int* const who = run.out<int>(12 * 64 * 10);
  run.launch({2, 3, 2}, 64, 0, conformance::identity, who);
  run.take("identity", who, 12 * 64 * 10);

  int* const source = run.in<int>(32, [&](int) { return numbers.whole(0, 63); });
  const auto shuffles = [&]<class T>(const char* name, T) {
    T* const in = run.in<T>(32, [](int i) { return 3 * i + 1; });
    for (const int distance : {0, 1, 2, 7, 16, 31}) {
      T* const out = run.out<T>(96);
      run.launch({}, 32, 0, conformance::shuffles<T>, in, source, distance, distance, out);
      run.take(name + std::to_string(distance), out, 96);
    }
  };
  shuffles("shuffles<u32> ", std::uint32_t{});
  shuffles("shuffles<float> ", 0.0f);
  shuffles("shuffles<double> ", 0.0);

  for (const std::uint32_t mask : {0u, ~0u, 1u, 1u << 31, 0x12345678u}) {
    int* const in = run.in<int>(32, [&](int i) { return mask >> i & 1u ? i + 1 : 0; });
    std::uint32_t* const out = run.out<std::uint32_t>(4);
    run.launch({}, 32, 0, conformance::votes, in, out);
    run.take("votes " + std::to_string(mask), out, 4);
  }

  int* const in = run.in<int>(64, [](int i) { return 5 * i; });
  int* const out = run.out<int>(64);
  run.launch({}, 128, 512, conformance::named_barriers, in, out);
  run.take("named_barriers", out, 64);
}

void arithmetic(Run& run, Numbers& numbers) {
  const std::vector<float> x = special_numbers(numbers);
  const int n = static_cast<int>(x.size());
  std::vector<float> y(x.rbegin(), x.rend()), z;
  for (int i = 0; i < n; ++i) z.push_back(x[static_cast<std::size_t>((i * 7 + 3) % n)]);
  y[0] = -0.0f;  // max(+0, -0) and max(-0, +0)
  y[1] = 0.0f;
  float* const a = run.in(x);
  float* const b = run.in(y);
  float* const out = run.out<float>(6 * n);
  run.launch({(n + 127) / 128}, 128, 0, conformance::arithmetic, a, b, run.in(z), out, n);
  run.take("vexp2", out, n, Precision::exp2, x);
  run.take("vlog2", out + n, n, Precision::log2, x);
  run.take("vrcp", out + 2 * n, n);
  run.take("vmax", out + 3 * n, n);
  run.take("vfma", out + 4 * n, n);
  run.take("per_lane, choose", out + 5 * n, n);

  const auto conversions = [&]<class T>(const std::string& name, T) {
    std::uint32_t* const packed = run.out<std::uint32_t>(n);
    float* const back = run.out<float>(2 * n);
    run.launch({(n + 63) / 64}, 64, 0, conformance::conversions<T>, a, b, packed, back, back + n,
               n);
    run.take("pack2" + name, packed, n);
    run.take("unpack2" + name, back, 2 * n);
  };
  conversions("<half>", half{});
  conversions("<bfloat16>", bfloat16{});

  float* const rounded = run.out<float>(n);
  run.launch({(n + 63) / 64}, 64, 0, conformance::tf32_conversion, a,
             reinterpret_cast<std::uint32_t*>(rounded), n);
  run.take("round_to_tf32", rounded, n);
}

void matrix_products(Run& run, Numbers& numbers) {
  std::uint16_t* const rows = run.in<std::uint16_t>(64 * 8, [](int i) { return i + 1; });
  int* const address = run.in<int>(32, [](int l) { return (l * 29 + 5) % 64; });
  std::uint32_t* const fragments = run.out<std::uint32_t>(128);
  run.launch({}, 32, 1024, conformance::ldmatrix<false>, rows, address, fragments);
  run.take("ldmatrix", fragments, 128);
  run.launch({}, 32, 1024, conformance::ldmatrix<true>, rows, address, fragments);
  run.take("ldmatrix, transposed", fragments, 128);

  // Whole numbers: every sum is exact in fp32, in any order. In the second product a NaN and an
  // infinity stand in the fragments.
  const auto whole = [&](int) { return static_cast<float>(numbers.whole(-16, 16)); };
  for (const bool special : {false, true}) {
    const std::string suffix = special ? ", NaN and infinity" : "";
    const auto mma = [&]<class T>(const std::string& name, T) {
      const auto pair = [&](int i) {
        const float low = special && i == 37   ? infinity
                          : special && i == 60 ? -infinity - -infinity
                                               : whole(i);
        return from_float<T>(low).bits | static_cast<std::uint32_t>(from_float<T>(whole(i)).bits)
                                             << 16;
      };
      std::uint32_t* const left = run.in<std::uint32_t>(128, pair);
      std::uint32_t* const right = run.in<std::uint32_t>(64, pair);
      float* const sum = run.in<float>(128, whole);
      run.launch({}, 32, 0, conformance::mma<T>, left, right, sum);
      run.take("mma" + name + suffix, sum, 128);
    };
    mma("<half>", half{});
    mma("<bfloat16>", bfloat16{});
    const auto word = [&](int i) {
      return std::bit_cast<std::uint32_t>(special && i == 37 ? infinity : whole(i));
    };
    std::uint32_t* const left = run.in<std::uint32_t>(128, word);
    std::uint32_t* const right = run.in<std::uint32_t>(64, word);
    float* const sum = run.in<float>(128, whole);
    run.launch({}, 32, 0, conformance::mma_tf32, left, right, sum);
    run.take("mma_tf32" + suffix, sum, 128);
  }
}

template <class T>
T numbered(int i) {
  T value;
  unsigned char bytes[sizeof(T)];
  for (std::size_t b = 0; b < sizeof(T); ++b)
    bytes[b] = static_cast<unsigned char>(37 * i + 11 * static_cast<int>(b) + 1);
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

void shared_memory(Run& run) {
  const auto mirrored = [&]<class T>(const std::string& name, T) {
    T* const in = run.in<T>(64, numbered<T>);
    for (const int limit : {0, 33, 64}) {
      T* const out = run.out<T>(64);
      run.launch({}, 64, 64 * sizeof(T), conformance::shared_memory<T>, in, out, limit);
      run.take("shared_memory" + name + std::to_string(limit), out, 64);
    }
  };
  mirrored("<u16> ", std::uint16_t{});
  mirrored("<half> ", half{});
  mirrored("<float> ", 0.0f);
  mirrored("<double> ", 0.0);
  mirrored("<16 bytes> ", simt::Vec16{});

  std::uint32_t* const in = run.in<std::uint32_t>(32, [](int i) { return i + 100; });
  std::uint32_t* const out = run.out<std::uint32_t>(32);
  run.launch({}, 32, 128, conformance::predicated_store, in, out);
  run.take("predicated_store", out, 32);
}

void global_memory(Run& run) {
  const auto backwards = [&]<class T>(const std::string& name, T) {
    for (const int n : {1, 32, 77}) {
      T* const in = run.in<T>(n, numbered<T>);
      T* const out = run.out<T>(n + 1);
      run.launch({}, 32, 0, conformance::global_memory<T>, in, out, n);
      run.take("global_memory" + name + std::to_string(n), out, n + 1);
    }
  };
  backwards("<u8> ", std::uint8_t{});
  backwards("<bfloat16> ", bfloat16{});
  backwards("<float> ", 0.0f);
  backwards("<i64> ", std::int64_t{});
  backwards("<16 bytes> ", simt::Vec16{});
  std::uint16_t* const in = run.in<std::uint16_t>(256, [](int i) { return i; });
  std::uint16_t* const out = run.out<std::uint16_t>(256);
  run.launch({}, 32, 0, conformance::wide_global_memory, in, out);
  run.take("wide_global_memory", out, 256);

  const int n = 300;
  const auto atomics = [&]<class T>(const std::string& name, T) {
    T* const values = run.in<T>(n, [](int i) { return i % 50 - 20; });
    T* const sum = run.out<T>(3);
    run.launch({5}, 64, 0, conformance::atomic_sums<T>, values, sum, n);
    run.take("atomic_add" + name, sum, 3);
    if constexpr (std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::uint32_t>) {
      T* const max = run.out<T>(3);
      run.launch({5}, 64, 0, conformance::atomic_maxima<T>, values, max, n);
      run.take("atomic_max" + name, max, 3);
    }
  };
  atomics("<float>", 0.0f);
  atomics("<i32>", std::int32_t{});
  atomics("<u32>", std::uint32_t{});
  atomics("<u64>", std::uint64_t{});
}

template <int Bytes>
void copies_of(Run& run) {
  int* const valid = run.in<int>(32, [](int l) { return l % (Bytes + 1); });
  std::uint8_t* const in = run.in<std::uint8_t>(32 * Bytes, [](int i) { return i + 1; });
  for (const int limit : {0, 5, 31}) {
    std::uint8_t* const out = run.out<std::uint8_t>(2 * 32 * Bytes);
    run.launch({}, 32, 2 * 32 * Bytes, conformance::async_copies<Bytes>, in, valid, limit, out);
    run.take("async_copies<" + std::to_string(Bytes) + "> " + std::to_string(limit), out,
             2 * 32 * Bytes);
  }
}

void asynchronous_copies(Run& run) {
  copies_of<4>(run);
  copies_of<8>(run);
  copies_of<16>(run);
  std::uint32_t* const in = run.in<std::uint32_t>(32, [](int i) { return i + 50; });
  for (const int limit : {0, 11}) {
    std::uint32_t* const out = run.out<std::uint32_t>(32);
    run.launch({}, 32, 128, conformance::conditional_copy, in, limit, out);
    run.take("conditional_copy " + std::to_string(limit), out, 32);
  }
}

}  // namespace

std::vector<ConformanceResult> run_conformance(DeviceMemory& memory) {
  Run run(memory);
  Numbers numbers;
  threads_and_warps(run, numbers);
  arithmetic(run, numbers);
  matrix_products(run, numbers);
  shared_memory(run);
  global_memory(run);
  asynchronous_copies(run);
  memory.reset();
  return run.results();
}

}  // namespace ATTN_TARGET
}  // namespace attn
