#include "src/transform/dimensions/work_times.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "src/base/statistics/median.h"
#include "src/run/calls/launch.h"
#include "src/run/exclusive_times.h"
#include "src/transform/edit/retime.h"
#include "src/transform/operators/operator_cost.h"

namespace etude {
namespace {

constexpr uint64_t kFixedWork = 4 << 10;
constexpr double kMostTime = 1e17;  // ns, of all changes

// Work of the nodes on the host and on devices.
class NodeWork {
 public:
  explicit NodeWork(const Trace& trace)
      : trace_(trace), costs_(OperatorCosts(trace)), launchers_(FindLaunchers(trace)) {}

  // Returns the operator whose work a node does: itself, or that which launched it. kNone if the
  // work is unknown or done by others.
  NodeId WorkerOf(NodeId node) const {
    const bool on_device = trace_.place(node) == Place::kDevice;
    for (NodeId at = on_device ? launchers_[node.index()] : node; at; at = trace_.parent(at)) {
      const auto& cost = costs_[at.index()];
      if (cost && !cost->done_below) return at;
      if (!on_device) break;
    }
    return NodeId::None();
  }
  const std::optional<OperatorCost>& cost(NodeId node) const { return costs_[node.index()]; }

 private:
  const Trace& trace_;
  std::vector<std::optional<OperatorCost>> costs_;
  std::vector<NodeId> launchers_;
};

}  // namespace

Result<TimedStep> WithTimesByWork(const Trace& recorded, const Trace& edited,
                                  const Limits& limits) {
  const NodeWork works(recorded);
  const auto wanted = OperatorCosts(edited);
  const auto own = SelfTimes(recorded);
  std::vector<double> small[2];  // times on the host, and on devices
  std::vector<NodeId> workers(recorded.node_count());
  ForEachNode(recorded, [&](NodeId node) {
    if (!own[node.index()]) return;
    const NodeId worker = works.WorkerOf(node);
    if (!worker || works.cost(worker)->bytes == 0) return;
    workers[node.index()] = worker;
    const bool on_device = recorded.place(node) == Place::kDevice;
    if (works.cost(worker)->bytes <= kFixedWork && own[node.index()]->count > 0) {
      small[on_device ? 1 : 0].push_back(static_cast<double>(own[node.index()]->count));
    }
  });
  double fixed[2] = {};
  for (size_t i = 0; i < 2; ++i) fixed[i] = small[i].empty() ? 0 : MedianInPlace(small[i]);
  TimedStep timed;
  timed.is_retimed.resize(recorded.node_count());
  std::vector<Nanos> longer(recorded.node_count());
  double all = 0;
  for (size_t i = 0; i < workers.size(); ++i) {
    const NodeId worker = workers[i];
    if (!worker || !wanted[worker.index()]) continue;
    const bool counts_ops = IsMatrixOperator(recorded.name(worker));
    const auto work = [&](const OperatorCost& cost) {
      return static_cast<double>(counts_ops ? cost.ops : cost.bytes);
    };
    const double before = work(*works.cost(worker));
    const double after = work(*wanted[worker.index()]);
    if (before == after || before == 0) continue;
    const auto time = static_cast<double>(own[i]->count);
    const bool on_device = recorded.place(NodeId::FromIndex(i)) == Place::kDevice;
    const double varies = std::max(0.0, time - fixed[on_device ? 1 : 0]);
    const double more = varies * (after / before - 1);
    all += std::abs(more);
    if (all > kMostTime) {
      return BadInput("found times of years with the wanted sizes, expected smaller ones");
    }
    longer[i] = Nanos{std::llround(more)};
    timed.is_retimed[i] = true;
    ++timed.retimed;
  }
  ETUDE_ASSIGN_OR_RETURN(timed.trace, Retime(edited, longer, limits));
  return timed;
}

}  // namespace etude
