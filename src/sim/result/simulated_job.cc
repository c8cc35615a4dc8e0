#include "src/sim/result/simulated_job.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/container/hash.h"
#include "src/trace/simulated.h"
#include "src/trace/trace_builder.h"
#include "src/trace/trace_copy.h"

namespace etude {
namespace {

// Streams of a simulated trace.
constexpr int32_t kComputeStream = 0;
constexpr int32_t kCommStream = 1;
constexpr int32_t kMemoryStream = 2;
constexpr int32_t kFirstReceiveStream = 3;

// Returns the stream of each communication, by node: the first one on which no other is in
// progress. Only collectives and sends use kCommStream.
std::vector<int32_t> CommStreams(const SimProgram& program, const SimRankResult& result) {
  std::vector<uint32_t> communications;
  for (uint32_t i = 0; i < program.nodes.size(); ++i) {
    const bool has_times = result.begins[i] >= 0 && result.ends[i] >= 0;
    if (IsCommunication(program.nodes[i].kind) && has_times) communications.push_back(i);
  }
  std::ranges::stable_sort(communications, {}, [&](uint32_t node) { return result.begins[node]; });
  std::vector<int32_t> streams(program.nodes.size(), kFirstReceiveStream);
  std::set<int32_t> free;
  std::set<std::pair<int64_t, int32_t>> waiting;  // end of the wait, stream
  int32_t next = kFirstReceiveStream;
  int64_t comm_until = 0;  // of kCommStream
  for (const uint32_t node : communications) {
    const bool is_recv = program.nodes[node].kind == NodeKind::kRecv;
    if (!is_recv && comm_until <= result.begins[node]) {
      streams[node] = kCommStream;
      comm_until = result.ends[node];
      continue;
    }
    while (!waiting.empty() && waiting.begin()->first <= result.begins[node]) {
      free.insert(waiting.begin()->second);
      waiting.erase(waiting.begin());
    }
    if (free.empty()) free.insert(next++);
    streams[node] = *free.begin();
    free.erase(free.begin());
    waiting.emplace(result.ends[node], streams[node]);
  }
  return streams;
}

int32_t StreamOf(NodeKind kind, int32_t comm_stream) {
  switch (kind) {
    case NodeKind::kRecv:
    case NodeKind::kCollective:
    case NodeKind::kSend: return comm_stream;
    case NodeKind::kMemLoad:
    case NodeKind::kMemStore: return kMemoryStream;
    default: return kComputeStream;
  }
}

// Lanes of the machine. Threads are kept for nodes of a computing host; nodes that have streams
// elsewhere then get additional threads.
class Lanes {
 public:
  Lanes(const Trace& trace, TraceBuilder& builder)
      : builder_(builder), host_computes_(HostComputes(trace)), host_(builder.Intern("host")) {}

  LaneId Of(const SimNode& node, const Lane& own, int32_t comm_stream) {
    const int32_t stream = StreamOf(node.kind, comm_stream);
    Lane lane;
    if (node.on_host) {
      lane.thread = host_;
    } else if (!host_computes_) {
      lane.stream = stream;
    } else if (stream == kComputeStream) {
      lane.thread = own.thread ? own.thread : host_;
    } else {
      lane.thread = builder_.Intern(ThreadFor(stream));
    }
    return builder_.InternLane(lane);
  }

 private:
  static std::string ThreadFor(int32_t stream) {
    switch (stream) {
      case kCommStream: return "communication";
      case kMemoryStream: return "memory";
      case kFirstReceiveStream: return "receive";
      default: return fmt::format("receive {}", stream - kFirstReceiveStream + 1);
    }
  }

