#include <algorithm>
#include <array>
#include <cmath>
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

#include "src/base/saturating.h"
#include "src/base/text/quantity.h"
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

// Returns the index of the left factor of an operator that is one matrix product.
std::optional<size_t> LeftFactorOf(std::string_view name) {
  const auto found =
      std::ranges::find(kProductOperators, name, &std::pair<std::string_view, size_t>::first);
  return found == kProductOperators.end() ? std::nullopt : std::optional(found->second);
}

// Returns the product of two tensors of the sizes `a` and `b`, each of one or several matrices.
std::optional<ProductShape> ProductOf(std::span<const int64_t> a, std::span<const int64_t> b) {
  if (a.size() != b.size() || (a.size() != 2 && a.size() != 3)) return std::nullopt;
  if (std::ranges::min(a) < 1 || std::ranges::min(b) < 1) return std::nullopt;
  const bool is_one = a.size() == 2;
  if (!is_one && a[0] != b[0]) return std::nullopt;
  const size_t last = a.size() - 1;
  if (a[last] != b[last - 1]) return std::nullopt;
  return ProductShape{is_one ? 1 : a[0], a[last - 1], a[last], b[last]};
}

// A tensor among the arguments of an OperatorKey.
struct KeyTensor {
  DType type = DType::kUnknown;
  std::vector<int64_t> sizes;
};

// Returns the tensors at the front of an operator's arguments: "float32[8,4],float32[4,4]:1:4,1".
std::vector<KeyTensor> TensorsOf(std::string_view arguments) {
  std::vector<KeyTensor> tensors;
  while (true) {
    const size_t open = arguments.find('[');
    const size_t close = arguments.find(']');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) break;
    const std::optional<DType> type = FloatType(arguments.substr(0, open));
    if (!type) break;
    KeyTensor& tensor = tensors.emplace_back(KeyTensor{*type, {}});
    std::string_view sizes = arguments.substr(open + 1, close - open - 1);
    while (!sizes.empty()) {
      const size_t end = std::min(sizes.find(','), sizes.size());
      tensor.sizes.push_back(ParseWhole(sizes.substr(0, end)).value_or(0));
      sizes.remove_prefix(std::min(end + 1, sizes.size()));
    }
    const size_t comma = arguments.find(',', close);
    if (comma == std::string_view::npos) break;
    arguments.remove_prefix(comma + 1);
  }
  return tensors;
}

// Returns the product of an operator in a table, and its type.
std::optional<std::pair<ProductShape, DType>> ProductOf(const OperatorKey& key) {
  // Outermost operators are measured, which call the others.
  const bool is_linear = key.name == "aten::linear";
  const std::optional<size_t> left = is_linear ? 0 : LeftFactorOf(key.name);
  std::vector<KeyTensor> tensors = TensorsOf(key.arguments);
  if (!left || tensors.size() < *left + 2) return std::nullopt;
  std::vector<int64_t>& a = tensors[*left].sizes;
  std::vector<int64_t>& b = tensors[*left + 1].sizes;
  if (is_linear) {
    // The weight is stored as outputs × inputs; the input may have several dimensions of rows.
    if (a.size() < 2 || std::ranges::min(a) < 1) return std::nullopt;
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < a.size(); ++i) rows = SaturatingProduct({rows, a[i]});
    a = {rows, a.back()};
    std::ranges::reverse(b);
  }
  const auto product = ProductOf(a, b);
  return product ? std::optional(std::pair(*product, tensors[*left].type)) : std::nullopt;
}

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
  std::optional<size_t> LeftFactor(NodeId node) const { return LeftFactorOf(trace_.name(node)); }

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
  std::optional<Key> KeyOf(NodeId node, size_t left) const {
    const TensorUse* a = Tensor(node, left);
    const TensorUse* b = Tensor(node, left + 1);
    if (a == nullptr || b == nullptr || !a->shape || !b->shape) return std::nullopt;
    const auto product = ProductOf(trace_.ints(a->shape), trace_.ints(b->shape));
    const DType type = DTypeFromText(trace_.text(a->type));
    if (!product || !FloatType(Name(type))) return std::nullopt;
    return Key{*product, type};
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

void MeasuredProducts::AddMedians(Times& times) {
  for (auto& [key, all] : times) {
    const auto median = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
    std::ranges::nth_element(all, median);
    times_.emplace(key, *median);
  }
}

Result<MeasuredProducts> MeasuredProducts::Of(const Trace& trace, const std::string& path) {
  MeasuredProducts products;
  Times times = ProductReader(trace).Run();
  products.AddMedians(times);
  if (products.times_.empty()) {
    return BadInput(fmt::format(
        "{}: found no matrix product with shapes and a time, expected a linked trace of "
        "a recorded step, or a table in a file that ends in .csv",
        path));
  }
  return products;
}

Result<MeasuredProducts> MeasuredProducts::Of(const OperatorTable& table, const std::string& path) {
  MeasuredProducts products;
  Times times;
  for (const auto& [key, time] : table.times) {
    const auto product = time.noisy ? std::nullopt : ProductOf(key);
    if (!product) continue;
    times[*product].push_back(Nanos{std::max<int64_t>(std::llround(time.time_ns), 1)});
  }
  products.AddMedians(times);
  if (products.times_.empty()) {
    return BadInput(fmt::format(
        "{}: found no matrix product that is not noisy among the operators, expected one such as "
        "aten::linear or aten::mm",
        path));
  }
  return products;
}

}  // namespace etude
