#include "src/trace/validator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "src/trace/other_process.h"
#include "src/trace/simulated.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

// Finding under construction: counts all occurrences, keeps the first few.
class Tally {
 public:
  Tally(std::string_view name, Severity severity, std::string help)
      : finding_{.name = name, .severity = severity, .message = std::move(help)} {}

  template <typename Describe>
  void Add(uint64_t source_id, Describe describe) {
    if (finding_.count == 0) finding_.message += "; first: " + describe();
    if (finding_.examples.size() < kMaxExamples) finding_.examples.push_back(source_id);
    ++finding_.count;
  }

  void MoveTo(std::vector<Finding>& findings) && {
    if (finding_.count != 0) findings.push_back(std::move(finding_));
  }

 private:
  Finding finding_;
};

std::string Describe(const Trace& trace, NodeId node) {
  return fmt::format("node {} '{}'", trace.source_id(node), trace.name(node));
}

// Adds the counts of the reader and the builder.
void AddCounted(const Trace& trace, std::vector<Finding>& findings) {
  for (const StatInfo& info : StatTable()) {
    const uint64_t count = trace.stats()[info.stat];
    if (count == 0) continue;
    Finding finding{.name = info.name,
                    .severity = info.severity,
                    .count = count,
                    .message = std::string(info.help)};
    if (info.stat == Stat::kDependencyCycle && !trace.is_acyclic()) {
      finding.message += "; first: " + CycleText(trace);
      for (const NodeId node : trace.cycle()) {
        if (finding.examples.size() == kMaxExamples) break;
        finding.examples.push_back(trace.source_id(node));
      }
    }
    const bool parents = info.stat == Stat::kDanglingParent || info.stat == Stat::kParentCycle;
    if (parents || info.stat == Stat::kDanglingDependency) {
      for (const Trace::Dangling& dangling : trace.dangling()) {
        const bool closes_cycle = static_cast<bool>(trace.Find(dangling.source_id));
        if (dangling.is_parent != parents) continue;
        if (closes_cycle != (info.stat == Stat::kParentCycle)) continue;
        if (finding.examples.empty()) {
          finding.message += fmt::format("; first: {} names {}", Describe(trace, dangling.node),
                                         dangling.source_id);
        }
        if (finding.examples.size() == kMaxExamples) break;
        finding.examples.push_back(trace.source_id(dangling.node));
      }
    }
    findings.push_back(std::move(finding));
  }
}

void CheckNesting(const Trace& trace, std::vector<Finding>& findings) {
  Tally outside("child_outside_parent", Severity::kWarning,
                "host nodes outside the time of their caller");
  ForEachNode(trace, [&](NodeId node) {
    const NodeId parent = trace.parent(node);
    if (!parent || trace.place(node) != Place::kHost || trace.traits().exclusive_durations) return;
    if (trace.lane_id(node) != trace.lane_id(parent)) return;
    const auto start = trace.start(node), duration = trace.duration(node);
    const auto parent_start = trace.start(parent), parent_duration = trace.duration(parent);
    if (!start || !duration || !parent_start || !parent_duration) return;
    // A backend's work outlasts the call that began it.
    const bool goes_on = !CommOfLabel(trace.name(node)).empty() && *start >= *parent_start &&
                         *start <= *parent_start + *parent_duration;
    if (goes_on) return;
    const bool inside =
        *start >= *parent_start && *start + *duration <= *parent_start + *parent_duration;
    if (!inside) {
      outside.Add(trace.source_id(node),
                  [&] { return Describe(trace, node) + " under " + Describe(trace, parent); });
    }
  });
  std::move(outside).MoveTo(findings);
}

class TensorCheck {
 public:
  explicit TensorCheck(const Trace& trace) : trace_(trace) {}

  void Run(std::vector<Finding>& findings) {
    ForEachNode(trace_, [&](NodeId node) {
      Walk(node, trace_.inputs(node));
      Walk(node, trace_.outputs(node));
    });
    std::move(negative_).MoveTo(findings);
    std::move(element_).MoveTo(findings);
    std::move(numel_).MoveTo(findings);
  }

 private:
  void Walk(NodeId node, std::span<const Value> values) {
    for (const Value& value : values) {
      if (value.kind == ValueKind::kList) Walk(node, trace_.values(value.as_list()));
      if (value.kind == ValueKind::kTensor) Check(node, trace_.tensor(value.as_tensor()));
    }
  }

