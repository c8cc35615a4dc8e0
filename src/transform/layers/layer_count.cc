#include "src/transform/layers/layer_count.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/text/format_count.h"
#include "src/run/activity.h"
#include "src/run/calls/launch.h"
#include "src/run/exclusive_times.h"
#include "src/trace/program_parts.h"
#include "src/trace/trace_builder.h"
#include "src/trace/trace_copy.h"
#include "src/trace/words/module_name.h"
#include "src/transform/edit/retime.h"
#include "src/transform/edit/time_shift.h"
#include "src/transform/layers/issued_work.h"
#include "src/transform/layers/layer_names.h"
#include "src/transform/layers/step_items.h"

namespace etude {
namespace {

constexpr uint64_t kMostNodes = 10'000'000;  // of an edited trace: about 4 GB

constexpr const char* kDataParallel =
    "; for a data-parallel job, record one rank, and use --layers with --dp";

// Part of a repetition that belongs to one layer: everything between two moments of a host thread,
// the communication that it issues, and the device work that it launches.
struct Part {
  size_t layer = 0;
  std::vector<NodeId> nodes;  // ascending
  Nanos begin;
  Nanos end;
  std::optional<Nanos> device_begin;  // nullopt: without device work
  Nanos device_end;
};

// A repetition, by layer.
struct Repetition {
  std::vector<std::optional<Part>> parts;  // nullopt: the layer has none
  Nanos end;                               // of the last part
  Nanos device_end;
};

class LayerCounter {
 public:
  LayerCounter(const Trace& trace, size_t layers, const Limits& limits)
      : trace_(trace), wanted_(layers), builder_(limits, trace), copy_(trace, builder_) {}

  Result<LayerEdit> Run() {
    issuers_ = FindIssuers(trace_);
    launchers_ = FindLaunchers(trace_);
    Result<LayerStack> stack = FindLayerStack(trace_);
    if (!stack) {
      return MakeError(stack.error().code,
                       stack.error().message + (ReducesInBackward() ? kDataParallel : ""));
    }
    result_.stack = *std::move(stack);
    ETUDE_RETURN_IF_ERROR(CheckCommunication());
    for (const LayerRun& run : result_.stack.runs) repetitions_.push_back(Collect(run));
    ETUDE_RETURN_IF_ERROR(CheckCount());
    FindModules();
    FindShifts();
    CopyRecorded();
    if (wanted_ > layers()) AddLayers();
    AddDeps();
    ETUDE_ASSIGN_OR_RETURN(result_.trace, builder_.Finish());
    return std::move(result_);
  }

 private:
  size_t layers() const { return result_.stack.layers; }

  Status CheckCount() const {
    uint64_t nodes = 0;  // of one layer, at most
    for (const Repetition& repetition : repetitions_) {
      size_t most = 0;
      for (const std::optional<Part>& part : repetition.parts) {
        if (part) most = std::max(most, part->nodes.size());
      }
      nodes += most;
    }
    if (wanted_ <= layers() || nodes == 0 || wanted_ <= kMostNodes / nodes) return {};
    return BadInput(fmt::format("found {} in a layer, expected at most {} in all",
                                FormatCount(nodes, "node"), FormatCount(kMostNodes, "node")));
  }

  // Finds the modules around the layers by the first repetition with labels of modules.
  void FindModules() {
    for (const Repetition& repetition : repetitions_) {
      std::vector<std::string> modules;
      for (const std::optional<Part>& part : repetition.parts) {
        if (!part) continue;
        NodeId outermost;
        for (const NodeId node : part->nodes) {
          if (!IsModuleLabel(trace_.name(node)) || !trace_.start(node)) continue;
          if (!outermost || *trace_.start(node) < *trace_.start(outermost)) outermost = node;
        }
        if (!outermost) break;
        const ModuleStep module = ModuleOfLabel(trace_.name(outermost));
        modules.emplace_back(module.name);
      }
      if (modules.size() == layers()) {
        result_.modules = std::move(modules);
        return;
      }
    }
  }

