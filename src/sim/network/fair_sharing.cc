#include "src/sim/network/fair_sharing.h"

#include <algorithm>

namespace etude {
namespace {

// Ends of two flows are equal up to rounding errors.
constexpr double kRounding = 1e-13;
// Rates are fair up to this share.
constexpr double kFair = 1e-10;

template <typename T>
void PushHeap(std::vector<T>& heap, const T& value) {
  heap.push_back(value);
  std::push_heap(heap.begin(), heap.end());
}
template <typename T>
T PopHeap(std::vector<T>& heap) {
  std::pop_heap(heap.begin(), heap.end());
  const T value = heap.back();
  heap.pop_back();
  return value;
}

}  // namespace

FairSharing::FairSharing(std::span<const double> capacities) : links_(capacities.size()) {
  for (size_t i = 0; i < links_.size(); ++i) links_[i].capacity = capacities[i];
}

FairSharing::Index FairSharing::AddPath(std::span<const Index> links,
                                        std::span<const uint32_t> weights, Order order) {
  Path path;
  path.order = order;
  path.first_hop = static_cast<uint32_t>(hops_.size());
  path.hops = static_cast<uint32_t>(links.size());
  hops_.insert(hops_.end(), links.begin(), links.end());
  weights_.insert(weights_.end(), weights.begin(), weights.end());
  weights_.resize(hops_.size(), 1);
  places_.resize(hops_.size());
  paths_.push_back(std::move(path));
  return static_cast<Index>(paths_.size() - 1);
}

void FairSharing::Activate(Index index) {
  Path& path = paths_[index];
  path.rate = 0;
  path.service = 0;
  path.since = now_;
  for (Index hop = path.first_hop; hop < path.first_hop + path.hops; ++hop) {
    std::vector<Use>& uses = links_[hops_[hop]].uses;
    places_[hop] = static_cast<Index>(uses.size());
    uses.push_back({.path = index, .hop = hop, .weight = weights_[hop]});
  }
}

void FairSharing::Deactivate(Index index) {
  Path& path = paths_[index];
  path.rate = 0;
  path.limit = kNone;
  for (Index hop = path.first_hop; hop < path.first_hop + path.hops; ++hop) {
    std::vector<Use>& uses = links_[hops_[hop]].uses;
    const Use last = uses.back();
    uses[places_[hop]] = last;
    places_[last.hop] = places_[hop];
    uses.pop_back();
  }
}

// Adds flows to the sums of a link, or subtracts them: their rate is one that `limit` limits, or
// not known if that is kNone.
void FairSharing::Sum(Index index, uint64_t flows, Index limit, double rate, bool more) {
  Link& link = links_[index];
  const auto sum = [&](uint64_t& of) { of = more ? of + flows : of - flows; };
  if (limit == kNone) return sum(link.unknown);
  const double rates = rate * static_cast<double>(flows);
  link.used += more ? rates : -rates;
  if (limit == index) sum(link.limited);
}

// Adds flows of a path to its links, or subtracts them.
void FairSharing::Count(Index index, uint32_t flows, bool more) {
  const Path& path = paths_[index];
  for (Index hop = path.first_hop; hop < path.first_hop + path.hops; ++hop) {
    Link& link = links_[hops_[hop]];
    const uint64_t count = uint64_t{flows} * weights_[hop];
    link.flows = more ? link.flows + count : link.flows - count;
    Sum(hops_[hop], count, path.limit, path.rate, more);
    if (link.flows == 0) link.used = 0;  // without rounding errors
  }
}

void FairSharing::ChangePath(Index index) {
  Path& path = paths_[index];
  path.planned = false;
  if (!path.changed && path.flows > 0) {
    path.changed = true;
    changed_paths_.push_back(index);
  }
  for (const Index link : LinksOf(index)) ChangeLink(link);
}

void FairSharing::ChangeLink(Index index) {
  Link& link = links_[index];
  if (link.changed) return;
  link.changed = true;
  changed_links_.push_back(index);
}

void FairSharing::Start(Index index, double bytes, Index flow) {
  Path& path = paths_[index];
  if (path.flows > 0 && path.order == Order::kInOrder) {
    path.until += bytes;
    return PushHeap(path.pending, {.until = path.until, .flow = flow});
  }
  if (path.flows == 0) {
    Activate(index);
  } else {
    Serve(path);
  }
  ++path.flows;
  path.until = path.service + bytes;
  PushHeap(path.pending, {.until = path.until, .flow = flow});
  Count(index, 1, /*more=*/true);
  ChangePath(index);
}

double FairSharing::NextEnd() {
  Solve();
  while (!ends_.empty()) {
    const Path& path = paths_[ends_.front().path];
    const bool valid = path.planned && path.stamp == ends_.front().stamp;
    if (valid && path.end == ends_.front().time) return path.end;
    const End end = PopHeap(ends_);
    if (valid) PushHeap(ends_, {.time = path.end, .path = end.path, .stamp = end.stamp});
  }
  return kNever;
}

void FairSharing::AdvanceTo(double time, std::vector<Index>& ended) {
  double next = NextEnd();
  now_ = time;
  while (next <= time) {
    // All ends up to this time change the rates together.
    while (!ends_.empty() && ends_.front().time <= time) {
      const End end = PopHeap(ends_);
      const Path& path = paths_[end.path];
      if (!path.planned || path.stamp != end.stamp) continue;
      if (path.end == end.time) {
        EndFlows(end.path, ended);
      } else {
        PushHeap(ends_, {.time = path.end, .path = end.path, .stamp = end.stamp});
      }
    }
    next = NextEnd();
  }
}

// Ends the flows of a path that have transferred their bytes by now, at least one.
void FairSharing::EndFlows(Index index, std::vector<Index>& ended) {
  Path& path = paths_[index];
  Serve(path);
  // Ends that differ by rounding errors only are one end.
  const double until = path.service + std::max(path.service, path.rate * now_) * kRounding;
  uint32_t count = 0;
  do {
    ended.push_back(PopHeap(path.pending).flow);
    ++count;
  } while (!path.pending.empty() && path.pending.front().until <= until);
  if (path.order == Order::kInOrder) {
    // The next one takes the place of the last one.
    if (!path.pending.empty()) {
      path.planned = false;
      return PlanEnd(index);
    }
    count = 1;
  }
  Count(index, count, /*more=*/false);
  path.flows -= count;
  ChangePath(index);
  if (path.flows == 0) Deactivate(index);
}

double FairSharing::RateOf(Index path) {
  Solve();
  return paths_[path].flows == 0 ? 0 : paths_[path].rate;
}

void FairSharing::Solve() {
  if (changed_links_.empty()) return;
  ++computations_;
  included_.clear();
  visits_.clear();
  for (const Index index : changed_paths_) {
    paths_[index].changed = false;
    if (paths_[index].flows > 0) Include(index);
  }
  changed_paths_.clear();
  PlanChanged(0);
  while (planned_links_ > 0) {
    const PlannedVisit visit = PopHeap(visits_);
    if (links_[visit.link].planned != visit.rate) continue;
    Visit(visit.link, visit.rate);
    PlanChanged(visit.rate);
  }
  computed_paths_ += included_.size();
  for (const Index index : included_) {
    Path& path = paths_[index];
    if (!path.planned || path.rate != path.old_rate) PlanEnd(index);
  }
}

// Makes a path part of the computation, so that its rate may change.
void FairSharing::Include(Index index) {
  Path& path = paths_[index];
  if (path.computation == computations_) return;
  Serve(path);
  path.computation = computations_;
  path.old_rate = path.rate;
  included_.push_back(index);
}

// Returns what a link leaves to the flows that it limits and to those whose rate is not yet known;
// at least this, if others are faster than these would be, as the link then limits them too.
double FairSharing::Left(const Link& link) {
  return link.capacity - link.used + static_cast<double>(link.limited) * link.level;
}

// Returns whether the flows that a link limits may be faster. Those that it limits in this
// computation are not: all rates that could leave them more are known.
bool FairSharing::Rises(const Link& link) const {
  const auto flows = static_cast<double>(link.limited + link.unknown);
  return link.limited > 0 && link.limited_in != computations_ &&
         Left(link) > flows * link.level * (1 + kFair);
}

// Returns a lower bound of the rate from which on a link changes rates of its flows; kNever if it
// changes none.
double FairSharing::NextChange(const Link& link) const {
  const auto flows = static_cast<double>(link.limited + link.unknown);
  if (flows == 0) return link.used > link.capacity * (1 + kFair) ? 0 : kNever;
  if (Rises(link)) return link.level;
  const double left = Left(link);
  if (link.unknown == 0 && left > flows * link.level * (1 - kFair)) return kNever;
  return std::max(left, 0.0) / flows;
}

// Computes the rate at which a link is full if none of its flows is faster, and those that other
// links limit are not faster than that either. Also sums up the known rates again.
void FairSharing::ComputeFair(Index index) {
  Link& link = links_[index];
  link.outdated = false;
  double others = 0;
  double fastest = 0;
  for (const Use& use : link.uses) {
    const Path& path = paths_[use.path];
    if (path.limit == kNone || path.limit == index) continue;
    others += path.rate * static_cast<double>(FlowsOf(use));
    fastest = std::max(fastest, path.rate);
  }
  link.used = others + static_cast<double>(link.limited) * link.level;
  uint64_t open = link.limited + link.unknown;
  if (open > 0) {
    link.fair = std::max(link.capacity - others, 0.0) / static_cast<double>(open);
    if (link.fair >= fastest) return;
  }
  // As if all were unknown, without those that are slower than the rest would be.
  open = link.flows;
  link.fair = link.capacity / static_cast<double>(open);
  while (true) {
    double slower = 0;
    uint64_t others_open = link.flows;
    for (const Use& use : link.uses) {
      const Path& path = paths_[use.path];
      if (path.limit == kNone || path.limit == index || path.rate >= link.fair) continue;
      slower += path.rate * static_cast<double>(FlowsOf(use));
      others_open -= FlowsOf(use);
    }
    if (others_open >= open || others_open == 0) return;
    open = others_open;
    link.fair = (link.capacity - slower) / static_cast<double>(open);
  }
}

// Frees or limits flows of a link whose planned visit is due: all rates below `rate` are known. The
// visit is postponed if nothing changes before a higher rate.
void FairSharing::Visit(Index index, double rate) {
  Link& link = links_[index];
  Plan(index, kNever);
  const double next = NextChange(link);
  if (next > rate) return Plan(index, next);
  if (Rises(link)) {
    Free(index);
    return Plan(index, NextChange(link));
  }
  if (link.outdated) {
    ComputeFair(index);
    if (link.fair > rate) return Plan(index, link.fair);
  }
  Limit(index);
}

// Plans to visit a link when all rates below `rate` are known; not at all if it is kNever.
void FairSharing::Plan(Index index, double rate) {
  double& planned = links_[index].planned;
  planned_links_ += int{rate != kNever} - int{planned != kNever};
  planned = rate;
  if (rate != kNever) PushHeap(visits_, {.rate = rate, .link = index});
}

// Plans to visit the links with changed flows that may change others, all of which are `rate` or
// more.
void FairSharing::PlanChanged(double rate) {
  for (const Index index : changed_links_) {
    Link& link = links_[index];
    link.changed = false;
    link.outdated = true;
    const double next = std::max(rate, NextChange(link));
    if (next < link.planned || next == kNever) Plan(index, next);
  }
  changed_links_.clear();
}

// Makes the rates of the flows that a link limits unknown.
void FairSharing::Free(Index index) {
  for (const Use& use : links_[index].uses) {
    if (paths_[use.path].limit == index) SetRate(use.path, kNone, 0, index);
  }
}

// Limits the flows on a link that would otherwise be faster.
void FairSharing::Limit(Index index) {
  Link& link = links_[index];
  const bool keeps = link.limited > 0 && link.fair >= link.level * (1 - kFair);
  const double level = keeps ? link.level : link.fair;
  for (const Use& use : link.uses) {
    const Path& path = paths_[use.path];
    const bool changes =
        path.limit == kNone || (path.limit == index ? !keeps : path.rate > level * (1 + kFair));
    if (changes) SetRate(use.path, index, level, index);
  }
  link.level = level;
  link.limited_in = computations_;
}

// Changes the rate of a path to one that `limit` limits, or to an unknown one if that is kNone. All
// its links but `cause` have then changed.
void FairSharing::SetRate(Index index, Index limit, double rate, Index cause) {
  Path& path = paths_[index];
  Include(index);
  for (Index hop = path.first_hop; hop < path.first_hop + path.hops; ++hop) {
    const uint64_t flows = uint64_t{path.flows} * weights_[hop];
    Sum(hops_[hop], flows, path.limit, path.rate, /*more=*/false);
    Sum(hops_[hop], flows, limit, rate, /*more=*/true);
    if (hops_[hop] != cause) ChangeLink(hops_[hop]);
  }
  path.limit = limit;
  if (limit != kNone) path.rate = rate;
}

void FairSharing::PlanEnd(Index index) {
  Path& path = paths_[index];
  const double left = std::max(path.pending.front().until - path.service, 0.0);
  const double end = now_ + left / path.rate;
  // A later end is planned when the earlier one is reached.
  const bool postponed = path.planned && end >= path.end;
  path.end = end;
  if (postponed) return;
  path.planned = true;
  ++path.stamp;
  // Ends that are no longer planned are dropped from time to time.
  if (ends_.size() > 64 + 4 * paths_.size()) {
    std::erase_if(ends_, [&](const End& other) {
      return !paths_[other.path].planned || paths_[other.path].stamp != other.stamp;
    });
    std::make_heap(ends_.begin(), ends_.end());
  }
  PushHeap(ends_, {.time = end, .path = index, .stamp = path.stamp});
}

}  // namespace etude
