// Relations between the gradients of one run, up to rounding: within the errors of
// fuzz/relation_errors.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fuzz/relation_errors.h"
#include "fuzz/relations.h"

namespace attn::fuzz {
namespace {

using Values = Tensor<double, 4>;

std::optional<Case> backward(Case c) {
  if (row_of(c).pass != Pass::backward || c.skv == 0) return {};
  if (c.layout == Layout::shared_kv) c.layout = Layout::bhsd;
  return plain(std::move(c));
}

// ---- dV ----------------------------------------------------------------------------------------

/// dO and V above 0, so that no sum below cancels and its relative error is that of its terms.
PassInputs above_zero(const RelationRun& r) {
  PassInputs in = r.in;
  for (Values* x : {&in.v, &in.d_o})
    for (double& value : x->values()) value = value == 0 ? 1 : std::abs(value);
  return in;
}
bool attends(const Outputs& out, int b, int h, int i) {
  return !std::isinf(out.at("LSE")(b, h, i, 0));
}

/// Calls f(b, kv head) and sums over the rows of its group: f(b, h, i, tau), where P of the
/// backward pass, exp(s - LSE) with s and LSE of their own errors, sums to 1 within tau, rounded.
template <class F>
void for_rows_of_group(const RelationRun& r, const RelationErrors& errors, int b, int kv_head,
                       F f) {
  const int group = r.c.hq / r.c.hkv;
  for (int h = kv_head * group; h < (kv_head + 1) * group; ++h)
    for (int i = 0; i < r.in.sequences[b].sizes.sq; ++i) {
      const double a = errors.largest_score(b, h, i),
                   weight = std::expm1(std::log1p(errors.weight(b, a)) + errors.lse(b, a));
      f(h, i, (1 + errors.probability()) * (1 + weight) - 1 + errors.keys(b) * errors.underflow());
    }
}

std::string broken_dv_sum(const RelationRun& r) {
  const PassInputs in = above_zero(r);
  const Outputs got = r.run(r.c, in);
  const RelationErrors errors(r.c, in);
  for (int b = 0; b < r.c.b; ++b)
    for (int h = 0; h < r.c.hkv; ++h)
      for (int d = 0; d < r.c.dv; ++d) {
        double dv = 0, d_o = 0, bound = 0, largest = 0;
        for (int j = 0; j < errors.keys(b); ++j) dv += got.at("dV")(b, h, j, d);
        for_rows_of_group(r, errors, b, h, [&](int query_head, int i, double tau) {
          const double x = attends(got, b, query_head, i) ? in.d_o(b, query_head, i, d) : 0;
          d_o += x, bound += tau * x, largest += x;
        });
        const double rows = static_cast<double>(r.c.hq / r.c.hkv) * r.c.sq;
        bound += (errors.sum(rows) + errors.output()) * (largest + bound) +
                 errors.keys(b) * errors.underflow();
        if (!within(dv, d_o, bound))
          return off(fmt::format("the sum of dV[b{} h{} d{}] over the keys", b, h, d), dv, d_o,
                     bound);
      }
  return {};
}

std::string broken_dv_v(const RelationRun& r) {
  const PassInputs in = above_zero(r);
  const Outputs got = r.run(r.c, in);
  const RelationErrors errors(r.c, in);
  for (int b = 0; b < r.c.b; ++b)
    for (int h = 0; h < r.c.hkv; ++h) {
      double dv_v = 0, d_o_o = 0, bound = 0, values = 0;
      for (int j = 0; j < errors.keys(b); ++j)
        for (int d = 0; d < r.c.dv; ++d) {
          dv_v += got.at("dV")(b, h, j, d) * in.v(b, h, j, d);
          values += in.v(b, h, j, d);
        }
      double d_o_sum = 0;
      for_rows_of_group(r, errors, b, h, [&](int query_head, int i, double tau) {
        for (int d = 0; d < r.c.dv; ++d) {
          const double x = in.d_o(b, query_head, i, d) * got.at("O")(b, query_head, i, d);
          d_o_o += x, bound += 2 * tau * x;  // of dV, and of O, whose weights err less
          d_o_sum += in.d_o(b, query_head, i, d);
        }
      });
      const double rows = static_cast<double>(r.c.hq / r.c.hkv) * r.c.sq;
      bound +=
          (errors.sum(rows) + errors.sum(errors.keys(b)) + 2 * errors.output()) * (d_o_o + bound);
      bound += errors.underflow() * (values + d_o_sum * (1 + errors.keys(b)));
      bound *= 1 + 4 * bound / std::max(d_o_o, 0x1p-1000);  // what is of second order
      if (!within(dv_v, d_o_o, bound))
        return off(fmt::format("<dV, V> of b{} h{}", b, h), dv_v, d_o_o, bound);
    }
  return {};
}

// ---- dQ and dK ---------------------------------------------------------------------------------

/// score + x, x + score or score - x, where no score is in x: the derivative is 1, and what is
/// added is the same number in every kernel.
bool adds_one_term(const Expression& mod) {
  const auto plain_score = [&](int n) { return mod->args[n]->op == Op::score; };
  const auto apart = [&](int n) { return !uses(mod->args[n], Op::score); };
  if (mod->op == Op::subtract) return plain_score(0) && apart(1);
  if (mod->op == Op::add) return (plain_score(0) && apart(1)) || (apart(0) && plain_score(1));
  return mod->op == Op::score;
}
/// Any mask, sink, dropout and dLSE. Other mods: how far two roundings of their derivative are
/// apart cannot be said without a look at every pair.
std::optional<Case> with_one_term(Case c) {
  if (row_of(c).pass != Pass::backward || !has_rows(c) || c.skv == 0) return {};
  if (c.layout == Layout::shared_kv) c.layout = Layout::bhsd;
  if (!adds_one_term(c.mod)) c.mod = variable(Op::score);
  drop_unread_tables(c);
  c.fill = Fill::gaussian;
  c.scale = 1.0 / c.d;  // scores of about 1, from the inputs below
  return c;
}

/// Q_i and K_j are e, V_j and dO_i are f, times 1 or 1/2, of either sign. So |s_ij| is |scale|
/// |q_i| |k_j| and |dP_ij| is |dO_i| |v_j|: Cauchy's inequality, from which the bound comes, gives
/// nothing away. And both go together: s_ij dP_ij > 0, so that the sum over j of dS_ij s_ij, a
/// covariance, is far from 0 in every row. e and f are the first rows of the K and V that were
/// drawn, the factors follow the first channel of each row of Q and K.
PassInputs along_two_vectors(const RelationRun& r) {
  const auto factor = [](double x) { return (x < 0 ? -1 : 1) * (std::abs(x) < 0.75 ? 0.5 : 1.0); };
  const auto entry = [](double x) { return std::abs(x) < 0x1p-8 ? 1 : x; };  // half of it is exact
  PassInputs in = r.in;
  const auto set = [&](Values& x, const Values& vector, const Values& sized) {
    const std::int64_t group = x.extents()[1] / vector.extents()[1];
    x = gathered(vector, x.extents(), [group](std::array<std::int64_t, 4> i) {
      i[1] /= group, i[2] = 0;
      return i;
    });
    std::size_t n = 0;
    const auto& e = x.extents();
    for (std::int64_t b = 0; b < e[0]; ++b)
      for (std::int64_t h = 0; h < e[1]; ++h)
        for (std::int64_t s = 0; s < e[2]; ++s)
          for (std::int64_t d = 0; d < e[3]; ++d, ++n)
            x.values()[n] = factor(sized(b, h, s, 0)) * entry(x.values()[n]);
  };
  set(in.q, r.in.k, r.in.q);
  set(in.k, r.in.k, r.in.k);
  set(in.v, r.in.v, r.in.k);
  set(in.d_o, r.in.v, r.in.q);
  return in;
}

/// <X, Y> over the first rows of a head, and by how much X rounded to its type moves it.
struct Product {
  double value = 0, rounding = 0;

