#include "src/transform/edit/other_size.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/container/hash.h"
#include "src/base/statistics/median.h"
#include "src/base/text/format_count.h"
#include "src/run/activity.h"
#include "src/run/calls/launch.h"
#include "src/run/exclusive_times.h"
#include "src/transform/edit/retime.h"
#include "src/transform/edit/rewrite.h"
#include "src/transform/layers/step_items.h"
#include "src/transform/operators/operator_cost.h"

namespace etude {
namespace {

// Returns the outermost operators of each thread, or the work of each stream, in order of time.
std::vector<std::vector<NodeId>> LanesOf(const Trace& trace, bool on_device) {
  std::map<LaneId, std::vector<NodeId>> lanes;
  ForEachNode(trace, [&](NodeId node) {
    const bool is_there = (trace.place(node) == Place::kDevice) == on_device;
    if (!is_there || !TimeOf(trace, node)) return;
    if (!on_device) {
      if (!IsCall(trace, node)) return;
      for (NodeId above = trace.parent(node); above; above = trace.parent(above)) {
        if (IsCall(trace, above)) return;
      }
    }
    lanes[trace.lane_id(node)].push_back(node);
  });
  std::vector<std::vector<NodeId>> sorted;
  for (auto& [lane, nodes] : lanes) {
    std::ranges::sort(nodes, {},
                      [&](NodeId node) { return std::pair(*trace.start(node), node.index()); });
    sorted.push_back(std::move(nodes));
  }
  std::ranges::sort(sorted, {}, [&](const std::vector<NodeId>& nodes) {
    return std::pair(*trace.start(nodes.front()), nodes.front().index());
  });
  return sorted;
}

// Returns the operators that a node calls itself.
std::vector<NodeId> CalleesOf(const Trace& trace, NodeId node) {
  std::vector<NodeId> callees;
  for (const NodeId child : trace.children(node)) {
    if (IsCall(trace, child) && trace.place(child) != Place::kDevice) {
      callees.push_back(child);
    }
  }
  return callees;
}

uint64_t HashSizes(const Trace& trace, std::span<const Value> values, uint64_t hash) {
  for (const Value& value : values) {
    hash = HashMix(hash, static_cast<uint64_t>(value.kind));
    if (value.kind == ValueKind::kTensor) {
      const IntListId shape = trace.tensor(value.as_tensor()).shape;
      if (!shape) continue;
      for (const int64_t size : trace.ints(shape)) {
        hash = HashMix(hash, static_cast<uint64_t>(size));
      }
    }
    if (value.kind == ValueKind::kList) {
      hash = HashSizes(trace, trace.values(value.as_list()), HashMix(hash, 1));
    }
  }
  return hash;
}

class Resizer {
 public:
  Resizer(const Trace& first, const Trace& second, const SizePoints& points, const Limits& limits)
      : first_(first),
        second_(second),
        along_((points.wanted - points.first) / (points.second - points.first)),
        limits_(limits),
        matches_(first.node_count()) {}

  Result<SizeEdit> Run() {
    ETUDE_RETURN_IF_ERROR(Match(/*on_device=*/false));
    ETUDE_RETURN_IF_ERROR(Match(/*on_device=*/true));
    ETUDE_ASSIGN_OR_RETURN(
        const Trace resized,
        RewriteTrace(first_, limits_, [&](RewrittenNode& node, TraceBuilder& builder) {
          return Resize(node, builder);
        }));
    // Single ones may be work buffers, whose sizes follow other rules.
    if (broken_ > whole_) return BadInput(broken_place_ + ": " + first_broken_);
    const std::vector<Nanos> longer = FindLonger(resized);
    ETUDE_ASSIGN_OR_RETURN(result_.trace, Retime(resized, longer, limits_));
    return std::move(result_);
  }

 private:
  // Finds the node of the second recording for each of the first.
  Status Match(bool on_device) {
    const auto lanes = LanesOf(first_, on_device);
    const auto others = LanesOf(second_, on_device);
    if (lanes.size() != others.size()) {
      return BadInput(fmt::format("found {} and {}, expected two recordings of the same program",
                                  FormatCount(lanes.size(), on_device ? "stream" : "thread"),
                                  FormatCount(others.size())));
    }
    for (size_t i = 0; i < lanes.size(); ++i) {
      for (size_t k = 0; k < std::max(lanes[i].size(), others[i].size()); ++k) {
        const NodeId node = k < lanes[i].size() ? lanes[i][k] : NodeId::None();
        const NodeId other = k < others[i].size() ? others[i][k] : NodeId::None();
        const bool fits = node && other && first_.kind(node) == second_.kind(other) &&
                          (on_device || first_.name(node) == second_.name(other));
        if (!fits) {
          return BadInput(fmt::format(
              "found {} in the first recording and {} in its place in the second, expected two "
              "recordings of the same program",
              NameOf(first_, node), NameOf(second_, other)));
        }
        MatchInside(node, other);
      }
    }
    return {};
  }

