#include "src/compat/chakra_link/linker.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "src/compat/chakra/chakra_fails.h"
#include "src/compat/chakra/flat_map.h"
#include "src/compat/chakra_link/exclusive_time.h"
#include "src/compat/chakra_link/gpu_parents.h"
#include "src/compat/chakra_link/inter_thread.h"
#include "src/compat/chakra_link/stable_order.h"

namespace etude::compat {
namespace {

// Assigns new ids from 0, each old one once.
class NewIds {
 public:
  explicit NewIds(size_t expected) : index_(expected) {}

  uint64_t Assign(uint64_t old_id) {
    const auto fresh = static_cast<uint32_t>(given_.size());
    const uint32_t found = index_.Insert(old_id, fresh);
    if (found == fresh) given_.push_back(next_++);
    return given_[found];
  }
  uint64_t Fresh() { return next_++; }
  // Returns the new id, or the old one if there is none yet.
  uint64_t Lookup(uint64_t old_id) const {
    const uint32_t found = index_.Find(old_id);
    return found == kNoRow ? old_id : given_[found];
  }

 private:
  FlatMap index_;
  std::vector<uint64_t> given_;
  uint64_t next_ = 0;
};

class Linker {
 public:
  Linker(const HostTrace& host, const DeviceTrace& device, const LinkNames& names)
      : host_(host), device_(device), names_(names), ids_(host.nodes.size()) {}

  Result<LinkedTrace> Run(const std::vector<SyncDep>& sync_deps) {
    CollectOps();
    ETUDE_RETURN_IF_ERROR(FindTimes());
    if (!sync_deps.empty()) ApplySyncDeps(sync_deps);
    ETUDE_RETURN_IF_ERROR(GroupGpuOps());
    SortHostNodes();
    MatchHostNodes();
    MakeNodes();
    AddSyncDeps();
    return std::move(linked_);
  }

 private:
  const DeviceEvent& Event(uint32_t row) const { return device_.events[row]; }

  void CollectOps();
  Status FindTimes();
  void ApplySyncDeps(const std::vector<SyncDep>& sync_deps);
  Status GroupGpuOps();
  void SortHostNodes();
  void MatchHostNodes();
  void MakeNodes();
  void MakeGpuNodes(uint32_t host_row, uint32_t op_place, uint32_t times);
  void AddSyncDeps();

  const HostTrace& host_;
  const DeviceTrace& device_;
  const LinkNames& names_;

  std::vector<uint32_t> cpu_ops_;      // events in order of time
  std::vector<uint32_t> gpu_ops_;      // events in order of time
  std::vector<uint32_t> threads_;      // threads with operations, in order of first occurrence
  Groups by_thread_;                   // indices in cpu_ops_, by thread
  std::vector<PyNumber> exclusive_;    // by index in cpu_ops_
  std::vector<int64_t> inter_thread_;  // by index in cpu_ops_: an rf id, 0: none
  FlatMap place_of_rf_;                // rf id to last index in cpu_ops_
  Groups gpu_ops_of_;                  // indices in gpu_ops_, by external id
  std::vector<std::vector<uint32_t>> sync_places_;  // indices in cpu_ops_, by event

