#include "src/suite/results/sparsity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>

namespace etude::suite {
namespace {

constexpr std::array<std::string_view, 3> kMethods = {"static", "set", "rigl"};
constexpr std::array<std::string_view, 3> kShares = {"uniform", "er", "erk"};
constexpr std::array<std::string_view, 2> kKernels = {"dense", "csr"};

// Returns the enumerator at the place of `name` in `names`.
template <typename Kind, size_t kCount>
std::optional<Kind> FromName(const std::array<std::string_view, kCount>& names,
                             std::string_view name) {
  const auto* found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Kind>(found - names.begin());
}

double Product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 1.0, [](double product, int64_t size) {
    return product * static_cast<double>(size);
  });
}

double ShareOfLayer(std::span<const int64_t> shape, SparseOptions::Shares shares) {
  if (shares == SparseOptions::Shares::kUniform) return 1;
  const auto used = shares == SparseOptions::Shares::kEr ? shape.first(2) : shape;
  return static_cast<double>(std::accumulate(used.begin(), used.end(), int64_t{0})) / Product(used);
}

// Rounds `exact` to whole numbers of the sum `total`: those with the largest remainders are rounded
// up. None exceeds its `most`.
std::vector<int64_t> Rounded(const std::vector<double>& exact, const std::vector<int64_t>& most,
                             int64_t total) {
  std::vector<int64_t> counts(exact.size());
  std::vector<size_t> order(exact.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = 0; i < exact.size(); ++i) {
    counts[i] = std::min(static_cast<int64_t>(std::floor(exact[i])), most[i]);
  }
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return exact[a] - std::floor(exact[a]) > exact[b] - std::floor(exact[b]);
  });
  int64_t left = total - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  while (left > 0) {
    const int64_t before = left;
    for (const size_t i : order) {
      if (left == 0 || counts[i] >= most[i]) continue;
      ++counts[i];
      --left;
    }
    if (left == before) break;
  }
  return counts;
}

}  // namespace

std::string_view Name(SparseOptions::Method method) {
  return kMethods[static_cast<size_t>(method)];
}
std::optional<SparseOptions::Method> SparseMethodFromName(std::string_view name) {
  return FromName<SparseOptions::Method>(kMethods, name);
}

std::string_view Name(SparseOptions::Shares shares) { return kShares[static_cast<size_t>(shares)]; }
std::optional<SparseOptions::Shares> SparseSharesFromName(std::string_view name) {
  return FromName<SparseOptions::Shares>(kShares, name);
}

std::string_view Name(SparseOptions::Kernels kernels) {
  return kKernels[static_cast<size_t>(kernels)];
}
std::optional<SparseOptions::Kernels> SparseKernelsFromName(std::string_view name) {
  return FromName<SparseOptions::Kernels>(kKernels, name);
}

std::vector<int64_t> WeightCounts(std::span<const LayerShape> layers, double density,
                                  SparseOptions::Shares shares) {
  std::vector<int64_t> sizes;
  for (const LayerShape& shape : layers) sizes.push_back(static_cast<int64_t>(Product(shape)));
  const int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  const int64_t total = std::llround(density * static_cast<double>(all));
  std::vector<bool> dense(layers.size());
  std::vector<double> exact(layers.size());
  while (true) {
    // The factor of all shares, with which the layers that are not dense have the rest.
    auto rest = static_cast<double>(total);
    double weighted = 0;
    for (size_t i = 0; i < layers.size(); ++i) {
      if (dense[i]) {
        rest -= static_cast<double>(sizes[i]);
      } else {
        weighted += ShareOfLayer(layers[i], shares) * static_cast<double>(sizes[i]);
      }
    }
    const double factor = weighted > 0 ? rest / weighted : 0;
    bool any = false;
    for (size_t i = 0; i < layers.size(); ++i) {
      const double share = dense[i] ? 1 : factor * ShareOfLayer(layers[i], shares);
      if (!dense[i] && share > 1) {
        dense[i] = true;
        any = true;
      }
      exact[i] = share * static_cast<double>(sizes[i]);
    }
    if (!any) return Rounded(exact, sizes, total);
  }
}

double DropFraction(double drop_fraction, int64_t step, int64_t last_step) {
  const double part = static_cast<double>(step) / static_cast<double>(last_step);
  return drop_fraction / 2 * (1 + std::cos(std::numbers::pi * std::min(1.0, part)));
}

}  // namespace etude::suite