  static std::string NameOf(const Trace& trace, NodeId node) {
    if (!node) return "nothing";
    return fmt::format("'{}' (node {})", trace.name(node), trace.source_id(node));
  }

  // Matches two nodes and what they call. Where one calls other operators, as for larger tensors,
  // these stay without a match.
  void MatchInside(NodeId node, NodeId other) {
    std::vector<std::pair<NodeId, NodeId>> open = {{node, other}};
    while (!open.empty()) {
      const auto [one, match] = open.back();
      open.pop_back();
      matches_[one.index()] = match;
      const std::vector<NodeId> callees = CalleesOf(first_, one);
      const std::vector<NodeId> theirs = CalleesOf(second_, match);
      const bool are_same = std::ranges::equal(
          callees, theirs, [&](NodeId a, NodeId b) { return first_.name(a) == second_.name(b); });
      for (size_t i = 0; are_same && i < callees.size(); ++i) {
        open.emplace_back(callees[i], theirs[i]);
      }
    }
  }

  // Returns the value between, or beyond, those of the recordings; nullopt if it is no whole
  // number.
  std::optional<int64_t> Between(int64_t first, int64_t second) const {
    if (first == second) return first;
    const double value = static_cast<double>(first) +
                         along_ * (static_cast<double>(second) - static_cast<double>(first));
    const double whole = std::nearbyint(value);
    const bool is_whole = std::abs(value - whole) < 1e-6 * std::max(1.0, std::abs(value));
    if (!is_whole || std::abs(whole) > 9e15) return std::nullopt;
    return static_cast<int64_t>(whole);
  }

  Status Resize(RewrittenNode& node, TraceBuilder& builder) {
    const NodeId other = matches_[node.node.index()];
    if (!other) return {};
    changed_ = false;
    const NodeId parent = first_.parent(node.node);
    is_inner_ = parent && first_.kind(parent) == NodeKind::kOperator;
    const auto resize = [&](ValueListId& list, ValueListId second) -> Status {
      if (!list || !second) return {};
      ETUDE_ASSIGN_OR_RETURN(list, Values(list, second, builder));
      return {};
    };
    Status status = resize(node.row.inputs, second_.input_list(other));
    if (status) status = resize(node.row.outputs, second_.output_list(other));
    const Comm* comm = second_.comm(other);
    if (status && node.comm && comm != nullptr) status = ResizeComm(*node.comm, *comm, builder);
    if (!first_broken_.empty() && broken_place_.empty()) broken_place_ = NameOf(first_, node.node);
    if (!status) {
      return BadInput(fmt::format("{}: {}", NameOf(first_, node.node), status.error().message));
    }
    if (changed_) ++result_.resized;
    return {};
  }

  Result<ValueListId> Values(ValueListId list, ValueListId second, TraceBuilder& builder) {
    const auto others = second_.values(second);
    const auto recorded = first_.values(list);
    if (recorded.size() != others.size()) {
      return BadInput(fmt::format("found lists of {} and {}, expected equal numbers",
                                  FormatCount(recorded.size(), "value"),
                                  FormatCount(others.size())));
    }
    std::vector<Value> values(recorded.begin(), recorded.end());
    for (size_t i = 0; i < values.size(); ++i) {
      Value& value = values[i];
      if (value.kind != others[i].kind) continue;
      if (value.kind == ValueKind::kInt) {
        const int64_t number = Between(value.as_int(), others[i].as_int()).value_or(value.as_int());
        changed_ = changed_ || number != value.as_int();
        value = Value::Int(value.type, number);
      } else if (value.kind == ValueKind::kTensor) {
        ETUDE_ASSIGN_OR_RETURN(const TensorId tensor,
                               Tensor(value.as_tensor(), others[i].as_tensor(), builder));
        value = Value::Tensor(value.type, tensor);
      } else if (value.kind == ValueKind::kList) {
        ETUDE_ASSIGN_OR_RETURN(const ValueListId inner,
                               Values(value.as_list(), others[i].as_list(), builder));
        value = Value::List(value.type, inner);
      }
    }
    return builder.InternValues(values);
  }