  TraceBuilder& builder_;
  const bool host_computes_;
  const StringId host_;
};

// Ranks whose nodes ran at the same times.
struct SameTimes {
  uint32_t simulated = 0;  // index of their result
  std::vector<int64_t> ranks;
};

uint64_t HashOfTimes(const SimRankResult& result) {
  uint64_t hash = result.begins.size();
  for (const int64_t begin : result.begins) hash = HashMix(hash, static_cast<uint64_t>(begin));
  for (const int64_t end : result.ends) hash = HashMix(hash, static_cast<uint64_t>(end));
  return hash;
}

}  // namespace

Result<Trace> SimulatedTrace(const Trace& trace, const SimProgram& program,
                             const SimRankResult& result, const Limits& limits) {
  std::vector<uint32_t> index(trace.node_count());
  for (size_t i = 0; i < program.origin.size(); ++i) {
    index[program.origin[i].index()] = static_cast<uint32_t>(i);
  }
  const std::vector<int32_t> comm_streams = CommStreams(program, result);
  TraceBuilder builder(limits, trace);
  Lanes lanes(trace, builder);
  TraceChange change;
  change.node = [&](NodeId node, NodeRow& row, std::optional<Comm>&) {
    const uint32_t at = index[node.index()];
    row.start.reset();
    row.duration.reset();
    row.exclusive.reset();
    // The builder started with the tables of `trace`.
    const Lane own = row.lane ? trace.lane(row.lane) : Lane();
    row.lane = lanes.Of(program.nodes[at], own, comm_streams[at]);
    if (result.ends[at] < 0) return;
    row.start = Nanos{result.begins[at]};
    row.duration = Nanos{result.ends[at] - result.begins[at]};
  };
  change.info = [&](TraceInfo& info) {
    info.traits.exclusive_durations = true;
    StateSimulated(builder);
  };
  return CopyTrace(trace, builder, change);
}

Result<Job> SimulatedJob(const Job& job, const SimWorkload& workload, const SimResult& result,
                         const Limits& limits) {
  Job made;
  made.mesh = job.mesh;
  made.group_kinds = job.group_kinds;
  made.routes = job.routes;
  made.facts = job.facts;
  std::vector<std::vector<size_t>> parts(job.classes.size());  // new classes by old class
  for (size_t i = 0; i < job.classes.size(); ++i) {
    const RankClass& one = job.classes[i];
    // By node times, in the order of their first ranks.
    std::vector<SameTimes> split;
    std::unordered_map<uint32_t, size_t> known;  // by result index
    std::unordered_multimap<uint64_t, size_t> by_hash;
    for (const int64_t rank : one.ranks.Ranks()) {
      const uint32_t simulated = result.class_of[static_cast<size_t>(rank)];
      const auto [at, is_new] = known.emplace(simulated, split.size());
      if (is_new) {
        const SimRankResult& times = result.ranks[simulated];
        const uint64_t hash = HashOfTimes(times);
        const auto [first, last] = by_hash.equal_range(hash);
        const auto same = std::find_if(first, last, [&](const auto& entry) {
          const SimRankResult& other = result.ranks[split[entry.second].simulated];
          return other.begins == times.begins && other.ends == times.ends;
        });
        if (same != last) {
          at->second = same->second;
        } else {
          by_hash.emplace(hash, split.size());
          split.push_back({.simulated = simulated, .ranks = {}});
        }
      }
      split[at->second].ranks.push_back(rank);
    }
    for (const auto& [simulated, ranks] : split) {
      const SimRank& self = workload.ranks[static_cast<size_t>(ranks.front())];
      ETUDE_ASSIGN_OR_RETURN(Trace program, SimulatedTrace(one.program, *self.program,
                                                           result.ranks[simulated], limits));
      parts[i].push_back(made.classes.size());
      made.classes.push_back({.ranks = RankSet::Of(ranks),
                              .program = std::move(program),
                              .groups = one.groups,
                              .states_rank = one.states_rank,
                              .peers_in_names = one.peers_in_names});
    }
  }
  for (const CommEvent& event : job.events) {
    CommEvent& copy = made.events.emplace_back(event);
    copy.parts.clear();
    for (const CommPart& part : event.parts) {
      for (const size_t rank_class : parts[part.rank_class]) {
        copy.parts.push_back(part);
        copy.parts.back().rank_class = rank_class;
      }
    }
  }
  return made;
}

}  // namespace etude
