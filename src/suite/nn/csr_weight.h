#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

namespace etude::suite {

// Kernels for a linear layer whose weight [out, in] is mostly 0, by PyTorch's compressed sparse row
// (CSR) format. The weight itself stays dense, for optimizers and checkpoints; its remaining values
// are gathered for each product. Off at first: the layer then has dense kernels. float32 on the CPU
// only, with PyTorch's MKL. Not thread-safe.
class CsrWeight {
 public:
  // Places of the remaining values, of the weight and of its transpose.
  struct Places;

  // Returns whether this build of PyTorch has the kernels.
  static bool IsAvailable();

  bool is_on() const { return places_ != nullptr; }
  // Uses CSR kernels from now on. `mask` has the weight's shape; where it is 0, the weight must
  // be 0. Call again after changes of the mask.
  void SetMask(const at::Tensor& mask);
  // Computes gradients of all values of the weight, by a dense product, or of the remaining ones
  // only; the others' are then 0.
  void set_all_gradients(bool all) { all_gradients_ = all; }

  // Returns x weightᵀ + bias: [..., in] → [..., out]. An undefined bias is 0. Must be on.
  at::Tensor Product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const;
  // Returns the address by which recordings name the sparse tensor. Must be on.
  uint64_t address() const;

 private:
  std::shared_ptr<const Places> places_;  // null: off
  bool all_gradients_ = false;
};

}  // namespace etude::suite