  std::vector<uint32_t> host_order_;   // rows of all host nodes by id
  std::vector<uint32_t> host_of_op_;   // by index in cpu_ops_: row of the host node, or kNoRow
  std::vector<uint32_t> op_of_host_;   // by row of host node: index in cpu_ops_, or kNoRow
  std::vector<uint64_t> dep_of_host_;  // by row: old id of the host node that it depends on
  std::vector<uint8_t> has_dep_;       // by row: dep_of_host_ is valid
  NewIds ids_;
  std::vector<std::vector<uint64_t>> sync_targets_;  // by linked node
  LinkedTrace linked_;
};

void Linker::CollectOps() {
  std::vector<uint32_t> thread_of;
  std::vector<uint8_t> seen(device_.tids.size(), 0);
  for (const uint32_t row : device_.order) {
    const DeviceEvent& event = Event(row);
    if (event.role == EventRole::kGpu) gpu_ops_.push_back(row);
    if (event.role != EventRole::kCpu) continue;
    if (event.has_rf_id) {
      place_of_rf_.Set(static_cast<uint64_t>(event.rf_id), static_cast<uint32_t>(cpu_ops_.size()));
    }
    cpu_ops_.push_back(row);
    thread_of.push_back(event.tid);
    if (seen[event.tid] == 0) threads_.push_back(event.tid);
    seen[event.tid] = 1;
  }
  by_thread_ = Groups(thread_of, device_.tids.size());
}

Status Linker::FindTimes() {
  ExclusiveTimes times = FindExclusiveTimes(device_, cpu_ops_, by_thread_);
  if (times.negative_at) {
    const DeviceEvent& op = Event(cpu_ops_[*times.negative_at]);
    return ChakraFails(names_.device,
                       fmt::format("rounding that makes the exclusive duration of {} negative",
                                   op.name.empty() ? "an event without name" : op.name),
                       "ValueError");
  }
  for (const PyNumber& value : times.values) {
    if (value.overflow) return BadInput(names_.device + ": found times beyond 64 bits");
  }
  exclusive_ = std::move(times.values);
  inter_thread_ = FindInterThreadDeps(device_, cpu_ops_, by_thread_, threads_);
  return {};
}

void Linker::ApplySyncDeps(const std::vector<SyncDep>& sync_deps) {
  const size_t externals = device_.external_ids.size();
  std::vector<uint32_t> last_event(externals, kNoRow);
  std::vector<uint32_t> end_of;
  for (const SyncDep& dep : sync_deps) end_of.push_back(dep.end);
  const Groups deps_by_end(end_of, externals);
  for (const uint32_t row : device_.order) last_event[Event(row).external] = row;
  sync_places_.resize(device_.events.size());
  // Python processes thread by thread; this only determines the order of an event's entries.
  std::vector<uint32_t> thread_order;
  std::vector<uint32_t> thread_of(device_.order.size());
  std::vector<uint8_t> seen(device_.tids.size(), 0);
  for (uint32_t i = 0; i < device_.order.size(); ++i) {
    thread_of[i] = Event(device_.order[i]).tid;
    if (seen[thread_of[i]] == 0) thread_order.push_back(thread_of[i]);
    seen[thread_of[i]] = 1;
  }
  const Groups events_by_thread(thread_of, device_.tids.size());
  const auto start = [&](uint32_t row) -> const PyNumber& { return Event(row).ts; };
  for (const uint32_t thread : thread_order) {
    for (const uint32_t place : events_by_thread[thread]) {
      const DeviceEvent& event = Event(device_.order[place]);
      const std::span<const uint32_t> deps = deps_by_end[event.external];
      if (deps.empty()) continue;
      const auto next = std::ranges::upper_bound(cpu_ops_, event.ts, {}, start);
      if (next == cpu_ops_.end()) continue;
      const auto next_place = static_cast<uint32_t>(next - cpu_ops_.begin());
      for (const uint32_t dep : deps) {
        const uint32_t target = last_event[sync_deps[dep].start];
        // Chakra searches the entry in the list of the wrong operation: it finds only the operation
        // itself.
        const std::vector<uint32_t>& wrong = sync_places_[*next];
        const bool known =
            std::ranges::any_of(wrong, [&](uint32_t other) { return cpu_ops_[other] == target; });
        if (!known) sync_places_[target].push_back(next_place);
      }
    }
  }
}

Status Linker::GroupGpuOps() {
  ETUDE_ASSIGN_OR_RETURN(const std::vector<uint32_t> parents,
                         FindGpuParents(device_, cpu_ops_, gpu_ops_, names_.device));
  gpu_ops_of_ = Groups(parents, device_.external_ids.size());
  return {};
}

void Linker::SortHostNodes() {
  std::vector<uint64_t> ids;
  ids.reserve(host_.nodes.size());
  for (const HostNode& node : host_.nodes) ids.push_back(node.id);
  host_order_ = StableOrder(ids);
}

void Linker::MatchHostNodes() {
  host_of_op_.assign(cpu_ops_.size(), kNoRow);
  op_of_host_.assign(host_.nodes.size(), kNoRow);
  dep_of_host_.assign(host_.nodes.size(), 0);
  has_dep_.assign(host_.nodes.size(), 0);
  for (const uint32_t row : host_order_) {
    const HostNode& node = host_.nodes[row];
    if (!node.is_linked || !node.has_rf_id) continue;
    const uint32_t place = place_of_rf_.Find(static_cast<uint64_t>(node.rf_id));
    if (place == kNoRow) continue;
    host_of_op_[place] = row;
    op_of_host_[row] = place;
    if (inter_thread_[place] == 0) continue;
    const uint32_t dep = place_of_rf_.Find(static_cast<uint64_t>(inter_thread_[place]));
    if (dep == kNoRow || host_of_op_[dep] == kNoRow) continue;
    has_dep_[row] = 1;
    dep_of_host_[row] = host_.nodes[host_of_op_[dep]].id;
  }
}

void Linker::MakeNodes() {
  linked_.nodes.reserve(host_.nodes.size() + gpu_ops_.size());
  linked_.times.reserve(host_.nodes.size());
  uint64_t last_id = 0;
  uint32_t matched = kNoRow;  // the linked one of the nodes with this id
  for (size_t i = 0; i < host_order_.size(); ++i) {
    const uint32_t row = host_order_[i];
    const HostNode& node = host_.nodes[row];
    const bool is_first = i == 0 || node.id != last_id;
    last_id = node.id;
    if (is_first) {
      matched = kNoRow;
      for (size_t j = i; j < host_order_.size() && host_.nodes[host_order_[j]].id == node.id; ++j) {
        if (op_of_host_[host_order_[j]] != kNoRow) matched = host_order_[j];
      }
    }
    const uint64_t id = ids_.Assign(node.id);
    uint32_t times = LinkedNode::kNoTimes;
    if (matched != kNoRow) {
      const uint32_t place = op_of_host_[matched];
      times = static_cast<uint32_t>(linked_.times.size());
      LinkedTimes& of_node = linked_.times.emplace_back();
      of_node.inclusive = Event(cpu_ops_[place]).dur;
      of_node.exclusive = exclusive_[place];
      of_node.ts = Event(cpu_ops_[place]).ts;
      if (has_dep_[matched] != 0) of_node.inter_thread_dep = ids_.Lookup(dep_of_host_[matched]);
    }
    linked_.nodes.push_back({.id = id,
                             .host = row,
                             .gpu_op = LinkedNode::kNoGpuOp,
                             .times = times,
                             .sync_dep = LinkedNode::kNoSync});
    if (is_first && matched != kNoRow) MakeGpuNodes(row, op_of_host_[matched], times);
  }
}

void Linker::MakeGpuNodes(uint32_t host_row, uint32_t op_place, uint32_t times) {
  for (const uint32_t place : gpu_ops_of_[Event(cpu_ops_[op_place]).external]) {
    const uint32_t event = gpu_ops_[place];
    const auto row = static_cast<uint32_t>(linked_.nodes.size());
    linked_.nodes.push_back({.id = ids_.Fresh(),
                             .host = host_row,
                             .gpu_op = event,
                             .times = times,
                             .sync_dep = LinkedNode::kNoSync});
    if (sync_places_.empty()) continue;
    for (const uint32_t waiting : sync_places_[event]) {
      if (host_of_op_[waiting] == kNoRow) continue;
      if (sync_targets_.size() <= row) sync_targets_.resize(row + 1);
      std::vector<uint64_t>& targets = sync_targets_[row];
      const uint64_t target = ids_.Lookup(host_.nodes[host_of_op_[waiting]].id);
      if (std::ranges::count(targets, target) == 0) targets.push_back(target);
    }
  }
}

void Linker::AddSyncDeps() {
  // Waiting nodes by the id noted by Chakra, old or new.
  FlatMap list_of_target;
  std::vector<uint64_t> targets;
  for (uint32_t row = 0; row < sync_targets_.size(); ++row) {
    for (const uint64_t target : sync_targets_[row]) {
      const auto fresh = static_cast<uint32_t>(targets.size());
      const uint32_t list = list_of_target.Insert(target, fresh);
      if (list == fresh) {
        targets.push_back(target);
        linked_.sync_deps.emplace_back();
      }
      linked_.sync_deps[list].push_back(linked_.nodes[row].id);
    }
  }
  // Noted ids are looked up again: most are old ones.
  FlatMap lists_of_id;
  std::vector<std::vector<uint32_t>> lists;
  for (uint32_t list = 0; list < targets.size(); ++list) {
    const auto fresh = static_cast<uint32_t>(lists.size());
    const uint32_t found = lists_of_id.Insert(ids_.Lookup(targets[list]), fresh);
    if (found == fresh) lists.emplace_back();
    lists[found].push_back(list);
  }
  // Nodes with equal ids are adjacent, as after a sort by id.
  if (!std::ranges::is_sorted(linked_.nodes, {}, &LinkedNode::id)) {
    std::ranges::stable_sort(linked_.nodes, {}, &LinkedNode::id);
  }
  for (LinkedNode& node : linked_.nodes) {
    const uint32_t found = lists.empty() ? kNoRow : lists_of_id.Find(node.id);
    if (found != kNoRow) {
      for (const uint32_t list : lists[found]) {
        if (ids_.Lookup(targets[list]) == node.id) node.sync_dep = list;
      }
    }
    const HostNode& host = host_.nodes[node.host];
    if (node.gpu_op != LinkedNode::kNoGpuOp) {
      node.has_parent = true;
      node.parent = ids_.Assign(host.id);
    } else if (host.has_parent && !host_.is_flat) {
      // A missing caller gets a new id, too.
      node.has_parent = true;
      node.parent = ids_.Assign(host.parent);
    }
  }
}

}  // namespace

Result<LinkedTrace> LinkTraces(const HostTrace& host, const DeviceTrace& device,
                               const std::vector<SyncDep>& sync_deps, const LinkNames& names) {
  return Linker(host, device, names).Run(sync_deps);
}

}  // namespace etude::compat
