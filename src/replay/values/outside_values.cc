#include "src/replay/values/outside_values.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/replay/values/value_demands.h"
#include "src/run/step/tensor_shape.h"
#include "src/run/step/updated_tensors.h"
#include "src/trace/index_statistics.h"
#include "src/trace/words/enums.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

using Kind = FillRule::Kind;

// Operators whose first result contains values of their arguments only. A demand on it applies to
// all arguments of the same type. Further results, such as sort's order, contain other values.
constexpr auto kMovers = std::to_array<std::string_view>({
    "aten::_reshape_copy",
    "aten::_to_copy",
    "aten::_unsafe_view",
    "aten::cat",
    "aten::chunk",
    "aten::clamp",
    "aten::clamp_",
    "aten::clamp_max",
    "aten::clamp_min",
    "aten::clone",
    "aten::concat",
    "aten::constant_pad_nd",
    "aten::contiguous",
    "aten::copy_",
    "aten::expand_copy",
    "aten::flip",
    "aten::gather",
    "aten::hstack",
    "aten::index",
    "aten::index_select",
    "aten::masked_fill",
    "aten::masked_fill_",
    "aten::masked_select",
    "aten::pad",
    "aten::pin_memory",
    "aten::_pin_memory",
    "aten::repeat",
    "aten::repeat_interleave",
    "aten::reshape",
    "aten::roll",
    "aten::scatter",
    "aten::scatter_",
    "aten::sort",
    "aten::stack",
    "aten::to",
    "aten::tril",
    "aten::triu",
    "aten::type_as",
    "aten::unique",
    "aten::_unique2",
    "aten::vstack",
    "aten::where",
});

// Operators whose result is the running sum of their first argument.
constexpr auto kRunningSums = std::to_array<std::string_view>({"aten::cumsum", "aten::cumsum_"});

bool IsRunningSum(std::string_view op) {
  return std::ranges::find(kRunningSums, op) != kRunningSums.end();
}

// Operators whose result is the sum or difference of their first two arguments.
constexpr auto kSums =
    std::to_array<std::string_view>({"aten::add", "aten::add_", "aten::sub", "aten::sub_"});

bool IsSum(std::string_view op) { return std::ranges::find(kSums, op) != kSums.end(); }

// Operators with a positive result if certain arguments are positive: all of the same type, or the
// first one, to which others are added.
struct SignKeeper {
  std::string_view op;
  bool by_first = false;
};
constexpr auto kSignKeepers = std::to_array<SignKeeper>({
    {"aten::_foreach_add", true},
    {"aten::_foreach_add_", true},
    {"aten::_foreach_addcmul", true},
    {"aten::_foreach_addcmul_", true},
    {"aten::_foreach_div"},
    {"aten::_foreach_div_"},
    {"aten::_foreach_lerp", true},
    {"aten::_foreach_lerp_", true},
    {"aten::_foreach_mul"},
    {"aten::_foreach_mul_"},
    {"aten::_foreach_sub", true},
    {"aten::_foreach_sub_", true},
    {"aten::add", true},
    {"aten::add_", true},
    {"aten::addcmul", true},
    {"aten::addcmul_", true},
    {"aten::bmm"},
    {"aten::div"},
    {"aten::div_"},
    {"aten::lerp", true},
    {"aten::lerp_", true},
    {"aten::matmul"},
    {"aten::maximum"},
    {"aten::mean"},
    {"aten::mm"},
    {"aten::mul"},
    {"aten::mul_"},
    {"aten::rsub", true},  // subtracts from 1, mostly, which is greater
    {"aten::sub", true},
    {"aten::sub_", true},
    {"aten::sum"},
});

bool IsMover(std::string_view op) { return std::ranges::find(kMovers, op) != kMovers.end(); }

// Merges two rules for one memory: the narrower index range wins, and demands on integers take
// precedence over preferences for floats.
FillRule Merge(const FillRule& a, const FillRule& b) {
  const auto strength = [](Kind kind) {
    switch (kind) {
      case Kind::kDefault: return 0;
      case Kind::kWeight: return 1;
      case Kind::kPositive: return 2;
      case Kind::kConstant: return 3;
      case Kind::kMask: return 4;
      case Kind::kIndex: return 5;
      case Kind::kDistinct: return 6;
      case Kind::kOffsets: return 7;
      case Kind::kSteps: return 8;
      case Kind::kLengths: return 9;
    }
    return 0;
  };
  if (strength(a.kind) != strength(b.kind)) return strength(a.kind) > strength(b.kind) ? a : b;
  if (a.kind != Kind::kIndex) return a;
  return {.kind = Kind::kIndex,
          .low = std::max(a.low, b.low),
          .high = std::min(a.high, b.high),
          .skew = std::max(a.skew, b.skew),
          .recorded = a.recorded ? a.recorded : b.recorded};
}

