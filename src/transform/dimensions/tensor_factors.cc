#include "src/transform/dimensions/tensor_factors.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "src/base/container/hash.h"
#include "src/run/step/tensor_shape.h"

namespace etude {

size_t TensorFactors::KeyHash::operator()(const Key& key) const {
  uint64_t hash = HashMix(key.tensor, key.version);
  hash = HashMix(HashMix(hash, key.shape), key.strides);
  return static_cast<size_t>(HashMix(hash, static_cast<uint64_t>(key.offset)));
}

TensorFactors::TensorFactors(const RecordedStep& step, const DataFlow& flow)
    : trace_(step.trace()), memory_(flow.version_count()) {
  for (const NodeId node : step.nodes()) {
    for (const DataFlow::Use& use : flow.inputs(node)) FindMemory(use);
    for (const DataFlow::Use& use : flow.outputs(node)) FindMemory(use);
  }
  // Views of all operators split memory, also of those without a rule.
  for (const NodeId node : step.nodes()) {
    for (const DataFlow::Use& use : flow.inputs(node)) Of(use, node);
    for (const DataFlow::Use& use : flow.outputs(node)) Of(use, node);
  }
}

void TensorFactors::FindMemory(const DataFlow::Use& use) {
  if (!use.version) return;
  const TensorUse& tensor = trace_.tensor(use.tensor);
  const auto shape = ShapeOf(trace_, tensor);
  if (!shape || tensor.element_bytes <= 0) return;
  Memory& memory = memory_[use.version.index()];
  if (memory.element_bytes == 0) memory.element_bytes = tensor.element_bytes;
  if (memory.element_bytes != tensor.element_bytes) return;
  int64_t elements = shape->storage_bytes / tensor.element_bytes;
  for (size_t i = 0; i < shape->sizes.size(); ++i) {
    int64_t reach = 0;
    if (!__builtin_mul_overflow(shape->sizes[i], shape->strides[i], &reach)) {
      elements = std::max(elements, reach);
    }
  }
  if (tensor.storage_bytes > 0) elements = tensor.storage_bytes / tensor.element_bytes;
  memory.elements = std::max(memory.elements, elements);
}

const DimensionFactors& TensorFactors::Of(const DataFlow::Use& use, NodeId node) {
  static const DimensionFactors none;
  const TensorUse& tensor = trace_.tensor(use.tensor);
  if (!use.version || !tensor.shape) return none;
  const Key key{.tensor = tensor.tensor,
                .version = use.version.value(),
                .shape = tensor.shape.value(),
                .strides = tensor.strides.value(),
                .offset = tensor.offset};
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, Find(use, node)).first->second;
}

FactorId TensorFactors::OwnFactor(int64_t size, std::optional<FactorLimit> limit, NodeId node) {
  const FactorId factor = factors_.Add(size);
  if (limit) factors_.Limit({&factor, 1}, *limit, node);
  return factor;
}

FactorId TensorFactors::WholeOf(Memory& memory) {
  if (!memory.whole) memory.whole = factors_.Add(memory.elements);
  return memory.whole;
}

DimensionFactors TensorFactors::Find(const DataFlow::Use& use, NodeId node) {
  const auto shape = ShapeOf(trace_, trace_.tensor(use.tensor));
  if (!shape) return {};
  const size_t rank = shape->sizes.size();
  DimensionFactors found(rank);
  Memory& memory = memory_[use.version.index()];
  const bool is_of_memory = memory.element_bytes == trace_.tensor(use.tensor).element_bytes;
  // Another type of the same memory, or unknown strides.
  const bool fits = is_of_memory && (shape->strides_known || rank <= 1);
  if (!fits && memory.elements > 0) {
    const FactorId whole = WholeOf(memory);
    factors_.Limit({&whole, 1}, FactorLimit::kUnknown, node);
  }
  std::vector<size_t> ascending(rank);
  std::iota(ascending.begin(), ascending.end(), size_t{0});
  std::ranges::stable_sort(ascending, {}, [&](size_t i) { return shape->strides[i]; });
  int64_t least = 1;  // where the next dimension may begin
  for (const size_t i : ascending) {
    const int64_t size = shape->sizes[i];
    const int64_t stride = shape->strides[i];
    if (size == 1) continue;
    if (size == 0 || !fits) {
      found[i] = {
          OwnFactor(size, size == 0 ? std::nullopt : std::optional(FactorLimit::kUnknown), node)};
      continue;
    }
    if (stride == 0) {
      found[i] = {OwnFactor(size, std::nullopt, node)};
      continue;
    }
    int64_t end = 0;
    std::optional<std::vector<FactorId>> between;
    const bool is_large = __builtin_mul_overflow(size, stride, &end);
    if (!is_large && stride >= least) between = Between(memory, stride, end);
    if (is_large) end = memory.elements;
    least = std::max(least, end);
    if (between) {
      found[i] = *std::move(between);
      continue;
    }
    const FactorId whole = WholeOf(memory);
    if (const auto shifted = is_large ? std::nullopt : Shifted(whole, stride, size, node)) {
      found[i] = {*shifted};
      continue;
    }
    // A part of a dimension, or one that overlaps another.
    found[i] = {OwnFactor(size, FactorLimit::kPart, node)};
    int64_t below = 1;
    const std::vector<FactorId> finest = factors_.Expand({&whole, 1});
    for (size_t k = finest.size(); k-- > 0;) {
      const int64_t above = below * factors_.size(finest[k]);
      if (above > stride && below < end) {
        factors_.Limit({&finest[k], 1}, FactorLimit::kPart, node);
      }
      below = above;
    }
  }
  return found;
}

