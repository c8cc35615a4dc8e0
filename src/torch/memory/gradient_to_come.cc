#include "src/torch/memory/gradient_to_come.h"

#include <ATen/ops/alias.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/variable.h>

namespace etude {
namespace {

namespace autograd = torch::autograd;

// Returns the node before all tensors that have a gradient to come. A leaf would need a separate
// node.
const autograd::Edge& Elsewhere() {
  static const autograd::Edge edge =
      autograd::impl::gradient_edge(at::alias(at::empty({0}).set_requires_grad(true)));
  return edge;
}

}  // namespace

GradientToCome::GradientToCome(std::span<const SlotId> inputs,
                               std::span<const SlotId> differentiated,
                               const std::vector<at::Tensor>& slots)
    : slots_(slots) {
  if (differentiated.empty()) return;
  inputs_ = inputs;
  for (const SlotId slot : differentiated) Give(slots_[slot.index()]);
  for (const SlotId slot : inputs_) {
    if (!slot) continue;
    const at::Tensor& tensor = slots_[slot.index()];
    if (tensor.defined() && tensor.is_view()) bases_.emplace_back(tensor._base());
  }
}

GradientToCome::~GradientToCome() {
  for (const SlotId slot : inputs_) {
    if (slot) TakeOff(slots_[slot.index()]);
  }
  for (const at::Tensor& base : bases_) TakeOff(base);
}

void GradientToCome::Give(const at::Tensor& tensor) {
  if (!tensor.defined() || !autograd::isDifferentiableType(tensor.scalar_type())) return;
  TakeOff(tensor);  // a view would query its base
  autograd::impl::set_gradient_edge(tensor, Elsewhere());
}

void GradientToCome::TakeOff(const at::Tensor& tensor) {
  if (tensor.defined()) tensor.unsafeGetTensorImpl()->set_autograd_meta(nullptr);
}

}  // namespace etude
