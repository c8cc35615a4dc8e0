#include "src/suite/nn/csr_weight.h"

#include <vector>

#include <ATen/Context.h>
#include <ATen/ops/_sparse_csr_tensor_unsafe.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sparse_sampled_addmm.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

namespace etude::suite {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A sparse matrix over values that are gathered from a dense one.
struct Gathered {
  at::Tensor places;  // int64 [values], in the dense matrix's memory
  at::Tensor matrix;  // CSR

  // Copies the values of `dense`.
  const at::Tensor& From(const at::Tensor& dense) const {
    at::Tensor values = matrix.values();
    at::index_select_out(values, dense.reshape({-1}), 0, places);
    return matrix;
  }
};

// `rows`, `columns`: int64, of each value, sorted by row. MKL's indices are int32.
Gathered Gather(const at::Tensor& rows, const at::Tensor& columns, const at::Tensor& places,
                at::IntArrayRef sizes) {
  at::Tensor begins = at::zeros({sizes[0] + 1}, at::kInt);
  begins.slice(0, 1).copy_(rows.bincount(/*weights=*/{}, /*minlength=*/sizes[0]).cumsum(0));
  const at::Tensor values = at::zeros({places.size(0)}, at::kFloat);
  return {places, at::_sparse_csr_tensor_unsafe(begins, columns.to(at::kInt), values, sizes,
                                                values.options().layout(at::kSparseCsr))};
}

// Returns matrix · right + left, where `left` is broadcast. MKL is fastest with rows in sequence.
at::Tensor SparseProduct(const at::Tensor& left, const at::Tensor& matrix,
                         const at::Tensor& right) {
  return at::addmm(left, matrix, right.contiguous());
}

}  // namespace

struct CsrWeight::Places {
  Gathered weight;
  Gathered transpose;
};

namespace {

class CsrProduct : public torch::autograd::Function<CsrProduct> {
 public:
  // x: [N, in] → [N, out]. `bias`: [out], or a single value.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias,
                            const std::shared_ptr<const CsrWeight::Places>& places,
                            bool all_gradients) {
    context->save_for_backward({x, weight});
    context->saved_data["places"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(places));
    context->saved_data["all gradients"] = all_gradients;
    return SparseProduct(bias.unsqueeze(1), places->weight.From(weight), x.t()).t().contiguous();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const auto holder =
        c10::static_intrusive_pointer_cast<Holder>(context->saved_data["places"].toCapsule());
    const CsrWeight::Places& places = *holder->places;
    const at::Tensor gradient = gradients[0].t().contiguous();  // [out, N]
    at::Tensor of_x;
    at::Tensor of_weight;
    at::Tensor of_bias;
    if (context->needs_input_grad(0)) {
      of_x = SparseProduct(x.new_zeros({1, 1}), places.transpose.From(weight), gradient)
                 .t()
                 .contiguous();
    }
    if (context->needs_input_grad(1)) {
      of_weight = context->saved_data["all gradients"].toBool()
                      ? gradient.matmul(x)
                      : AtPlaces(places.weight, gradient, x);
    }
    if (context->needs_input_grad(2)) of_bias = gradient.sum(1);
    return {of_x, of_weight, of_bias, {}, {}};
  }

 private:
  // Keeps the places in the graph.
  struct Holder : torch::CustomClassHolder {
    explicit Holder(std::shared_ptr<const CsrWeight::Places> own) : places(std::move(own)) {}
    std::shared_ptr<const CsrWeight::Places> places;
  };

  // Returns gradient · x at the places of the weight's values, and 0 elsewhere.
  static at::Tensor AtPlaces(const Gathered& weight, const at::Tensor& gradient,
                             const at::Tensor& x) {
    const at::Tensor sampled =
        at::sparse_sampled_addmm(weight.matrix, gradient, x, /*beta=*/0, /*alpha=*/1);
    const at::Tensor all = x.new_zeros(weight.matrix.sizes());
    all.view({-1}).index_copy_(0, weight.places, sampled.values());
    return all;
  }
};

}  // namespace

bool CsrWeight::IsAvailable() { return at::hasMKL(); }

void CsrWeight::SetMask(const at::Tensor& mask) {
  const int64_t out = mask.size(0);
  const int64_t in = mask.size(1);
  const at::Tensor places = mask.reshape({-1}).nonzero().reshape({-1});
  const at::Tensor rows = places.floor_divide(in);
  const at::Tensor columns = places.remainder(in);
  const at::Tensor order = columns.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const auto ordered = [&](const at::Tensor& of) { return of.index_select(0, order); };
  places_ = std::make_shared<const Places>(
      Places{.weight = Gather(rows, columns, places, {out, in}),
             .transpose = Gather(ordered(columns), ordered(rows), ordered(places), {in, out})});
}

at::Tensor CsrWeight::Product(const at::Tensor& x, const at::Tensor& weight,
                              const at::Tensor& bias) const {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  const at::Tensor added = bias.defined() ? bias : x.new_zeros({1});
  return CsrProduct::apply(x.reshape({-1, weight.size(1)}), weight, added, places_, all_gradients_)
      .reshape(sizes);
}

uint64_t CsrWeight::address() const {
  return reinterpret_cast<uintptr_t>(places_->weight.matrix.unsafeGetTensorImpl());
}

}  // namespace etude::suite
