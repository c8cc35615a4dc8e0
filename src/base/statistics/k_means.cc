#include "src/base/statistics/k_means.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "src/base/random_stream.h"

namespace etude {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

size_t NearestCentre(const std::vector<double>& point, const PointRows& centres) {
  size_t nearest = 0;
  double least = kFar;
  for (size_t i = 0; i < centres.size(); ++i) {
    const double distance = SquaredDistance(point, centres[i]);
    if (distance >= least) continue;
    least = distance;
    nearest = i;
  }
  return nearest;
}

// Draws centres among the points, each with a probability proportional to its squared distance to
// the previous ones.
PointRows DrawCentres(const PointRows& points, size_t count, RandomStream& random) {
  PointRows centres = {points[random.Below(points.size())]};
  std::vector<double> distances(points.size(), kFar);
  while (centres.size() < count) {
    double sum = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      distances[i] = std::min(distances[i], SquaredDistance(points[i], centres.back()));
      sum += distances[i];
    }
    double left = random.UniformDouble() * sum;
    size_t drawn = 0;
    while (drawn + 1 < points.size() && left >= distances[drawn]) left -= distances[drawn++];
    centres.push_back(points[drawn]);
  }
  return centres;
}

// Moves each centre to the mean of its points. A centre without points moves to the point that is
// farthest from its own centre.
void MoveCentres(const PointRows& points, Clusters& clusters) {
  const size_t width = points.front().size();
  std::vector<size_t> sizes(clusters.centres.size(), 0);
  PointRows sums(clusters.centres.size(), std::vector<double>(width, 0));
  for (size_t i = 0; i < points.size(); ++i) {
    ++sizes[clusters.labels[i]];
    for (size_t j = 0; j < width; ++j) sums[clusters.labels[i]][j] += points[i][j];
  }
  for (size_t label = 0; label < sizes.size(); ++label) {
    if (sizes[label] == 0) {
      const auto distance = [&](const std::vector<double>& point) {
        return SquaredDistance(point, clusters.centres[NearestCentre(point, clusters.centres)]);
      };
      clusters.centres[label] = *std::ranges::max_element(points, {}, distance);
      continue;
    }
    for (double& sum : sums[label]) sum /= static_cast<double>(sizes[label]);
    clusters.centres[label] = sums[label];
  }
}

Clusters Lloyd(const PointRows& points, PointRows centres) {
  constexpr int kMostRounds = 300;
  Clusters clusters{.labels = {}, .centres = std::move(centres)};
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<size_t> labels;
    for (const auto& point : points) labels.push_back(NearestCentre(point, clusters.centres));
    if (labels == clusters.labels) break;
    clusters.labels = std::move(labels);
    MoveCentres(points, clusters);
  }
  for (size_t i = 0; i < points.size(); ++i) {
    clusters.inertia += SquaredDistance(points[i], clusters.centres[clusters.labels[i]]);
  }
  return clusters;
}

void NumberByAppearance(Clusters& clusters) {
  std::map<size_t, size_t> numbers;
  for (const size_t label : clusters.labels) numbers.emplace(label, numbers.size());
  for (size_t label = 0; label < clusters.centres.size(); ++label) {
    numbers.emplace(label, numbers.size());
  }
  PointRows centres(clusters.centres.size());
  for (const auto& [label, number] : numbers) centres[number] = clusters.centres[label];
  clusters.centres = std::move(centres);
  for (size_t& label : clusters.labels) label = numbers.at(label);
}

}  // namespace

Clusters KMeans(const PointRows& points, size_t count, const KMeansOptions& options) {
  RandomStream random(options.seed);
  Clusters best = Lloyd(points, DrawCentres(points, count, random));
  for (size_t i = 1; i < options.restarts; ++i) {
    Clusters other = Lloyd(points, DrawCentres(points, count, random));
    // Equal clusters found in another order differ by rounding.
    if (other.inertia < best.inertia * (1 - 1e-12)) best = std::move(other);
  }
  NumberByAppearance(best);
  return best;
}

std::vector<double> Silhouettes(const PointRows& points, const std::vector<size_t>& labels) {
  std::vector<double> found;
  for (size_t i = 0; i < points.size(); ++i) {
    std::map<size_t, std::pair<double, size_t>> sums;  // distances and points by label
    for (size_t j = 0; j < points.size(); ++j) {
      if (i == j) continue;
      auto& [sum, count] = sums[labels[j]];
      sum += std::sqrt(SquaredDistance(points[i], points[j]));
      ++count;
    }
    double others = kFar;
    for (const auto& [label, sum] : sums) {
      if (label == labels[i]) continue;
      others = std::min(others, sum.first / static_cast<double>(sum.second));
    }
    const auto own = sums.find(labels[i]);
    if (own == sums.end() || others == kFar) {
      found.push_back(0);
      continue;
    }
    const double mean = own->second.first / static_cast<double>(own->second.second);
    const double larger = std::max(mean, others);
    found.push_back(larger == 0 ? 0 : (others - mean) / larger);
  }
  return found;
}

double MeanSilhouette(const PointRows& points, const std::vector<size_t>& labels) {
  if (points.empty()) return 0;
  const std::vector<double> found = Silhouettes(points, labels);
  return std::accumulate(found.begin(), found.end(), 0.0) / static_cast<double>(found.size());
}

}  // namespace etude