  void Check(NodeId node, const TensorUse& use) {
    if (use.storage == 0 && use.numel == 0) return;  // undefined tensor
    const auto where = [&] { return Describe(trace_, node); };
    const uint64_t id = trace_.source_id(node);
    const auto size = ElementBytes(DTypeFromText(trace_.text(use.type)));
    if (size && *size != use.element_bytes) {
      element_.Add(id, [&] {
        return fmt::format("{} has {} bytes an element of {}", where(), use.element_bytes,
                           trace_.text(use.type));
      });
    }
    if (!use.shape) return;
    int64_t product = 1;
    bool overflow = false;
    for (const int64_t extent : trace_.ints(use.shape)) {
      if (extent < 0) {
        negative_.Add(id, [&] { return fmt::format("{} has extent {}", where(), extent); });
        return;
      }
      overflow = overflow || __builtin_mul_overflow(product, extent, &product);
    }
    if (overflow || product != use.numel) {
      numel_.Add(id, [&] {
        return fmt::format("{} has {} elements for shape [{}]", where(), use.numel,
                           fmt::join(trace_.ints(use.shape), ", "));
      });
    }
  }

  const Trace& trace_;
  Tally negative_{"negative_extent", Severity::kError, "tensors with a negative extent"};
  Tally element_{"element_size", Severity::kWarning,
                 "tensors whose element size differs from their dtype"};
  Tally numel_{"element_count", Severity::kWarning,
               "tensors whose element count differs from their shape"};
};

void CheckGroups(const Trace& trace, std::vector<Finding>& findings) {
  Tally unknown("unknown_group", Severity::kWarning,
                "communication in a process group that the trace does not define");
  if (trace.process_groups().empty()) return;
  for (const auto& [node, comm] : trace.comms()) {
    if (!comm.group || trace.text(comm.group).empty()) continue;
    if (trace.FindGroup(comm.group) != nullptr) continue;
    unknown.Add(trace.source_id(node), [&, node = node, group = comm.group] {
      return fmt::format("{} in group '{}'", Describe(trace, node), trace.text(group));
    });
  }
  std::move(unknown).MoveTo(findings);
}

std::optional<Finding> OtherProcess(const Trace& trace) {
  const uint64_t count = CountOfOtherProcess(trace);
  if (count == 0) return std::nullopt;
  return Finding{.name = "other_process",
                 .severity = Severity::kError,
                 .count = count,
                 .message =
                     "host nodes with the times of another process: the host and device traces are "
                     "of different runs or ranks",
                 .examples = {}};
}

}  // namespace

std::string CycleText(const Trace& trace) {
  constexpr size_t kShown = 6;
  const std::span<const NodeId> cycle = trace.cycle();
  if (cycle.empty()) return {};
  const auto text = [&](NodeId node) {
    return std::to_string(trace.source_id(node)) + " '" + std::string(trace.name(node)) + "'";
  };
  std::string out;
  for (size_t i = 0; i < std::min(cycle.size(), kShown); ++i) {
    out += text(cycle[i]) + " waits for ";
  }
  if (cycle.size() > kShown) {
    out += "(" + std::to_string(cycle.size() - kShown) + " more) waits for ";
  }
  return out + std::to_string(trace.source_id(cycle.front()));
}

std::vector<Finding> Validate(const Trace& trace) {
  std::vector<Finding> findings;
  // A rank of a simulated job may be empty.
  if (trace.node_count() == 0 && !IsSimulated(trace)) {
    findings.push_back({.name = "empty",
                        .severity = Severity::kError,
                        .count = 1,
                        .message = "the trace has no nodes",
                        .examples = {}});
  }
  AddCounted(trace, findings);
  CheckNesting(trace, findings);
  TensorCheck(trace).Run(findings);
  CheckGroups(trace, findings);
  if (auto other = OtherProcess(trace)) findings.push_back(*std::move(other));
  std::ranges::stable_sort(findings, std::ranges::greater(), &Finding::severity);
  return findings;
}

std::vector<Finding> ValidatePair(const Trace& linked) {
  if (auto other = OtherProcess(linked)) return {*std::move(other)};
  uint64_t host = 0;
  uint64_t timed = 0;
  ForEachNode(linked, [&](NodeId node) {
    const NodeKind kind = linked.kind(node);
    const bool is_frame = kind == NodeKind::kProcess || kind == NodeKind::kThread;
    if (is_frame || kind == NodeKind::kMetadata || linked.place(node) == Place::kDevice) return;
    ++host;
    timed += linked.start(node) ? 1 : 0;
  });
  if (timed != 0 || host == 0) return {};
  return {{.name = "no_times",
           .severity = Severity::kError,
           .count = host,
           .message = "all host nodes lack an event in the device trace",
           .examples = {}}};
}

bool IsValid(const std::vector<Finding>& findings) {
  return std::ranges::none_of(
      findings, [](const Finding& finding) { return finding.severity == Severity::kError; });
}

}  // namespace etude