  static bool IsReduction(const Comm& comm) {
    return comm.type == CollectiveType::kAllReduce || comm.type == CollectiveType::kReduce ||
           comm.type == CollectiveType::kReduceScatter ||
           comm.type == CollectiveType::kReduceScatterBlock;
  }
  // Returns the host node that began a communication; kNone if unknown.
  NodeId CallOf(NodeId comm) const {
    if (trace_.place(comm) == Place::kDevice) return launchers_[comm.index()];
    return issuers_[comm.index()] ? issuers_[comm.index()] : comm;
  }
  bool ReducesInBackward() const {
    return std::ranges::any_of(trace_.comms(), [&](const auto& entry) {
      const NodeId call = CallOf(entry.first);
      return call && IsReduction(entry.second) && IsInBackward(trace_, call);
    });
  }

  // Returns the period of a run in which a host node begins; nullopt: none.
  std::optional<size_t> PeriodOf(const LayerRun& run, NodeId host) const {
    const auto start = trace_.start(host);
    return start ? run.PeriodAt(trace_.lane_id(host), *start) : std::nullopt;
  }

  // Communication must belong to single layers, or to none.
  Status CheckCommunication() {
    constexpr std::string_view kExpected = "expected communication that each layer does alike";
    // Reductions of the backward pass in layers and outside of them, by type and group.
    std::set<std::pair<CollectiveType, StringId>> in_layers;
    std::map<std::pair<CollectiveType, StringId>, NodeId> outside;
    for (const auto& [node, comm] : trace_.comms()) {
      const NodeId call = CallOf(node);
      if (!call || !trace_.start(call)) continue;
      const auto is_around = [&](const LayerRun& run) { return PeriodOf(run, call).has_value(); };
      const bool is_in_layers = std::ranges::any_of(result_.stack.runs, is_around);
      if (is_in_layers && comm.type == CollectiveType::kAllGather) result_.gathers = true;
      if (IsReduction(comm) && IsInBackward(trace_, call)) {
        const std::pair kind(comm.type, comm.group);
        if (is_in_layers) in_layers.insert(kind);
        if (!is_in_layers) outside.try_emplace(kind, node);
      }
      // A communication of another thread whose call is unknown.
      const bool is_beside =
          call == node && std::ranges::any_of(result_.stack.runs, [&](const LayerRun& run) {
            return run.lane != trace_.lane_id(node) && *trace_.start(node) >= run.bounds.front() &&
                   *trace_.start(node) < run.bounds.back();
          });
      if (!is_beside) continue;
      return BadInput(fmt::format("found '{}' (node {}) on another thread while layers run, {}{}",
                                  trace_.name(node), trace_.source_id(node), kExpected,
                                  kDataParallel));
    }
    // Buckets of gradients contain those of several layers.
    for (const auto& [kind, node] : outside) {
      if (in_layers.contains(kind)) continue;
      return BadInput(
          fmt::format("found '{}' (node {}) in the backward pass outside of layers, {}{}",
                      trace_.name(node), trace_.source_id(node), kExpected, kDataParallel));
    }
    return {};
  }

  Repetition Collect(const LayerRun& run) {
    std::vector<Part> parts(run.layers.size());
    std::optional<Nanos> next_on_device;  // begin of the first work launched after all periods
    std::optional<Nanos> last_on_device;
    ForEachNode(trace_, [&](NodeId node) {
      const bool is_on_device = trace_.place(node) == Place::kDevice;
      const NodeId issuer = issuers_[node.index()];
      const NodeId host = is_on_device ? launchers_[node.index()] : issuer ? issuer : node;
      if (!host) return;
      const auto start = trace_.start(node);
      if (const auto period = PeriodOf(run, host)) {
        Part& part = parts[*period];
        part.nodes.push_back(node);
        if (!is_on_device || !start) return;
        part.device_begin = std::min(part.device_begin.value_or(*start), *start);
        const Nanos end = EndOf(trace_, node).value_or(*start);
        last_on_device = std::max(last_on_device.value_or(end), end);
      } else if (is_on_device && start && trace_.start(host) &&
                 *trace_.start(host) >= run.bounds.back()) {
        next_on_device = std::min(next_on_device.value_or(*start), *start);
      }
    });
    Repetition made;
    made.parts.resize(layers());
    made.end = run.bounds.back();
    made.device_end = next_on_device.value_or(last_on_device.value_or(Nanos{}));
    for (size_t i = parts.size(); i-- > 0;) {
      parts[i].layer = run.layers[i];
      parts[i].begin = run.bounds[i];
      parts[i].end = run.bounds[i + 1];
      const bool is_last = i + 1 == parts.size() || !parts[i + 1].device_begin;
      parts[i].device_end = is_last ? made.device_end : *parts[i + 1].device_begin;
      if (parts[i].device_begin) {
        parts[i].device_end = std::max(parts[i].device_end, *parts[i].device_begin);
      }
    }
    for (size_t i = 0; i < parts.size(); ++i) made.parts[run.layers[i]] = std::move(parts[i]);
    return made;
  }

