#include "src/formats/profile/impossible_times.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "src/base/container/intervals.h"

namespace etude {
namespace {

constexpr Nanos kFar{int64_t{3600} * 1'000'000'000};
constexpr int64_t kSpans = 100;    // minimum distance from the others, in their spans
constexpr int64_t kLongWork = 10;  // minimum length relative to the rest of the stream
constexpr size_t kFewest = 3;      // minimum number of others
constexpr Nanos kLongBefore{1'000'000'000};
constexpr Nanos kZeroBefore{1'000'000};  // minimum lead of a time that is exactly 0

// Returns `time` multiplied by `factor`, saturating.
Nanos Times(Nanos time, int64_t factor) {
  int64_t product = 0;
  return __builtin_mul_overflow(time.count, factor, &product) ? Nanos{INT64_MAX} : Nanos{product};
}

bool IsDeviceWork(const TraceBuilder& builder, NodeId node) {
  if (builder.place(node) != Place::kDevice) return false;
  const NodeKind kind = builder.kind(node);
  return kind != NodeKind::kLabel && kind != NodeKind::kSync && kind != NodeKind::kUnknown;
}

class Finder {
 public:
  explicit Finder(const TraceBuilder& builder) : builder_(builder), found_(builder.node_count()) {}

  std::vector<NodeId> Run() {
    FindFar();
    FindBeforeLaunch();
    FindLongWork();
    std::vector<NodeId> nodes;
    for (size_t i = 0; i < found_.size(); ++i) {
      if (found_[i]) nodes.push_back(NodeId::FromIndex(i));
    }
    return nodes;
  }

 private:
  struct Timed {
    Nanos start;
    Nanos end;
    NodeId node;
  };

  static void Extend(std::optional<Interval>& span, const Interval& by) {
    if (!span) span = by;
    span->begin = std::min(span->begin, by.begin);
    span->end = std::max(span->end, by.end);
  }

  // Collects the nodes whose times were not rejected so far.
  template <typename Take>
  void ForEachTimed(const Take& take) const {
    for (size_t i = 0; i < builder_.node_count(); ++i) {
      const NodeId node = NodeId::FromIndex(i);
      const auto start = builder_.start(node);
      if (!start || found_[i]) continue;
      take(Timed{*start, *start + builder_.duration(node).value_or(Nanos{}), node});
    }
  }

  void FindFar() {
    std::optional<Interval> span;
    ForEachTimed([&](const Timed& one) { Extend(span, {one.start, one.end}); });
    if (!span || span->length() <= kFar) return;
    std::vector<Timed> nodes;
    ForEachTimed([&](const Timed& one) { nodes.push_back(one); });
    if (nodes.size() <= kFewest) return;
    std::ranges::sort(nodes, {}, [](const Timed& one) { return std::pair(one.start, one.node); });
    // Find the largest group of nodes that begin within an hour of each other.
    size_t begin = 0;
    size_t end = 0;
    for (size_t from = 0, to = 1; to <= nodes.size(); ++to) {
      if (to < nodes.size() && nodes[to].start - nodes[to - 1].start <= kFar) continue;
      if (to - from > end - begin) begin = from, end = to;
      from = to;
    }
    if (end - begin < kFewest || (nodes.size() - (end - begin)) * 2 > nodes.size()) return;
    const Nanos first = nodes[begin].start;
    const Nanos last = nodes[end - 1].start;
    const Nanos reach = std::max(kFar, Times(last - first, kSpans));
    std::vector<NodeId> far;
    for (const Timed& one : nodes) {
      const bool is_far =
          first - one.start > reach || one.start - last > reach || one.end - last > reach;
      if (is_far) far.push_back(one.node);
    }
    if (far.size() * 2 > nodes.size()) return;
    for (const NodeId node : far) found_[node.index()] = true;
  }

  void FindBeforeLaunch() {
    std::optional<Interval> host;
    ForEachTimed([&](const Timed& one) {
      if (builder_.place(one.node) == Place::kHost) Extend(host, {one.start, one.start});
    });
    if (!host) return;
    std::vector<Timed> suspects;
    size_t works = 0;
    ForEachTimed([&](const Timed& one) {
      if (!IsDeviceWork(builder_, one.node)) return;
      ++works;
      if (one.start < host->begin || one.start == Nanos{0}) suspects.push_back(one);
    });
    if (suspects.empty()) return;
    std::unordered_map<int64_t, Nanos> launches;
    ForEachTimed([&](const Timed& one) {
      const int64_t correlation = builder_.correlation(one.node).value_or(0);
      if (builder_.kind(one.node) != NodeKind::kRuntime || correlation <= 0) return;
      launches.emplace(correlation, one.start);
    });
    const Nanos long_before = std::max(kLongBefore, host->length());
    std::vector<NodeId> early;
    for (const Timed& one : suspects) {
      const auto launch = launches.find(builder_.correlation(one.node).value_or(0));
      const Nanos limit = one.start == Nanos{0} ? kZeroBefore : long_before;
      if (launch != launches.end() && launch->second - one.start > limit) {
        early.push_back(one.node);
      }
    }
    // If this applies to most of the work, the clocks differ, and the times are kept.
    if (early.size() * 2 > works) return;
    for (const NodeId node : early) found_[node.index()] = true;
  }

  void FindLongWork() {
    struct Stream {
      std::optional<Interval> span;
      Nanos longest;
      std::vector<Timed> works;
    };
    std::map<LaneId, Stream> streams;
    const auto for_each_work = [&](const auto& take) {
      ForEachTimed([&](const Timed& one) {
        const LaneId lane = builder_.lane_id(one.node);
        if (lane && IsDeviceWork(builder_, one.node)) take(one, lane);
      });
    };
    for_each_work([&](const Timed& one, LaneId lane) {
      Stream& stream = streams[lane];
      Extend(stream.span, {one.start, one.end});
      stream.longest = std::max(stream.longest, one.end - one.start);
    });
    // Work that overlaps all others of a stream takes most of its time.
    std::erase_if(streams, [](const auto& entry) {
      return Times(entry.second.longest, 3) < entry.second.span->length();
    });
    if (streams.empty()) return;
    for_each_work([&](const Timed& one, LaneId lane) {
      if (const auto found = streams.find(lane); found != streams.end()) {
        found->second.works.push_back(one);
      }
    });
    for (auto& [lane, stream] : streams) FindLongOn(stream.works);
  }

  void FindLongOn(std::vector<Timed>& works) {
    std::ranges::sort(works, {}, [](const Timed& one) {
      return std::pair(one.start - one.end, one.node);  // the longest first
    });
    // Find the longest works, each long compared with all shorter ones. They must be a minority.
    std::optional<Interval> rest;
    size_t count = 0;
    for (size_t i = works.size(); i-- > 0 && count == 0;) {
      const Nanos length = works[i].end - works[i].start;
      const size_t others = works.size() - i - 1;
      const bool is_few = others >= kFewest && others >= 2 * (i + 1);
      if (is_few && length > Times(rest->length(), kLongWork)) count = i + 1;
      Extend(rest, {works[i].start, works[i].end});
    }
    if (count == 0) return;
    std::vector<Nanos> starts;
    std::vector<Nanos> ends;
    for (size_t i = count; i < works.size(); ++i) {
      starts.push_back(works[i].start);
      ends.push_back(works[i].end);
    }
    std::ranges::sort(starts);
    std::ranges::sort(ends);
    for (size_t i = 0; i < count; ++i) {
      const auto begun = std::ranges::lower_bound(starts, works[i].end) - starts.begin();
      const auto over = std::ranges::upper_bound(ends, works[i].start) - ends.begin();
      if (begun - over >= 2) found_[works[i].node.index()] = true;
    }
  }

  const TraceBuilder& builder_;
  std::vector<bool> found_;  // by node
};

}  // namespace

std::vector<NodeId> FindImpossibleTimes(const TraceBuilder& builder) {
  return Finder(builder).Run();
}

}  // namespace etude