class Inference {
 public:
  Inference(const RecordedStep& step, const DataFlow& flow)
      : step_(step),
        trace_(step.trace()),
        flow_(flow),
        rules_(flow.version_count()),
        is_root_(flow.version_count()),
        updated_(step.trace()) {
    for (const ValueDemand& demand : ValueDemands()) demands_[demand.op].push_back(&demand);
  }

  ValueRules Run() {
    for (const NodeId node : step_.nodes()) {
      if (step_.is_operator(step_.position(node))) Collect(node);
    }
    // Values move forward, so one backward pass carries demands to their sources. Memory that is
    // written in place and read again may need another pass.
    for (int round = 0; round < 4; ++round) {
      bool changed = false;
      for (size_t i = step_.nodes().size(); i-- > 0;) changed |= CarryBack(step_.nodes()[i]);
      if (!changed) break;
    }
    for (const auto& [version, range] : ranges_) {
      if (rules_[version.index()].kind == Kind::kDefault) Add(version, range);
    }
    return {.of_versions = std::move(rules_), .demanded = std::move(demanded_)};
  }

 private:
  void Collect(NodeId node) {
    const auto found = demands_.find(BaseOperatorName(SchemaOf(trace_, node)));
    if (found != demands_.end()) {
      for (const ValueDemand* demand : found->second) Apply(node, *demand);
    }
    CollectUpdated(node);
    ReadRange(node);
    ReadStatistics(node);
    ReadValues(node);
  }

  // Memory that a step updates is a parameter or a state: its initial values are small, like a
  // parameter's.
  void CollectUpdated(NodeId node) {
    const auto uses = flow_.inputs(node);
    const std::vector<bool> updated = updated_.Of(node);
    for (size_t i = 0; i < updated.size() && i < uses.size(); ++i) {
      if (!updated[i] || !uses[i].version) continue;
      const DType dtype = DTypeOf(trace_, trace_.tensor(uses[i].tensor));
      if (IsFloating(dtype)) Add(uses[i].version, {Kind::kWeight, 0, 0});
    }
  }

  void Apply(NodeId node, const ValueDemand& demand) {
    const auto inputs = trace_.inputs(node);
    const auto argument = static_cast<size_t>(demand.argument);
    if (argument >= inputs.size()) return;
    size_t flat = 0;  // index of the argument's first tensor
    auto count = [&](TensorId) { ++flat; };
    ForEachTensor(trace_, inputs.first(argument), count);
    const Value& value = inputs[argument];
    if (value.kind == ValueKind::kTensor) {
      Restrict(node, demand, flat, 0);
    } else if (value.kind == ValueKind::kList) {
      const auto items = trace_.values(value.as_list());
      for (size_t i = 0; i < items.size(); ++i) {
        if (items[i].kind == ValueKind::kTensor) Restrict(node, demand, flat++, i);
      }
    }
  }

  void Restrict(NodeId node, const ValueDemand& demand, size_t flat, size_t element) {
    const auto uses = flow_.inputs(node);
    if (flat >= uses.size() || !uses[flat].version) return;
    const auto rule = RuleOf(trace_, node, demand, element, uses[flat].tensor);
    if (!rule) return;
    Add(uses[flat].version, *rule);
    const bool is_root =
        demand.bound == ValueDemand::Bound::kRoot || demand.bound == ValueDemand::Bound::kBase;
    if (is_root && rule->kind == Kind::kPositive) is_root_[uses[flat].version.index()] = true;
    if (rule->kind == Kind::kPositive || rule->kind == Kind::kWeight) return;
    demanded_.push_back({.node = node,
                         .version = uses[flat].version,
                         .tensor = uses[flat].tensor,
                         .decides_size = DecidesSize(demand.bound) || rule->kind == Kind::kMask});
  }

