#include "src/base/statistics/principal_components.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace etude {
namespace {

using Matrix = std::vector<std::vector<double>>;

PointRows Centred(PointRows points) {
  if (points.empty()) return points;
  const auto count = static_cast<double>(points.size());
  for (size_t column = 0; column < points.front().size(); ++column) {
    double mean = 0;
    for (const auto& point : points) mean += point[column] / count;
    for (auto& point : points) point[column] -= mean;
  }
  return points;
}

Matrix CovarianceOf(const PointRows& centred) {
  const size_t size = centred.empty() ? 0 : centred.front().size();
  Matrix covariance(size, std::vector<double>(size, 0));
  if (centred.size() < 2) return covariance;
  for (const auto& point : centred) {
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) covariance[i][j] += point[i] * point[j];
    }
  }
  for (auto& row : covariance) {
    for (double& entry : row) entry /= static_cast<double>(centred.size() - 1);
  }
  return covariance;
}

// Rotates the rows and columns p and q of a symmetric matrix so that its entry [p][q] becomes 0
// (Jacobi 1846), and the columns of `vectors` with them.
void Rotate(Matrix& matrix, Matrix& vectors, size_t p, size_t q) {
  if (matrix[p][q] == 0) return;
  const double theta = (matrix[q][q] - matrix[p][p]) / (2 * matrix[p][q]);
  const double tangent = std::copysign(1, theta) / (std::abs(theta) + std::sqrt(theta * theta + 1));
  const double cosine = 1 / std::sqrt(tangent * tangent + 1);
  const double sine = tangent * cosine;
  const auto rotate = [&](double& first, double& second) {
    const double old = first;
    first = cosine * old - sine * second;
    second = sine * old + cosine * second;
  };
  for (auto& row : matrix) rotate(row[p], row[q]);
  for (size_t k = 0; k < matrix.size(); ++k) rotate(matrix[p][k], matrix[q][k]);
  for (auto& row : vectors) rotate(row[p], row[q]);
}

double OffDiagonal(const Matrix& matrix) {
  double sum = 0;
  for (size_t i = 0; i < matrix.size(); ++i) {
    for (size_t j = 0; j < matrix.size(); ++j) sum += i == j ? 0 : matrix[i][j] * matrix[i][j];
  }
  return sum;
}

}  // namespace

size_t PrincipalComponents::CountFor(double share) const {
  const double all = std::accumulate(variances.begin(), variances.end(), 0.0);
  double sum = 0;
  size_t count = 0;
  while (count < variances.size() && sum < share * all) sum += variances[count++];
  return count;
}

PrincipalComponents PrincipalComponentsOf(const PointRows& points) {
  constexpr int kMostSweeps = 100;  // some ten suffice
  const PointRows centred = Centred(points);
  Matrix matrix = CovarianceOf(centred);
  const size_t size = matrix.size();
  Matrix vectors(size, std::vector<double>(size, 0));
  double scale = 0;
  for (size_t i = 0; i < size; ++i) {
    vectors[i][i] = 1;
    scale += matrix[i][i] * matrix[i][i];
  }
  for (int sweep = 0; sweep < kMostSweeps && OffDiagonal(matrix) > 1e-28 * scale; ++sweep) {
    for (size_t p = 0; p < size; ++p) {
      for (size_t q = p + 1; q < size; ++q) Rotate(matrix, vectors, p, q);
    }
  }
  std::vector<size_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return matrix[a][a] > matrix[b][b]; });

  PrincipalComponents found;
  for (const size_t column : order) {
    found.variances.push_back(std::max(0.0, matrix[column][column]));
    auto& axis = found.axes.emplace_back();
    for (const auto& row : vectors) axis.push_back(row[column]);
    const auto by_size = [](double a, double b) { return std::abs(a) < std::abs(b); };
    if (*std::ranges::max_element(axis, by_size) < 0) {
      for (double& entry : axis) entry = -entry;
    }
  }
  for (const auto& point : centred) {
    auto& coordinates = found.coordinates.emplace_back();
    for (const auto& axis : found.axes) {
      coordinates.push_back(std::inner_product(axis.begin(), axis.end(), point.begin(), 0.0));
    }
  }
  return found;
}

}  // namespace etude
