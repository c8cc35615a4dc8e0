#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace etude {

// Flows that share links by max-min fairness, in continuous time. A flow transfers bytes along a
// path of links, all at one rate. Rates are computed by progressive filling (Bertsekas and Gallager
// 1992): the rates of all flows grow together until a link is full; its flows keep their rate, and
// the others continue to grow. Every flow then has a saturated link on which no flow is faster.
//
// Flows on one path have one rate and are represented together. Changes at one time are computed
// together, and only where rates may change: the rates of the changed paths are computed with all
// others as they are; then those that would no longer be fair are added, until none is left. As
// this condition holds for one set of rates only, the result is that of a full computation, up to
// rounding errors of 1e-10. Times are in ns, rates in bytes per ns. Not thread-safe.
class FairSharing {
 public:
  using Index = uint32_t;  // number of a link, a path or a flow

  // `capacities`: of the links, each above 0.
  explicit FairSharing(std::span<const double> capacities);

  // Adds a path of at least one link, each once. Returns its number; they count from 0. `weights`:
  // the number of flows that each flow on the path puts on the links, at least 1; empty: 1 each.
  Index AddPath(std::span<const Index> links, std::span<const uint32_t> weights = {});
  // Starts a flow of more than 0 bytes now.
  void Start(Index path, double bytes, Index flow);

  double now() const { return now_; }
  // Returns the earliest end of a flow; infinity if there are none.
  double NextEnd();
  // Advances to `time`, not before now(). Appends flows that end until then to `ended`, in a fixed
  // order. Their links are free from `time` on, also if they end earlier: call this with NextEnd()
  // for exact results, or with the next whole nanosecond.
  void AdvanceTo(double time, std::vector<Index>& ended);

  size_t path_count() const { return paths_.size(); }
  size_t link_count() const { return links_.size(); }
  std::span<const Index> LinksOf(Index path) const {
    return std::span(hops_).subspan(paths_[path].first_hop, paths_[path].hops);
  }
  std::span<const uint32_t> WeightsOf(Index path) const {
    return std::span(weights_).subspan(paths_[path].first_hop, paths_[path].hops);
  }
  uint32_t FlowsOn(Index path) const { return paths_[path].flows; }
  uint64_t FlowsOnLink(Index link) const { return links_[link].flows; }
  double CapacityOf(Index link) const { return links_[link].capacity; }
  // Returns the rate of each flow on the path; 0 without flows.
  double RateOf(Index path);
  // Returns how often the rate of a path was computed, and how often rates were computed.
  uint64_t computed_paths() const { return computed_paths_; }
  uint64_t computations() const { return computations_; }

 private:
  static constexpr Index kNone = UINT32_MAX;

  // Place of a path in the list of a link.
  struct Use {
    Index path = 0;
    Index hop = 0;  // index in hops_
    uint32_t weight = 1;
  };
  struct Link {
    double capacity = 0;
    uint64_t flows = 0;
    std::vector<Use> uses;  // by paths with flows
    bool changed = false;
    // In a computation: the capacity without that of paths that keep their rate, and the other
    // flows; the same while rates become known; the rate of flows that the link limits.
    uint64_t visit = 0;
    double free = 0;
    uint64_t movable = 0;
    double left = 0;
    uint64_t open = 0;
    double level = 0;
    bool limits = false;
  };
  struct Flow {
    double until = 0;  // service of the path at its end
    Index flow = 0;
    friend bool operator<(const Flow& a, const Flow& b) {
      return a.until != b.until ? a.until > b.until : a.flow > b.flow;
    }
  };
  struct Path {
    uint32_t first_hop = 0;
    uint32_t hops = 0;
    uint32_t flows = 0;
    Index limit = kNone;  // the saturated link on which no flow is faster
    double rate = 0;      // of each flow
    double service = 0;   // bytes that a flow present since the path became active has transferred
    double since = 0;     // time of `service`
    uint64_t visit = 0;   // computation that this path takes part in
    uint64_t known = 0;   // step of a computation in which the rate became known
    double old_rate = 0;
    uint32_t stamp = 0;    // changes with the planned end
    bool planned = false;  // the end is in ends_
    bool changed = false;
    std::vector<Flow> pending;  // heap; the first one ends first
  };
  struct End {
    double time = 0;
    Index path = 0;
    uint32_t stamp = 0;
    friend bool operator<(const End& a, const End& b) {
      return a.time != b.time ? a.time > b.time : a.path > b.path;
    }
  };
  struct Share {
    double rate = 0;
    Index link = 0;
    friend bool operator<(const Share& a, const Share& b) {
      return a.rate != b.rate ? a.rate > b.rate : a.link > b.link;
    }
  };

  // Returns the number of flows that a path puts on a link.
  uint64_t FlowsOf(const Use& use) const { return uint64_t{paths_[use.path].flows} * use.weight; }
  void Serve(Path& path) const {
    path.service += path.rate * (now_ - path.since);
    path.since = now_;
  }
  void ChangePath(Index index);
  void Activate(Index path);
  void Deactivate(Index path);
  void EndFlows(Index path, std::vector<Index>& ended);
  void Solve();
  void Touch(Index link);
  void Move(Index path);
  void Fill();
  void MoveUnfair(bool all);
  void PlanEnd(Path& path, Index index);

  double now_ = 0;
  std::vector<Link> links_;
  std::vector<Path> paths_;
  std::vector<Index> hops_;           // links of the paths
  std::vector<uint32_t> weights_;     // by hop
  std::vector<Index> places_;         // by hop: place in the list of the link
  std::vector<Index> changed_paths_;  // since the last Solve()
  std::vector<Index> changed_links_;
  std::vector<End> ends_;  // heap, with ends that are no longer planned
  uint64_t visit_ = 0;
  uint64_t step_ = 0;
  uint64_t computed_paths_ = 0;
  uint64_t computations_ = 0;
  // Of a computation.
  std::vector<Index> touched_;  // links
  std::vector<Index> moved_;    // paths
  std::vector<Share> shares_;
};

}  // namespace etude
