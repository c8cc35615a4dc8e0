#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/run/step/data_flow.h"
#include "src/run/step/recorded_step.h"
#include "src/trace/trace.h"
#include "src/transform/dimensions/factors.h"

namespace etude {

// Factors of each dimension of a tensor, by dimension, the slowest factor first.
using DimensionFactors = std::vector<std::vector<FactorId>>;

// The factors of all tensors of a step. A piece of memory is a list of factors, the slowest first,
// and a dimension has those between its stride and its stride times its size. So views of the same
// memory (transposed, divided, flattened, selected) share their factors without a rule for each
// operator that makes views. Dimensions of stride 0, and those that are only a part of a factor,
// have factors of their own; those without one place of a factor share one. Not thread-safe; refers
// to the step and its data flow.
class TensorFactors {
 public:
  TensorFactors(const RecordedStep& step, const DataFlow& flow);

  Factors& factors() { return factors_; }
  const Factors& factors() const { return factors_; }

  // Returns the factors of a tensor, which `node` reads or makes. Empty for undefined tensors and
  // those without sizes.
  const DimensionFactors& Of(const DataFlow::Use& use, NodeId node);

  // A view of all but one place of a dimension, such as all words but the first.
  struct Shift {
    FactorId longer;   // factor of the dimension
    FactorId shorter;  // of the view: less by one
    NodeId by;         // operator that made the view
  };
  const std::vector<Shift>& shifts() const { return shifts_; }

  // Sizes of finest factors in an edited step; others have the recorded ones.
  using Sizes = std::map<FactorId, int64_t>;

  // A tensor with other sizes. Strides follow from the sizes of the factors below them.
  struct Layout {
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    int64_t offset = 0;
    int64_t numel = 1;
    int64_t storage_bytes = -1;  // -1: unknown
  };
  // Returns the layout of a tensor with `sizes`; nullopt if it stays.
  std::optional<Layout> Resized(const DataFlow::Use& use, NodeId node, const Sizes& sizes);
  // Returns whether a size was too large for 63 bits.
  bool has_overflow() const { return has_overflow_; }

 private:
  struct Memory {
    int64_t elements = 0;
    int64_t element_bytes = 0;
    FactorId whole;  // kNone: not used yet
  };
  struct Key {
    uint64_t tensor = 0;
    uint32_t version = 0;
    uint32_t shape = 0;
    uint32_t strides = 0;
    int64_t offset = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };

  void FindMemory(const DataFlow::Use& use);
  DimensionFactors Find(const DataFlow::Use& use, NodeId node);
  std::optional<std::vector<FactorId>> Between(Memory& memory, int64_t inner, int64_t outer);
  std::optional<FactorId> Shifted(FactorId whole, int64_t stride, int64_t size, NodeId node);
  FactorId OwnFactor(int64_t size, std::optional<FactorLimit> limit, NodeId node);
  FactorId WholeOf(Memory& memory);
  int64_t Times(int64_t a, int64_t b);
  int64_t SizeOf(std::span<const FactorId> factors, const Sizes& sizes);
  int64_t StrideWith(const Memory& memory, int64_t stride, const Sizes& sizes);
  int64_t OffsetWith(const Memory& memory, int64_t offset, const Sizes& sizes);

  const Trace& trace_;
  Factors factors_;
  std::vector<Memory> memory_;  // by version
  std::vector<Shift> shifts_;
  bool has_overflow_ = false;
  std::unordered_map<Key, DimensionFactors, KeyHash> known_;
};

}  // namespace etude