  void add(const RelationErrors& errors, const Values& x, const Values& y, int b, int h, int rows) {
    const double stored = errors.output() / (1 - errors.output());
    for (int s = 0; s < rows; ++s)
      for (std::int64_t d = 0; d < y.extents()[3]; ++d) {
        value += x(b, h, s, d) * y(b, h, s, d);
        rounding +=
            (stored * std::abs(x(b, h, s, d)) + errors.underflow()) * std::abs(y(b, h, s, d));
      }
  }
};

/// How far row i of a head moves <dQ, Q> and <dK, K> apart, which are both the sum over j of dS_ij
/// s_ij for any dS. The kernels of dQ and of dK each compute a dS of their own, from the same LSE_i
/// and dot(dO_i, O_i):
///
///   |dS_ij| <= P_ij G_i,   G_i = B_i / (1 - p) + sum_d |dO_id O_id| + |dLSE_i|,   |s_ij| <= A_i
///   tau_i    = (1 + delta_i) (1 + c(Dv) + 4 u) (1 + u_dS) - 1          of one dS, rounded
///   apart   <= A_i (e^E_L G_i (2 tau_i + (1 + tau_i) (c(n) + c(m))) + 2 n eta (1 + G_i))
///
/// with sum_j P_ij <= e^E_L, n keys and m rows of the group. A weight below e^-104 is 0 in fp32;
/// where it is more, a score, and so what the mod adds to it, is within 104 + A_i of LSE_i.
double apart_by_row(const RelationRun& r, const PassInputs& in, const RelationErrors& errors,
                    const Outputs& got, int b, int h, int i) {
  if (!attends(got, b, h, i)) return 0;
  const double n = errors.keys(b), m = static_cast<double>(r.c.hq / r.c.hkv) * r.c.sq,
               a = errors.largest_score(b, h, i),
               added = std::abs(got.at("LSE")(b, h, i, 0)) + vanishes + a;
  double g = errors.largest_gradient(b, h, i) / (1 - r.c.dropout) + std::abs(in.d_lse(b, h, i));
  for (int d = 0; d < r.c.dv; ++d) g += std::abs(in.d_o(b, h, i, d) * got.at("O")(b, h, i, d));
  const double tau = (1 + errors.weight(b, a, added)) * (1 + errors.sum(r.c.dv) + 4 * u32) *
                         (1 + errors.gradient()) -
                     1;
  return a * (std::exp(errors.lse(b, a, added)) * g *
                  (2 * tau + (1 + tau) * (errors.sum(n) + errors.sum(m))) +
              2 * n * errors.underflow() * (1 + g));
}

std::string broken_dq_q(const RelationRun& r) {
  const PassInputs in = along_two_vectors(r);
  const Outputs got = r.run(r.c, in);
  const RelationErrors errors(r.c, in);
  const int group = r.c.hq / r.c.hkv;
  for (int b = 0; b < r.c.b; ++b)
    for (int kv_head = 0; kv_head < r.c.hkv; ++kv_head) {
      const int rows = r.in.sequences[b].sizes.sq;
      Product dq_q, dk_k;
      dk_k.add(errors, got.at("dK"), in.k, b, kv_head, errors.keys(b));
      double bound = dk_k.rounding;
      for (int h = kv_head * group; h < (kv_head + 1) * group; ++h) {
        dq_q.add(errors, got.at("dQ"), in.q, b, h, rows);
        for (int i = 0; i < rows; ++i) bound += apart_by_row(r, in, errors, got, b, h, i);
      }
      bound += dq_q.rounding;
      if (!within(dq_q.value, dk_k.value, bound))
        return off(fmt::format("<dQ, Q> of b{} h{}", b, kv_head), dq_q.value, dk_k.value, bound);
    }
  return {};
}

}  // namespace

std::span<const Relation> gradient_relations() {
  static constexpr Relation all[] = {
      {"dv_sum", "dV summed over the keys is dO summed over the rows",
       "P of each row sums to 1 within u_P, delta and E_L", backward, broken_dv_sum},
      {"dv_v", "<dV, V> = <dO, O> of each key/value head", "the same, and E_O", backward,
       broken_dv_v},
      {"dq_q", "<dQ, Q> = <dK, K> of each key/value head, whatever the mod adds to the score",
       "dS, rounded for each of them apart", with_one_term, broken_dq_q},
  };
  return all;
}

}  // namespace attn::fuzz
