#include "src/sim/network/fair_sharing.h"

#include <algorithm>
#include <limits>

namespace etude {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Shares of two links, and ends of two flows, are equal up to rounding errors.
constexpr double kRounding = 1e-13;
// Rates are fair up to this share.
constexpr double kFair = 1e-10;
// After so many attempts to find the paths whose rates change, all that share links are added.
constexpr int kAttempts = 32;

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
                                        std::span<const uint32_t> weights) {
  Path path;
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
  for (Index hop = path.first_hop; hop < path.first_hop + path.hops; ++hop) {
    std::vector<Use>& uses = links_[hops_[hop]].uses;
    const Use last = uses.back();
    uses[places_[hop]] = last;
    places_[last.hop] = places_[hop];
    uses.pop_back();
  }
}

void FairSharing::ChangePath(Index index) {
  Path& path = paths_[index];
  path.planned = false;
  if (!path.changed && path.flows > 0) {
    path.changed = true;
    changed_paths_.push_back(index);
  }
  for (const Index link : LinksOf(index)) {
    if (links_[link].changed) continue;
    links_[link].changed = true;
    changed_links_.push_back(link);
  }
}

void FairSharing::Start(Index index, double bytes, Index flow) {
  Path& path = paths_[index];
  if (path.flows == 0) {
    Activate(index);
  } else {
    Serve(path);
  }
  ++path.flows;
  PushHeap(path.pending, {.until = path.service + bytes, .flow = flow});
  for (Index hop = path.first_hop; hop < path.first_hop + path.hops; ++hop) {
    links_[hops_[hop]].flows += weights_[hop];
  }
  ChangePath(index);
}

