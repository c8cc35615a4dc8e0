#include "src/formats/profile/merged_processes.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "src/formats/profile/pid_of_rank.h"
#include "src/trace/trace_copy.h"

namespace etude {
namespace {

constexpr uint32_t kNoOwner = UINT32_MAX;
// Maximum number of processes, and devices, that are distinguished by time. Merged files have far
// fewer.
constexpr int64_t kMostByTime = 128;

// Finds the owners of a profile's nodes, and separates them.
class Separation {
 public:
  Separation(TraceBuilder& builder, std::span<const Lane> names, std::span<const uint32_t> name_of)
      : builder_(builder), names_(names), name_of_(name_of), owner_of_(name_of.size(), kNoOwner) {}

  void Run() {
    FindOwners();
    if (owners_.size() < 2) return;
    FindCalls();
    if (!is_labelled_) {
      const auto launching = std::ranges::count_if(spans_, &FileSpan::launches);
      if (launching < 2 || launching > kMostByTime) return;
      FindGroups();
      if (std::cmp_less_equal(groups_.size(), kMostByTime)) {
        for (Group& group : groups_) FindFits(group);
        FindSharedGroups();
      } else {
        for (Group& group : groups_) group.is_shared = true;
      }
      MatchGroups();
      for (const Group& group : groups_) {
        for (const uint32_t node : group.nodes) {
          owner_of_[node] = group.is_shared ? kNoOwner : group.owner;
        }
        if (group.is_shared) MatchNodes(group);
      }
    }
    NameLanes();
    const bool moved = MoveIds(&TraceBuilder::correlation, &NodeRow::correlation);
    const bool moved_external = MoveIds(&TraceBuilder::external_id, &NodeRow::external_id);
    // The file's facts belong to a single rank.
    if (is_labelled_ || moved || moved_external) builder_.info().rank.reset();
  }

 private:
  // The part of the file that contains an owner's host events.
  struct FileSpan {
    uint32_t first = UINT32_MAX;
    uint32_t last = 0;
    bool launches = false;

    // Returns the distance of `node` from this part.
    uint64_t DistanceTo(uint32_t node) const {
      if (node < first) return first - node;
      return node > last ? node - last : 0;
    }
  };
  struct Call {
    int64_t correlation = 0;
    uint32_t owner = kNoOwner;
    Nanos start;
  };
  // How well the device work of one device and process id fits an owner.
  struct Fit {
    uint64_t fits = 0;      // works whose launch by the owner precedes them
    double delay = 0;       // sum of the times from launch to work, nanoseconds
    uint64_t distance = 0;  // in the file
    bool is_named = false;  // by its process id

    // The better fit is less.
    auto Key() const { return std::tuple(-static_cast<double>(fits), !is_named, distance, delay); }
  };
  struct Group {
    uint32_t name = 0;
    int32_t device = -1;
    std::vector<uint32_t> nodes;
    std::map<uint32_t, Fit> fits;  // by owner
    bool is_shared = false;
    uint32_t owner = kNoOwner;
  };

  NodeId NodeAt(uint32_t index) const { return NodeId::FromIndex(index); }
  bool IsOnDevice(uint32_t index) const { return builder_.place(NodeAt(index)) == Place::kDevice; }
  std::optional<int64_t> LinkOf(uint32_t index) const {
    const auto correlation = builder_.correlation(NodeAt(index));
    return correlation && *correlation > 0 ? correlation : std::nullopt;
  }

  // Returns the rank in the arguments, if all events of the file have one.
  static std::optional<std::string> LabelOf(const Lane& name, std::string_view pid,
                                            bool all_have_rank) {
    if (all_have_rank) return fmt::format("rank {}", name.device);
    auto of_rank = ReadPidOfRank(pid);
    return of_rank ? std::optional(std::move(of_rank->owner)) : std::nullopt;
  }

  uint32_t OwnerCalled(const std::string& text) {
    const auto [at, is_new] = numbers_.try_emplace(text, static_cast<uint32_t>(owners_.size()));
    if (is_new) owners_.push_back(text);
    return at->second;
  }

  // Finds the owners, in the order of the file.
  void FindOwners() {
    std::vector<std::optional<std::string>> labels;
    std::set<std::string> distinct;
    const bool all_have_rank =
        std::ranges::all_of(names_, [](const Lane& name) { return name.device >= 0; });
    for (const Lane& name : names_) {
      labels.push_back(LabelOf(name, builder_.text(name.process), all_have_rank));
      if (labels.back()) distinct.insert(*labels.back());
    }
    is_labelled_ = distinct.size() > 1;
    std::vector<uint32_t> owner_of_name(names_.size(), kNoOwner);
    for (uint32_t i = 0; i < name_of_.size(); ++i) {
      const uint32_t name = name_of_[i];
      uint32_t& owner = owner_of_name[name];
      const bool is_host = builder_.place(NodeAt(i)) == Place::kHost;
      if (owner == kNoOwner && is_labelled_ && labels[name]) owner = OwnerCalled(*labels[name]);
      if (owner == kNoOwner && is_host && names_[name].process) {
        owner = OwnerCalled(std::string(builder_.text(names_[name].process)));
      }
      if (is_labelled_ || is_host) owner_of_[i] = owner;
    }
    spans_.resize(owners_.size());
  }

