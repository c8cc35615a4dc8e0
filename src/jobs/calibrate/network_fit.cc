#include "src/jobs/calibrate/network_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "src/jobs/calibrate/calibration.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/machine/fitted_network.h"
#include "src/sim/program/sim_program.h"

namespace etude {
namespace {

std::shared_ptr<const SimProgram> ProgramOf(const SimNode& node) {
  SimProgram program;
  program.nodes = {node};
  program.origin = {NodeId::FromIndex(0)};
  program.source_ids = {0};
  program.waits = {0};
  return std::make_shared<const SimProgram>(std::move(program));
}

SimWorkload WorkloadOf(const MeasuredKind& kind, int64_t ranks, int64_t bytes) {
  SimWorkload workload;
  if (kind != kMessageKind) {
    const SimRank rank{
        .program = ProgramOf({.kind = NodeKind::kCollective, .collective = *kind, .bytes = bytes}),
        .groups = {},
        .peers = {}};
    workload.ranks.assign(static_cast<size_t>(ranks), rank);
    return workload;
  }
  for (const NodeKind side : {NodeKind::kSend, NodeKind::kRecv}) {
    workload.ranks.push_back({.program = ProgramOf({.kind = side, .peer = 0, .bytes = bytes}),
                              .groups = {},
                              .peers = {side == NodeKind::kSend ? 1 : 0}});
  }
  return workload;
}

Result<int64_t> TimeOn(const SimMachine& machine, const SimWorkload& workload) {
  ETUDE_ASSIGN_OR_RETURN(const SimResult result, Simulate(machine, workload));
  int64_t end = 0;
  for (const SimRankResult& rank : result.ranks) {
    if (!rank.finished) return MakeError(ErrorCode::kInternal, "a communication does not end");
    end = std::max(end, rank.ends[0]);
  }
  return end;
}

// Returns whether a communication counts: one of few ranks that can be simulated.
bool IsFitted(const MeasuredSeries& series) {
  const bool can_run =
      series.kind != CollectiveType::kUnknown && series.kind != CollectiveType::kReduceScatterBlock;
  return can_run && series.ranks <= kMostFittedRanks;
}

// A measured communication, ready to be simulated.
struct Measured {
  bool is_message = false;
  int64_t ranks = 2;
  std::vector<SimWorkload> workloads;  // by size
  std::vector<int64_t> times;          // ns
};

// The parameters that are fitted, as logarithms.
enum Parameter : size_t { kLatency, kHandling, kLink, kShared, kAdded, kParameters };
using Point = std::array<std::optional<double>, kParameters>;  // nullopt: without it

FittedNetwork NetworkAt(const Point& point) {
  const auto value = [&](Parameter parameter) { return std::exp(*point[parameter]); };
  FittedNetwork network{.latency_ns = std::llround(value(kLatency)),
                        .handling_ns = 0,
                        .bytes_per_second = std::round(value(kLink)),
                        .shared_bytes_per_second = {},
                        .added_bytes_per_second = {}};
  if (point[kHandling]) network.handling_ns = std::llround(value(kHandling));
  if (point[kShared]) network.shared_bytes_per_second = std::round(value(kShared));
  if (point[kAdded]) network.added_bytes_per_second = std::round(value(kAdded));
  return network;
}

class Fit {
 public:
  Fit(const MachineFile& file, const RunContext& context) : file_(file), context_(context) {
    for (const MeasuredSeries& series : file.series) {
      if (!IsFitted(series)) continue;
      Measured measured{.is_message = series.kind == kMessageKind,
                        .ranks = series.ranks,
                        .workloads = {},
                        .times = {}};
      // A recorded job may have many sizes; evenly spread ones are enough.
      const size_t step = (series.points.size() + kMostFittedSizes - 1) / kMostFittedSizes;
      for (size_t i = 0; i < series.points.size(); i += step) {
        const MeasuredSeries::Point& point = series.points[i];
        if (point.time_ns <= 0) continue;
        measured.workloads.push_back(WorkloadOf(series.kind, series.ranks, point.bytes));
        measured.times.push_back(point.time_ns);
      }
      if (!measured.times.empty()) measured_.push_back(std::move(measured));
      AddStart(series);
    }
  }