double FairSharing::NextEnd() {
  Solve();
  while (!ends_.empty()) {
    const Path& path = paths_[ends_.front().path];
    if (path.planned && path.stamp == ends_.front().stamp) return ends_.front().time;
    PopHeap(ends_);
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
      if (path.planned && path.stamp == end.stamp) EndFlows(end.path, ended);
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
  path.flows -= count;
  for (Index hop = path.first_hop; hop < path.first_hop + path.hops; ++hop) {
    links_[hops_[hop]].flows -= uint64_t{count} * weights_[hop];
  }
  ChangePath(index);
  if (path.flows == 0) Deactivate(index);
}

double FairSharing::RateOf(Index path) {
  Solve();
  return paths_[path].flows == 0 ? 0 : paths_[path].rate;
}

void FairSharing::Solve() {
  if (changed_links_.empty()) return;
  ++visit_;
  ++computations_;
  touched_.clear();
  moved_.clear();
  for (const Index index : changed_paths_) {
    paths_[index].changed = false;
    if (paths_[index].flows > 0) Move(index);
  }
  for (const Index index : changed_links_) {
    links_[index].changed = false;
    Touch(index);
  }
  for (const Index index : changed_links_) {
    // The flows that the link limits have more or less to share.
    for (const Use& use : links_[index].uses) {
      if (paths_[use.path].limit == index) Move(use.path);
    }
  }
  changed_paths_.clear();
  changed_links_.clear();
  for (int attempt = 1;; ++attempt) {
    const size_t before = moved_.size();
    Fill();
    MoveUnfair(/*all=*/attempt > kAttempts);
    if (moved_.size() == before) break;
  }
  computed_paths_ += moved_.size();
  for (const Index index : moved_) {
    Path& path = paths_[index];
    if (!path.planned || path.rate != path.old_rate) PlanEnd(path, index);
  }
}

// Makes a link part of the computation.
void FairSharing::Touch(Index index) {
  Link& link = links_[index];
  if (link.visit == visit_) return;
  link.visit = visit_;
  link.free = link.capacity;
  link.movable = 0;
  touched_.push_back(index);
  for (const Use& use : link.uses) {
    const Path& path = paths_[use.path];
    const uint64_t flows = FlowsOf(use);
    if (path.visit == visit_) {
      link.movable += flows;
    } else {
      link.free -= path.rate * static_cast<double>(flows);
    }
  }
}

// Makes a path part of the computation, so that its rate may change.
void FairSharing::Move(Index index) {
  Path& path = paths_[index];
  if (path.visit == visit_) return;
  Serve(path);
  for (Index hop = path.first_hop; hop < path.first_hop + path.hops; ++hop) {
    Link& link = links_[hops_[hop]];
    if (link.visit != visit_) continue;
    const uint64_t flows = uint64_t{path.flows} * weights_[hop];
    link.free += path.rate * static_cast<double>(flows);
    link.movable += flows;
  }
  path.visit = visit_;
  path.old_rate = path.rate;
  moved_.push_back(index);
  for (const Index other : LinksOf(index)) Touch(other);
}

// Computes the rates of the moved paths by progressive filling.
void FairSharing::Fill() {
  ++step_;
  shares_.clear();
  for (const Index index : touched_) {
    Link& link = links_[index];
    link.left = link.free;
    link.open = link.movable;
    link.limits = false;
    if (link.open == 0) continue;
    const double rate = std::max(link.left, 0.0) / static_cast<double>(link.open);
    shares_.push_back({.rate = rate, .link = index});
  }
  std::make_heap(shares_.begin(), shares_.end());
  for (size_t known = 0; known < moved_.size();) {
    const Share share = PopHeap(shares_);
    Link& link = links_[share.link];
    if (link.open == 0) continue;
    // The share of a link only grows while rates of its other flows become known.
    const double rate = std::max(link.left, 0.0) / static_cast<double>(link.open);
    if (rate > share.rate * (1 + kRounding)) {
      PushHeap(shares_, {.rate = rate, .link = share.link});
      continue;
    }
    link.limits = true;
    link.level = share.rate;
    for (const Use& use : link.uses) {
      Path& path = paths_[use.path];
      if (path.visit != visit_ || path.known == step_) continue;
      path.known = step_;
      path.rate = share.rate;
      path.limit = share.link;
      ++known;
      for (Index hop = path.first_hop; hop < path.first_hop + path.hops; ++hop) {
        Link& other = links_[hops_[hop]];
        const uint64_t flows = uint64_t{path.flows} * weights_[hop];
        other.left -= share.rate * static_cast<double>(flows);
        other.open -= flows;
      }
    }
  }
}

// Moves the paths whose rates are no longer fair: those limited by a link that is no longer full or
// has faster flows, and those faster than flows that a link limits. `all`: moves all paths on links
// with such paths.
void FairSharing::MoveUnfair(bool all) {
  const size_t count = touched_.size();
  for (size_t i = 0; i < count; ++i) {
    const Index index = touched_[i];
    const Link& link = links_[index];
    double used = 0;
    double fastest = 0;
    for (const Use& use : link.uses) {
      const Path& path = paths_[use.path];
      // Paths that were just moved still have their rates.
      used += path.rate * static_cast<double>(FlowsOf(use));
      fastest = std::max(fastest, path.rate);
    }
    const bool is_full = used >= link.capacity * (1 - kFair);
    bool some = false;
    // Move() does not change the lists of links.
    for (const Use& use : link.uses) {
      const Path& path = paths_[use.path];
      if (path.visit == visit_) continue;
      const bool unfair =
          (path.limit == index && (!is_full || path.rate < fastest * (1 - kFair))) ||
          (link.limits && path.rate > link.level * (1 + kFair));
      if (!unfair) continue;
      some = true;
      Move(use.path);
    }
    if (!some || !all) continue;
    for (const Use& use : link.uses) Move(use.path);
  }
}

void FairSharing::PlanEnd(Path& path, Index index) {
  const double left = std::max(path.pending.front().until - path.service, 0.0);
  path.planned = true;
  ++path.stamp;
  // Ends that are no longer planned are dropped from time to time.
  if (ends_.size() > 64 + 4 * paths_.size()) {
    std::erase_if(ends_, [&](const End& end) {
      return !paths_[end.path].planned || paths_[end.path].stamp != end.stamp;
    });
    std::make_heap(ends_.begin(), ends_.end());
  }
  PushHeap(ends_, {.time = now_ + left / path.rate, .path = index, .stamp = path.stamp});
}

}  // namespace etude
