#include "src/compat/chakra_link/linked_et.h"

#include <utility>
#include <vector>

namespace etude::compat {
namespace {

void SetHostTimes(const LinkedTimes& times, EtNode& node) {
  if (!node.overrides.duration) SetEtDuration(times.exclusive, node);
  if (!node.overrides.dep) node.inter_thread_dep = times.inter_thread_dep.value_or(0);
}

void SetGpuOp(const DeviceEvent& op, NodeTextReader& reader, EtNode& node) {
  if (!node.overrides.cat) node.is_gpu = true;
  if (!node.overrides.name) {
    node.name = {};
    if (!op.name.empty()) SetEtText(op.name, reader, node.name, node);
  }
  if (!node.overrides.duration) SetEtDuration(op.dur, node);
  if (!node.overrides.stream) {
    node.stream = {.is_none = true};
    if (!op.stream.empty()) node.stream = EtIntOf(op.stream, node);
  }
  if (HasPgName(op) && !node.overrides.pg_name) SetEtPgName(op.pg_name, reader, node);
}

}  // namespace

EtTrace MakeLinkedEt(HostTrace& host, const DeviceTrace& device, const LinkedTrace& linked,
                     NodeTextReader& reader) {
  EtTrace trace;
  trace.metadata = host.metadata;
  trace.nodes.reserve(linked.nodes.size());
  const std::vector<EtNode> host_nodes = std::move(host.et.nodes);
  trace.args = std::move(host.et.args);
  for (const LinkedNode& from : linked.nodes) {
    EtNode& node = trace.nodes.emplace_back(host_nodes[from.host]);
    node.id = from.id;
    node.has_parent = from.has_parent;
    node.parent = from.parent;
    if (from.times != LinkedNode::kNoTimes) SetHostTimes(linked.times[from.times], node);
    if (from.gpu_op != LinkedNode::kNoGpuOp) SetGpuOp(device.events[from.gpu_op], reader, node);
  }
  return trace;
}

}  // namespace etude::compat