  void FindCalls() {
    for (uint32_t i = 0; i < name_of_.size(); ++i) {
      const uint32_t owner = owner_of_[i];
      if (owner == kNoOwner || builder_.place(NodeAt(i)) != Place::kHost) continue;
      FileSpan& span = spans_[owner];
      span.first = std::min(span.first, i);
      span.last = std::max(span.last, i);
      const auto link = LinkOf(i);
      const auto start = builder_.start(NodeAt(i));
      if (!link || !start || builder_.kind(NodeAt(i)) != NodeKind::kRuntime) continue;
      span.launches = true;
      if (!is_labelled_) calls_.push_back({*link, owner, *start});
    }
    std::ranges::sort(calls_, {}, [](const Call& call) {
      return std::tuple(call.correlation, call.owner, call.start);
    });
  }

  std::span<const Call> CallsOf(int64_t correlation) const {
    const auto found = std::ranges::equal_range(calls_, correlation, {}, &Call::correlation);
    return {found.begin(), found.end()};
  }

  // Calls `fn(owner, calls)` for each owner that launches with this correlation.
  template <typename Fn>
  void ForEachCaller(int64_t correlation, Fn fn) const {
    std::span<const Call> calls = CallsOf(correlation);
    while (!calls.empty()) {
      const uint32_t owner = calls.front().owner;
      const auto end = std::ranges::upper_bound(calls, owner, {}, &Call::owner);
      const auto count = static_cast<size_t>(end - calls.begin());
      fn(owner, calls.first(count));
      calls = calls.subspan(count);
    }
  }

  // Calls `fn(owner, delay)` for each owner that may have launched the work. `delay` is the time
  // from the begin of the owner's last call before the work, in nanoseconds.
  template <typename Fn>
  void ForEachLaunch(uint32_t node, Fn fn) const {
    const auto link = LinkOf(node);
    const auto start = builder_.start(NodeAt(node));
    if (!link || !start) return;
    ForEachCaller(*link, [&](uint32_t owner, std::span<const Call> calls) {
      const auto after = std::ranges::upper_bound(calls, *start, {}, &Call::start);
      if (after == calls.begin()) return;
      const Nanos last = (after - 1)->start;
      fn(owner, static_cast<double>(start->count) - static_cast<double>(last.count));
    });
  }

  void FindGroups() {
    std::map<std::pair<uint32_t, int32_t>, size_t> numbers;
    for (uint32_t i = 0; i < name_of_.size(); ++i) {
      if (!IsOnDevice(i)) continue;
      const LaneId lane = builder_.lane_id(NodeAt(i));
      const int32_t device = lane ? builder_.lane(lane).device : -1;
      const auto [at, is_new] = numbers.try_emplace({name_of_[i], device}, groups_.size());
      if (is_new) groups_.push_back({.name = name_of_[i], .device = device});
      groups_[at->second].nodes.push_back(i);
    }
  }

  void FindFits(Group& group) const {
    const uint32_t middle = group.nodes[group.nodes.size() / 2];
    const StringId pid = names_[group.name].process;
    for (uint32_t owner = 0; owner < owners_.size(); ++owner) {
      if (!spans_[owner].launches) continue;
      group.fits[owner] = {.distance = spans_[owner].DistanceTo(middle),
                           .is_named = pid && builder_.text(pid) == owners_[owner]};
    }
    for (const uint32_t node : group.nodes) {
      ForEachLaunch(node, [&](uint32_t owner, double delay) {
        Fit& fit = group.fits[owner];
        ++fit.fits;
        fit.delay += delay;
      });
    }
  }

  // Finds groups with several owners. Most correlations of such a group are launched by more owners
  // than there are groups with such work.
  void FindSharedGroups() {
    std::map<int64_t, std::set<size_t>> groups_of;  // by correlation
    for (size_t i = 0; i < groups_.size(); ++i) {
      for (const uint32_t node : groups_[i].nodes) {
        if (const auto link = LinkOf(node)) groups_of[*link].insert(i);
      }
    }
    std::vector<int64_t> votes(groups_.size());
    for (const auto& [correlation, with_work] : groups_of) {
      size_t launching = 0;
      ForEachCaller(correlation, [&](uint32_t, std::span<const Call>) { ++launching; });
      const int64_t vote = with_work.size() < launching ? 1 : -1;
      for (const size_t group : with_work) votes[group] += vote;
    }
    for (size_t i = 0; i < groups_.size(); ++i) groups_[i].is_shared = votes[i] > 0;
  }