  Result<TensorId> Tensor(TensorId tensor, TensorId second, TraceBuilder& builder) {
    TensorUse use = first_.tensor(tensor);
    const TensorUse& other = second_.tensor(second);
    if (!use.shape || !other.shape) return tensor;
    const auto sizes = first_.ints(use.shape);
    const auto others = second_.ints(other.shape);
    if (std::ranges::equal(sizes, others)) return tensor;
    if (sizes.size() != others.size()) {
      return BadInput(fmt::format("found tensors of {} and {}, expected equal numbers",
                                  FormatCount(sizes.size(), "dimension"),
                                  FormatCount(others.size())));
    }
    std::vector<int64_t> made(sizes.begin(), sizes.end());
    int64_t numel = 1;
    for (size_t i = 0; i < made.size(); ++i) {
      const auto size = Between(sizes[i], others[i]);
      if (!size || *size < 0 || __builtin_mul_overflow(numel, *size, &numel)) {
        if (!is_inner_ && broken_++ == 0) {
          first_broken_ = fmt::format(
              "found sizes {} and {}, expected such that the wanted one is a whole number of at "
              "least 0",
              sizes[i], others[i]);
        }
        return WithoutShape(use, builder);
      }
      made[i] = *size;
    }
    changed_ = true;
    if (!is_inner_) ++whole_;
    use.shape = builder.InternInts(made);
    use.numel = numel;
    const Layout from{.sizes = sizes, .strides = first_.ints(use.strides), .offset = use.offset};
    const Layout to{
        .sizes = others, .strides = second_.ints(other.strides), .offset = other.offset};
    std::vector<int64_t> strides;
    int64_t offset = 0;
    if (use.strides && other.strides) {
      strides = Strides(from.strides, to.strides).value_or(std::vector<int64_t>());
      use.strides = strides.size() == made.size() ? builder.InternInts(strides) : IntListId::None();
      offset = Offset(from, to, strides).value_or(0);
    } else {
      offset = Between(use.offset, other.offset).value_or(0);
    }
    use.offset = std::max<int64_t>(offset, 0);
    const Layout wanted{.sizes = made, .strides = strides, .offset = use.offset};
    use.storage_bytes = StorageBytes({use.storage_bytes, NeededBytes(from, use.element_bytes)},
                                     {other.storage_bytes, NeededBytes(to, other.element_bytes)},
                                     NeededBytes(wanted, use.element_bytes));
    return builder.InternTensor(use);
  }

  // A tensor in its storage, in elements. Strides are missing or those of all dimensions.
  struct Layout {
    std::span<const int64_t> sizes;
    std::span<const int64_t> strides;
    int64_t offset = 0;
  };

  // Returns the bytes of its storage that a tensor needs; nullopt if unknown.
  static std::optional<int64_t> NeededBytes(const Layout& layout, int64_t element_bytes) {
    const bool has_strides = layout.strides.size() == layout.sizes.size();
    int64_t last = layout.offset;
    int64_t stride = 1;
    for (size_t i = layout.sizes.size(); i-- > 0;) {
      if (layout.sizes[i] == 0) return 0;
      int64_t reach = 0;
      if (has_strides) stride = layout.strides[i];
      if (__builtin_mul_overflow(layout.sizes[i] - 1, stride, &reach) ||
          __builtin_add_overflow(last, reach, &last)) {
        return std::nullopt;
      }
      if (!has_strides && __builtin_mul_overflow(stride, layout.sizes[i], &stride)) {
        return std::nullopt;
      }
    }
    if (last < 0 || __builtin_add_overflow(last, 1, &last) ||
        __builtin_mul_overflow(last, element_bytes, &last)) {
      return std::nullopt;
    }
    return last;
  }

  // Returns strides between or beyond those of two tensors: how many times the next smaller stride
  // each is, changes like a size.
  std::optional<std::vector<int64_t>> Strides(std::span<const int64_t> a,
                                              std::span<const int64_t> b) const {
    if (a.size() != b.size()) return std::nullopt;
    std::vector<size_t> ascending(a.size());
    std::iota(ascending.begin(), ascending.end(), size_t{0});
    std::ranges::sort(ascending, {}, [&](size_t i) { return std::pair(a[i], b[i]); });
    std::vector<int64_t> strides(a.size());
    int64_t last_a = 1;
    int64_t last_b = 1;
    int64_t last = 1;
    for (const size_t i : ascending) {
      const bool is_multiple = a[i] % last_a == 0 && b[i] % last_b == 0;
      const auto times = is_multiple ? Between(a[i] / last_a, b[i] / last_b) : std::nullopt;
      if (times) {
        if (__builtin_mul_overflow(*times, last, &strides[i])) return std::nullopt;
      } else {
        const auto stride = Between(a[i], b[i]);
        if (!stride) return std::nullopt;
        strides[i] = *stride;
      }
      if (strides[i] < 0) return std::nullopt;
      if (a[i] < 1 || b[i] < 1 || strides[i] < 1) continue;
      last_a = a[i];
      last_b = b[i];
      last = strides[i];
    }
    return strides;
  }

