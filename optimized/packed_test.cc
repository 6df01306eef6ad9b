// Packed sequences: each gives the bits that it gives alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "optimized/exact_fixtures.h"
#include "optimized/simt/fault.h"

namespace attn::path_test {
namespace {

/// Sequences without queries, without keys and without both, first and last ones included.
const std::vector<std::int32_t> cu_q = {0, 0, 5, 5, 75, 75, 92, 92},
                                cu_kv = {0, 7, 47, 47, 50, 50, 150, 152};
constexpr int sequences = 7;
constexpr Lengths packed_lengths{1, 4, 2, 92, 152, 24, 16};

const char* const mod = "score + slope[h] * (kv - q) + bias[b] * kv";
const char* const mask = "kv <= q + (Skv - Sq) || kv == 3";

/// The packed problem; `bias` has an entry a sequence.
template <class T>
struct Packed : Attention<T> {
  Packed() : Attention<T>(packed_lengths) {
    this->bias = Tensor<float, 1>({sequences});
    this->fill_all();
    this->mod = attn::path_test::mod;
    this->mask = attn::path_test::mask;
    this->give_sink();
  }
  AttentionCall packed(AttentionCall call) const {
    call.cu_q = cu_q;
    call.cu_kv = cu_kv;
    return call;
  }
  std::vector<float> d_bias = std::vector<float>(sequences, std::nanf(""));
  AttentionCall packed_forward() { return packed(this->forward_call()); }
  AttentionCall packed_backward() {
    AttentionCall call = packed(this->backward_call());
    this->gradients.push_back(d_bias.data());
    call.d_captured = this->gradients;
    return call;
  }
};

template <class X>
void copy_rows(const Tensor<X, 4>& from, int first, Tensor<X, 4>& to) {
  for (int h = 0; h < to.extents()[1]; ++h)
    for (int i = 0; i < to.extents()[2]; ++i)
      for (int c = 0; c < to.extents()[3]; ++c) to(0, h, i, c) = from(0, h, first + i, c);
}

/// The rows of sequence s, as a problem of its own.
template <class T>
struct Member : Attention<T> {
  Member(const Packed<T>& all, int s)
      : Attention<T>({1, 4, 2, cu_q[s + 1] - cu_q[s], cu_kv[s + 1] - cu_kv[s], 24, 16}) {
    copy_rows(all.q, cu_q[s], this->q);
    copy_rows(all.k, cu_kv[s], this->k);
    copy_rows(all.v, cu_kv[s], this->v);
    copy_rows(all.d_o, cu_q[s], this->d_o);
    for (int h = 0; h < 4; ++h)
      for (int i = 0; i < this->n.sq; ++i) this->d_lse(0, h, i) = all.d_lse(0, h, cu_q[s] + i);
    this->slope = all.slope;
    this->sink = all.sink;
    this->bias(0) = all.bias(s);
    this->options = all.options;
    this->give_sink();
    this->mod = all.mod;
    this->mask = all.mask;
    d_bias = std::nanf("");
  }
  float d_bias;
  AttentionCall alone_backward() {
    AttentionCall call = this->backward_call();
    this->gradients.push_back(&d_bias);
    call.d_captured = this->gradients;
    return call;
  }
};

template <class T>
bool same_rows(const Tensor<T, 4>& all, int first, const Tensor<T, 4>& member) {
  Tensor<T, 4> rows(member.extents());
  copy_rows(all, first, rows);
  return same_bits(rows, member);
}
template <class T>
bool same_rows(const Tensor<float, 3>& all, int first, const Tensor<float, 3>& member, T) {
  for (int h = 0; h < 4; ++h)
    for (int i = 0; i < member.extents()[2]; ++i)
      if (std::bit_cast<std::uint32_t>(all(0, h, first + i)) !=
          std::bit_cast<std::uint32_t>(member(0, h, i)))
        return false;
  return true;
}

/// Whether each sequence of the packed result has the bits that it has alone.
template <class T>
bool forward_agrees(const Packed<T>& x, Engine engine) {
  for (int s = 0; s < sequences; ++s) {
    Member<T> alone(x, s);
    alone.forward(engine);
    if (!same_rows(x.o, cu_q[s], alone.o) || !same_rows(x.lse, cu_q[s], alone.lse, T{}) ||
        !same_rows(x.row_max, cu_q[s], alone.row_max, T{}))
      return false;
  }
  return true;
}

TEST(Packed, EachSequenceIsAsAlone) {
  for (const TileChoice tile : {TileChoice::small, TileChoice::production})
    for_each_build([&](auto t, Engine engine) {
      if (engine == Engine::thread && tile == TileChoice::production) return;
      using T = decltype(t);
      Packed<T> x;
      x.options.tile = tile;
      implementation_named("packed_forward").run(x.packed_forward(), engine);
      EXPECT_FALSE(has_nan(x.o) || has_nan(x.lse) || has_nan(x.row_max));
      EXPECT_TRUE(forward_agrees(x, engine));
      implementation_named("packed_backward").run(x.packed_backward(), engine);
      for (int s = 0; s < sequences; ++s) {
        SCOPED_TRACE(s);
        Member<T> alone(x, s);
        alone.forward(engine);
        implementation_named("flash_backward").run(alone.alone_backward(), engine);
        EXPECT_TRUE(same_rows(x.dq, cu_q[s], alone.dq));
        EXPECT_TRUE(same_rows(x.dk, cu_kv[s], alone.dk));
        EXPECT_TRUE(same_rows(x.dv, cu_kv[s], alone.dv));
        EXPECT_EQ(x.d_bias[static_cast<std::size_t>(s)], alone.d_bias) << "read by one sequence";
      }
    });
}

/// Every score is 0: the sums over all sequences are whole numbers.
TEST(Packed, GradientsOfSharedTensorsAreSumsOverTheSequences) {
  for_each_build([&](auto t, Engine engine) {
    using T = decltype(t);
    Packed<T> x;
    fill_without_scores(x);
    for (float& entry : x.slope.values()) entry = 0;
    for (float& entry : x.bias.values()) entry = 0;
    for (float& entry : x.sink.values()) entry = 0;
    x.options.scale = 0.5;
    x.mask = "kv / 4 == q / 4 && kv % 4 != 3 && kv / 4 != (Skv - 1) / 4";
    implementation_named("packed_forward").run(x.packed_forward(), engine);
    implementation_named("packed_backward").run(x.packed_backward(), engine);
    std::vector<double> d_slope(4), d_sink(4);
    for (int s = 0; s < sequences; ++s) {
      const Member<T> alone(x, s);
      const int last = (alone.n.skv - 1) / 4;
      const ExactAnswer y = exact_answer(
          alone,
          UniformRows{
              [&](int, int, int i, int j) { return j / 4 == i / 4 && j % 4 != 3 && j / 4 != last; },
              true},
          0.5);
      ASSERT_TRUE(y.fits);
      for (int h = 0; h < 4; ++h) d_slope[h] += y.d_slope[h], d_sink[h] += y.d_sink[h];
    }
    EXPECT_EQ(difference("d_slope", x.d_slope, d_slope), "");
    EXPECT_EQ(difference("d_sink", x.d_sink, d_sink), "");
  });
}

/// Two keys a row; b is the sequence.
TEST(Packed, DropoutSeesTheSequenceAndLocalPositions) {
  for_each_build([&](auto t, Engine engine) {
    using T = decltype(t);
    Packed<T> x;
    fill_without_scores(x);
    for (float& entry : x.slope.values()) entry = 0;
    for (float& entry : x.bias.values()) entry = 0;
    x.options.sink.reset();
    x.options.dropout = {0.5, 1234567890123};
    x.mask = "kv == q || kv == q + 1 && q + 1 < Skv";
    implementation_named("packed_forward").run(x.packed_forward(), engine);
    for (int s = 0; s < sequences; ++s)
      for (int h = 0; h < 4; ++h)
        for (int i = 0; i < cu_q[s + 1] - cu_q[s]; ++i) {
          const int skv = cu_kv[s + 1] - cu_kv[s];
          const int keys = std::clamp(skv - i, 0, 2);
          for (int c = 0; c < 16; ++c) {
            double sum = 0;
            for (int j = i; j < i + keys; ++j)
              sum += dropout_by_hand(x.options.dropout, s, h, i, j) / keys *
                     to_float(x.v(0, h / 2, cu_kv[s] + j, c));
            ASSERT_EQ(to_float(x.o(0, h, cu_q[s] + i, c)), sum) << s << " " << h << " " << i;
          }
        }
  });
}

TEST(Packed, NothingLeaksBetweenSequences) {
  Packed<half> x, y;
  for (int j = cu_kv[1]; j < cu_kv[2]; ++j)  // the keys of sequence 1
    for (int h = 0; h < 2; ++h)
      for (int c = 0; c < 16; ++c) y.k(0, h, j, c) = y.v(0, h, j, c) = half{0x7e00};
  for (Packed<half>* z : {&x, &y})
    implementation_named("packed_forward").run(z->packed_forward(), Engine::warp);
  for (int h = 0; h < 4; ++h)
    for (int i = 0; i < 92; ++i)
      for (int c = 0; c < 16; ++c) {
        if (i < 5)
          EXPECT_TRUE(std::isnan(to_float(y.o(0, h, i, c))));
        else
          EXPECT_EQ(y.o(0, h, i, c).bits, x.o(0, h, i, c).bits);
      }
}

TEST(Packed, NoSequenceAtAllIsNoWork) {
  Attention<half> x({1, 2, 2, 0, 0, 16, 16});
  const std::vector<std::int32_t> none = {0};
  AttentionCall call = x.forward_call();
  call.cu_q = call.cu_kv = none;
  EXPECT_NO_THROW(implementation_named("packed_forward").run(call, Engine::warp));
  call = x.backward_call();
  call.cu_q = call.cu_kv = none;
  EXPECT_NO_THROW(implementation_named("packed_backward").run(call, Engine::warp));
}

TEST(Packed, AgreementShowsPlantedFaults) {
  for (const PlantedFault fault : {PlantedFault::M10, PlantedFault::M20, PlantedFault::M21,
                                   PlantedFault::M26, PlantedFault::none}) {
    Packed<half> x;
    x.options.tile = TileChoice::small;
    bool agrees = false;
    {
      const Plant plant(fault);
      try {
        implementation_named("packed_forward").run_planted(x.packed_forward());
        agrees = true;
      } catch (const simt::CheckerFault&) {
      }
    }
    agrees = agrees && forward_agrees(x, Engine::warp);
    EXPECT_EQ(agrees, fault == PlantedFault::none) << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace attn::path_test
