#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace etude {

// Flows that share links by max-min fairness, in continuous time. A flow transfers bytes along a
// path of links, all at one rate. Rates are computed by progressive filling (Bertsekas and Gallager
// 1992): the rates of all flows grow together until a link is full; its flows keep their rate, and
// the others continue to grow. Every flow then has a saturated link on which no flow is faster.
//
// Flows on one path have one rate and are represented together; on an ordered path they transfer
// their bytes one after the other, like messages of a connection. Changes at one time are computed
// together, and only where rates may change, by ascending rate: what a link leaves to the flows
// that it limits depends on slower flows only. When all rates below a level are known, the links of
// that level keep the rates of their flows, free them to rise, or limit them. The result is that of
// a full computation, up to 1e-10. Times are in ns, rates in bytes per ns. Not thread-safe.
class FairSharing {
 public:
  using Index = uint32_t;  // number of a link, a path or a flow

  // `capacities`: of the links, each above 0 and finite.
  explicit FairSharing(std::span<const double> capacities);

  enum class Order : uint8_t { kAtOnce, kInOrder };

  // Adds a path of at least one link, each once. Returns its number; they count from 0. `weights`:
  // the number of flows that each flow on the path puts on the links, at least 1; empty: 1 each.
  Index AddPath(std::span<const Index> links, std::span<const uint32_t> weights = {},
                Order order = Order::kAtOnce);
  // Starts a flow of more than 0 bytes now.
  void Start(Index path, double bytes, Index flow);

  double now() const { return now_; }
  // Returns the earliest end of a flow; infinity if there are none.
  double NextEnd();
  // Advances to `time`, not before now(). Appends flows that end until then to `ended`, by their
  // paths in the order of the first end of each. Their links are free from `time` on, also if they
  // end earlier: call this with NextEnd() for exact results, or with the next whole nanosecond.
  void AdvanceTo(double time, std::vector<Index>& ended);

  size_t path_count() const { return paths_.size(); }
  size_t link_count() const { return links_.size(); }
  std::span<const Index> LinksOf(Index path) const {
    return std::span(hops_).subspan(paths_[path].first_hop, paths_[path].hops);
  }
  std::span<const uint32_t> WeightsOf(Index path) const {
    return std::span(weights_).subspan(paths_[path].first_hop, paths_[path].hops);
  }
  // Returns the number of flows that transfer bytes, without those that wait for their turn.
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
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // Place of a path in the list of a link.
  struct Use {
    Index path = 0;
    Index hop = 0;  // index in hops_
    uint32_t weight = 1;
  };
  struct Link {
    double capacity = 0;
    double used = 0;          // sum of the known rates
    double level = 0;         // rate of the flows that it limits
    uint64_t limited = 0;     // their number
    uint64_t limited_in = 0;  // the computation that limited some last
    uint64_t unknown = 0;     // flows whose rate is not yet known
    double planned = kNever;  // rate at which the computation visits the link
    double fair = 0;          // rate that ComputeFair() found
    bool outdated = false;    // rates have changed since
    bool changed = false;     // is in changed_links_
    uint64_t flows = 0;
    std::vector<Use> uses;  // by paths with flows
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
    Order order = Order::kAtOnce;
    uint32_t flows = 0;
    Index limit = kNone;  // the saturated link on which no flow is faster; kNone: not known
    double rate = 0;      // of each flow
    double service = 0;   // bytes that a flow present since the path became active has transferred
    double since = 0;     // time of `service`
    uint64_t computation = 0;  // the last one that included the path
    double old_rate = 0;
    double end = 0;        // of the next flow
    uint32_t stamp = 0;    // of the entry in ends_
    bool planned = false;  // ends_ has an entry, for this end or an earlier one
    bool changed = false;
    double until = 0;           // of the last flow in order
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
  struct PlannedVisit {
    double rate = 0;
    Index link = 0;
    friend bool operator<(const PlannedVisit& a, const PlannedVisit& b) {
      return a.rate != b.rate ? a.rate > b.rate : a.link > b.link;
    }
  };

  // Returns the number of flows that a path puts on a link.
  uint64_t FlowsOf(const Use& use) const { return uint64_t{paths_[use.path].flows} * use.weight; }
  void Serve(Path& path) const {
    path.service += path.rate * (now_ - path.since);
    path.since = now_;
  }
  void Sum(Index link, uint64_t flows, Index limit, double rate, bool more);
  void Count(Index path, uint32_t flows, bool more);
  void ChangePath(Index index);
  void ChangeLink(Index index);
  void Activate(Index path);
  void Deactivate(Index path);
  void EndFlows(Index path, std::vector<Index>& ended);
  void Solve();
  void Include(Index path);
  static double Left(const Link& link);
  bool Rises(const Link& link) const;
  double NextChange(const Link& link) const;
  void ComputeFair(Index link);
  void Visit(Index link, double rate);
  void Plan(Index link, double rate);
  void PlanChanged(double rate);
  void Free(Index link);
  void Limit(Index link);
  void SetRate(Index path, Index limit, double rate, Index cause);
  void PlanEnd(Index path);

  double now_ = 0;
  std::vector<Link> links_;
  std::vector<Path> paths_;
  std::vector<Index> hops_;           // links of the paths
  std::vector<uint32_t> weights_;     // by hop
  std::vector<Index> places_;         // by hop: place in the list of the link
  std::vector<Index> changed_paths_;  // since the last Solve()
  std::vector<Index> changed_links_;
  std::vector<End> ends_;  // heap, with ends that are no longer planned
  uint64_t computed_paths_ = 0;
  uint64_t computations_ = 0;
  // Of a computation.
  std::vector<Index> included_;       // paths
  std::vector<PlannedVisit> visits_;  // heap, with visits that are no longer planned
  int planned_links_ = 0;
};

}  // namespace etude