  // Reads the observer's tensor_range: {"flat tensor index":[min,max],…}.
  void ReadRange(NodeId node) {
    std::string_view text = trace_.text(trace_.tensor_range(node));
    const auto uses = flow_.inputs(node);
    while (!text.empty()) {
      const size_t quote = text.find('"');
      const size_t open = text.find('[');
      const size_t comma = text.find(',', open);
      const size_t close = text.find(']', open);
      if (quote == std::string_view::npos || close == std::string_view::npos || comma > close ||
          open < quote) {
        return;
      }
      const auto number = [](std::string_view digits) {
        return std::strtoll(std::string(digits).c_str(), nullptr, 10);
      };
      const auto flat = static_cast<uint64_t>(number(text.substr(quote + 1, 20)));
      const int64_t low = number(text.substr(open + 1, comma - open - 1));
      const int64_t high = number(text.substr(comma + 1, close - comma - 1));
      text.remove_prefix(close + 1);
      if (flat >= uses.size() || !uses[flat].version || low < 0 || high < low ||
          high == INT64_MAX) {
        continue;
      }
      FillRule& rule = rules_[uses[flat].version.index()];
      // Recorded ranges can be garbage, so they only narrow the operators' demands.
      if (rule.kind == Kind::kIndex && low >= rule.low && high < rule.high) {
        rule.low = low;
        rule.high = high + 1;
      } else if (rule.kind == Kind::kDefault &&
                 IsInteger(DTypeOf(trace_, trace_.tensor(uses[flat].tensor)))) {
        ranges_.emplace_back(uses[flat].version, FillRule{Kind::kIndex, low, high + 1});
      }
    }
  }

  // Returns the memory of tensor `flat` of a node, or kNone.
  StorageVersion VersionOf(NodeId node, uint64_t flat) const {
    const auto uses = flow_.inputs(node);
    return flat < uses.size() ? uses[flat].version : StorageVersion::None();
  }

  void ReadStatistics(NodeId node) {
    const auto statistics = ParseIndexStatistics(trace_.text(trace_.index_statistics(node)));
    if (!statistics) return;
    for (const IndexStatistics& row : *statistics) {
      const StorageVersion version = VersionOf(node, row.tensor);
      if (!version || !row.skew) continue;
      FillRule& rule = rules_[version.index()];
      if (rule.kind == Kind::kIndex) rule.skew = std::max(rule.skew, *row.skew);
    }
  }

  // Uses recorded elements if they satisfy the operators that read them.
  void ReadValues(NodeId node) {
    auto recorded = ParseIndexValues(trace_.text(trace_.index_values(node)));
    if (!recorded) return;
    for (IndexValues& row : *recorded) {
      const StorageVersion version = VersionOf(node, row.tensor);
      if (!version) continue;
      FillRule& rule = rules_[version.index()];
      const bool with_end = rule.kind == Kind::kOffsets;
      const bool fits = std::ranges::all_of(row.values, [&](int64_t value) {
        return value >= rule.low && (value < rule.high || (with_end && value == rule.high));
      });
      const bool usable = rule.kind == Kind::kIndex ||
                          (rule.kind == Kind::kOffsets && std::ranges::is_sorted(row.values));
      if (!fits || !usable) continue;
      rule.recorded = std::make_shared<const std::vector<int64_t>>(std::move(row.values));
    }
  }

  bool Add(StorageVersion version, const FillRule& rule) {
    FillRule& have = rules_[version.index()];
    const FillRule merged = Merge(have, rule);
    if (merged == have) return false;
    have = merged;
    return true;
  }

  bool CarryBack(NodeId node) {
    if (!step_.is_operator(step_.position(node))) return false;
    const std::string_view op = BaseOperatorName(SchemaOf(trace_, node));
    if (IsRunningSum(op)) return CarryToSteps(node);
    if (IsSum(op) && CarryToTerms(node)) return true;
    const auto keeper = std::ranges::find(kSignKeepers, op, &SignKeeper::op);
    if (keeper != kSignKeepers.end()) return CarrySign(node, keeper->by_first);
    if (!IsMover(op)) return false;
    bool changed = CarrySign(node, false);
    for (const DataFlow::Use& result : MovedValues(node)) {
      if (!result.version) continue;
      FillRule rule = rules_[result.version.index()];
      // Moves keep ranges and frequencies. They keep the order if all elements are moved, and
      // ascending parts are the best guess if some are. They do not keep sums.
      if (rule.kind != Kind::kIndex && rule.kind != Kind::kOffsets) continue;
      if (rule.kind == Kind::kIndex) rule.recorded = nullptr;
      for (const DataFlow::Use& source : flow_.inputs(node)) {
        if (!source.version || source.version == result.version) continue;
        const DType dtype = DTypeOf(trace_, trace_.tensor(source.tensor));
        if (!IsInteger(dtype)) continue;
        if (dtype != DTypeOf(trace_, trace_.tensor(result.tensor)) && !MayConvert(node)) continue;
        changed |= Add(source.version, rule);
      }
    }
    return changed;
  }

