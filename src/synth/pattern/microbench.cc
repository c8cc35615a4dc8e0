#include "src/synth/pattern/microbench.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/base/units.h"
#include "src/synth/job/work_builder.h"
#include "src/transform/astra_sim/astra_sim.h"

namespace etude {
namespace {

constexpr auto kPatterns = std::to_array<PatternInfo>({
    {Pattern::kAllReduce, "all_reduce", "collective"},
    {Pattern::kAllGather, "all_gather", "collective"},
    {Pattern::kReduceScatter, "reduce_scatter", "collective"},
    {Pattern::kAllToAll, "all_to_all", "collective"},
    {Pattern::kBroadcast, "broadcast", "from the first rank to the others"},
    {Pattern::kReduce, "reduce", "from the others to the first rank"},
    {Pattern::kGather, "gather", "from the others to the first rank"},
    {Pattern::kScatter, "scatter", "from the first rank to the others"},
    {Pattern::kBarrier, "barrier", "collective"},
    {Pattern::kRing, "ring", "each rank sends to the next one"},
    {Pattern::kPairs, "pairs", "ranks 0 and 1, 2 and 3 … exchange messages"},
    {Pattern::kCompute, "compute", "compute for --duration"},
    {Pattern::kMemLoad, "mem_load", "load --size from remote memory"},
    {Pattern::kMemStore, "mem_store", "store --size to remote memory"},
    {Pattern::kOverlap, "overlap", "compute while the previous result is all-reduced"},
});

std::optional<CollectiveType> CollectiveOf(Pattern pattern) {
  switch (pattern) {
    case Pattern::kAllReduce:
    case Pattern::kOverlap: return CollectiveType::kAllReduce;
    case Pattern::kAllGather: return CollectiveType::kAllGather;
    case Pattern::kReduceScatter: return CollectiveType::kReduceScatter;
    case Pattern::kAllToAll: return CollectiveType::kAllToAll;
    case Pattern::kBroadcast: return CollectiveType::kBroadcast;
    case Pattern::kReduce: return CollectiveType::kReduce;
    case Pattern::kGather: return CollectiveType::kGather;
    case Pattern::kScatter: return CollectiveType::kScatter;
    case Pattern::kBarrier: return CollectiveType::kBarrier;
    case Pattern::kRing:
    case Pattern::kPairs:
    case Pattern::kCompute:
    case Pattern::kMemLoad:
    case Pattern::kMemStore: return std::nullopt;
  }
  return std::nullopt;
}

bool Communicates(Pattern pattern) {
  return CollectiveOf(pattern) || pattern == Pattern::kRing || pattern == Pattern::kPairs;
}

class MicrobenchMaker {
 public:
  MicrobenchMaker(const MicrobenchOptions& options, int64_t rank) : options_(options), rank_(rank) {
    const int64_t size = options.group_size == 0 ? options.ranks : options.group_size;
    group_ = options.group_size == 0 ? 0 : rank / size + 1;
    first_ = rank / size * size;
    group_ranks_ = size;
  }

  Result<Trace> Run() {
    work_.trace().info().rank = rank_;
    work_.trace().info().world_size = options_.ranks;
    for (int64_t i = 0; i < options_.count; ++i) Add(i);
    return work_.Finish();
  }

 private:
  using Ids = std::vector<NodeId>;

  NodeId AddCollective(CollectiveType type, Bytes size, const Ids& deps) {
    const NodeId node = work_.Add(NodeKind::kCollective, Name(type), deps);
    Comm comm{.type = type, .bytes = size};
    if (group_ != 0) comm.group = work_.trace().Intern(std::to_string(group_));
    if (HasRoot(type)) comm.root = 0;
    work_.trace().SetComm(node, comm);
    return node;
  }

  NodeId AddMessage(bool sends, int64_t peer, int64_t tag, const Ids& deps) {
    const NodeId node =
        work_.Add(sends ? NodeKind::kSend : NodeKind::kRecv,
                  fmt::format("{} {}", sends ? "send to" : "recv from", peer), deps);
    work_.trace().SetComm(node, {.bytes = options_.size,
                                 .src = sends ? rank_ : peer,
                                 .dst = sends ? peer : rank_,
                                 .tag = tag});
    return node;
  }

  NodeId AddMemory(NodeKind kind, const Ids& deps) {
    const NodeId node = work_.Add(kind, kind == NodeKind::kMemLoad ? "load" : "store", deps);
    AddAstraAttr(work_.trace(), node, "tensor_size", chakra::ValueType::kUint64,
                 static_cast<uint64_t>(options_.size.count));
    return node;
  }

