#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace etude::suite {

// Spins as bits: bit i set means spin i is +1, else −1.
using SpinState = uint32_t;

// Returns spin `i` of a state, +1 or −1.
inline double SpinOf(SpinState state, size_t i) { return (state >> i & 1) != 0 ? 1.0 : -1.0; }

// A fully visible Boltzmann machine of N spins: p(s) ∝ exp(Σ h_i s_i + Σ_{i<j} J_ij s_i s_j). The
// temperature is 1, so that energies are in units of kT.
class SpinModel {
 public:
  static constexpr size_t kMaxSpins = 24;

  explicit SpinModel(size_t spins) : spins_(spins), fields_(spins), couplings_(spins * spins) {}

  size_t spins() const { return spins_; }
  // Number of states, 2^N.
  size_t states() const { return size_t{1} << spins_; }

  double field(size_t i) const { return fields_[i]; }
  double coupling(size_t i, size_t j) const { return couplings_[i * spins_ + j]; }
  void AddField(size_t i, double value) { fields_[i] += value; }
  void AddCoupling(size_t i, size_t j, double value) {
    couplings_[i * spins_ + j] += value;
    couplings_[j * spins_ + i] += value;
  }

  // Returns the logarithm of the state's weight: the negative energy.
  double LogWeight(SpinState state) const;
  // Returns h_i + Σ_j J_ij s_j.
  double LocalField(SpinState state, size_t i) const {
    const double* row = &couplings_[i * spins_];
    double sum = fields_[i];
    for (size_t j = 0; j < spins_; ++j) sum += (state >> j & 1) != 0 ? row[j] : -row[j];
    return sum;
  }

 private:
  size_t spins_;
  std::vector<double> fields_;
  std::vector<double> couplings_;  // N × N, symmetric, zero diagonal
};

// Means of a distribution or of a sample: ⟨s_i⟩ for each spin, then ⟨s_i s_j⟩ for i < j, row by
// row.
using SpinMoments = std::vector<double>;

inline size_t MomentCount(size_t spins) { return spins + spins * (spins - 1) / 2; }
SpinMoments MomentsOf(std::span<const SpinState> sample, size_t spins);
// Adds `factor` times the moments to the parameters that they belong to.
void AddToParameters(const SpinMoments& moments, double factor, SpinModel& model);

// The distribution of a model, exact: every state is enumerated, 8 bytes for each.
struct SpinDistribution {
  std::vector<double> log_probability;  // by state
  SpinMoments moments;
};

// Enumerates the states in the order of Gray's code, where one spin flips at a time, in
// O(N · 2^N) operations; the moments are the distribution's Walsh–Hadamard coefficients.
SpinDistribution Enumerate(const SpinModel& model);

// Returns KL(p ‖ q) in nats.
double Divergence(const SpinDistribution& p, const SpinDistribution& q);

}  // namespace etude::suite