  // Positive results need positive inputs: an optimizer divides its second moments by their bias
  // before it takes the root.
  bool CarrySign(NodeId node, bool by_first) {
    const auto results = MovedValues(node);
    const auto has_root = [&](const DataFlow::Use& result) {
      return result.version && is_root_[result.version.index()];
    };
    if (!std::ranges::any_of(results, has_root)) return false;
    const auto sources = flow_.inputs(node);
    // Each element of a list is added to one of the others.
    const size_t count = by_first ? std::min(sources.size(), results.size()) : sources.size();
    // A square is always positive.
    if (count == 2 && !by_first && sources[0].version == sources[1].version) return false;
    bool changed = false;
    for (const DataFlow::Use& source : sources.first(count)) {
      if (!source.version || is_root_[source.version.index()]) continue;
      if (!IsFloating(DTypeOf(trace_, trace_.tensor(source.tensor)))) continue;
      is_root_[source.version.index()] = true;
      Add(source.version, {Kind::kPositive, 0, 0});
      changed = true;
    }
    return changed;
  }

  // Carries demands for offsets to the steps that they are the running sum of.
  bool CarryToSteps(NodeId node) {
    const auto sums = flow_.outputs(node);
    const auto terms = flow_.inputs(node);
    if (sums.empty() || terms.empty() || !sums[0].version || !terms[0].version) return false;
    FillRule rule = rules_[sums[0].version.index()];
    if (rule.kind != Kind::kOffsets || terms[0].version == sums[0].version) return false;
    if (!IsInteger(DTypeOf(trace_, trace_.tensor(terms[0].tensor)))) return false;
    rule.kind = Kind::kSteps;
    return Add(terms[0].version, rule);
  }

  // Integers of a sum are in range if the larger term is and the other is 0, for example positions
  // of words and their begins.
  bool CarryToTerms(NodeId node) {
    const auto sums = flow_.outputs(node);
    const auto terms = flow_.inputs(node);
    if (sums.empty() || terms.size() < 2 || !sums[0].version) return false;
    FillRule rule = rules_[sums[0].version.index()];
    if (rule.kind != Kind::kIndex && rule.kind != Kind::kOffsets) return false;
    rule.recorded = nullptr;
    const auto elements = [&](size_t term) { return trace_.tensor(terms[term].tensor).numel; };
    const size_t large = elements(0) >= elements(1) ? 0 : 1;
    bool changed = false;
    for (const size_t term : {size_t{0}, size_t{1}}) {
      const StorageVersion version = terms[term].version;
      if (!version || version == sums[0].version) continue;
      if (!IsInteger(DTypeOf(trace_, trace_.tensor(terms[term].tensor)))) continue;
      changed |= Add(version, term == large ? rule : FillRule{Kind::kConstant, 0, 0});
    }
    return changed;
  }

  // Returns the first result; it may be a list (chunk).
  std::span<const DataFlow::Use> MovedValues(NodeId node) const {
    const auto results = flow_.outputs(node);
    const auto values = trace_.outputs(node);
    if (values.size() < 2 || results.empty()) return results;
    return values[0].kind == ValueKind::kTensor ? results.first(1) : results;
  }

  bool MayConvert(NodeId node) const {
    const std::string_view op = BaseOperatorName(SchemaOf(trace_, node));
    return op == "aten::to" || op == "aten::_to_copy" || op == "aten::copy_";
  }

  const RecordedStep& step_;
  const Trace& trace_;
  const DataFlow& flow_;
  std::vector<FillRule> rules_;
  std::vector<DemandedValues> demanded_;
  std::vector<bool> is_root_;  // by version: argument of a root, or its source
  std::vector<std::pair<StorageVersion, FillRule>> ranges_;
  std::unordered_map<std::string_view, std::vector<const ValueDemand*>> demands_;
  UpdatedTensors updated_;
};

}  // namespace

ValueRules InferFillRules(const RecordedStep& step, const DataFlow& flow) {
  return Inference(step, flow).Run();
}

}  // namespace etude
