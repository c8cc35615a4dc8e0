#include "src/analysis/view/summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "src/base/container/intervals.h"
#include "src/run/calls/comm_log.h"
#include "src/trace/words/operator_name.h"

namespace etude {
namespace {

// Returns true for device work: kernels, copies, fills, and communication on a device.
bool IsDeviceOp(const Trace& trace, NodeId node) {
  const NodeKind kind = trace.kind(node);
  return kind == NodeKind::kKernel || kind == NodeKind::kMemcpy || kind == NodeKind::kMemset ||
         (IsCommunication(kind) && trace.place(node) == Place::kDevice);
}

// Returns true if a node of this kind runs on its lane, rather than describing it.
bool IsWork(NodeKind kind) {
  switch (kind) {
    case NodeKind::kUnknown:
    case NodeKind::kProcess:
    case NodeKind::kThread:
    case NodeKind::kLabel:
    case NodeKind::kMetadata: return false;
    case NodeKind::kOperator:
    case NodeKind::kRuntime:
    case NodeKind::kKernel:
    case NodeKind::kMemcpy:
    case NodeKind::kMemset:
    case NodeKind::kSync:
    case NodeKind::kCollective:
    case NodeKind::kSend:
    case NodeKind::kRecv:
    case NodeKind::kMemLoad:
    case NodeKind::kMemStore:
    case NodeKind::kCompute: return true;
  }
  return false;
}

// Counts and times by name.
class OpTable {
 public:
  void Add(std::string_view name, std::optional<Nanos> duration) {
    Summary::Op& op = rows_[name];
    op.name = name;
    ++op.count;
    if (duration) op.total = op.total.value_or(Nanos{}) + *duration;
  }

  std::vector<Summary::Op> Sorted() const {
    std::vector<Summary::Op> rows;
    for (const auto& [name, op] : rows_) rows.push_back(op);
    std::ranges::stable_sort(rows, [](const Summary::Op& a, const Summary::Op& b) {
      if (a.total != b.total) return a.total.value_or(Nanos{-1}) > b.total.value_or(Nanos{-1});
      return a.count > b.count;
    });
    return rows;
  }

 private:
  std::map<std::string_view, Summary::Op> rows_;
};

// Returns, for each node, whether it is below an operator. Parents may come after children.
std::vector<bool> UnderOperator(const Trace& trace) {
  std::vector<bool> under(trace.node_count());
  std::vector<NodeId> stack;
  ForEachNode(trace, [&](NodeId node) {
    if (!trace.parent(node)) stack.push_back(node);
  });
  while (!stack.empty()) {
    const NodeId node = stack.back();
    stack.pop_back();
    const bool covers = under[node.index()] || trace.kind(node) == NodeKind::kOperator;
    for (const NodeId child : trace.children(node)) {
      under[child.index()] = covers;
      stack.push_back(child);
    }
  }
  return under;
}

std::vector<Summary::Collective> Collectives(const Trace& trace) {
  std::map<std::pair<std::string_view, std::string_view>, Summary::Collective> rows;
  std::map<const Summary::Collective*, NodeId> carriers;  // the last one of a row
  for (const CommNode& one : CommNodes(trace)) {
    const Comm& comm = *trace.comm(one.node);
    const std::string_view type = CommTypeName(trace, one.node);
    Summary::Collective& row = rows[{type, trace.text(comm.group)}];
    row.type = type;
    row.group = trace.text(comm.group);
    ++row.count;
    if (comm.bytes) row.bytes = row.bytes.value_or(Bytes{}) + *comm.bytes;
    // A carrier of several calls counts once.
    if (one.carrier && std::exchange(carriers[&row], one.carrier) == one.carrier) continue;
    if (const auto time = CommDuration(trace, one)) row.time = row.time.value_or(Nanos{}) + *time;
  }
  std::vector<Summary::Collective> sorted;
  for (const auto& [key, row] : rows) sorted.push_back(row);
  return sorted;
}

}  // namespace

Summary Summarise(const Trace& trace) {
  Summary summary;
  summary.nodes = trace.node_count();
  summary.dependencies = trace.dep_count();
  summary.tensors = trace.tensor_count();
  summary.memory_bytes = trace.memory_bytes();
  summary.collectives = Collectives(trace);

  OpTable operators, device_ops;
  std::vector<Interval> device_times, comm_times;
  std::optional<Nanos> first, last;
  std::set<LaneId> threads, streams;
  decltype(summary.steps) device_steps;
  const std::vector<bool> under_operator = UnderOperator(trace);
  ForEachNode(trace, [&](NodeId node) {
    const NodeKind kind = trace.kind(node);
    ++summary.by_kind[static_cast<size_t>(kind)];
    const auto start = trace.start(node), duration = trace.duration(node);
    if (duration) ++summary.timed;
    if (start) {
      const Nanos end = *start + duration.value_or(Nanos{});
      first = std::min(first.value_or(*start), *start);
      last = std::max(last.value_or(end), end);
      if (duration && IsDeviceOp(trace, node)) {
        device_times.push_back({*start, end});
        if (IsCommunication(kind)) comm_times.push_back({*start, end});
      }
    }
    if (const LaneId lane = trace.lane_id(node); lane && IsWork(kind)) {
      const bool on_device = trace.place(node) == Place::kDevice;
      // A wait for a whole device, or for an event, is on none of its streams.
      const bool on_none = on_device && kind == NodeKind::kSync && trace.lane(lane).stream < 0;
      if (!on_none) (on_device ? streams : threads).insert(lane);
    }
    if (kind == NodeKind::kOperator && !under_operator[node.index()]) {
      operators.Add(trace.name(node), duration);
    }
    if (IsDeviceOp(trace, node)) device_ops.Add(trace.name(node), duration);
    if (IsStepMark(trace.name(node))) {
      (trace.place(node) == Place::kDevice ? device_steps : summary.steps)
          .push_back(trace.name(node));
    }
  });
  // A device's own marks repeat those of the host, if it has any.
  if (summary.steps.empty()) summary.steps = std::move(device_steps);
  if (first && last) summary.span = *last - *first;
  if (!device_times.empty()) summary.device_busy = TimeSet(std::move(device_times)).length();
  if (!comm_times.empty()) summary.device_comm = TimeSet(std::move(comm_times)).length();
  summary.threads = threads.size();
  summary.streams = streams.size();
  summary.operators = operators.Sorted();
  summary.device_ops = device_ops.Sorted();
  return summary;
}

}  // namespace etude