  Result<std::optional<FittedNetwork>> Run() {
    if (!(rate_ > 0)) return std::nullopt;
    Point best{std::log(std::max(1.0, shortest_)), std::nullopt, std::log(rate_), std::nullopt,
               std::nullopt};
    // One size of messages has no latency and bandwidth of its own.
    only_messages_ = std::ranges::any_of(measured_, [](const Measured& measured) {
      return measured.is_message && measured.times.size() > 1;
    });
    std::vector<Parameter> of_collectives{kHandling, kAdded, kShared};
    if (!only_messages_) of_collectives.insert(of_collectives.end(), {kLatency, kLink});
    if (only_messages_) ETUDE_RETURN_IF_ERROR(Search({kLatency, kLink}, best));
    only_messages_ = false;
    if (std::ranges::all_of(measured_, &Measured::is_message)) return NetworkAt(best);
    best[kHandling] = best[kLatency];
    ETUDE_RETURN_IF_ERROR(Search(of_collectives, best));
    for (const Parameter optional : {kAdded, kShared}) {
      Point with = best;
      with[optional] = best[kLink];
      const double before = cost_;
      ETUDE_RETURN_IF_ERROR(Search(of_collectives, with));
      if (cost_ * kWorth <= before) {
        best = with;
      } else {
        cost_ = before;
      }
    }
    // The search may have moved the others only.
    for (const Parameter optional : {kAdded, kShared}) {
      if (!best[optional]) continue;
      Point without = best;
      without[optional].reset();
      const double before = cost_;
      ETUDE_RETURN_IF_ERROR(Search(of_collectives, without));
      if (cost_ <= before * kWorth) {
        best = without;
      } else {
        cost_ = before;
      }
    }
    return NetworkAt(best);
  }

 private:
  static constexpr double kFirstStep = 1;  // a factor of e
  static constexpr double kLastStep = 1.0 / 128;
  static constexpr double kWorth = 1.02;
  static constexpr double kLeastGain = 1 - 1e-4;  // of a move
  static constexpr size_t kMostFittedSizes = 48;
  static constexpr double kMostLog = 34;  // 6e14: days, or bytes per second

  // Starts from the shortest time and the highest rate of a communication.
  void AddStart(const MeasuredSeries& series) {
    if (series.points.size() < 2) return;
    const MeasuredSeries::Point& first = series.points.front();
    const MeasuredSeries::Point& last = series.points.back();
    shortest_ = std::min(shortest_, static_cast<double>(first.time_ns));
    if (last.time_ns <= 0) return;
    rate_ =
        std::max(rate_, static_cast<double>(last.bytes) * 1e9 / static_cast<double>(last.time_ns));
  }

  Result<double> CostOf(const Point& point) const {
    if (context_.stopped()) return MakeError(ErrorCode::kInterrupted, "interrupted");
    const FittedNetwork network = NetworkAt(point);
    std::map<int64_t, SimMachine> machines;  // by ranks
    double sum = 0;
    size_t count = 0;
    for (const Measured& measured : measured_) {
      if (only_messages_ && !measured.is_message) continue;
      ++count;
      if (!machines.contains(measured.ranks)) {
        ETUDE_ASSIGN_OR_RETURN(machines[measured.ranks],
                               MachineOf(network, file_.machine, measured.ranks));
      }
      const SimMachine& machine = machines[measured.ranks];
      double of_series = 0;
      for (size_t i = 0; i < measured.times.size(); ++i) {
        ETUDE_ASSIGN_OR_RETURN(const int64_t time, TimeOn(machine, measured.workloads[i]));
        of_series += std::abs(std::log(std::max(1.0, static_cast<double>(time)) /
                                       static_cast<double>(measured.times[i])));
      }
      sum += of_series / static_cast<double>(measured.times.size());
    }
    return sum / static_cast<double>(count);
  }

  // Moves some parameters, of those that the point has, to a local minimum. Its cost is cost_.
  Status Search(const std::vector<Parameter>& some, Point& best) {
    ETUDE_ASSIGN_OR_RETURN(cost_, CostOf(best));
    for (double step = kFirstStep; step >= kLastStep;) {
      Point next = best;
      double cost = cost_;
      ETUDE_RETURN_IF_ERROR(Explore(some, step, next, cost));
      if (cost >= cost_ * kLeastGain) {
        step /= 2;
        continue;
      }
      // The pattern of the moves goes on, as long as it helps.
      while (cost < cost_ * kLeastGain) {
        Point further = next;
        for (size_t i = 0; i < kParameters; ++i) {
          if (next[i]) further[i] = std::clamp(2 * *next[i] - *best[i], 0.0, kMostLog);
        }
        best = next;
        cost_ = cost;
        ETUDE_ASSIGN_OR_RETURN(cost, CostOf(further));
        next = further;
      }
    }
    return {};
  }