  // Returns an offset between or beyond those of two tensors, as a sum of multiples of `strides`.
  std::optional<int64_t> Offset(const Layout& from, const Layout& to,
                                const std::vector<int64_t>& strides) const {
    std::vector<size_t> descending(strides.size());
    std::iota(descending.begin(), descending.end(), size_t{0});
    std::ranges::sort(descending, std::ranges::greater{},
                      [&](size_t i) { return from.strides[i]; });
    int64_t left_from = from.offset;
    int64_t left_to = to.offset;
    int64_t offset = 0;
    const auto add = [&](int64_t stride_from, int64_t stride_to, int64_t stride) {
      const auto times = Between(left_from / stride_from, left_to / stride_to);
      int64_t part = 0;
      if (!times || __builtin_mul_overflow(*times, stride, &part) ||
          __builtin_add_overflow(offset, part, &offset)) {
        return false;
      }
      left_from %= stride_from;
      left_to %= stride_to;
      return true;
    };
    for (const size_t i : descending) {
      if (from.strides[i] < 1 || to.strides[i] < 1) continue;
      if (!add(from.strides[i], to.strides[i], strides[i])) return std::nullopt;
    }
    return add(1, 1, 1) ? std::optional(offset) : std::nullopt;
  }

  // Bytes of a storage (-1: unknown), and those of them that a tensor needs.
  struct StorageUse {
    int64_t bytes = -1;
    std::optional<int64_t> needed;
  };
  // Returns the bytes of a storage of which a tensor needs `needed`, by those of two recordings; -1
  // if unknown.
  int64_t StorageBytes(const StorageUse& from, const StorageUse& to,
                       std::optional<int64_t> needed) const {
    if (from.bytes < 0 || to.bytes < 0 || !needed) return -1;
    if (from.bytes == from.needed && to.bytes == to.needed) return *needed;
    // A part of the storage, such as one of the three thirds of a projection.
    const bool has_times = from.needed && to.needed && *from.needed > 0 && *to.needed > 0 &&
                           from.bytes % *from.needed == 0 && to.bytes % *to.needed == 0;
    const auto times =
        has_times ? Between(from.bytes / *from.needed, to.bytes / *to.needed) : std::nullopt;
    int64_t bytes = 0;
    if (times && !__builtin_mul_overflow(*times, *needed, &bytes)) return bytes;
    const int64_t linear = Between(from.bytes, to.bytes).value_or(-1);
    return linear < 0 ? -1 : std::max(linear, *needed);
  }

  // Returns a tensor of unknown size, such as a work buffer that an operator allocates inside.
  TensorId WithoutShape(TensorUse use, TraceBuilder& builder) {
    changed_ = true;
    use.shape = use.strides = IntListId::None();
    use.numel = 0;
    use.storage_bytes = -1;
    return builder.InternTensor(use);
  }

  Status ResizeComm(Comm& comm, const Comm& other, TraceBuilder& builder) {
    const auto resize = [&](int64_t& count, int64_t second) {
      const auto between = Between(count, second);
      if (!between || *between < 0) return false;
      changed_ = changed_ || *between != count;
      count = *between;
      return true;
    };
    const auto resize_if = [&](std::optional<int64_t>& count,
                               const std::optional<int64_t>& second) {
      return !count || !second || resize(*count, *second);
    };
    const bool fits =
        (!comm.bytes || !other.bytes || resize(comm.bytes->count, other.bytes->count)) &&
        resize_if(comm.in_elements, other.in_elements) &&
        resize_if(comm.out_elements, other.out_elements) &&
        ResizeSplit(comm.in_split, other.in_split, builder) &&
        ResizeSplit(comm.out_split, other.out_split, builder);
    if (fits) return {};
    return BadInput("the wanted size of the communication is no whole number");
  }

  bool ResizeSplit(IntListId& split, IntListId other, TraceBuilder& builder) const {
    if (!split || !other) return true;
    const auto recorded = first_.ints(split);
    const auto others = second_.ints(other);
    if (recorded.size() != others.size()) return false;
    std::vector<int64_t> made;
    for (size_t i = 0; i < recorded.size(); ++i) {
      const auto between = Between(recorded[i], others[i]);
      if (!between || *between < 0) return false;
      made.push_back(*between);
    }
    split = builder.InternInts(made);
    return true;
  }