  // Returns the recorded part that the added layer `layer` repeats.
  const Part& TemplateOf(const Repetition& repetition, size_t layer) const {
    size_t of = layer % layers();
    while (!repetition.parts[of]) of = (of + 1) % layers();
    return *repetition.parts[of];
  }

  // Returns the parts that are left out: the last ones. If the last layer is not part of the
  // repetition, as it does other operators, it stays, and one before it goes.
  std::vector<const Part*> RemovedParts(const Repetition& repetition) const {
    std::vector<const Part*> removed;
    for (size_t layer = layers(); layer > 0 && removed.size() + wanted_ < layers(); --layer) {
      const std::optional<Part>& part = repetition.parts[layer - 1];
      if (part) removed.push_back(&*part);
    }
    return removed;
  }

  void FindShifts() {
    FindLonger();
    std::vector<TimeChange> host = HostChanges(trace_, longer_);
    std::vector<TimeChange> device = DeviceChanges(trace_, longer_);
    for (const Repetition& repetition : repetitions_) {
      for (size_t layer = layers(); layer < wanted_; ++layer) {
        const Part& part = TemplateOf(repetition, layer);
        host.push_back({.at = repetition.end, .length = part.end - part.begin});
        if (!part.device_begin) continue;
        device.push_back(
            {.at = repetition.device_end, .length = part.device_end - *part.device_begin});
      }
      for (const Part* part : RemovedParts(repetition)) {
        host.push_back({.at = part->begin, .length = part->begin - part->end});
        if (!part->device_begin) continue;
        device.push_back(
            {.at = *part->device_begin, .length = *part->device_begin - part->device_end});
      }
    }
    host_ = TimeShift(std::move(host));
    device_ = TimeShift(std::move(device));
  }

  // Operators on lists take the time of fewer or more tensors, without the operators that they
  // call, as does the work that they launch. On the host, those with such work only launch it.
  void FindLonger() {
    const double growth = static_cast<double>(wanted_) / static_cast<double>(layers()) - 1;
    std::vector<double> growths(trace_.node_count());
    for (const ListOperator& list : result_.stack.lists) {
      growths[list.node.index()] = list.share * growth;
    }
    longer_.resize(trace_.node_count());
    const std::vector<std::optional<Nanos>> own = SelfTimes(trace_);
    const auto grow = [&](NodeId node, double by) {
      const auto time = static_cast<double>(own[node.index()].value_or(Nanos{}).count);
      longer_[node.index()] = Nanos{std::llround(time * by)};
    };
    std::vector<bool> launches(trace_.node_count());
    ForEachNode(trace_, [&](NodeId node) {
      if (trace_.place(node) != Place::kDevice) return;
      for (NodeId above = launchers_[node.index()]; above; above = trace_.parent(above)) {
        launches[above.index()] = true;
        if (growths[above.index()] != 0) grow(node, growths[above.index()]);
      }
    });
    for (const ListOperator& list : result_.stack.lists) {
      if (launches[list.node.index()] || CallsLayers(list.node)) continue;
      grow(list.node, growths[list.node.index()]);
    }
  }