  // Assigns an owner to each group, a separate one as long as there are enough owners. The group
  // with the clearest owner comes first.
  void MatchGroups() {
    std::vector<Group*> open;
    for (Group& group : groups_) {
      if (!group.is_shared) open.push_back(&group);
    }
    std::set<uint32_t> free;
    for (uint32_t i = 0; i < owners_.size(); ++i) {
      if (spans_[i].launches) free.insert(i);
    }
    const std::set<uint32_t> all = free;
    while (!open.empty()) {
      if (free.empty()) free = all;
      std::vector<Group*>::iterator clearest = open.end();
      std::pair<uint64_t, double> most;
      for (auto at = open.begin(); at != open.end(); ++at) {
        const auto [best, lead] = BestOf(**at, free);
        (*at)->owner = best;
        const std::pair clear(lead, -(*at)->fits.at(best).delay);
        if (clearest != open.end() && clear <= most) continue;
        clearest = at;
        most = clear;
      }
      free.erase((*clearest)->owner);
      open.erase(clearest);
    }
  }

  // Returns the owner that fits best, and by how much work it is better than the next one.
  static std::pair<uint32_t, uint64_t> BestOf(const Group& group, const std::set<uint32_t>& of) {
    uint32_t best = kNoOwner;
    uint64_t next = 0;
    for (const uint32_t owner : of) {
      const Fit& fit = group.fits.at(owner);
      if (best == kNoOwner || fit.Key() < group.fits.at(best).Key()) {
        if (best != kNoOwner) next = std::max(next, group.fits.at(best).fits);
        best = owner;
      } else {
        next = std::max(next, fit.fits);
      }
    }
    const uint64_t own = group.fits.at(best).fits;
    return {best, own > next ? own - next : 0};
  }

  // Assigns the work of several owners on one device, node by node. If owners come one after the
  // other in the file, the place in the file decides, otherwise the last launch before the work.
  void MatchNodes(const Group& group) {
    for (const uint32_t node : group.nodes) {
      std::tuple<uint64_t, double> best;
      ForEachLaunch(node, [&](uint32_t owner, double delay) {
        const std::tuple key(spans_[owner].DistanceTo(node), delay);
        if (owner_of_[node] != kNoOwner && key >= best) return;
        best = key;
        owner_of_[node] = owner;
      });
    }
  }

  void NameLanes() {
    std::map<std::pair<LaneId, uint32_t>, LaneId> lanes;
    for (uint32_t i = 0; i < name_of_.size(); ++i) {
      const LaneId old = builder_.lane_id(NodeAt(i));
      if (owner_of_[i] == kNoOwner || !old || !IsOnDevice(i)) continue;
      const auto [at, is_new] = lanes.try_emplace({old, owner_of_[i]});
      if (is_new) {
        Lane lane = builder_.lane(old);
        lane.process = builder_.Intern(owners_[owner_of_[i]]);
        at->second = builder_.InternLane(lane);
      }
      builder_.SetLane(NodeAt(i), at->second);
    }
  }

  // Returns whether two owners had a number of this kind in common.
  bool MoveIds(std::optional<int64_t> (TraceBuilder::*id_of)(NodeId) const,
               std::optional<int64_t> NodeRow::*id) {
    std::unordered_map<int64_t, uint32_t> owner_of_id;
    bool is_common = false;
    int64_t stride = 1;
    for (uint32_t i = 0; i < name_of_.size(); ++i) {
      const auto number = (builder_.*id_of)(NodeAt(i));
      if (owner_of_[i] == kNoOwner || !number || *number <= 0 || !IsCountedUp(*number)) continue;
      const auto [at, is_new] = owner_of_id.try_emplace(*number, owner_of_[i]);
      is_common = is_common || at->second != owner_of_[i];
      stride = std::max(stride, *number + 1);
    }
    if (!is_common) return false;
    for (uint32_t i = 0; i < name_of_.size(); ++i) {
      const auto number = (builder_.*id_of)(NodeAt(i));
      if (owner_of_[i] == kNoOwner || !number || *number <= 0 || *number >= stride) continue;
      int64_t moved = 0;
      if (owner_of_[i] == 0 || __builtin_mul_overflow(stride, owner_of_[i], &moved) ||
          __builtin_add_overflow(moved, *number, &moved)) {
        continue;
      }
      NodeRow row;
      row.*id = moved;
      builder_.SetIds(NodeAt(i), row);
      builder_.stats().Count(Stat::kSharedNumber);
    }
    return true;
  }

  TraceBuilder& builder_;
  std::span<const Lane> names_;
  std::span<const uint32_t> name_of_;
  std::vector<uint32_t> owner_of_;  // by node
  bool is_labelled_ = false;  // whether process ids or arguments contain the rank of each event
  std::vector<std::string> owners_;
  std::map<std::string, uint32_t> numbers_;  // of owners_
  std::vector<FileSpan> spans_;              // by owner
  std::vector<Call> calls_;                  // by correlation, owner and start
  std::vector<Group> groups_;
};

}  // namespace

void MergedProcesses::Add(TraceBuilder& builder, std::string_view pid,
                          std::optional<int64_t> rank) {
  Lane name;
  if (!pid.empty()) name.process = builder.Intern(pid);
  if (rank && *rank >= 0 && *rank <= INT32_MAX) name.device = static_cast<int32_t>(*rank);
  name_of_.push_back(static_cast<uint32_t>(names_.Intern(name).index()));
}

void MergedProcesses::Separate(TraceBuilder& builder) {
  if (names_.size() > 1) Separation(builder, names_.rows(), name_of_).Run();
}

}  // namespace etude