  // Work and times of equal operators in both recordings.
  struct Times {
    std::vector<double> first;
    std::vector<double> second;
  };

  // Returns the operator whose work a node does: an operator itself, or that which launched it.
  NodeId WorkerOf(NodeId node, const std::vector<NodeId>& launchers,
                  const std::vector<std::optional<OperatorCost>>& costs) const {
    const bool on_device = first_.place(node) == Place::kDevice;
    for (NodeId at = on_device ? launchers[node.index()] : node; at; at = first_.parent(at)) {
      if (costs[at.index()] && !costs[at.index()]->done_below) return at;
      if (!on_device) break;
    }
    return NodeId::None();
  }

  static double WorkOf(const Trace& trace, NodeId node, const OperatorCost& cost) {
    return static_cast<double>(IsMatrixOperator(trace.name(node)) ? cost.ops : cost.bytes);
  }

  std::vector<Nanos> FindLonger(const Trace& resized) {
    const auto costs = OperatorCosts(first_);
    const auto second_costs = OperatorCosts(second_);
    const auto wanted_costs = OperatorCosts(resized);
    const auto own = SelfTimes(first_);
    const auto second_own = SelfTimes(second_);
    const std::vector<NodeId> launchers = FindLaunchers(first_);
    struct Work {
      uint64_t kind = 0;  // equal for equal operators
      double first = 0;
      double second = 0;
      double wanted = 0;
    };
    std::vector<std::optional<Work>> works(first_.node_count());
    std::map<uint64_t, Times> times;  // by kind
    ForEachNode(first_, [&](NodeId node) {
      const NodeId other = matches_[node.index()];
      if (!other || !own[node.index()] || !second_own[other.index()]) return;
      const NodeId worker = WorkerOf(node, launchers, costs);
      const NodeId other_worker = worker ? matches_[worker.index()] : NodeId::None();
      if (!other_worker || !second_costs[other_worker.index()] || !wanted_costs[worker.index()]) {
        return;
      }
      const uint64_t kind =
          HashSizes(second_, second_.inputs(other_worker),
                    HashSizes(first_, first_.inputs(worker), first_.name_id(node).value()));
      const Work work{.kind = kind,
                      .first = WorkOf(first_, worker, *costs[worker.index()]),
                      .second = WorkOf(first_, worker, *second_costs[other_worker.index()]),
                      .wanted = WorkOf(first_, worker, *wanted_costs[worker.index()])};
      if (work.first == work.second) return;
      works[node.index()] = work;
      times[kind].first.push_back(static_cast<double>(own[node.index()]->count));
      times[kind].second.push_back(static_cast<double>(second_own[other.index()]->count));
    });
    std::map<uint64_t, std::pair<double, double>> medians;
    for (auto& [kind, both] : times) {
      medians[kind] = {MedianInPlace(both.first), MedianInPlace(both.second)};
    }
    std::vector<Nanos> longer(first_.node_count());
    result_.is_retimed.resize(first_.node_count());
    for (size_t i = 0; i < works.size(); ++i) {
      if (!works[i]) continue;
      const auto [at_first, at_second] = medians[works[i]->kind];
      const double per_work = (at_second - at_first) / (works[i]->second - works[i]->first);
      const double more = per_work * (works[i]->wanted - works[i]->first);
      // More work takes no less time, and less work no more, at most in proportion.
      const auto recorded = static_cast<double>(own[i]->count);
      const double least =
          works[i]->first > 0 ? recorded * (works[i]->wanted / works[i]->first - 1) : 0;
      longer[i] = Nanos{std::llround(works[i]->wanted >= works[i]->first
                                         ? std::max(more, 0.0)
                                         : std::clamp(more, std::min(least, 0.0), 0.0))};
      ++result_.retimed;
      result_.is_retimed[i] = true;
    }
    return longer;
  }

  const Trace& first_;
  const Trace& second_;
  double along_;  // 0 at the first recording, 1 at the second
  Limits limits_;
  std::vector<NodeId> matches_;  // node of the second recording by that of the first
  bool changed_ = false;         // whether the current node has other sizes
  bool is_inner_ = false;        // whether another operator calls it
  // Tensors of outermost operators whose wanted size is a whole number, and others.
  uint64_t whole_ = 0;
  uint64_t broken_ = 0;
  std::string first_broken_;  // what is wrong, and with which operator
  std::string broken_place_;
  SizeEdit result_;
};

}  // namespace

Result<SizeEdit> AtOtherSize(const Trace& first, const Trace& second, const SizePoints& points,
                             const Limits& limits) {
  return Resizer(first, second, points, limits).Run();
}

}  // namespace etude
