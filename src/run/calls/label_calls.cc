#include "src/run/calls/label_calls.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>

namespace etude {
namespace {

constexpr size_t kMaxAtWork = 64;  // collectives at a time; no backend has as many

// Returns whether a backend may implement a collective by another one: Gloo all-reduces for a
// reduce-scatter.
bool IsDoneAs(CollectiveType type, CollectiveType done) {
  return type == done ||
         (done == CollectiveType::kAllReduce &&
          (type == CollectiveType::kReduceScatter || type == CollectiveType::kReduceScatterBlock));
}

bool HasEqualArguments(const IssuedCall& a, const IssuedCall& b) {
  return a.type == b.type && a.group == b.group && a.rank == b.rank && a.in == b.in &&
         a.out == b.out;
}

// Returns whether the call may have requested the label, as far as both have a type.
bool MayBeOf(const IssuedCall& call, const BackendLabel& label) {
  if (call.kind != label.kind) return false;
  return call.type == CollectiveType::kUnknown || label.comm.type == CollectiveType::kUnknown ||
         IsDoneAs(call.type, label.comm.type);
}

// Calls in order, each of which is taken once.
struct Queue {
  std::vector<size_t> calls;
  size_t next = 0;
};

class Matcher {
 public:
  Matcher(std::span<const IssuedCall> calls, std::span<const BackendLabel> labels)
      : calls_(calls), labels_(labels), has_label_(calls.size()), found_(labels.size()) {
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i].works_on_copy) {
        for (const int64_t size : calls_[i].sizes) by_size_[size].calls.push_back(i);
      } else {
        for (const uint64_t storage : calls_[i].storages) by_storage_[storage].push_back(i);
      }
    }
  }

  CallsOfLabels Run() {
    ForEachLeft([&](const BackendLabel& label) { return Stated(label); });
    ForEachFree([&](const BackendLabel& label) { return ByMemory(label); });
    ForEachFree([&](const BackendLabel& label) { return Above(label); });
    ForEachFree([&](const BackendLabel& label) { return BySize(label); });
    FillGroups();
    ForEachFree([&](const BackendLabel& label) { return ByThread(label); });
    ByOrder();
    return {.calls = std::move(found_), .has_label = std::move(has_label_)};
  }

 private:
  using Found = std::optional<size_t>;

  void Take(size_t label, size_t call) {
    found_[label] = call;
    has_label_[call] = true;
    if (labels_[label].parent && calls_[call].group) {
      groups_of_threads_[*labels_[label].parent].insert(calls_[call].group);
    }
  }

  void ForEachLeft(auto find) {
    for (size_t i = 0; i < labels_.size(); ++i) {
      if (found_[i]) continue;
      if (const Found call = find(labels_[i])) Take(i, *call);
    }
  }
  // Those without a stated call.
  void ForEachFree(auto find) {
    ForEachLeft(
        [&](const BackendLabel& label) { return label.stated.empty() ? find(label) : Found(); });
  }

  Found CallOfId(uint64_t id) const {
    const auto at = std::ranges::lower_bound(calls_, id, {}, &IssuedCall::id);
    if (at == calls_.end() || at->id != id) return std::nullopt;
    return static_cast<size_t>(at - calls_.begin());
  }

  Found Stated(const BackendLabel& label) const {
    for (const uint64_t id : label.stated) {
      if (const Found call = CallOfId(id)) return call;
    }
    return std::nullopt;
  }

  Found ByMemory(const BackendLabel& label) const {
    Found last;
    for (const uint64_t storage : label.storages) {
      const auto alike = by_storage_.find(storage);
      if (alike == by_storage_.end()) continue;
      const std::vector<size_t>& calls = alike->second;
      const auto end =
          std::ranges::lower_bound(calls, label.id, {}, [&](size_t i) { return calls_[i].id; });
      const auto begin = end - std::min<ptrdiff_t>(kMaxAtWork, end - calls.begin());
      const auto is_its = [&](size_t i) { return !has_label_[i] && MayBeOf(calls_[i], label); };
      const auto found =
          std::find_if(std::reverse_iterator(end), std::reverse_iterator(begin), is_its);
      if (found.base() != begin) last = std::max(last.value_or(*found), *found);
    }
    return last;
  }

  Found Above(const BackendLabel& label) const {
    const Found above = label.parent ? CallOfId(*label.parent) : std::nullopt;
    if (!above || label.kind != NodeKind::kCollective) return above;
    const IssuedCall& call = calls_[*above];
    const bool has_other_memory =
        call.type == label.comm.type && !label.storages.empty() && !call.storages.empty();
    const bool is_by_chance =
        has_label_[*above] || has_other_memory || !IsDoneAs(call.type, label.comm.type);
    return is_by_chance ? std::nullopt : above;
  }

  // The first call of the queue without a label, if it came before this one and may be its.
  Found First(Queue& queue, const BackendLabel& label) const {
    while (queue.next < queue.calls.size() && has_label_[queue.calls[queue.next]]) ++queue.next;
    if (queue.next == queue.calls.size()) return std::nullopt;
    const size_t call = queue.calls[queue.next];
    if (calls_[call].id > label.id || !MayBeOf(calls_[call], label)) return std::nullopt;
    return call;
  }

  Found BySize(const BackendLabel& label) {
    const auto found = by_size_.find(label.elements.value_or(0));
    return found == by_size_.end() ? std::nullopt : First(found->second, label);
  }

  void FillGroups() {
    for (size_t i = 0; i < calls_.size(); ++i) {
      const IssuedCall& call = calls_[i];
      if (has_label_[i] || !call.group || call.type == CollectiveType::kUnknown) continue;
      by_group_[call.type][call.group].calls.push_back(i);
    }
  }

  // Returns whether the label's thread may work for the group, as far as its groups are known.
  bool MayWorkFor(StringId group, const BackendLabel& label) const {
    const auto thread = groups_of_threads_.find(label.parent.value_or(0));
    return !group || thread == groups_of_threads_.end() || thread->second.contains(group);
  }

  Found ByThread(const BackendLabel& label) {
    if (label.elements) return std::nullopt;
    const auto alike = by_group_.find(label.comm.type);
    if (alike == by_group_.end()) return std::nullopt;
    Found only;
    for (auto& [group, queue] : alike->second) {
      if (!MayWorkFor(group, label)) continue;
      const Found call = First(queue, label);
      if (!call) continue;
      if (only) return std::nullopt;
      only = call;
    }
    return only;
  }

  // Tries calls of the label's type first, then of any type.
  void ByOrder() {
    std::vector<size_t> left;
    for (size_t i = 0; i < labels_.size(); ++i) {
      const BackendLabel& label = labels_[i];
      const bool may_be_any = label.kind == NodeKind::kCollective && label.stated.empty();
      if (may_be_any && !found_[i]) left.push_back(i);
    }
    if (left.empty()) return;
    std::map<CollectiveType, Queue> by_type;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (IsFreeCollective(i)) by_type[calls_[i].type].calls.push_back(i);
    }
    std::erase_if(left, [&](size_t i) { return TakeFirst(by_type[labels_[i].comm.type], i); });
    Queue others;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (IsFreeCollective(i)) others.calls.push_back(i);
    }
    for (const size_t i : left) TakeFirst(others, i);
  }

  bool IsFreeCollective(size_t call) const {
    return !has_label_[call] && calls_[call].type != CollectiveType::kUnknown;
  }

  // Takes the first call of the queue that began before the label. It remains unknown whether that
  // is the label's call where others that may be meant have other arguments.
  bool TakeFirst(Queue& queue, size_t label) {
    auto& [calls, next] = queue;
    const uint64_t id = labels_[label].id;
    if (next == calls.size() || calls_[calls[next]].id > id) return false;
    const IssuedCall& first = calls_[calls[next]];
    if (!MayWorkFor(first.group, labels_[label])) return false;
    size_t last = next + 1;
    const auto is_meant = [&] { return last < calls.size() && calls_[calls[last]].id < id; };
    while (is_meant() && last - next < kMaxAtWork && HasEqualArguments(calls_[calls[last]], first))
      ++last;
    if (!is_meant()) found_[label] = calls[next];
    has_label_[calls[next]] = true;
    ++next;
    return true;
  }

  std::span<const IssuedCall> calls_;
  std::span<const BackendLabel> labels_;
  std::vector<bool> has_label_;                                   // by call
  std::vector<Found> found_;                                      // by label
  std::unordered_map<uint64_t, std::vector<size_t>> by_storage_;  // calls, ascending
  std::unordered_map<int64_t, Queue> by_size_;
  std::map<CollectiveType, std::map<StringId, Queue>> by_group_;
  // Groups that a backend's thread works for, usually one, by the node of the thread.
  std::unordered_map<uint64_t, std::set<StringId>> groups_of_threads_;
};

}  // namespace

CallsOfLabels FindCallsOfLabels(std::span<const IssuedCall> calls,
                                std::span<const BackendLabel> labels) {
  return Matcher(calls, labels).Run();
}

}  // namespace etude
