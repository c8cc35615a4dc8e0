#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/run/calls/launch.h"
#include "src/run/exclusive_times.h"
#include "src/synth/device/float_type.h"
#include "src/synth/device/measured_products.h"

namespace etude {
namespace {

// Operators that are exactly one matrix product, with the index of the left factor.
constexpr auto kProductOperators = std::to_array<std::pair<std::string_view, size_t>>({
    {"aten::mm", 0},
    {"aten::bmm", 0},
    {"aten::addmm", 1},
    {"aten::addmm_", 1},
    {"aten::_addmm_activation", 1},
    {"aten::baddbmm", 1},
    {"aten::baddbmm_", 1},
});

class ProductReader {
 public:
  explicit ProductReader(const Trace& trace) : trace_(trace), own_times_(SelfTimes(trace)) {}

  using Key = std::pair<ProductShape, DType>;
  std::map<Key, std::vector<Nanos>> Run() {
    FindKernelTimes();
    std::map<Key, std::vector<Nanos>> times;
    ForEachNode(trace_, [&](NodeId node) {
      const std::optional<size_t> left = LeftFactor(node);
      if (!left) return;
      const auto key = KeyOf(node, *left);
      const auto time = key ? TimeOf(node, *left) : std::nullopt;
      if (time && time->count > 0) times[*key].push_back(*time);
    });
    return times;
  }

 private:
  std::optional<size_t> LeftFactor(NodeId node) const {
    const auto found = std::ranges::find(kProductOperators, trace_.name(node),
                                         &std::pair<std::string_view, size_t>::first);
    return found == kProductOperators.end() ? std::nullopt : std::optional(found->second);
  }

  // Finds, by operator, the time of kernels started by it or its callees.
  void FindKernelTimes() {
    kernel_times_.resize(trace_.node_count());
    const std::vector<NodeId> launchers = FindLaunchers(trace_);
    ForEachNode(trace_, [&](NodeId node) {
      const std::optional<Nanos> time = trace_.duration(node);
      if (trace_.kind(node) != NodeKind::kKernel || !time) return;
      NodeId above = launchers[node.index()];
      while (above && !LeftFactor(above)) above = trace_.parent(above);
      if (!above) return;
      std::optional<Nanos>& sum = kernel_times_[above.index()];
      sum = sum.value_or(Nanos{}) + *time;
    });
  }

  const TensorUse* Tensor(NodeId node, size_t index) const {
    const std::span<const Value> inputs = trace_.inputs(node);
    if (index >= inputs.size() || inputs[index].kind != ValueKind::kTensor) return nullptr;
    return &trace_.tensor(inputs[index].as_tensor());
  }
  // Returns {count, rows, columns} of one or several matrices.
  std::optional<std::array<int64_t, 3>> MatrixOf(const TensorUse* use) const {
    if (use == nullptr || !use->shape) return std::nullopt;
    const std::span<const int64_t> shape = trace_.ints(use->shape);
    if (shape.size() != 2 && shape.size() != 3) return std::nullopt;
    if (std::ranges::min(shape) < 1) return std::nullopt;
    if (shape.size() == 2) return std::array<int64_t, 3>{1, shape[0], shape[1]};
    return std::array<int64_t, 3>{shape[0], shape[1], shape[2]};
  }
  std::optional<Key> KeyOf(NodeId node, size_t left) const {
    const auto a = MatrixOf(Tensor(node, left));
    const auto b = MatrixOf(Tensor(node, left + 1));
    if (!a || !b || (*a)[0] != (*b)[0] || (*a)[2] != (*b)[1]) return std::nullopt;
    const DType type = DTypeFromText(trace_.text(Tensor(node, left)->type));
    if (!FloatType(Name(type))) return std::nullopt;
    return Key{{(*a)[0], (*a)[1], (*a)[2], (*b)[2]}, type};
  }

  std::optional<Nanos> TimeOf(NodeId node, size_t left) const {
    if (kernel_times_[node.index()]) return kernel_times_[node.index()];
    const bool on_cpu = trace_.text(Tensor(node, left)->device).starts_with("cpu");
    return on_cpu ? own_times_[node.index()] : std::nullopt;
  }

  const Trace& trace_;
  const std::vector<std::optional<Nanos>> own_times_;
  std::vector<std::optional<Nanos>> kernel_times_;
};

}  // namespace

Result<MeasuredProducts> MeasuredProducts::Of(const Trace& trace, const std::string& path) {
  MeasuredProducts products;
  for (auto& [key, times] : ProductReader(trace).Run()) {
    const auto median = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
    std::ranges::nth_element(times, median);
    products.times_.emplace(key, *median);
  }
  if (products.times_.empty()) {
    return BadInput(fmt::format(
        "{}: found no matrix product with shapes and a time, expected a linked trace of "
        "a recorded step, or a table in a file that ends in .csv",
        path));
  }
  return products;
}

}  // namespace etude
