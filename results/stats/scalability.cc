#include "results/stats/scalability.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace lockbench::results {
namespace {

constexpr std::size_t kTerms = 3;
using Vector = std::array<double, kTerms>;

/// Which of the terms take part: the others are 0.
using Active = std::array<bool, kTerms>;
constexpr std::array<Active, 4> kSubsets{
    {{true, true, true}, {true, true, false}, {true, false, true}, {true, false, false}}};

/// Seconds per section and client: 1 for itself, for each other client, for each pair.
Vector terms(double clients) { return {1, clients - 1, clients * (clients - 1)}; }

/// The normal equations, by Gauss and Jordan with a pivot. Nothing if they are singular.
std::optional<Vector> solve(std::array<Vector, kTerms> matrix, Vector right, const Active& active) {
  for (std::size_t i = 0; i < kTerms; ++i) {
    if (active[i]) continue;
    for (std::size_t k = 0; k < kTerms; ++k) matrix[i][k] = matrix[k][i] = 0;
    matrix[i][i] = 1;
    right[i] = 0;
  }
  for (std::size_t c = 0; c < kTerms; ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c + 1; r < kTerms; ++r) {
      if (std::abs(matrix[r][c]) > std::abs(matrix[pivot][c])) pivot = r;
    }
    if (!(std::abs(matrix[pivot][c]) > 1e-12)) return std::nullopt;
    std::swap(matrix[c], matrix[pivot]);
    std::swap(right[c], right[pivot]);
    for (std::size_t r = 0; r < kTerms; ++r) {
      if (r == c) continue;
      const double factor = matrix[r][c] / matrix[c][c];
      for (std::size_t k = c; k < kTerms; ++k) matrix[r][k] -= factor * matrix[c][k];
      right[r] -= factor * right[c];
    }
  }
  for (std::size_t i = 0; i < kTerms; ++i) right[i] /= matrix[i][i];
  return right;
}

/// The sum of squared relative errors.
double residual(std::span<const ScalabilityPoint> points, const Vector& coefficients) {
  double sum = 0;
  for (const ScalabilityPoint& point : points) {
    const Vector x = terms(point.clients);
    double predicted = 0;
    for (std::size_t i = 0; i < kTerms; ++i) predicted += coefficients[i] * x[i];
    const double error = predicted * point.per_second / point.clients - 1;
    sum += error * error;
  }
  return sum;
}

std::optional<Vector> fit(std::span<const ScalabilityPoint> points, const Active& active) {
  std::array<Vector, kTerms> matrix{};
  Vector right{};
  for (const ScalabilityPoint& point : points) {
    Vector x = terms(point.clients);
    // Divided by what was measured, which makes all errors relative ones.
    for (double& term : x) term *= point.per_second / point.clients;
    for (std::size_t i = 0; i < kTerms; ++i) {
      for (std::size_t k = 0; k < kTerms; ++k) matrix[i][k] += x[i] * x[k];
      right[i] += x[i];
    }
  }
  return solve(matrix, right, active);
}

}  // namespace

double Scalability::throughput(double clients) const { return throughput(clients, 0, 0, 1); }

double Scalability::throughput(double clients, double rtt, double trips, double locks) const {
  const double others = clients - 1;
  const double one =
      (1 + sigma * others + kappa * clients * others) / lambda + rtt * (trips + others / locks);
  return clients / one;
}

std::optional<double> Scalability::peak() const {
  if (!(kappa > 0) || !(sigma < 1)) return std::nullopt;
  return std::sqrt((1 - sigma) / kappa);
}

std::optional<Scalability> fit_scalability(std::span<const ScalabilityPoint> points) {
  std::set<double> different;
  for (const ScalabilityPoint& point : points) {
    if (!(point.clients >= 1) || !(point.per_second > 0)) return std::nullopt;
    different.insert(point.clients);
  }
  if (different.size() < kTerms) return std::nullopt;
  std::optional<Vector> best;
  // The least squares without negative terms are those of one of the subsets.
  for (const Active& active : kSubsets) {
    const auto found = fit(points, active);
    if (!found || !((*found)[0] > 0) || (*found)[1] < 0 || (*found)[2] < 0) continue;
    if (!best || residual(points, *found) < residual(points, *best)) best = found;
  }
  if (!best) return std::nullopt;
  const double lambda = 1 / (*best)[0];
  return Scalability{lambda, (*best)[1] * lambda, (*best)[2] * lambda};
}

}  // namespace lockbench::results
