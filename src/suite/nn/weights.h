#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace etude::suite {

// What a model holds, by name: parameters, which training changes by their gradients, and buffers
// (running means), which change with what passes through. The names are those of checkpoints, with
// dots between the parts. Tensors are handles, of which layers keep copies. Not thread-safe.
class Weights {
 public:
  struct Entry {
    std::string name;
    at::Tensor value;
    bool is_parameter = true;
    int group = 0;  // of parameters: which of the task's optimizers moves it
  };

  explicit Weights(const at::Device& device) : device_(device) {}
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  const at::Device& device() const { return device_; }
  const std::vector<Entry>& entries() const { return entries_; }
  // What lies at the place `part`, by its names there.
  std::vector<std::pair<std::string, at::Tensor>> Below(std::string_view part) const;
  // Elements of all parameters.
  int64_t ParameterCount() const;

  // Whether the model learns (dropout, statistics of the batch) or is asked.
  bool training() const { return training_; }
  void set_training(bool training) { training_ = training; }

 private:
  friend class Scope;
  at::Device device_;
  std::vector<Entry> entries_;
  bool training_ = true;
};

// A place in a model: what the names of a layer's weights begin with, and their group. Cheap to
// copy; refers to the weights.
class Scope {
 public:
  explicit Scope(Weights& weights, std::string name = {}, int group = 0)
      : weights_(&weights), name_(std::move(name)), group_(group) {}

  // The part `name` of this place.
  Scope operator[](std::string_view name) const;
  Scope operator[](int64_t index) const { return (*this)[std::to_string(index)]; }

  const Weights& weights() const { return *weights_; }
  const at::Device& device() const { return weights_->device(); }

  // Takes `value`, moved to the model's device, for a weight. Names are unique.
  at::Tensor Parameter(std::string_view name, const at::Tensor& value) const;
  at::Tensor Buffer(std::string_view name, const at::Tensor& value) const;

 private:
  Weights* weights_;
  std::string name_;
  int group_;
};

}  // namespace etude::suite