  // Returns whether a repetition runs in a host node. The node's own time between the operators is
  // then part of the layers.
  bool CallsLayers(NodeId node) const {
    const auto time = TimeOf(trace_, node);
    return time && std::ranges::any_of(result_.stack.runs, [&](const LayerRun& run) {
             return run.lane == trace_.lane_id(node) && run.bounds.front() < time->end &&
                    run.bounds.back() > time->begin;
           });
  }

  uint64_t IdOf(NodeId node) const {
    return by_position_ ? uint64_t{node.value()} : trace_.source_id(node);
  }

  void CopyRecorded() {
    by_position_ = trace_.stats()[Stat::kDuplicateId] != 0;
    copy_.CopyInfo();
    copy_.AddGroups();
    copy_.AddStats();
    if (by_position_) {
      ForgetParts(builder_);
      copy_.CountRenumbered();
    }
    made_.resize(trace_.node_count());
    removed_.resize(trace_.node_count());
    for (const Repetition& repetition : repetitions_) {
      for (const Part* part : RemovedParts(repetition)) {
        for (const NodeId node : part->nodes) removed_[node.index()] = true;
      }
    }
    uint64_t most = 0;
    ForEachNode(trace_, [&](NodeId node) {
      most = std::max(most, IdOf(node));
      if (removed_[node.index()]) {
        ++result_.nodes;
        return;
      }
      NodeRow row = copy_.Row(node);
      row.source_id = IdOf(node);
      if (const NodeId parent = trace_.parent(node); parent && !removed_[parent.index()]) {
        row.parent = IdOf(parent);
      }
      if (const NodeId issuer = issuers_[node.index()]; issuer && row.start) {
        // Stays as long after its call as recorded.
        const Nanos called = trace_.start(issuer).value_or(*row.start);
        row.start = *row.start + (host_->Begin(called) - called);
      } else {
        ChangeTimes(row, *host_, *device_, longer_[node.index()]);
      }
      made_[node.index()] = builder_.AddNode(row);
      result_.origins.push_back(node);
      copy_.AddFacts(node, made_[node.index()]);
    });
    next_id_ = most + 1;
  }

  void AddLayers() {
    for (const Repetition& repetition : repetitions_) {
      const LayerNames names = NamesOf(repetition);
      Nanos begin = host_->End(repetition.end);
      Nanos device_begin = device_->End(repetition.device_end);
      for (size_t layer = layers(); layer < wanted_; ++layer) {
        const Part& part = TemplateOf(repetition, layer);
        AddPart(part, layer, {.names = &names, .begin = begin, .device_begin = device_begin});
        begin = begin + (part.end - part.begin);
        if (!part.device_begin) continue;
        device_begin = device_begin + (part.device_end - *part.device_begin);
      }
    }
  }

  LayerNames NamesOf(const Repetition& repetition) const {
    LayerNames names(layers());
    for (const std::optional<Part>& part : repetition.parts) {
      if (!part) continue;
      for (const NodeId node : part->nodes) {
        if (IsModuleLabel(trace_.name(node))) names.Add(part->layer, trace_.name(node));
      }
    }
    return names;
  }

  // Place of a copy in the edited step.
  struct CopyPlace {
    const LayerNames* names;
    Nanos begin;
    Nanos device_begin;
  };

  // Adds a copy of a part for the layer `layer`.
  void AddPart(const Part& part, size_t layer, const CopyPlace& place) {
    const size_t first = copies_.size();
    const uint64_t first_id = next_id_;
    for (const NodeId node : part.nodes) {
      NodeRow row = copy_.Row(node);
      row.source_id = next_id_++;
      if (IsModuleLabel(trace_.name(node))) {
        row.name = builder_.Intern(place.names->Of(trace_.name(node), part.layer, layer));
      }
      if (row.start && row.place == Place::kDevice) {
        row.start = *row.start - part.device_begin.value_or(*row.start) + place.device_begin;
      } else if (row.start) {
        row.start = *row.start - part.begin + place.begin;
      }
      Renumber(row, layer - layers() + 1);
      // A copy's caller is the caller's copy, or the caller around the repetition.
      if (const NodeId parent = trace_.parent(node)) {
        const auto copied = std::ranges::lower_bound(part.nodes, parent);
        const bool is_copied = copied != part.nodes.end() && *copied == parent;
        const auto index = static_cast<uint64_t>(copied - part.nodes.begin());
        row.parent = is_copied ? first_id + index : IdOf(parent);
      }
      const NodeId added = builder_.AddNode(row);
      result_.origins.push_back(node);
      copy_.AddFacts(node, added);
      copies_.push_back({.from = node, .to = added, .first = first});
      ++result_.nodes;
    }
  }

