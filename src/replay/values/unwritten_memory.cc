#include "src/replay/values/unwritten_memory.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "src/run/step/recorded_step.h"
#include "src/run/step/updated_tensors.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

// Operators whose result has undefined content.
constexpr auto kAllocators = std::to_array<std::string_view>({
    "aten::empty",
    "aten::empty_like",
    "aten::empty_permuted",
    "aten::empty_strided",
    "aten::new_empty",
    "aten::new_empty_strided",
});

// Operators that read only the form of an argument, besides the allocators.
constexpr auto kFormReaders = std::to_array<std::string_view>({
    "aten::full_like",
    "aten::new_full",
    "aten::new_ones",
    "aten::new_zeros",
    "aten::ones_like",
    "aten::rand_like",
    "aten::randint_like",
    "aten::randn_like",
    "aten::zeros_like",
});

// Operators that change the form of an argument, but not its content. Their schemas declare a
// write.
constexpr auto kFormWriters = std::to_array<std::string_view>({
    "aten::as_strided_",
    "aten::detach_",
    "aten::squeeze_",
    "aten::swapaxes_",
    "aten::swapdims_",
    "aten::t_",
    "aten::transpose_",
    "aten::unsqueeze_",
});

template <size_t kCount>
bool IsOneOf(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

class Search {
 public:
  Search(const Trace& trace, const DataFlow& flow) : trace_(trace), flow_(flow), updated_(trace) {}

  void Visit(NodeId node, uint32_t op) {
    const std::string_view name = BaseOperatorName(SchemaOf(trace_, node));
    const bool allocates = IsOneOf(kAllocators, name);
    if (!empty_.empty() && !allocates && !IsOneOf(kFormReaders, name)) VisitArguments(node, name);
    if (!allocates) return;
    const auto results = flow_.outputs(node);
    for (size_t i = 0; i < results.size(); ++i) {
      const StorageVersion version = results[i].version;
      if (version && trace_.tensor(results[i].tensor).numel > 0) empty_[version] = {op, i, version};
    }
  }

  std::vector<UnwrittenMemory> Take() { return std::move(found_); }

 private:
  void VisitArguments(NodeId node, std::string_view name) {
    const auto uses = flow_.inputs(node);
    // Old schemas of collectives do not declare what they write.
    const bool writes_all = IsC10dOperator(name);
    const bool writes_form = WritesForm(name);
    const std::vector<bool> updated = updated_.Of(node);
    // Writes first, because `out` follows the arguments that are read.
    for (size_t i = 0; i < updated.size() && i < uses.size(); ++i) {
      if (writes_all || (!writes_form && updated[i])) empty_.erase(uses[i].version);
    }
    for (const DataFlow::Use& use : uses) {
      const auto found = empty_.find(use.version);
      if (found == empty_.end() || IsPassedOn(node, use.version)) continue;
      found_.push_back(found->second);
      empty_.erase(found);
    }
  }

  // Returns whether a result is a view of the memory, whose content is then not needed yet.
  bool IsPassedOn(NodeId node, StorageVersion version) const {
    return std::ranges::any_of(flow_.outputs(node), [&](const DataFlow::Use& result) {
      return result.version == version;
    });
  }

  const Trace& trace_;
  const DataFlow& flow_;
  UpdatedTensors updated_;
  std::unordered_map<StorageVersion, UnwrittenMemory> empty_;  // neither written nor read yet
  std::vector<UnwrittenMemory> found_;
};

}  // namespace

bool WritesForm(std::string_view name) { return IsOneOf(kFormWriters, name); }

std::vector<UnwrittenMemory> FindUnwrittenMemory(const Trace& trace, const DataFlow& flow,
                                                 std::span<const NodeId> selection) {
  Search search(trace, flow);
  for (uint32_t op = 0; op < selection.size(); ++op) search.Visit(selection[op], op);
  return search.Take();
}

}  // namespace etude