  // Adds repetition `i`, which waits for the previous one.
  void Add(int64_t i) {
    const int64_t ranks = options_.ranks;
    switch (options_.pattern) {
      case Pattern::kAllReduce:
      case Pattern::kAllGather:
      case Pattern::kReduceScatter:
      case Pattern::kAllToAll:
        last_ = {AddCollective(*CollectiveOf(options_.pattern), options_.size, last_)};
        return;
      case Pattern::kBarrier:
        last_ = {
            AddCollective(options_.native ? CollectiveType::kBarrier : CollectiveType::kAllReduce,
                          options_.native ? Bytes{0} : Bytes{kAstraBarrierBytes}, last_)};
        return;
      case Pattern::kBroadcast:
      case Pattern::kScatter: return AddRooted(i, /*from_root=*/true);
      case Pattern::kReduce:
      case Pattern::kGather: return AddRooted(i, /*from_root=*/false);
      case Pattern::kRing: {
        const Ids before = last_;
        last_ = {AddMessage(true, (rank_ + 1) % ranks, i, before),
                 AddMessage(false, (rank_ + ranks - 1) % ranks, i, before)};
        return;
      }
      case Pattern::kPairs: {
        const int64_t peer = rank_ ^ 1;
        if (peer >= ranks) return;
        const bool begins = rank_ < peer;
        last_ = {AddMessage(begins, peer, 2 * i, last_)};
        last_ = {AddMessage(!begins, peer, 2 * i + 1, last_)};
        return;
      }
      case Pattern::kCompute:
        last_ = {work_.Add(NodeKind::kCompute, "compute", last_, options_.duration)};
        return;
      case Pattern::kMemLoad: last_ = {AddMemory(NodeKind::kMemLoad, last_)}; return;
      case Pattern::kMemStore: last_ = {AddMemory(NodeKind::kMemStore, last_)}; return;
      case Pattern::kOverlap: {
        const Ids compute = {work_.Add(NodeKind::kCompute, "compute", last_, options_.duration)};
        reduced_.push_back(compute.front());
        reduced_ = {AddCollective(CollectiveType::kAllReduce, options_.size, reduced_)};
        last_ = compute;
        return;
      }
    }
  }

  // Adds a message between the first rank of the group and each other one.
  void AddRooted(int64_t i, bool from_root) {
    if (options_.native) {
      last_ = {AddCollective(*CollectiveOf(options_.pattern), options_.size, last_)};
      return;
    }
    if (rank_ != first_) {
      last_ = {AddMessage(!from_root, first_, i, last_)};
      return;
    }
    Ids all;
    for (int64_t peer = first_ + 1; peer < first_ + group_ranks_; ++peer) {
      all.push_back(AddMessage(from_root, peer, i, last_));
    }
    // A single node that all nodes of the next repetition wait for: dependencies stay linear in
    // ranks.
    last_ = {work_.Add(NodeKind::kCompute, "all there", all, Nanos{})};
  }

  const MicrobenchOptions& options_;
  const int64_t rank_;
  int64_t group_ = 0;  // number; 0: all ranks
  int64_t first_ = 0;  // first rank of the group
  int64_t group_ranks_ = 0;
  WorkBuilder work_;
  Ids last_;     // dependencies of the next repetition
  Ids reduced_;  // of kOverlap: the last all-reduce
};

}  // namespace

std::span<const PatternInfo> Patterns() { return kPatterns; }

Status CheckMicrobench(const MicrobenchOptions& options) {
  const auto fails = [](std::string message) -> Status {
    return MakeError(ErrorCode::kUsage, std::move(message));
  };
  const bool collective = CollectiveOf(options.pattern).has_value();
  const bool as_recorded = collective && options.native;  // even if ASTRA-sim does not support it
  if (Communicates(options.pattern) && options.ranks < 2 && !as_recorded) {
    return fails(collective ? "--ranks: expected two or more, because ASTRA-sim never ends with "
                              "one (--native allows one)"
                            : "--ranks: expected two or more, a sender and a receiver");
  }
  if (options.group_size != 0) {
    if (!collective) return fails("--group-size: this pattern has no collectives");
    if (options.group_size < 2 || options.ranks % options.group_size != 0) {
      return fails(fmt::format("--group-size {}: expected 2 or more, and a divisor of {} ranks",
                               options.group_size, options.ranks));
    }
  }
  const bool sized = options.pattern != Pattern::kCompute && options.pattern != Pattern::kBarrier;
  if (sized && options.size.count < 1 && !as_recorded) {
    return fails(collective ? "--size: expected 1 byte or more, because ASTRA-sim replaces 0 by "
                              "another size (--native allows 0)"
                            : "--size: expected 1 byte or more");
  }
  if (options.pattern == Pattern::kAllGather && options.size.count < kAstraLeastGather &&
      !as_recorded) {
    return fails(
        fmt::format("--size: expected {} bytes or more for all_gather, because ASTRA-sim never "
                    "ends with less (--native allows less)",
                    kAstraLeastGather));
  }
  if (options.duration.count % kNanosPerMicro != 0 || options.duration.count < kNanosPerMicro) {
    return fails("--duration: expected a whole number of microseconds, 1us or more, as in Chakra");
  }
  return {};
}

Result<Trace> MakeMicrobench(const MicrobenchOptions& options, int64_t rank) {
  return MicrobenchMaker(options, rank).Run();
}

std::map<int64_t, std::vector<int64_t>> MicrobenchGroups(const MicrobenchOptions& options) {
  std::map<int64_t, std::vector<int64_t>> groups;
  if (options.group_size == 0) return groups;
  for (int64_t first = 0; first < options.ranks; first += options.group_size) {
    std::vector<int64_t> ranks(static_cast<size_t>(options.group_size));
    std::iota(ranks.begin(), ranks.end(), first);
    groups.emplace(first / options.group_size + 1, std::move(ranks));
  }
  return groups;
}

}  // namespace etude
