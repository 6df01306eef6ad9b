#include "fuzz/score_bounds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <utility>

namespace attn::fuzz {

const char* name_of(Term term) {
  switch (term) {
    case Term::none:
      return "exact";
    case Term::scores:
      return "score error";
    case Term::probabilities:
      return "P rounding";
    case Term::derivative:
      return "derivative of the mod";
    case Term::delta:
      return "delta of the stored O";
    case Term::gradients:
      return "dS rounding";
    case Term::accumulation:
      return "accumulation";
    case Term::output:
      return "output rounding";
    case Term::poison:
      return "NaN in a masked row";
  }
  return "?";
}

double Accumulation::operator()(double n) const {
  const double worst = (n + 4) * 2 * u32;
  if (kind == BoundKind::rigorous) return worst;
  const double nearest = 6 * std::sqrt(n + 4) * u32;
  return std::min(worst, tensor_core ? std::max(nearest, (n / 8 + 4) * 2 * u32) : nearest);
}

double quantum(const Matrix& x) {
  constexpr int bias = 1075;  // a double is (its fraction with the leading 1) 2^(exponent - bias)
  int least = std::numeric_limits<int>::max();
  for (const double a : std::span(x.data(), static_cast<std::size_t>(x.size()))) {
    if (a == 0) continue;
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(a), leading = std::uint64_t{1} << 52;
    const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
    if (exponent == 0x7ff) return 0;
    least = std::min(least, exponent - bias + std::countr_zero(bits | leading));
  }
  return least == std::numeric_limits<int>::max() ? unbounded : std::ldexp(1.0, least);
}

bool is_power_of_two(double x) {
  int exponent;
  return std::abs(std::frexp(x, &exponent)) == 0.5;
}

double underflow_error(DType t) { return t == DType::f16 ? 0x1p-25 : smallest_normal; }

double as_operand(const Numerics& may, double x) {
  if (may.input_rounding == 0 || x == 0 || !std::isfinite(x)) return x;
  const int bits = -std::ilogb(may.input_rounding);  // of the significand
  int exponent;
  const double significand = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(significand, bits)), exponent - bits);
}

double operand_rounding(const Numerics& may, const Matrix& x) {
  if (may.input_rounding == 0) return 0;
  const bool kept = std::all_of(x.data(), x.data() + x.size(),
                                [&](double a) { return std::isnan(a) || as_operand(may, a) == a; });
  return kept ? 0 : may.input_rounding;
}

double stored_bound(DType storage, double value, double inner) {
  const double u = unit_roundoff(storage), nearest = rounded_to(storage, value),
               off = std::abs(nearest - value);
  if (inner == 0 && off == 0) return 0;
  // Half the distance to the next number is u / 2 of a number at least.
  const bool held = off <= 0x1p-40 * std::abs(value) && std::abs(value) >= smallest_normal;
  if (held && off + inner < 0.49 * u * std::abs(value)) return off;
  return inner + u * (std::abs(value) + inner) + underflow_error(storage);
}

void add_cells(std::vector<CellMember>& members, const Matrix& y, Eigen::Ref<RowVector> variance) {
  std::sort(members.begin(), members.end(),
            [](const CellMember& a, const CellMember& b) { return a.rounded < b.rounded; });
  RowVector cell(y.cols());
  for (std::size_t first = 0, last; first < members.size(); first = last) {
    for (last = first + 1;
         last < members.size() && members[last].rounded == members[first].rounded;)
      ++last;
    if (last - first < 2) continue;
    cell.setZero();
    for (std::size_t x = first; x < last; ++x) cell += members[x].r * y.row(members[x].i).array();
    variance += cell.square();
  }
}

Matrix rows_of(const Tensor<double, 4>& x, int b, int h, int rows) {
  const auto width = x.extents()[3];
  if (rows == 0 || width == 0) return Matrix(rows, width);
  return Eigen::Map<const Matrix>(&x(b, h, 0, 0), rows, width);
}

namespace {

/// sum |a||b| of each product, and the error that rounded operands give it.
struct Products {
  Matrix value, magnitude, operands;
  bool exact_operands;
};
Products products(const Matrix& a, const Matrix& b, const Numerics& may, BoundKind kind) {
  Products p;
  p.value = a * b.transpose();
  p.magnitude = a.cwiseAbs() * b.cwiseAbs().transpose();
  const double u_a = operand_rounding(may, a), u_b = operand_rounding(may, b);
  p.exact_operands = u_a == 0 && u_b == 0;
  if (p.exact_operands) return p;
  p.operands = (u_a + u_b + u_a * u_b) * p.magnitude;
  if (kind == BoundKind::working) {
    const Matrix squares = a.cwiseAbs2() * b.cwiseAbs2().transpose();
    const double deviation = deviations * std::sqrt(u_a * u_a + u_b * u_b);
    p.operands = p.operands.cwiseMin(deviation * squares.cwiseSqrt());
  }
  return p;
}

/// scale * a b^T, each element with `per_score` of its own size on top.
BoundedMatrix bounded(const Matrix& a, const Matrix& b, double scale, double per_score,
                      const Numerics& may, BoundKind kind) {
  Products p = products(a, b, may, kind);
  const double n = static_cast<double>(a.cols()), c = std::abs(scale);
  const double sum = Accumulation{kind, may.tensor_core}(n);
  const double exact_below = p.exact_operands && is_power_of_two(scale) && may.score_rounding == 0
                                 ? 0x1p24 * quantum(a) * quantum(b)
                                 : 0;
  BoundedMatrix result{scale * p.value, c * (sum * p.magnitude), {}};
  result.error.array() += per_score * result.value.array().abs() + n * smallest_normal;
  if (!p.exact_operands) result.error += c * p.operands;
  result.error = (p.magnitude.array() <= exact_below).select(0.0, result.error);
  result.magnitude = std::move(p.magnitude);
  return result;
}

}  // namespace

BoundedMatrix bounded_products(const Matrix& a, const Matrix& b, const Numerics& may,
                               BoundKind kind) {
  return bounded(a, b, 1, 0, may, kind);
}

BoundedMatrix bounded_scores(const Matrix& q, const Matrix& k, double scale, const Numerics& may,
                             BoundKind kind) {
  return bounded(q, k, scale, 2 * u32 + may.score_rounding, may, kind);
}

Term dominating_term(std::initializer_list<std::pair<double, Term>> terms, double bound) {
  if (!(bound > 0)) return Term::none;
  return std::max_element(terms.begin(), terms.end(),
                          [](auto& a, auto& b) { return a.first < b.first; })
      ->second;
}

std::string describe_pair(double raw, double modified, int b, int h, int q, int kv) {
  return "score " + std::to_string(raw) + " becomes " + std::to_string(modified) +
         " at b=" + std::to_string(b) + " h=" + std::to_string(h) + " q=" + std::to_string(q) +
         " kv=" + std::to_string(kv);
}

double median_or_one(std::vector<double>& x) {
  if (x.empty()) return 1;
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

double exponential_spread(double x, double e) {
  if (std::isinf(e)) return unbounded;
  return e <= 1 ? std::exp(x) * std::expm1(e) : std::exp(x + e) - std::exp(x);
}

}  // namespace attn::fuzz
