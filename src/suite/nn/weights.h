#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/csr_weight.h"

namespace etude::suite {

// A model's tensors by name: parameters, which training updates by gradients, and buffers (running
// means), which forward passes update. Names are those of checkpoints, with dots between parts.
// Tensors are handles that layers copy. Not thread-safe.
class Weights {
 public:
  struct Entry {
    std::string name;
    at::Tensor value;
    bool is_parameter = true;
    int group = 0;  // parameters: number of the task's optimizer
    // Other kernels of the layer, which shares them; null: it has none.
    std::shared_ptr<CsrWeight> csr;
  };

  explicit Weights(const at::Device& device) : device_(device) {}
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  const at::Device& device() const { return device_; }
  const std::vector<Entry>& entries() const { return entries_; }
  // Returns the tensors below the scope `part`, with names relative to it.
  std::vector<std::pair<std::string, at::Tensor>> Below(std::string_view part) const;
  // Returns the number of elements of all parameters.
  int64_t ParameterCount() const;

  // Returns whether the model is in training mode (dropout, batch statistics).
  bool training() const { return training_; }
  void set_training(bool training) { training_ = training; }

 private:
  friend class Scope;
  at::Device device_;
  std::vector<Entry> entries_;
  bool training_ = true;
};

// A scope of a model: name prefix and group of a layer's weights. Cheap to copy; refers to the
// weights.
class Scope {
 public:
  explicit Scope(Weights& weights, std::string name = {}, int group = 0)
      : weights_(&weights), name_(std::move(name)), group_(group) {}

  // Returns the sub-scope `name`.
  Scope operator[](std::string_view name) const;
  Scope operator[](int64_t index) const { return (*this)[std::to_string(index)]; }

  const std::string& name() const { return name_; }
  const Weights& weights() const { return *weights_; }
  const at::Device& device() const { return weights_->device(); }

  // Registers `value`, moved to the model's device, as a weight. Names must be unique.
  at::Tensor Parameter(std::string_view name, const at::Tensor& value,
                       std::shared_ptr<CsrWeight> csr = nullptr) const;
  at::Tensor Buffer(std::string_view name, const at::Tensor& value) const;

 private:
  Weights* weights_;
  std::string name_;
  int group_;
};

}  // namespace etude::suite