  // Moves one parameter after the other by a step, where that lowers the cost.
  Status Explore(const std::vector<Parameter>& some, double step, Point& point,
                 double& cost) const {
    for (const Parameter parameter : some) {
      std::optional<double>& value = point[parameter];
      if (!value) continue;
      const double before = *value;
      for (const double moved : {before + step, before - step}) {
        value = std::clamp(moved, 0.0, kMostLog);
        ETUDE_ASSIGN_OR_RETURN(const double other, CostOf(point));
        if (other < cost) {
          cost = other;
          break;
        }
        value = before;
      }
    }
    return {};
  }

  const MachineFile& file_;
  const RunContext& context_;
  std::vector<Measured> measured_;
  double shortest_ = std::numeric_limits<double>::infinity();  // ns
  double rate_ = 0;                                            // bytes per second
  bool only_messages_ = false;                                 // counted in costs
  double cost_ = 0;
};

}  // namespace

Result<std::optional<FittedNetwork>> FitNetwork(const MachineFile& file,
                                                const RunContext& context) {
  return Fit(file, context).Run();
}

Result<int64_t> TimeOnNetwork(const FittedNetwork& network, const MeasuredMachine& machine,
                              const MeasuredKind& kind, int64_t ranks, int64_t bytes) {
  ETUDE_ASSIGN_OR_RETURN(const SimMachine simulated, MachineOf(network, machine, ranks));
  return TimeOn(simulated, WorkloadOf(kind, ranks, bytes));
}

Table NetworkTable(const std::optional<FittedNetwork>& network) {
  Table table{.key = "network",
              .title = "network of etude-1, fitted to them",
              .columns = {{"latency_ns", "latency", Unit::kTime},
                          {"handling_ns", "handling", Unit::kTime},
                          {"bytes_per_second", "of a rank", Unit::kRate},
                          {"shared_bytes_per_second", "of all ranks", Unit::kRate},
                          {"added_bytes_per_second", "additions", Unit::kRate}},
              .rows = {}};
  if (network) {
    table.rows.push_back({network->latency_ns, network->handling_ns, network->bytes_per_second,
                          ToCell(network->shared_bytes_per_second),
                          ToCell(network->added_bytes_per_second)});
  }
  return table;
}

Result<Table> NetworkFitTable(const MachineFile& file) {
  Table table{.key = "network_fit",
              .title = "errors of this network",
              .columns = {{"type", "type"},
                          {"ranks", "ranks", Unit::kCount},
                          {"error", "error", Unit::kChange},
                          {"worst_error", "worst", Unit::kChange},
                          {"check_error", "at other sizes", Unit::kChange},
                          {"worst_check_error", "worst", Unit::kChange}},
              .rows = {}};
  if (!file.network) return table;
  const auto errors = [&](const auto& points, const MeasuredKind& kind,
                          int64_t ranks) -> Result<std::optional<CheckErrors>> {
    MeasuredCheck all{.kind = kind, .ranks = ranks, .points = {}};
    for (const auto& point : points) {
      ETUDE_ASSIGN_OR_RETURN(const int64_t time,
                             TimeOnNetwork(*file.network, file.machine, kind, ranks, point.bytes));
      all.points.push_back({.bytes = point.bytes, .time_ns = point.time_ns, .predicted_ns = time});
    }
    return ErrorsOf(all);
  };
  for (const MeasuredSeries& series : file.series) {
    if (!IsFitted(series)) continue;
    ETUDE_ASSIGN_OR_RETURN(const auto fitted, errors(series.points, series.kind, series.ranks));
    std::optional<CheckErrors> checked;
    if (const MeasuredCheck* check = file.FindCheck(series.kind, series.ranks)) {
      ETUDE_ASSIGN_OR_RETURN(checked, errors(check->points, series.kind, series.ranks));
    }
    table.rows.push_back(
        {std::string(NameOfKind(series.kind)), series.ranks, fitted ? Cell(fitted->median) : Cell(),
         fitted ? Cell(fitted->worst) : Cell(), checked ? Cell(checked->median) : Cell(),
         checked ? Cell(checked->worst) : Cell()});
  }
  return table;
}

}  // namespace etude
