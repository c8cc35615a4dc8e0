#include "src/run/waits/sync_edges.h"

#include <algorithm>
#include <list>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "src/run/calls/launch.h"
#include "src/run/waits/program_order.h"
#include "src/trace/words/stated_facts.h"

namespace etude {
namespace {

struct SyncKindInfo {
  std::string_view name;
  std::string_view help;
};
constexpr std::array<SyncKindInfo, kSyncKindCount> kSyncKindInfos = {{
    {"stream_wait", "streams that waited for an event of another stream"},
    {"event_sync", "threads that waited for an event"},
    {"stream_sync", "threads that waited for a stream"},
    {"device_sync", "threads that waited for all streams of a device"},
    {"blocking_copy", "threads that waited for their copy"},
    {"by_times", "waits whose target was inferred from times"},
    {"unresolved", "waits whose target is unknown"},
}};

// Names of the profiler's synchronization records.
struct RecordName {
  std::string_view name;
  SyncKind kind;
};
constexpr auto kRecords = std::to_array<RecordName>({
    {"Stream Wait Event", SyncKind::kStreamWait},
    {"Event Sync", SyncKind::kEventSync},
    {"Event Synchronize", SyncKind::kEventSync},
    {"Stream Sync", SyncKind::kStreamSync},
    {"Stream Synchronize", SyncKind::kStreamSync},
    {"Context Sync", SyncKind::kDeviceSync},
    {"Context Synchronize", SyncKind::kDeviceSync},
});

// Waiting calls, without the prefix of their runtime ("cuda", "hip", "cu").
constexpr auto kCalls = std::to_array<RecordName>({
    {"StreamWaitEvent", SyncKind::kStreamWait},
    {"EventSynchronize", SyncKind::kEventSync},
    {"StreamSynchronize", SyncKind::kStreamSync},
    {"DeviceSynchronize", SyncKind::kDeviceSync},
    {"CtxSynchronize", SyncKind::kDeviceSync},
    {"Memcpy", SyncKind::kBlockingCopy},
    {"MemcpyWithStream", SyncKind::kBlockingCopy},
    {"MemcpyDtoH", SyncKind::kBlockingCopy},
    {"MemcpyHtoD", SyncKind::kBlockingCopy},
});

// Calls that only query: the profiler has the same records for them as for waiting calls.
constexpr auto kQueries = std::to_array<std::string_view>({"EventQuery", "StreamQuery"});

std::string_view WithoutRuntime(std::string_view name) {
  for (const std::string_view prefix : {"cuda", "hip", "cu"}) {
    if (name.starts_with(prefix)) {
      name.remove_prefix(prefix.size());
      break;
    }
  }
  // Versions of the driver's functions: "cuMemcpyDtoH_v2".
  for (const std::string_view suffix : {"_v2", "_v3", "_ptsz", "_spt"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  return name;
}

template <typename Table>
std::optional<SyncKind> Find(const Table& table, std::string_view name) {
  const auto row = std::ranges::find(table, name, &RecordName::name);
  return row == table.end() ? std::nullopt : std::optional(row->kind);
}

// Device work `work`, or the thread of call `call` after that call, waited for the device work
// `before`.
struct SyncEdge {
  NodeId work;  // kNone: the thread waited
  NodeId call;
  NodeId before;
  SyncKind kind = SyncKind::kUnresolved;  // of the call's wait
  Evidence evidence = Evidence::kStated;
};

OrderReason ReasonOf(SyncKind kind) {
  switch (kind) {
    case SyncKind::kStreamWait: return OrderReason::kStreamWait;
    case SyncKind::kEventSync: return OrderReason::kEventSync;
    case SyncKind::kStreamSync: return OrderReason::kStreamSync;
    case SyncKind::kDeviceSync: return OrderReason::kDeviceSync;
    case SyncKind::kBlockingCopy: return OrderReason::kBlockingCopy;
    case SyncKind::kByTimes:
    case SyncKind::kUnresolved: break;
  }
  return OrderReason::kSync;
}

// Device work with its launch time.
struct LaunchedWork {
  Nanos at;
  NodeId work;
};
using Stream = std::pair<int32_t, int32_t>;  // device, stream

// Streams of a device, by their last launch before an advancing moment.
class RecentStreams {
 public:
  using Launch = std::pair<Nanos, Stream>;

  // Adds a launch. All launches must be added before the first call of Before.
  void Add(Nanos at, const Stream& stream) { launches_.emplace_back(at, stream); }

  // Returns the last launch before `at` on each stream, the latest first. `at` must not decrease
  // between calls. All calls together: O(n log n).
  const std::list<Launch>& Before(Nanos at) {
    if (!std::exchange(is_sorted_, true)) std::ranges::sort(launches_);
    for (; next_ < launches_.size() && launches_[next_].first < at; ++next_) {
      const auto [place, is_new] = places_.try_emplace(launches_[next_].second);
      if (!is_new) recent_.erase(place->second);
      recent_.push_front(launches_[next_]);
      place->second = recent_.begin();
    }
    return recent_;
  }

 private:
  std::vector<Launch> launches_;
  bool is_sorted_ = false;
  size_t next_ = 0;  // the next launch to process
  std::list<Launch> recent_;
  std::map<Stream, std::list<Launch>::iterator> places_;
};

class SyncFinder {
 public:
  SyncFinder(const Trace& device, const DeviceMatch& match) : device_(device), match_(match) {}

  SyncEdges Run() {
    result_.waited.resize(device_.node_count());
    IndexWork();
    std::vector<NodeId> calls;
    ForEachNode(device_, [&](NodeId event) {
      if (device_.kind(event) == NodeKind::kRuntime && device_.start(event)) calls.push_back(event);
      if (device_.kind(event) == NodeKind::kSync) AddRecord(event);
    });
    if (!records_.empty()) IndexCalls();
    std::ranges::stable_sort(calls, {}, [&](NodeId call) { return *device_.start(call); });
    for (const NodeId call : calls) ReadCall(call);
    // Records of calls that are missing still order streams.
    for (const auto& [correlation, record] : records_) {
      if (!used_.contains(record)) {
        Resolve(NodeId::None(), record, *Find(kRecords, device_.name(record)));
      }
    }
    std::ranges::stable_sort(edges_, {}, [&](const SyncEdge& edge) {
      return edge.call ? *device_.start(edge.call) : Nanos{INT64_MAX};
    });
    for (const SyncEdge& edge : edges_) {
      const bool in_call = !edge.work;
      result_.edges.push_back({.node = in_call ? edge.call : edge.work,
                               .before = edge.before,
                               .reason = ReasonOf(edge.kind),
                               .evidence = edge.evidence,
                               .in_call = in_call,
                               .waited = in_call ? result_.waited[edge.call.index()] : Nanos{}});
    }
    return std::move(result_);
  }

 private:
  Nanos End(NodeId event) const {
    return *device_.start(event) + device_.duration(event).value_or(Nanos{});
  }

  // Returns the launch time of the work, or its begin if the launch is missing.
  Nanos LaunchTime(NodeId work) const {
    const NodeId launch = match_.launches[work.index()];
    return launch && device_.start(launch) ? *device_.start(launch) : *device_.start(work);
  }

  void IndexWork() {
    ForEachNode(device_, [&](NodeId event) {
      const LaneId lane = device_.lane_id(event);
      if (device_.place(event) != Place::kDevice || !IsDeviceWork(device_.kind(event))) return;
      if (!device_.start(event) || !lane || device_.lane(lane).stream < 0) return;
      streams_[{device_.lane(lane).device, device_.lane(lane).stream}].push_back(
          {LaunchTime(event), event});
      if (const NodeId launch = match_.launches[event.index()]) work_of_.emplace(launch, event);
    });
    for (auto& [stream, work] : streams_) {
      FindLaunchedBefore(work);
      std::ranges::sort(work, {}, [&](const LaunchedWork& launched) {
        return std::tuple(launched.at, *device_.start(launched.work), launched.work);
      });
      for (const LaunchedWork& launched : work)
        recent_streams_[stream.first].Add(launched.at, stream);
    }
  }

  // Streams run in order: work without a recorded launch that ran before the first launched work
  // was launched before it, and before the recording began.
  void FindLaunchedBefore(std::vector<LaunchedWork>& stream) const {
    const auto has_launch = [&](const LaunchedWork& one) {
      return static_cast<bool>(match_.launches[one.work.index()]);
    };
    std::optional<Nanos> first;
    for (const LaunchedWork& one : stream) {
      const Nanos start = *device_.start(one.work);
      if (has_launch(one) && (!first || start < *first)) first = start;
    }
    if (!first) return;
    for (LaunchedWork& one : stream) {
      if (!has_launch(one) && *device_.start(one.work) < *first) one.at = Nanos{INT64_MIN};
    }
  }

  void IndexCalls() {
    ForEachNode(device_, [&](NodeId event) {
      const auto correlation = LaunchCorrelation(device_, event);
      if (device_.kind(event) == NodeKind::kRuntime && correlation) {
        calls_.emplace(*correlation, event);
      }
    });
  }

  void AddRecord(NodeId event) {
    const auto correlation = LaunchCorrelation(device_, event);
    const auto kind = Find(kRecords, device_.name(event));
    if (!kind || !device_.start(event)) return;
    has_stream_waits_ = has_stream_waits_ || kind == SyncKind::kStreamWait;
    records_.emplace(correlation.value_or(-1 - static_cast<int64_t>(event.index())), event);
  }

  void ReadCall(NodeId call) {
    const auto kind = WaitingCall(device_.name(call));
    const auto correlation = LaunchCorrelation(device_, call);
    const auto record = correlation ? records_.find(*correlation) : records_.end();
    if (record != records_.end()) {
      used_.insert(record->second);
      if (std::ranges::count(kQueries, WithoutRuntime(device_.name(call))) != 0) return;
      Resolve(call, record->second, *Find(kRecords, device_.name(record->second)));
      return;
    }
    const auto work = work_of_.find(call);
    const bool copies = work != work_of_.end() && device_.kind(work->second) == NodeKind::kMemcpy;
    if (copies && (kind == SyncKind::kBlockingCopy || IsWaitedFor(call, work->second))) {
      ++result_.calls[static_cast<size_t>(SyncKind::kBlockingCopy)];
      const size_t before = edges_.size();
      AddWait(call, work->second, SyncKind::kBlockingCopy);
      if (edges_.size() != before) FindWaited(call, work->second);
    } else if (kind && *kind != SyncKind::kBlockingCopy) {
      Resolve(call, NodeId::None(), *kind);
    }
  }

  // Returns true if the call waits for the copy. Copies to pageable memory return when they are
  // done, whatever their name.
  bool IsWaitedFor(NodeId call, NodeId copy) const {
    return device_.name(copy).find("Pageable") != std::string_view::npos &&
           End(call) >= End(copy) && device_.duration(copy);
  }

  // Finds the work that a call waited for. `record` is the profiler's record of the call, or kNone.
  void Resolve(NodeId call, NodeId record, SyncKind kind) {
    const size_t before = edges_.size();
    const Nanos at = *device_.start(call ? call : record);
    bool known = false;
    switch (kind) {
      case SyncKind::kStreamWait: known = StreamWait(call, record, at); break;
      case SyncKind::kEventSync: known = EventSync(call, record); break;
      case SyncKind::kStreamSync: known = StreamSync(call, record, at); break;
      case SyncKind::kDeviceSync: known = DeviceSync(call, record, at); break;
      case SyncKind::kBlockingCopy:
      case SyncKind::kByTimes:
      case SyncKind::kUnresolved: break;
    }
    if (!known) {
      known = kind == SyncKind::kStreamWait ? StreamWaitByTimes(call, record, at)
                                            : CallByTimes(call, kind);
      if (known) kind = SyncKind::kByTimes;
    }
    ++result_.calls[static_cast<size_t>(known ? kind : SyncKind::kUnresolved)];
    NodeId last;
    for (size_t i = before; i < edges_.size(); ++i) {
      const SyncEdge& edge = edges_[i];
      if (!edge.work && (!last || End(last) < End(edge.before))) last = edge.before;
    }
    if (call && last) FindWaited(call, last);
  }

  // Sets the time in which the call only waited, which ends with the last awaited work.
  void FindWaited(NodeId call, NodeId last) {
    if (!device_.duration(call) || !device_.duration(last)) return;
    const Nanos begin = *device_.start(call);
    const Nanos end = std::min(End(call), End(last));
    if (begin < end) result_.waited[call.index()] = end - begin;
  }

  std::optional<Stream> StreamOf(NodeId record) const {
    if (!record || !device_.lane_id(record)) return std::nullopt;
    const Lane& lane = device_.lane(device_.lane_id(record));
    if (lane.stream < 0) return std::nullopt;
    return Stream{lane.device, lane.stream};
  }

  // Last work of a stream launched before `at`, and the first from then on.
  struct Around {
    NodeId before;
    NodeId from;
  };
  Around WorkAround(const Stream& stream, Nanos at) const {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return {};
    const std::vector<LaunchedWork>& work = found->second;
    const auto next = std::ranges::lower_bound(work, at, {}, &LaunchedWork::at);
    return {.before = next == work.begin() ? NodeId::None() : std::prev(next)->work,
            .from = next == work.end() ? NodeId::None() : next->work};
  }

  // Returns the work that an event stands for; nullopt if unknown, kNone if there is none.
  std::optional<NodeId> WorkOfEvent(NodeId record) const {
    if (!record) return std::nullopt;
    const auto correlation = StatedNumber(device_, record, "wait_on_cuda_event_record_corr_id");
    const auto stream = StatedNumber(device_, record, "wait_on_stream");
    if (!correlation || !stream || *stream < 0 || *stream > INT32_MAX) return std::nullopt;
    const auto recorded = calls_.find(*correlation);
    if (recorded == calls_.end() || !device_.start(recorded->second)) return std::nullopt;
    const int32_t device = device_.lane(device_.lane_id(record)).device;
    return WorkAround({device, static_cast<int32_t>(*stream)}, *device_.start(recorded->second))
        .before;
  }

  // Adds a wait, except for work that began after the call, whatever the order of launches.
  void AddWait(NodeId call, NodeId before, SyncKind kind) {
    if (!before || *device_.start(before) >= End(call)) return;
    edges_.push_back({NodeId::None(), call, before, kind});
  }

  bool StreamWait(NodeId call, NodeId record, Nanos at) {
    const auto stream = StreamOf(record);
    const auto before = WorkOfEvent(record);
    if (!stream || !before) return false;
    const NodeId work = WorkAround(*stream, at).from;
    if (work && *before && device_.lane_id(work) != device_.lane_id(*before)) {
      edges_.push_back({work, call, *before, SyncKind::kStreamWait});
      told_.insert(work);
    }
    return true;
  }

  bool EventSync(NodeId call, NodeId record) {
    const auto before = WorkOfEvent(record);
    if (!before || !call) return false;
    AddWait(call, *before, SyncKind::kEventSync);
    return true;
  }

  // Without a record, the stream is still known if the program has only one.
  bool StreamSync(NodeId call, NodeId record, Nanos at) {
    std::optional<Stream> stream = StreamOf(record);
    if (!stream && !record && streams_.size() == 1) stream = streams_.begin()->first;
    if (!stream || !call) return false;
    AddWait(call, WorkAround(*stream, at).before, SyncKind::kStreamSync);
    return true;
  }

  bool DeviceSync(NodeId call, NodeId record, Nanos at) {
    std::optional<int32_t> wanted;
    if (record && device_.lane_id(record)) wanted = device_.lane(device_.lane_id(record)).device;
    if (!wanted && !streams_.empty() &&
        streams_.begin()->first.first == streams_.rbegin()->first.first) {
      wanted = streams_.begin()->first.first;
    }
    if (!wanted || !call) return false;
    DeviceWaits& waits = device_waits_[{device_.lane_id(call), *wanted}];
    const std::vector<Stream> to_wait_for = StreamsToWaitFor(waits, *wanted, at);
    waits = {.at = at, .end = End(call), .works = {}};
    for (const Stream& stream : to_wait_for) {
      const NodeId before = WorkAround(stream, at).before;
      AddWait(call, before, SyncKind::kDeviceSync);
      waits.works.emplace_back(stream, before);
    }
    return true;
  }

  // The last wait of a thread for a device.
  struct DeviceWaits {
    Nanos at{INT64_MIN};
    Nanos end{INT64_MIN};
    std::vector<std::pair<Stream, NodeId>> works;  // last work on the streams that it covered
  };

  // Returns the streams whose last work launched before `at` is not covered by previous waits of
  // the thread: those with new work, and those with work that had not ended at the last wait.
  std::vector<Stream> StreamsToWaitFor(const DeviceWaits& last, int32_t device, Nanos at) {
    std::vector<Stream> found;
    // Clocks are off by some microseconds, and calls overlap; bounded for hostile traces.
    constexpr size_t kMost = 256;
    for (const auto& [stream, work] : last.works) {
      const bool is_over =
          last.end <= at && *device_.start(work) < last.end && End(work) <= last.end;
      if (!is_over && found.size() < kMost) found.push_back(stream);
    }
    for (const auto& [launched, stream] : recent_streams_[device].Before(at)) {
      if (launched < last.at) break;
      found.push_back(stream);
    }
    std::ranges::sort(found);
    const auto repeated = std::ranges::unique(found);
    found.erase(repeated.begin(), repeated.end());
    return found;
  }

  bool IsTimed(NodeId event) const { return device_.start(event) && device_.duration(event); }

  // Range of end times: after `begin`, at `end` at the latest.
  struct Window {
    Nanos begin;
    Nanos end;
  };

  // Returns the last work to end in the window among the work launched by `launched` on other
  // streams than `stream`.
  NodeId LastEnded(const Window& window, Nanos launched, LaneId stream) {
    if (!has_ended_) {
      ForEachNode(device_, [&](NodeId event) {
        if (device_.place(event) != Place::kDevice || !IsDeviceWork(device_.kind(event))) return;
        if (IsTimed(event)) ended_.push_back({End(event), event});
      });
      std::ranges::stable_sort(ended_, {}, &Ended::end);
      has_ended_ = true;
    }
    // Skips work that other threads launched meanwhile; bounded for hostile traces.
    constexpr int kMost = 256;
    auto next = std::ranges::upper_bound(ended_, window.end, {}, &Ended::end);
    for (int i = 0; i < kMost && next != ended_.begin(); ++i) {
      --next;
      if (next->end <= window.begin) break;
      if (stream && device_.lane_id(next->work) == stream) continue;
      if (LaunchTime(next->work) <= launched) return next->work;
    }
    return NodeId::None();
  }

  bool CallByTimes(NodeId call, SyncKind kind) {
    const bool waits = kind == SyncKind::kEventSync || kind == SyncKind::kStreamSync ||
                       kind == SyncKind::kDeviceSync;
    if (!waits || !call || !IsTimed(call)) return false;
    const Nanos begin = *device_.start(call);
    const NodeId before = LastEnded({begin, End(call)}, begin, LaneId());
    if (!before) return false;
    edges_.push_back({NodeId::None(), call, before, kind, Evidence::kByTime});
    return true;
  }

  // The profiler omits records of streams on which it has seen no work.
  bool StreamWaitByTimes(NodeId call, NodeId record, Nanos at) {
    const auto stream = StreamOf(record);
    NodeId work;
    if (stream) {
      work = WorkAround(*stream, at).from;
    } else if (!has_stream_waits_ && call) {
      work = NextLaunchedBy(call);
    }
    if (!work || told_.contains(work)) return false;
    const Nanos begin = *device_.start(work);
    const NodeId before = LastEnded({LaunchTime(work), begin}, at, device_.lane_id(work));
    if (!before) return false;
    const Lane& lane = device_.lane(device_.lane_id(work));
    const NodeId last = WorkAround({lane.device, lane.stream}, LaunchTime(work)).before;
    if (last && End(last) >= End(before)) return false;
    edges_.push_back({work, call, before, SyncKind::kStreamWait, Evidence::kByTime});
    return true;
  }

  // Returns the work of the next launch on the call's thread.
  NodeId NextLaunchedBy(NodeId call) {
    const auto key = [&](NodeId launch) {
      return std::tuple(device_.lane_id(launch), *device_.start(launch), launch);
    };
    if (launches_.empty()) {
      for (const auto& [launch, work] : work_of_) {
        if (device_.start(launch)) launches_.push_back(launch);
      }
      std::ranges::sort(launches_, {}, key);
    }
    const auto next = std::ranges::lower_bound(
        launches_, std::tuple(device_.lane_id(call), *device_.start(call), NodeId(0)), {}, key);
    const bool is_found =
        next != launches_.end() && device_.lane_id(*next) == device_.lane_id(call);
    return is_found ? work_of_.at(*next) : NodeId::None();
  }

  // Device work with its end time.
  struct Ended {
    Nanos end;
    NodeId work;
  };

  const Trace& device_;
  const DeviceMatch& match_;
  SyncEdges result_;
  std::vector<SyncEdge> edges_;
  std::map<Stream, std::vector<LaunchedWork>> streams_;
  std::map<int32_t, RecentStreams> recent_streams_;                 // by device
  std::map<std::pair<LaneId, int32_t>, DeviceWaits> device_waits_;  // by thread and device
  std::unordered_map<NodeId, NodeId> work_of_;                      // by launch, the first one
  std::unordered_map<int64_t, NodeId> calls_;                       // by correlation
  std::map<int64_t, NodeId> records_;                               // by correlation; below 0: none
  std::unordered_set<NodeId> used_;                                 // records with a call
  std::unordered_set<NodeId> told_;  // work whose awaited work is recorded
  bool has_stream_waits_ = false;    // among the records
  std::vector<NodeId> launches_;     // of work, by thread and time; made when needed
  std::vector<Ended> ended_;         // made when needed
  bool has_ended_ = false;
};

}  // namespace

std::string_view Name(SyncKind kind) { return kSyncKindInfos[static_cast<size_t>(kind)].name; }
std::string_view Help(SyncKind kind) { return kSyncKindInfos[static_cast<size_t>(kind)].help; }

std::optional<SyncKind> WaitingCall(std::string_view name) {
  return Find(kCalls, WithoutRuntime(name));
}

SyncEdges FindSyncEdges(const Trace& device, const DeviceMatch& match) {
  return SyncFinder(device, match).Run();
}

}  // namespace etude