// Returns the factor of a view of all but one place of a dimension; nullopt if it is none.
std::optional<FactorId> TensorFactors::Shifted(FactorId whole, int64_t stride, int64_t size,
                                               NodeId node) {
  if (factors_.size(whole) == 0 || !factors_.SplitAt({&whole, 1}, stride)) return std::nullopt;
  int64_t below = 1;
  const std::vector<FactorId> finest = factors_.Expand({&whole, 1});
  for (size_t k = finest.size(); k-- > 0 && below <= stride;) {
    if (below == stride && factors_.size(finest[k]) == size + 1) {
      for (const Shift& known : shifts_) {
        const std::vector<FactorId> longer = factors_.Expand({&known.longer, 1});
        if (longer.size() == 1 && longer.front() == finest[k]) return known.shorter;
      }
      shifts_.push_back(
          {.longer = finest[k], .shorter = OwnFactor(size, std::nullopt, node), .by = node});
      return shifts_.back().shorter;
    }
    below *= factors_.size(finest[k]);
  }
  return std::nullopt;
}

std::optional<std::vector<FactorId>> TensorFactors::Between(Memory& memory, int64_t inner,
                                                            int64_t outer) {
  if (outer > memory.elements) return std::nullopt;
  const FactorId whole = WholeOf(memory);
  if (!factors_.SplitAt({&whole, 1}, outer) || !factors_.SplitAt({&whole, 1}, inner)) {
    return std::nullopt;
  }
  std::vector<FactorId> between;
  int64_t below = 1;
  const std::vector<FactorId> finest = factors_.Expand({&whole, 1});
  for (size_t k = finest.size(); k-- > 0;) {
    if (below >= inner && below < outer) between.push_back(finest[k]);
    below *= factors_.size(finest[k]);
  }
  std::ranges::reverse(between);
  return between;
}

// Returns the product, or the largest number if it is larger.
int64_t TensorFactors::Times(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  has_overflow_ = true;
  return INT64_MAX;
}

int64_t TensorFactors::SizeOf(std::span<const FactorId> factors, const Sizes& sizes) {
  int64_t product = 1;
  for (const FactorId factor : factors_.Expand(factors)) {
    const auto other = sizes.find(factor);
    product = Times(product, other != sizes.end() ? other->second : factors_.size(factor));
  }
  return product;
}

int64_t TensorFactors::StrideWith(const Memory& memory, int64_t stride, const Sizes& sizes) {
  int64_t below = 1;
  int64_t made = 1;
  const std::vector<FactorId> finest = factors_.Expand({&memory.whole, 1});
  for (size_t k = finest.size(); k-- > 0 && below < stride;) {
    below *= factors_.size(finest[k]);
    made = Times(made, SizeOf({&finest[k], 1}, sizes));
  }
  // Between two factors if the dimension is a part of one.
  return below == stride ? made : stride;
}

int64_t TensorFactors::OffsetWith(const Memory& memory, int64_t offset, const Sizes& sizes) {
  int64_t made = 0;
  int64_t below = 1;
  const std::vector<FactorId> finest = factors_.Expand({&memory.whole, 1});
  for (size_t k = finest.size(); k-- > 0 && offset > 0;) {
    if (factors_.size(finest[k]) == 0) break;  // memory without a whole element
    const int64_t size = SizeOf({&finest[k], 1}, sizes);
    const int64_t part = Times(std::min(offset % factors_.size(finest[k]), size - 1), below);
    if (__builtin_add_overflow(made, part, &made)) has_overflow_ = true;
    offset /= factors_.size(finest[k]);
    below = Times(below, size);
  }
  return made;
}

std::optional<TensorFactors::Layout> TensorFactors::Resized(const DataFlow::Use& use, NodeId node,
                                                            const Sizes& sizes) {
  const DimensionFactors& dims = Of(use, node);
  const TensorUse& tensor = trace_.tensor(use.tensor);
  const auto shape = ShapeOf(trace_, tensor);
  if (!use.version || !shape || dims.size() != shape->sizes.size()) return std::nullopt;
  Layout made{.shape = shape->sizes, .strides = shape->strides};
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i].empty()) made.shape[i] = SizeOf(dims[i], sizes);
    made.numel = Times(made.numel, made.shape[i]);
  }
  const Memory& memory = memory_[use.version.index()];
  made.offset = tensor.offset;
  made.storage_bytes = tensor.storage_bytes;
  if (memory.whole) {
    for (int64_t& stride : made.strides) stride = StrideWith(memory, stride, sizes);
    made.offset = OffsetWith(memory, tensor.offset, sizes);
    const bool is_whole = tensor.storage_bytes == memory.elements * memory.element_bytes;
    if (is_whole)
      made.storage_bytes = Times(SizeOf({&memory.whole, 1}, sizes), memory.element_bytes);
  }
  const bool is_same = made.shape == shape->sizes && made.strides == shape->strides &&
                       made.offset == tensor.offset && made.storage_bytes == tensor.storage_bytes;
  return is_same ? std::nullopt : std::optional(std::move(made));
}

}  // namespace etude