  // Gives a copy numbers of its own for those that link nodes to each other.
  void Renumber(NodeRow& row, size_t copy) const {
    const auto shift = [&](auto& number) {
      if (!number || *number <= 0) return;
      using Number = std::remove_reference_t<decltype(*number)>;
      if (IsCountedUp(*number)) *number += static_cast<Number>(copy) * (Number{1} << 40);
    };
    shift(row.rf_id);
    shift(row.fw_parent);
    shift(row.seq_id);
    shift(row.correlation);
    shift(row.external_id);
  }

  void AddDeps() {
    ForEachNode(trace_, [&](NodeId node) {
      if (const NodeId made = made_[node.index()]) AddDepsOf(node, made, {});
    });
    std::vector<NodeId> in_part(trace_.node_count());  // copies of the current part
    size_t begin = 0;
    while (begin < copies_.size()) {
      size_t end = begin;
      for (; end < copies_.size() && copies_[end].first == copies_[begin].first; ++end) {
        in_part[copies_[end].from.index()] = copies_[end].to;
      }
      for (size_t i = begin; i < end; ++i) AddDepsOf(copies_[i].from, copies_[i].to, in_part);
      for (size_t i = begin; i < end; ++i) in_part[copies_[i].from.index()] = NodeId::None();
      begin = end;
    }
  }

  // Adds the dependencies of `node` to its copy `made`; what depended on removed nodes depends on
  // their dependencies.
  void AddDepsOf(NodeId node, NodeId made, std::span<const NodeId> in_part) {
    std::vector<NodeId> open = {node};
    std::vector<NodeId> seen;
    while (!open.empty()) {
      const NodeId from = open.back();
      open.pop_back();
      const auto deps = trace_.deps(from);
      const auto kinds = trace_.dep_kinds(from);
      for (size_t i = 0; i < deps.size(); ++i) {
        const NodeId dep = deps[i];
        if (removed_[dep.index()]) {
          if (std::ranges::find(seen, dep) != seen.end()) continue;
          seen.push_back(dep);
          open.push_back(dep);
          continue;
        }
        const NodeId copied = in_part.empty() ? NodeId::None() : in_part[dep.index()];
        builder_.AddDep(made, copied ? copied : made_[dep.index()], kinds[i]);
      }
    }
  }

  struct Copied {
    NodeId from;
    NodeId to;
    size_t first = 0;  // index of the part's first copy
  };

  const Trace& trace_;
  size_t wanted_;
  TraceBuilder builder_;
  TraceCopy copy_;
  LayerEdit result_;
  std::vector<NodeId> issuers_;    // FindIssuers
  std::vector<NodeId> launchers_;  // FindLaunchers
  std::vector<Repetition> repetitions_;
  std::optional<TimeShift> host_;
  std::optional<TimeShift> device_;
  bool by_position_ = false;
  uint64_t next_id_ = 0;
  std::vector<NodeId> made_;    // by recorded node; kNone: removed
  std::vector<bool> removed_;   // by recorded node
  std::vector<Nanos> longer_;   // by recorded node: growth of operators on lists
  std::vector<Copied> copies_;  // by part
};

}  // namespace

Result<LayerEdit> SetLayerCount(const Trace& trace, int64_t layers, const Limits& limits) {
  return LayerCounter(trace, static_cast<size_t>(layers), limits).Run();
}

}  // namespace etude
