#include "src/analysis/view/trace_stats.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "src/analysis/view/modules.h"
#include "src/analysis/view/profiled_inputs.h"
#include "src/base/container/hash.h"
#include "src/run/activity.h"
#include "src/run/calls/comm_log.h"
#include "src/run/step/tensor_shape.h"
#include "src/trace/copied_bytes.h"

namespace etude {
namespace {

void AddTo(std::optional<Nanos>& sum, std::optional<Nanos> time) {
  if (time) sum = sum.value_or(Nanos{}) + *time;
}

void AddTo(std::optional<Bytes>& sum, std::optional<Bytes> bytes) {
  if (bytes) sum = sum.value_or(Bytes{}) + *bytes;
}

// Total size in bytes of the tensors in `values`, and a hash of their shapes.
struct TensorSizes {
  std::optional<Bytes> bytes;
  uint64_t shapes = 0;
};
TensorSizes SizesOf(const Trace& trace, std::span<const Value> values) {
  TensorSizes sizes;
  const auto add = [&](TensorId id) {
    const TensorUse& use = trace.tensor(id);
    if (IsUndefined(trace, use)) return;
    int64_t bytes = 0;
    const auto element = ElementBytes(DTypeOf(trace, use));
    const int64_t each = element ? *element : use.element_bytes;
    if (each > 0 && use.numel >= 0 && !__builtin_mul_overflow(use.numel, each, &bytes)) {
      AddTo(sizes.bytes, Bytes{bytes});
    }
    sizes.shapes = HashMix(HashMix(sizes.shapes, use.shape.value()), use.type.value());
  };
  ForEachTensor(trace, values, add);
  return sizes;
}

class TraceCounter {
 public:
  explicit TraceCounter(const RecordedRun& run)
      : run_(run),
        trace_(run.trace()),
        modules_(trace_, run.launches()),
        profiled_(trace_),
        self_(run.self_times()) {}

  TraceStats Run() {
    stats_.nodes = trace_.node_count();
    const auto span = SpanOf(trace_);
    if (span) stats_.span = span->length();
    ForEachNode(trace_, [&](NodeId node) {
      if (IsSpanOfProfiler(node)) return;
      CountKind(node);
      CountOp(node);
      CountModule(node);
      CountLane(node);
      CountCopy(node);
    });
    Kinds();
    Ops();
    ModuleRows();
    Lanes();
    Communications();
    Copies();
    return std::move(stats_);
  }

 private:
  struct OpRow {
    TraceStats::Op op;
    std::vector<Nanos> durations;
    std::unordered_set<uint64_t> shapes;
  };
  // Bytes over time.
  struct Rate {
    long double bytes = 0;
    long double nanos = 0;

    void Add(Bytes more, Nanos time) {
      bytes += static_cast<long double>(more.count);
      nanos += static_cast<long double>(time.count);
    }
    // Exact for integers: a computation in whole seconds would be slightly off.
    std::optional<double> Known() const {
      if (!(bytes > 0 && nanos > 0)) return std::nullopt;
      return static_cast<double>(bytes * 1e9L / nanos);
    }
  };
  using OpKey = std::tuple<StringId, NodeKind, Place>;

  // "PyTorch Profiler (0)" lasts as long as the recording, on no thread, and is not work.
  bool IsSpanOfProfiler(NodeId node) const {
    return trace_.traits().is_profile && trace_.kind(node) == NodeKind::kLabel &&
           trace_.place(node) == Place::kUnknown;
  }

  void CountKind(NodeId node) {
    TraceStats::Kind& row = kinds_[static_cast<size_t>(trace_.kind(node))];
    ++row.count;
    if (trace_.duration(node)) ++row.timed;
    AddTo(row.total, trace_.duration(node));
    AddTo(row.self, self_[node.index()]);
  }

  void CountOp(NodeId node) {
    const NodeKind kind = trace_.kind(node);
    if (kind == NodeKind::kProcess || kind == NodeKind::kThread) return;
    OpRow& row = ops_[{trace_.name_id(node), kind, trace_.place(node)}];
    ++row.op.count;
    AddTo(row.op.total, trace_.duration(node));
    AddTo(row.op.self, self_[node.index()]);
    if (const auto duration = trace_.duration(node)) {
      row.durations.push_back(*duration);
      row.op.longest = std::max(row.op.longest.value_or(*duration), *duration);
    }
    TensorSizes inputs = SizesOf(trace_, trace_.inputs(node));
    if (trace_.inputs(node).empty()) {
      if (const auto profiled = profiled_.Of(node)) {
        inputs = {.bytes = profiled->bytes, .shapes = profiled->shapes};
      }
    }
    AddTo(row.op.inputs, inputs.bytes);
    AddTo(row.op.outputs, SizesOf(trace_, trace_.outputs(node)).bytes);
    if (inputs.shapes != 0) row.shapes.insert(inputs.shapes);
  }

  void CountModule(NodeId node) {
    const bool on_device = DeviceActivity(trace_, node) != Activity::kNone;
    if (!on_device && HostActivity(trace_, node) == Activity::kNone) return;
    TraceStats::Module& row = module_rows_[modules_.id(node)];
    row.name = modules_.name(node);
    ++(on_device ? row.device_ops : row.operators);
    AddTo(on_device ? row.device_time : row.host_self, self_[node.index()]);
  }

  void CountLane(NodeId node) {
    const bool on_device = DeviceActivity(trace_, node) != Activity::kNone;
    const bool on_host = !on_device && (HostActivity(trace_, node) != Activity::kNone ||
                                        trace_.kind(node) == NodeKind::kRuntime);
    if (!trace_.lane_id(node) || (!on_device && !on_host)) return;
    auto& [count, times] =
        lanes_[{on_device ? Place::kDevice : Place::kHost, trace_.lane_id(node)}];
    ++count;
    if (const auto time = TimeOf(trace_, node)) times.push_back(*time);
  }

