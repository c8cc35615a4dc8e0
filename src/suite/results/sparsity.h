#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace etude::suite {

// Training with a share of the weights only, by masks. Does not use libtorch.
struct SparseOptions {
  enum class Method : uint8_t {
    kStatic,  // the mask stays
    kSet,     // the smallest weights are replaced at random (Mocanu et al., 1707.04780)
    kRigl,    // they are replaced where the gradient is largest (Evci et al., 1911.11134)
  };
  // How a layer's density depends on its shape, [out, in, kernel…].
  enum class Shares : uint8_t {
    kUniform,
    kEr,   // (in + out) / (in · out) (Erdős & Rényi)
    kErk,  // the sum of all sizes over their product, with those of the kernel
  };
  enum class Kernels : uint8_t {
    kDense,  // for all layers
    kCsr,    // compressed sparse rows for linear layers
  };

  Method method = Method::kStatic;
  double density = 0.1;  // share of the weights that remain, above 0 and at most 1
  Shares shares = Shares::kErk;
  double drop_fraction = 0.3;  // of a layer's weights at the first update of the mask
  int64_t update_every = 100;  // steps; masks are updated in the first three quarters of a run
  Kernels kernels = Kernels::kDense;
};
// Returns "static", "set" or "rigl".
std::string_view Name(SparseOptions::Method method);
std::optional<SparseOptions::Method> SparseMethodFromName(std::string_view name);
// Returns "uniform", "er" or "erk".
std::string_view Name(SparseOptions::Shares shares);
std::optional<SparseOptions::Shares> SparseSharesFromName(std::string_view name);
// Returns "dense" or "csr".
std::string_view Name(SparseOptions::Kernels kernels);
std::optional<SparseOptions::Kernels> SparseKernelsFromName(std::string_view name);

// Sizes of a layer's weight.
using LayerShape = std::vector<int64_t>;

// Returns the number of weights that remain in each layer. Densities are proportional to the
// shares, but for layers that would exceed 1, which are dense. The sum is `density` times the
// number of all weights, rounded.
std::vector<int64_t> WeightCounts(std::span<const LayerShape> layers, double density,
                                  SparseOptions::Shares shares);

// Returns the share of a layer's weights to be replaced at `step`: half a cosine from
// `drop_fraction` at step 0 to 0 at `last_step`.
double DropFraction(double drop_fraction, int64_t step, int64_t last_step);

}  // namespace etude::suite
