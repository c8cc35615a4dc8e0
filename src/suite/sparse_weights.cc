#include "src/suite/sparse_weights.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>

#include "src/base/container/hash.h"
#include "src/base/random_stream.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

// Returns uniform numbers in the shape of `like`, the same on every rank and device.
at::Tensor RandomScores(const at::Tensor& like, uint64_t seed) {
  RandomStream random(seed);
  std::vector<float> scores(static_cast<size_t>(like.numel()));
  for (float& score : scores) score = random.Uniform();
  return FromValues(std::span<const float>(scores), like.sizes()).to(like.device());
}

// Returns 1 at the `count` largest of `scores`, 0 elsewhere.
at::Tensor LargestOf(const at::Tensor& scores, int64_t count) {
  const at::Tensor flat = scores.reshape({-1});
  const at::Tensor places = std::get<1>(flat.topk(count));
  return flat.new_zeros(flat.sizes()).index_fill_(0, places, 1).reshape(scores.sizes());
}

}  // namespace

SparseWeights::SparseWeights(const Weights& weights, const SparseOptions& options,
                             int64_t most_steps, uint64_t seed)
    : options_(options), last_update_(std::max<int64_t>(1, most_steps * 3 / 4)), seed_(seed) {
  std::vector<LayerShape> shapes;
  for (const Weights::Entry& entry : weights.entries()) {
    if (!entry.is_parameter || entry.value.dim() < 2) continue;
    layers_.push_back(
        {.name = entry.name,
         .weight = entry.value,
         .mask = {},
         .group = entry.group,
         .csr = options.kernels == SparseOptions::Kernels::kCsr ? entry.csr : nullptr});
    shapes.push_back(entry.value.sizes().vec());
  }
  const std::vector<int64_t> counts = WeightCounts(shapes, options_.density, options_.shares);
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    layer.count = counts[i];
    layer.mask = LargestOf(RandomScores(layer.weight, HashMix(seed_, i)), layer.count);
    layer.weight.mul_(layer.mask);
    if (layer.count == layer.weight.numel()) layer.csr = nullptr;
  }
  TakeUpMasks();
}

void SparseWeights::TakeUpMasks() const {
  for (const Layer& layer : layers_) {
    if (layer.csr) layer.csr->SetMask(layer.mask);
  }
}

void SparseWeights::PrepareGradients(int group, bool updates_masks) const {
  for (const Layer& layer : layers_) {
    if (layer.group != group || !layer.csr) continue;
    layer.csr->set_all_gradients(updates_masks && options_.method == SparseOptions::Method::kRigl);
  }
}

bool SparseWeights::IsDue(int64_t step) const {
  return options_.method != SparseOptions::Method::kStatic && step > 0 &&
         step % options_.update_every == 0 && step < last_update_;
}

int64_t SparseWeights::DenseBackwardPasses(int64_t steps) const {
  if (options_.method != SparseOptions::Method::kRigl) return 0;
  int64_t count = 0;
  for (int64_t step = 0; step < steps; ++step) count += IsDue(step) ? 1 : 0;
  return count;
}

std::map<uint64_t, double> SparseWeights::Densities() const {
  std::map<uint64_t, double> densities;
  for (const Layer& layer : layers_) {
    const double density =
        static_cast<double>(layer.count) / static_cast<double>(layer.weight.numel());
    densities[reinterpret_cast<uintptr_t>(layer.weight.storage().data())] = density;
    if (layer.csr) densities[layer.csr->address()] = density;
  }
  return densities;
}

void SparseWeights::Update(int64_t step, int group, Optimizer& optimizer) {
  const at::NoGradGuard no_gradients;
  const double fraction = DropFraction(options_.drop_fraction, step, last_update_);
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    if (layer.group != group || !layer.weight.grad().defined()) continue;
    const int64_t others = layer.weight.numel() - layer.count;
    const int64_t dropped =
        std::min(static_cast<int64_t>(fraction * static_cast<double>(layer.count)), others);
    if (dropped == 0) continue;
    // Outside of what is ranked, scores are negative.
    const at::Tensor sizes = layer.weight.abs().masked_fill(layer.mask.eq(0), -1);
    const at::Tensor kept = LargestOf(sizes, layer.count - dropped);
    const at::Tensor scores =
        options_.method == SparseOptions::Method::kRigl
            ? layer.weight.grad().abs()
            : RandomScores(layer.weight, HashMix(HashMix(seed_, i), static_cast<uint64_t>(step)));
    const at::Tensor grown = LargestOf(scores.masked_fill(kept.ne(0), -1), dropped);
    optimizer.Forget(layer.weight, grown.mul(1 - layer.mask));
    layer.mask.copy_(kept.add(grown));
    layer.weight.mul_(layer.mask);
    if (layer.csr) layer.csr->SetMask(layer.mask);
  }
}

void SparseWeights::MaskGradients(int group) const {
  const at::NoGradGuard no_gradients;
  for (const Layer& layer : layers_) {
    if (layer.group == group && layer.weight.grad().defined()) layer.weight.grad().mul_(layer.mask);
  }
}

void SparseWeights::MaskWeights(int group) const {
  const at::NoGradGuard no_gradients;
  for (const Layer& layer : layers_) {
    if (layer.group == group) layer.weight.mul_(layer.mask);
  }
}

int64_t SparseWeights::size() const {
  int64_t size = 0;
  for (const Layer& layer : layers_) size += layer.weight.numel();
  return size;
}

int64_t SparseWeights::CountInCsr() const {
  int64_t count = 0;
  for (const Layer& layer : layers_) count += layer.csr ? layer.weight.numel() : 0;
  return count;
}

int64_t SparseWeights::CountActive() const {
  int64_t active = 0;
  for (const Layer& layer : layers_) active += layer.mask.count_nonzero().item<int64_t>();
  return active;
}

std::vector<std::pair<std::string, at::Tensor>> SparseWeights::State() const {
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (const Layer& layer : layers_) state.emplace_back(layer.name, layer.mask);
  return state;
}

}  // namespace etude::suite
