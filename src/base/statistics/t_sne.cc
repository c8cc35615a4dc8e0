#include "src/base/statistics/t_sne.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "src/base/random_stream.h"

namespace etude {
namespace {

using Square = std::vector<double>;  // n × n entries by row

constexpr double kTiny = 1e-300;

// Replaces the squared distances of one point by its probabilities of neighbours, Gaussian with the
// precision whose entropy is log(perplexity), found by bisection. The point itself is infinitely
// far.
void ToNeighbours(std::vector<double>& row, double perplexity) {
  const double wanted = std::log(perplexity);
  const double nearest = *std::ranges::min_element(row);
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  double precision = 1;
  std::vector<double> weights(row.size());
  for (int i = 0; i < 200; ++i) {
    double sum = 0;
    double energy = 0;
    for (size_t j = 0; j < row.size(); ++j) {
      const double distance = row[j] - nearest;  // avoids underflow
      weights[j] = std::isinf(distance) ? 0 : std::exp(-precision * distance);
      sum += weights[j];
      if (weights[j] > 0) energy += precision * distance * weights[j];
    }
    for (double& weight : weights) weight /= sum;
    const double entropy = std::log(sum) + energy / sum;
    if (std::abs(entropy - wanted) < 1e-10) break;
    (entropy > wanted ? low : high) = precision;
    precision = std::isinf(high) ? precision * 2 : (low + high) / 2;
  }
  row = weights;
}

// Returns symmetric probabilities of pairs, which sum to 1.
Square PairProbabilities(const PointRows& points, double perplexity) {
  const size_t n = points.size();
  Square pairs(n * n, 0);
  for (size_t i = 0; i < n; ++i) {
    std::vector<double> row;
    for (size_t j = 0; j < n; ++j) {
      row.push_back(i == j ? std::numeric_limits<double>::infinity()
                           : SquaredDistance(points[i], points[j]));
    }
    ToNeighbours(row, perplexity);
    for (size_t j = 0; j < n; ++j) {
      const double half = row[j] / (2 * static_cast<double>(n));
      pairs[i * n + j] += half;
      pairs[j * n + i] += half;
    }
  }
  return pairs;
}

// A place in the plane, or its gradient.
struct Place {
  double x = 0;
  double y = 0;
};

class Descent {
 public:
  Descent(const Square& pairs, size_t count, RandomStream& random)
      : pairs_(pairs), places_(count), steps_(count), gains_(count, {1, 1}), kernel_(pairs.size()) {
    for (Place& place : places_) {  // Box & Muller 1958
      const double radius = 1e-4 * std::sqrt(-2 * std::log(1 - random.UniformDouble()));
      const double angle = 2 * std::numbers::pi * random.UniformDouble();
      place = {radius * std::cos(angle), radius * std::sin(angle)};
    }
  }

  void Step(double exaggeration, double momentum) {
    const double rate = std::max(50.0, static_cast<double>(places_.size()) / 48);
    const double sum = FillKernel();
    for (size_t i = 0; i < places_.size(); ++i) {
      Place gradient;
      for (size_t j = 0; j < places_.size(); ++j) {
        const size_t at = i * places_.size() + j;
        const double pull = 4 * (exaggeration * pairs_[at] - kernel_[at] / sum) * kernel_[at];
        gradient.x += pull * (places_[i].x - places_[j].x);
        gradient.y += pull * (places_[i].y - places_[j].y);
      }
      Accelerate(gradient.x, momentum, rate, gains_[i].x, steps_[i].x);
      Accelerate(gradient.y, momentum, rate, gains_[i].y, steps_[i].y);
    }
    for (size_t i = 0; i < places_.size(); ++i) {
      places_[i].x += steps_[i].x;
      places_[i].y += steps_[i].y;
    }
  }

  double Divergence() {
    const double sum = FillKernel();
    double divergence = 0;
    for (size_t at = 0; at < pairs_.size(); ++at) {
      if (pairs_[at] <= kTiny) continue;
      divergence += pairs_[at] * std::log(pairs_[at] * sum / std::max(kernel_[at], kTiny));
    }
    return divergence;
  }

  PointRows CentredPlaces() const {
    Place mean;
    const auto count = static_cast<double>(places_.size());
    for (const Place& place : places_) {
      mean.x += place.x / count;
      mean.y += place.y / count;
    }
    PointRows points;
    for (const Place& place : places_) points.push_back({place.x - mean.x, place.y - mean.y});
    return points;
  }

 private:
  // Fills Student's kernel 1 / (1 + d²) of all pairs, and returns its sum.
  double FillKernel() {
    const size_t n = places_.size();
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        const double x = places_[i].x - places_[j].x;
        const double y = places_[i].y - places_[j].y;
        kernel_[i * n + j] = i == j ? 0 : 1 / (1 + x * x + y * y);
        sum += kernel_[i * n + j];
      }
    }
    return sum;
  }

  // Gains of Jacobs (1988), as in the authors' program.
  static void Accelerate(double gradient, double momentum, double rate, double& gain,
                         double& step) {
    gain = std::max(0.01, gradient * step < 0 ? gain + 0.2 : gain * 0.8);
    step = momentum * step - rate * gain * gradient;
  }

  const Square& pairs_;
  std::vector<Place> places_;
  std::vector<Place> steps_;
  std::vector<Place> gains_;
  Square kernel_;
};

}  // namespace

TsneMap Tsne(const PointRows& points, const TsneOptions& options) {
  constexpr size_t kEarly = 250;  // iterations with exaggeration and low momentum
  constexpr double kExaggeration = 12;
  const size_t n = points.size();
  if (n < 3) return {.points = PointRows(n, {0, 0})};
  const Square pairs = PairProbabilities(points, options.perplexity);
  RandomStream random(options.seed);
  TsneMap best{.points = {}, .divergence = std::numeric_limits<double>::infinity()};
  for (size_t restart = 0; restart < std::max<size_t>(options.restarts, 1); ++restart) {
    Descent descent(pairs, n, random);
    for (size_t i = 0; i < options.iterations; ++i) {
      const bool early = i < std::min(kEarly, options.iterations / 2);
      descent.Step(early ? kExaggeration : 1, early ? 0.5 : 0.8);
    }
    const double divergence = descent.Divergence();
    if (divergence < best.divergence || best.points.empty()) {
      best = {.points = descent.CentredPlaces(), .divergence = divergence};
    }
  }
  return best;
}

}  // namespace etude