  static void CountTransfer(std::optional<Bytes> bytes, std::optional<Nanos> time,
                            TraceStats::Transfers& row) {
    ++row.count;
    AddTo(row.time, time);
    if (!bytes) return;
    ++row.sized;
    AddTo(row.bytes, bytes);
    row.smallest = std::min(row.smallest.value_or(*bytes), *bytes);
    row.largest = std::max(row.largest.value_or(*bytes), *bytes);
  }

  void CountCopy(NodeId node) {
    const NodeKind kind = trace_.kind(node);
    if (kind != NodeKind::kMemcpy && kind != NodeKind::kMemset) return;
    auto& [row, rate] = copy_rows_[{kind, trace_.name(node)}];
    const auto time = trace_.duration(node);
    const auto bytes = CopiedBytes(trace_, node);
    CountTransfer(bytes, time, row);
    if (bytes && time) rate.Add(*bytes, *time);
  }

  void Kinds() {
    for (size_t i = 0; i < kNodeKindCount; ++i) {
      kinds_[i].kind = static_cast<NodeKind>(i);
      if (kinds_[i].count != 0) stats_.kinds.push_back(kinds_[i]);
    }
  }

  void Ops() {
    for (auto& [key, row] : ops_) {
      row.op.name = trace_.text(std::get<0>(key));
      row.op.kind = std::get<1>(key);
      row.op.place = std::get<2>(key);
      row.op.shapes = row.shapes.size();
      if (!row.durations.empty()) row.op.durations = Summarise(std::move(row.durations));
      stats_.ops.push_back(row.op);
    }
    std::ranges::sort(stats_.ops, {}, [](const TraceStats::Op& op) {
      return std::tuple(-op.self.value_or(Nanos{-1}).count, -static_cast<int64_t>(op.count),
                        op.name, op.kind, op.place);
    });
  }

  void ModuleRows() {
    for (const auto& [id, row] : module_rows_) stats_.modules.push_back(row);
    std::ranges::sort(stats_.modules, {}, [](const TraceStats::Module& row) {
      return std::tuple(-row.device_time.value_or(Nanos{-1}).count,
                        -row.host_self.value_or(Nanos{-1}).count, row.name);
    });
  }

  void Lanes() {
    for (auto& [key, use] : lanes_) {
      const Lane& lane = trace_.lane(key.second);
      TraceStats::LaneUse row{.place = key.first,
                              .lane = lane,
                              .process = trace_.text(lane.process),
                              .thread = trace_.text(lane.thread),
                              .count = use.first,
                              .busy = std::nullopt,
                              .share = std::nullopt};
      if (!use.second.empty()) {
        row.busy = TimeSet(std::move(use.second)).length();
        if (stats_.span && stats_.span->count > 0) {
          row.share =
              static_cast<double>(row.busy->count) / static_cast<double>(stats_.span->count);
        }
      }
      stats_.lanes.push_back(row);
    }
    std::ranges::sort(stats_.lanes, {}, [](const TraceStats::LaneUse& row) {
      return std::tuple(row.place, row.process, row.thread, row.lane.device, row.lane.stream);
    });
  }

  void Communications() {
    struct Row {
      TraceStats::Communication comm;
      Rate rate;
      NodeId carrier;  // of the previous call
    };
    using CommKey = std::tuple<std::string_view, std::string_view, DType>;
    std::map<CommKey, Row> rows;
    for (const CommNode& one : run_.communications()) {
      const Comm& comm = *trace_.comm(one.node);
      const std::string_view type = CommTypeName(trace_, one.node);
      auto& [row, rate, carrier] = rows[{type, trace_.text(comm.group), comm.dtype}];
      row.type = type;
      row.group = trace_.text(comm.group);
      row.dtype = comm.dtype;
      auto time = CommDuration(trace_, one);
      // A carrier of several calls of the row counts once.
      if (one.carrier && std::exchange(carrier, one.carrier) == one.carrier) time = Nanos{};
      CountTransfer(comm.bytes, time, row);
      const bool has_rate = time && (time->count > 0 || one.carrier);
      if (comm.bytes && has_rate) rate.Add(*comm.bytes, *time);
    }
    for (auto& [key, row] : rows) {
      row.comm.bytes_per_s = row.rate.Known();
      stats_.communications.push_back(row.comm);
    }
  }

  void Copies() {
    for (auto& [key, entry] : copy_rows_) {
      auto& [row, rate] = entry;
      row.kind = key.first;
      row.name = key.second;
      row.bytes_per_s = rate.Known();
      stats_.copies.push_back(row);
    }
    std::ranges::stable_sort(stats_.copies, std::ranges::greater{},
                             [](const auto& row) { return row.time.value_or(Nanos{-1}); });
  }

  const RecordedRun& run_;
  const Trace& trace_;
  Modules modules_;
  ProfiledInputs profiled_;
  std::span<const std::optional<Nanos>> self_;
  TraceStats stats_;
  std::array<TraceStats::Kind, kNodeKindCount> kinds_{};
  std::map<OpKey, OpRow> ops_;
  std::map<StringId, TraceStats::Module> module_rows_;
  std::map<std::pair<NodeKind, std::string_view>, std::pair<TraceStats::Copy, Rate>> copy_rows_;
  std::map<std::pair<Place, LaneId>, std::pair<uint64_t, std::vector<Interval>>> lanes_;
};

}  // namespace

TraceStats CountTrace(const RecordedRun& run) { return TraceCounter(run).Run(); }

}  // namespace etude
