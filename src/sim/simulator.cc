#include "src/sim/simulator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "src/base/ceil_div.h"
#include "src/sim/event_queue.h"
#include "src/sim/rank_classes.h"
#include "src/sim/travel.h"

namespace etude {
namespace {

using Index = uint32_t;
constexpr Index kNone = UINT32_MAX;

constexpr int64_t kTagSpace = 500'000'000;
constexpr int64_t kRendezvousTag = 1'000'000'000;
constexpr int64_t kRendezvousBytes = 8192;
constexpr int64_t kGroupStreams = int64_t{1} << 32;
constexpr int64_t kLongest = int64_t{1} << 57;    // of anything, ns
constexpr int64_t kEndOfTime = int64_t{1} << 61;  // of a simulation, ns
constexpr int64_t kGroupDelay = 10;               // at the ends of messages in groups, ns

enum class EventKind : uint8_t { kLocal, kArrival, kLinkFree, kReceived };
struct Event {
  EventKind kind = EventKind::kLocal;
  Index subject = 0;    // rank, message, link, receiver
  int64_t planned = 0;  // when
};

// What a rank does at a tick, after what it has planned for it before.
enum class LocalKind : uint8_t { kNodeDone, kHandled, kReduced, kStreamless, kWake, kCustomDone };
struct Local {
  LocalKind kind = LocalKind::kNodeDone;
  bool reduces = false;
  Index subject = 0;  // node, or stream
  Index node = 0;     // of a stream's program
  int64_t bytes = 0;
};

// Who is told that a message is there.
struct Receiver {
  enum class Kind : uint8_t {
    kNobody,
    kNode,
    kStream,
    kCustom,
    kPostReceive,
    kSend
  } kind = Kind::kNobody;
  Index rank = 0;
  Index subject = 0;  // node or stream; message for kPostReceive and kSend
  Index node = 0;     // of a stream's program
};

// Ranks are numbers of classes but for `from` and `to`: where they are.
struct Message {
  int64_t bytes = 0;
  int64_t tag = 0;
  int64_t ordinal = 0;
  Index source = 0;
  Index target = 0;
  int64_t from = 0;
  int64_t to = 0;
  Receiver sender;    // told at the arrival, too
  Receiver receiver;  // of what is held back by a rendezvous
  int64_t at = 0;     // device that it has come to
};

// The ring, tree or exchange that a phase of a collective uses.
struct Members {
  const std::vector<int64_t>* listed = nullptr;  // nullptr: base, base + stride …
  int64_t base = 0;
  int64_t stride = 1;
  int64_t count = 1;
  int64_t me = 0;  // index

  int64_t RankAt(int64_t index) const {
    if (listed != nullptr) return (*listed)[static_cast<size_t>(index)];
    return base + index * stride;
  }
};

struct Phase {
  CollectiveType type = CollectiveType::kUnknown;
  AlgorithmChoice choice;
  size_t dim = 0;
  bool in_group = false;
  int64_t bytes = 0;
  Members members;
  Index queue = 0;
  bool backward = false;  // around the ring
};

struct Packet {
  int64_t target = 0;
  int64_t source = 0;
  int64_t bytes = 0;
};

enum class TreeRole : uint8_t { kLeaf, kInner, kRoot };

struct Stream {
  Index rank = 0;
  Index node = 0;  // of the program
  Index data_set = 0;
  int64_t tag = 0;
  int64_t priority = 0;
  std::vector<Phase> phases;
  Index phase = 0;  // the number of those begun
  int64_t exchanges = 0;

  // Of the algorithm that runs.
  std::vector<Packet> packets;
  size_t first_packet = 0;
  int64_t bytes = 0;  // of the next message
  int64_t left = 0;   // messages to send
  int64_t free = 0;
  int64_t zero = 0;
  int64_t nonzero = 0;
  int64_t parallel = 1;
  int64_t reductions = 0;
  int64_t received = 0;
  bool toggle = false;
  int64_t target = 0;  // indices of members
  int64_t source = 0;
  double offset = 1;  // halving and doubling
  double multiplier = 2;
  TreeRole role = TreeRole::kLeaf;
  int step = 0;
  int64_t parent = -1;
  int64_t child[2] = {-1, -1};
  const SimRank* custom = nullptr;  // instead of an algorithm
  std::vector<uint32_t> waits;
  size_t nodes_left = 0;
};

struct StreamRef {
  int64_t priority = 0;
  uint64_t order = 0;
  Index stream = 0;

  friend bool operator<(const StreamRef& a, const StreamRef& b) {
    return a.priority != b.priority ? a.priority < b.priority : a.order > b.order;
  }
};

struct StreamQueue {
  std::priority_queue<StreamRef> waiting;
  int64_t running = 0;
};

enum Slot : size_t { kHostSlot, kDeviceSlot, kCommSlot, kNoSlot, kSlots };

// Instants at which something of a kind ran.
class Busy {
 public:
  void Add(int64_t begin, int64_t end) { spans_.emplace_back(begin, end); }
  int64_t Total() {
    std::ranges::sort(spans_);
    int64_t total = 0;
    int64_t until = INT64_MIN;
    for (const auto& [begin, end] : spans_) {
      if (end <= until) continue;
      total += end - std::max(begin, until);
      until = end;
    }
    return total;
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> spans_;
};

// What has come to a rank at one time and was planned at one time: from where. Where classes of
// ranks are simulated, the order of what comes from several is not known, unless all of it is for
// one stream, which takes it in any order.
struct Coincidence {
  int64_t planned = 0;
  Index source = 0;
  int64_t to = 0;
  Index stream = kNone;
  bool one_source = true;
  bool one_stream = true;
};

struct Rank {
  int64_t place = 0;  // the rank itself
  const SimRank* self = nullptr;
  const SimProgram* program = nullptr;
  std::vector<uint32_t> waits;
  std::array<std::priority_queue<Index, std::vector<Index>, std::greater<>>, kSlots> ready;
  std::array<bool, kSlots> taken{};
  size_t left = 0;       // nodes
  size_t in_flight = 0;  // of them
  bool issuing = false;
  std::vector<Index> freed;  // by nodes that do nothing: for the next time that nodes are issued

  struct Tick {
    int64_t time = 0;
    std::deque<Local> locals;
  };
  std::vector<Tick> ticks;
  int64_t touched = -1;  // time
  std::vector<Coincidence> coincidences;

  int64_t next_stream = 0;
  std::vector<int64_t> next_of_group;  // by number of its groups
  int64_t next_priority = 0;
  uint64_t next_order = 0;
  std::vector<StreamQueue> queues;
  std::vector<Index> next_queue;       // by dimension
  std::vector<Index> next_up_queue;    // by dimension: of reduce-scatters and all-reduces
  std::vector<Index> next_down_queue;  // of all-gathers behind them
  std::vector<bool> next_tree;         // by dimension

  SimRankResult result;
  std::array<Busy, 4> busy;  // host, device, communication, memory
};

struct MatchKey {
  int64_t tag = 0;
  int64_t bytes = 0;
  int64_t ordinal = 0;  // of classes, whose members are not told apart by source and target
  Index source = 0;
  Index target = 0;

  friend bool operator==(const MatchKey&, const MatchKey&) = default;
};
struct MatchHash {
  size_t operator()(const MatchKey& key) const {
    uint64_t hash = static_cast<uint64_t>(key.tag) * 0x9E3779B97F4A7C15ull;
    hash += static_cast<uint64_t>(key.ordinal) << 40;
    hash ^= (uint64_t{key.source} << 32 | key.target) + (hash >> 29);
    hash *= 0xBF58476D1CE4E5B9ull;
    hash ^= static_cast<uint64_t>(key.bytes) + (hash >> 32);
    hash *= 0x94D049BB133111EBull;
    return hash ^ (hash >> 31);
  }
};
struct Match {
  uint64_t arrived = 0;  // that nobody has asked for
  std::deque<Receiver> waiting;
};

class Engine {
 public:
  Engine(const SimMachine& machine, const SimWorkload& workload, const RankClasses& classes)
      : machine_(machine),
        system_(machine.system),
        groups_(workload.groups),
        classes_(classes),
        by_class_(!classes.is_trivial()),
        travel_(machine),
        total_(travel_.total()) {
    ranks_.resize(classes.first.size());
    for (size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = ranks_[i];
      rank.place = classes.first[i];
      rank.self = &workload.ranks[static_cast<size_t>(rank.place)];
      rank.program = rank.self->program.get();
      rank.next_of_group.resize(rank.self->groups.size());
      rank.waits = rank.program->waits;
      rank.left = rank.program->nodes.size();
      rank.result.begins.assign(rank.left, -1);
      rank.result.ends.assign(rank.left, -1);
      const size_t dims = machine_.dims.size();
      rank.queues.resize(dims * static_cast<size_t>(system_.queues));
      rank.next_queue.resize(dims);
      rank.next_up_queue.resize(dims);
      rank.next_down_queue.resize(dims);
      rank.next_tree.resize(dims);
    }
    most_running_ = CeilDiv(system_.active_chunks, system_.queues);
  }

  Result<SimResult> Run() {
    if (machine_.congestion) MakeLinks();
    for (Index i = 0; i < ranks_.size(); ++i) {
      Rank& rank = ranks_[i];
      for (Index node = 0; node < rank.waits.size(); ++node) {
        if (rank.waits[node] == 0) MakeReady(rank, node);
      }
    }
    for (Index i = 0; i < ranks_.size() && !failed_; ++i) IssueReady(i);
    while (!events_.empty() && !failed_ && !ambiguous_) {
      const Event event = events_.Take();
      if (now() > kEndOfTime) {
        failed_ = Error{ErrorCode::kBadInput, "found work that takes more than 70 years"};
        break;
      }
      switch (event.kind) {
        case EventKind::kLocal:
          Touch(event.subject, event.planned);
          RunTick(event.subject);
          break;
        case EventKind::kArrival: Arrive(event); break;
        case EventKind::kLinkFree: FreeLink(event.subject); break;
        case EventKind::kReceived: {
          const Receiver receiver = received_[event.subject];
          free_received_.push_back(event.subject);
          Touch(receiver.rank, event.planned);
          Tell(receiver);
          break;
        }
      }
    }
    if (failed_) return tl::unexpected<Error>(*failed_);
    SimResult result;
    result.class_of = classes_.class_of;
    result.events = events_.count();
    result.messages = messages_sent_;
    for (const auto& [key, match] : matches_) result.unreceived += match.arrived;
    for (Rank& rank : ranks_) {
      SimRankResult& one = rank.result;
      one.finished = rank.left == 0;
      for (const int64_t end : one.ends) one.wall = std::max(one.wall, end);
      one.host = rank.busy[0].Total();
      one.device = rank.busy[1].Total();
      one.comm = rank.busy[2].Total();
      one.memory = rank.busy[3].Total();
      result.ranks.push_back(std::move(one));
    }
    return result;
  }

  // Whether classes of ranks were not enough to know what happens.
  bool ambiguous() const { return ambiguous_; }

 private:
  int64_t now() const { return events_.now(); }
  Index ClassOf(int64_t rank) const { return classes_.class_of[static_cast<size_t>(rank)]; }
  void Plan(int64_t time, EventKind kind, Index subject) {
    events_.Plan(time, {.kind = kind, .subject = subject, .planned = now()});
  }

  // Something comes to a rank that it has planned itself, or that was sent to `to` by `source`, for
  // `stream` or kNone.
  void Touch(Index at, int64_t planned, Index source = kNone, int64_t to = -1,
             Index stream = kNone) {
    if (!by_class_) return;
    Rank& rank = ranks_[at];
    if (rank.touched != now()) {
      rank.touched = now();
      rank.coincidences.clear();
    }
    for (Coincidence& other : rank.coincidences) {
      if (other.planned != planned) continue;
      other.one_source = other.one_source && other.source == source && other.to == to;
      other.one_stream = other.one_stream && stream != kNone && other.stream == stream;
      ambiguous_ = ambiguous_ || (!other.one_source && !other.one_stream);
      return;
    }
    rank.coincidences.push_back({.planned = planned, .source = source, .to = to, .stream = stream});
  }

  void Fail(Index rank, Index node, std::string_view what) {
    if (failed_) return;
    const uint64_t id = ranks_[rank].program->source_ids[node];
    failed_ = Error{ErrorCode::kBadInput,
                    fmt::format("rank {}: node {}: {}", ranks_[rank].place, id, what)};
  }

  // ---- what a rank does by itself

  void PlanLocal(Index at, int64_t delay, const Local& local) {
    Rank& rank = ranks_[at];
    const int64_t time = now() + std::min(delay, kLongest);
    for (Rank::Tick& tick : rank.ticks) {
      if (tick.time != time) continue;
      tick.locals.push_back(local);
      return;
    }
    rank.ticks.push_back({.time = time, .locals = {local}});
    Plan(time, EventKind::kLocal, at);
  }
  void RunTick(Index at) {
    Rank& rank = ranks_[at];
    const auto find = [&] { return std::ranges::find(rank.ticks, now(), &Rank::Tick::time); };
    // What it does may add to this tick, and make others.
    for (auto tick = find(); !tick->locals.empty(); tick = find()) {
      const Local local = tick->locals.front();
      tick->locals.pop_front();
      switch (local.kind) {
        case LocalKind::kNodeDone: Complete(at, local.subject); break;
        case LocalKind::kHandled: Handled(local); break;
        case LocalKind::kReduced: Step(local.subject); break;
        case LocalKind::kStreamless: FinishStream(local.subject); break;
        case LocalKind::kWake: IssueReady(at); break;
        case LocalKind::kCustomDone: CompleteCustom(local.subject, local.node); break;
      }
    }
    rank.ticks.erase(find());
  }

  // ---- programs

  static Slot SlotOf(const SimNode& node) {
    if (node.kind == NodeKind::kRecv) return kNoSlot;
    if (node.on_host) return kHostSlot;
    return node.kind == NodeKind::kCompute ? kDeviceSlot : kCommSlot;
  }
  void MakeReady(Rank& rank, Index node) {
    rank.ready[SlotOf(rank.program->nodes[node])].push(node);
  }

  // Those that are ready now, by number, as far as there is room for them.
  void IssueReady(Index at) {
    Rank& rank = ranks_[at];
    if (rank.issuing) return;
    rank.issuing = true;
    while (!failed_) {
      Index best = kNone;
      for (size_t slot = 0; slot < kSlots; ++slot) {
        if (rank.ready[slot].empty() || (slot != kNoSlot && rank.taken[slot])) continue;
        best = std::min(best, rank.ready[slot].top());
      }
      if (best == kNone) break;
      Issue(at, best);
    }
    rank.issuing = false;
    if (rank.freed.empty()) return;
    for (const Index node : rank.freed) MakeReady(rank, node);
    rank.freed.clear();
    // Where nothing else is to come, ASTRA-sim ends here.
    if (rank.in_flight == 0) PlanLocal(at, 0, {.kind = LocalKind::kWake});
  }
  // A node without work frees those that wait for it, which are not issued before the rank's next
  // completion.
  void Skip(Rank& rank, Index index) {
    rank.taken[SlotOf(rank.program->nodes[index])] = false;
    rank.result.ends[index] = now();
    --rank.in_flight;
    --rank.left;
    for (const Index child : rank.program->children[index]) {
      if (--rank.waits[child] == 0) rank.freed.push_back(child);
    }
  }

  void Issue(Index at, Index index) {
    Rank& rank = ranks_[at];
    const SimNode& node = rank.program->nodes[index];
    const Slot slot = SlotOf(node);
    rank.ready[slot].pop();
    rank.taken[slot] = true;
    rank.result.begins[index] = now();
    ++rank.in_flight;
    const auto wait = [&](int64_t time) {
      PlanLocal(at, time, {.kind = LocalKind::kNodeDone, .subject = index});
    };
    const int64_t recorded = node.duration > 0 ? node.duration : 1;
    const int64_t peer = rank.self->PeerOf(node);
    if (system_.replay_only) return wait(recorded);
    switch (node.kind) {
      case NodeKind::kMemLoad:
      case NodeKind::kMemStore: return wait(MemoryTime(at, index, node));
      case NodeKind::kCollective: return Collective(at, index, node);
      case NodeKind::kSend:
        if (peer < 0 || peer >= total_) return Fail(at, index, "found no such receiver");
        return Send({.bytes = node.bytes,
                     .tag = node.tag % kTagSpace,
                     .ordinal = by_class_ ? classes_.partners[at][node.peer].there : 0,
                     .source = at,
                     .target = ClassOf(peer),
                     .from = rank.place,
                     .to = peer,
                     .sender = {.kind = Receiver::Kind::kNode, .rank = at, .subject = index}});
      case NodeKind::kRecv:
        if (peer < 0 || peer >= total_) return Fail(at, index, "found no such sender");
        return Receive({.kind = Receiver::Kind::kNode, .rank = at, .subject = index},
                       {.tag = node.tag % kTagSpace,
                        .bytes = node.bytes,
                        .ordinal = by_class_ ? classes_.partners[at][node.peer].here : 0,
                        .source = ClassOf(peer),
                        .target = at},
                       peer);
      case NodeKind::kMetadata:
      case NodeKind::kUnknown: return Skip(rank, index);
      default: break;
    }
    if (!system_.roofline || node.on_host) return wait(recorded);
    if (node.bytes == 0) return Skip(rank, index);
    if (node.flops == 0) {  // ASTRA-sim divides 0 by 0
      return wait(
          WholeNanos(static_cast<double>(node.bytes) / (system_.memory_bandwidth * 1e9) * 1e9));
    }
    const double intensity = static_cast<double>(node.flops) / static_cast<double>(node.bytes);
    const double rate = std::min(system_.memory_bandwidth * 1e9 * intensity, system_.peak * 1e12);
    wait(WholeNanos(static_cast<double>(node.flops) / rate * 1e9));
  }

  void Complete(Index at, Index index) {
    Rank& rank = ranks_[at];
    const SimNode& node = rank.program->nodes[index];
    rank.taken[SlotOf(node)] = false;
    rank.result.ends[index] = now();
    const int64_t begin = rank.result.begins[index];
    size_t kind = 2;
    if (node.kind == NodeKind::kMemLoad || node.kind == NodeKind::kMemStore) kind = 3;
    if (node.kind == NodeKind::kCompute) kind = node.on_host ? 0 : 1;
    if (node.kind != NodeKind::kMetadata && node.kind != NodeKind::kUnknown) {
      rank.busy[kind].Add(begin, now());
    }
    if (!node.on_host && (node.kind == NodeKind::kCompute || system_.replay_only)) {
      rank.result.computed += now() - begin;
    }
    --rank.in_flight;
    --rank.left;
    rank.result.end = now();
    for (const Index child : rank.program->children[index]) {
      if (--rank.waits[child] == 0) MakeReady(rank, child);
    }
    IssueReady(at);
  }

  int64_t MemoryTime(Index at, Index index, const SimNode& node) {
    const RemoteMemory& memory = machine_.memory;
    const int64_t time =
        memory.latency + WholeNanos(static_cast<double>(node.bytes) / memory.bandwidth);
    int64_t queue = -1;
    switch (memory.kind) {
      case RemoteMemoryKind::kNone: Fail(at, index, "found no remote memory"); return 0;
      case RemoteMemoryKind::kPerNpu: return time;
      case RemoteMemoryKind::kPerNode: queue = ranks_[at].place / memory.npus_per_node; break;
      case RemoteMemoryKind::kPool: queue = 0; break;
    }
    int64_t& free_at = memory_free_[queue];
    free_at = std::max(free_at, now()) + time;
    return free_at - now();
  }

  // ---- messages

  void Send(Message message) {
    if (system_.rendezvous) {
      // It starts when the receiver has said that it waits.
      held_.push_back(message);
      Receive({.kind = Receiver::Kind::kSend,
               .rank = message.source,
               .subject = static_cast<Index>(held_.size() - 1)},
              {.tag = message.tag + kRendezvousTag,
               .bytes = kRendezvousBytes,
               .ordinal = message.ordinal,
               .source = message.target,
               .target = message.source},
              message.to, /*plain=*/true);
      return;
    }
    SendNow(message);
  }
  void SendNow(const Message& message) {
    ++messages_sent_;
    Index id = 0;
    if (free_messages_.empty()) {
      id = static_cast<Index>(messages_.size());
      messages_.push_back(message);
    } else {
      id = free_messages_.back();
      free_messages_.pop_back();
      messages_[id] = message;
    }
    messages_[id].at = message.from;
    if (machine_.congestion && message.from != message.to) return EnterLink(id);
    const int64_t time = travel_.Time(travel_.WayOf(message.from, message.to), message.bytes);
    Plan(now() + time, EventKind::kArrival, id);
  }
  // `from`: the rank itself.
  void Receive(const Receiver& receiver, const MatchKey& key, int64_t from, bool plain = false) {
    if (system_.rendezvous && !plain) {
      // The control message tells the sender; at its arrival the receive is posted.
      posted_.emplace_back(receiver, key);
      SendNow({.bytes = kRendezvousBytes,
               .tag = key.tag + kRendezvousTag,
               .ordinal = key.ordinal,
               .source = key.target,
               .target = key.source,
               .from = ranks_[key.target].place,
               .to = from,
               .sender = {.kind = Receiver::Kind::kPostReceive,
                          .rank = key.target,
                          .subject = static_cast<Index>(posted_.size() - 1)}});
      return;
    }
    Match& match = matches_[key];
    if (match.arrived == 0) {
      match.waiting.push_back(receiver);
      return;
    }
    if (--match.arrived == 0 && match.waiting.empty()) matches_.erase(key);
    Index id = 0;
    if (free_received_.empty()) {
      id = static_cast<Index>(received_.size());
      received_.push_back(receiver);
    } else {
      id = free_received_.back();
      free_received_.pop_back();
      received_[id] = receiver;
    }
    Plan(now(), EventKind::kReceived, id);
  }
  void Tell(const Receiver& receiver) {
    switch (receiver.kind) {
      case Receiver::Kind::kNobody: break;
      case Receiver::Kind::kNode: Complete(receiver.rank, receiver.subject); break;
      case Receiver::Kind::kStream: MessageCame(receiver.subject); break;
      case Receiver::Kind::kCustom: CompleteCustom(receiver.subject, receiver.node); break;
      case Receiver::Kind::kSend: SendNow(held_[receiver.subject]); break;
      case Receiver::Kind::kPostReceive: {
        const auto [who, key] = posted_[receiver.subject];
        Receive(who, key, -1, /*plain=*/true);
        break;
      }
    }
  }
  void Arrive(const Event& event) {
    const Index id = event.subject;
    if (machine_.congestion && messages_[id].from != messages_[id].to && !MoveOn(id)) return;
    const Message message = messages_[id];
    free_messages_.push_back(id);
    const MatchKey key{.tag = message.tag,
                       .bytes = message.bytes,
                       .ordinal = message.ordinal,
                       .source = message.source,
                       .target = message.target};
    if (message.sender.kind != Receiver::Kind::kNobody) {
      Touch(message.source, event.planned);
      Tell(message.sender);
    }
    Match& match = matches_[key];
    if (by_class_) {
      const bool waits = !match.waiting.empty();
      const bool is_stream = waits && match.waiting.front().kind == Receiver::Kind::kStream;
      Touch(message.target, event.planned, message.source, message.to,
            is_stream ? match.waiting.front().subject : kNone);
    }
    if (match.waiting.empty()) {
      ++match.arrived;
      return;
    }
    const Receiver receiver = match.waiting.front();
    match.waiting.pop_front();
    if (match.waiting.empty() && match.arrived == 0) matches_.erase(key);
    Tell(receiver);
  }

  // ---- links of a congested network: one dimension, whole messages one after the other

  struct Link {
    bool busy = false;
    std::deque<Index> waiting;
  };
  void MakeLinks() {
    const auto npus = static_cast<size_t>(total_);
    switch (machine_.dims[0].shape) {
      case NetworkShape::kRing: links_.resize(2 * npus); break;
      case NetworkShape::kSwitch: links_.resize(2 * npus); break;
      case NetworkShape::kFullyConnected: links_.resize(npus * npus); break;
    }
  }
  // The link from where the message is, and the device at its other end. The switch is `total_`.
  std::pair<Index, int64_t> NextLink(const Message& message) const {
    switch (machine_.dims[0].shape) {
      case NetworkShape::kFullyConnected:
        return {static_cast<Index>(message.from * total_ + message.to), message.to};
      case NetworkShape::kSwitch:
        if (message.at == total_) return {static_cast<Index>(total_ + message.to), message.to};
        return {static_cast<Index>(message.from), total_};
      case NetworkShape::kRing: break;
    }
    const int64_t ahead = (message.to + total_ - message.from) % total_;
    if (ahead <= total_ - ahead) {
      return {static_cast<Index>(message.at), (message.at + 1) % total_};
    }
    return {static_cast<Index>(total_ + message.at), (message.at + total_ - 1) % total_};
  }
  void EnterLink(Index id) {
    Link& link = links_[NextLink(messages_[id]).first];
    if (link.busy) {
      link.waiting.push_back(id);
    } else {
      UseLink(id);
    }
  }
  void UseLink(Index id) {
    Message& message = messages_[id];
    const auto [link, next] = NextLink(message);
    links_[link].busy = true;
    message.at = next;
    const double load = static_cast<double>(message.bytes) / travel_.BytesPerNano(0);
    Plan(now() + WholeNanos(machine_.dims[0].latency + load), EventKind::kArrival, id);
    Plan(now() + WholeNanos(load), EventKind::kLinkFree, link);
  }
  void FreeLink(Index index) {
    Link& link = links_[index];
    link.busy = false;
    if (link.waiting.empty()) return;
    const Index id = link.waiting.front();
    link.waiting.pop_front();
    UseLink(id);
  }
  // True: it is where it should come to.
  bool MoveOn(Index id) {
    if (messages_[id].at == messages_[id].to) return true;
    EnterLink(id);
    return false;
  }

  // ---- collectives

  struct DataSet {
    Index rank = 0;
    Index node = 0;
    int64_t left = 0;  // streams
  };

  AlgorithmChoice ChoiceOf(CollectiveType type, size_t dim) const {
    const auto found = system_.algorithms.find(type);
    if (found == system_.algorithms.end() || dim >= found->second.size()) return {};
    return found->second[dim];
  }
  size_t ImplementedDims(CollectiveType type) const {
    const auto found = system_.algorithms.find(type);
    return found == system_.algorithms.end() ? 0 : found->second.size();
  }

  void Collective(Index at, Index index, const SimNode& node) {
    Rank& rank = ranks_[at];
    switch (node.collective) {
      case CollectiveType::kAllReduce:
      case CollectiveType::kAllGather:
      case CollectiveType::kAllToAll:
      case CollectiveType::kReduceScatter: break;
      case CollectiveType::kBroadcast:
        PlanLocal(at, node.duration > 0 ? node.duration : 1,
                  {.kind = LocalKind::kNodeDone, .subject = index});
        return;
      default:
        return Fail(at, index,
                    fmt::format("found {}, expected all_reduce, all_gather, reduce_scatter, "
                                "all_to_all or broadcast",
                                Name(node.collective)));
    }
    if (node.bytes < 0) return Fail(at, index, "found fewer than 0 bytes");
    if (ImplementedDims(node.collective) == 0 && !system_.programs.contains(node.collective)) {
      return Fail(at, index,
                  fmt::format("found no algorithm for {} in the system", Name(node.collective)));
    }
    const std::vector<int64_t>* group = nullptr;
    const int64_t number = rank.self->GroupOf(node);
    if (number != 0) {
      const auto found = groups_.find(number);
      if (found == groups_.end()) {
        return Fail(at, index, fmt::format("found group {}, which is not known", number));
      }
      if (static_cast<int64_t>(found->second.size()) != total_) group = &found->second;
    }
    const int64_t members = group == nullptr ? total_ : static_cast<int64_t>(group->size());
    int64_t size = node.bytes;
    int64_t chunk = size / system_.splits;
    if (node.collective != CollectiveType::kAllGather && chunk < members) {
      chunk = members;
      size = system_.splits * chunk;
    }
    if (chunk < 1) chunk = 1;  // where ASTRA-sim does not end
    const auto custom = system_.programs.find(node.collective);
    const bool is_custom = custom != system_.programs.end();
    const int64_t streams = is_custom ? 1 : std::max<int64_t>(1, CeilDiv(size, chunk));
    const auto set = static_cast<Index>(data_sets_.size());
    data_sets_.push_back({.rank = at, .node = index, .left = streams});
    int64_t priority = node.priority;
    if (system_.order == StreamOrder::kLifo) priority = rank.next_priority++;
    if (system_.order == StreamOrder::kFifo) priority = rank.next_priority--;
    for (int64_t i = 0; i < streams; ++i) {
      const Index id = NewStream();
      Stream& stream = streams_[id];
      stream.rank = at;
      stream.node = index;
      stream.data_set = set;
      stream.priority = priority;
      stream.phase = 0;
      stream.exchanges = 0;
      stream.custom = nullptr;
      if (is_custom) {
        const auto place =
            group == nullptr
                ? static_cast<size_t>(rank.place)
                : static_cast<size_t>(std::ranges::find(*group, rank.place) - group->begin());
        if (place >= custom->second.size()) {
          return Fail(at, index, "found no program of the collective for this rank");
        }
        stream.custom = &custom->second[place];
        stream.phases = {{.type = node.collective, .bytes = size}};
      } else if (group == nullptr) {
        stream.tag = rank.next_stream++;
        MakePhases(rank, node, chunk, stream);
      } else {
        stream.tag = classes_.kind_of_group.at(number) * kGroupStreams +
                     rank.next_of_group[node.group - 1]++;
        MakeGroupPhase(rank, at, node, chunk, *group, stream);
      }
      stream.tag += kTagSpace;
      for (const Phase& phase : stream.phases) {
        if (phase.choice.algorithm == CollectiveAlgorithm::kDoubleBinaryTree &&
            phase.type != CollectiveType::kAllReduce) {
          return Fail(at, index, "found doubleBinaryTree, which is for all-reduces");
        }
        if (FitsMembers(phase)) continue;
        return Fail(at, index,
                    fmt::format("found {} ranks, expected a power of two for its algorithm",
                                phase.members.count));
      }
      if (stream.phases.empty()) {
        PlanLocal(at, 0, {.kind = LocalKind::kStreamless, .subject = id});
      } else {
        NextPhase(id);
      }
    }
  }

  Index QueueOf(Rank& rank, size_t dim, CollectiveType type, bool aware, bool& backward) const {
    const auto queues = static_cast<Index>(system_.queues);
    const Index first = static_cast<Index>(dim) * queues;
    if (!aware) {
      Index& next = rank.next_queue[dim];
      const Index queue = next;
      next = (next + 1) % queues;
      backward = queues > 1 && queue >= queues / 2;
      return first + queue;
    }
    const Index half = std::max<Index>(1, queues / 2);
    if (type != CollectiveType::kAllGather) {
      Index& next = rank.next_up_queue[dim];
      const Index queue = next;
      next = (next + 1) % half;
      backward = false;
      return first + queue;
    }
    Index& next = rank.next_down_queue[dim];
    const Index begin = queues > 1 ? queues / 2 : 0;
    const Index queue = begin + next;
    next = (next + 1) % (queues - begin);
    backward = true;
    return first + queue;
  }

  static int64_t DataAfter(CollectiveType type, int64_t bytes, int64_t members) {
    if (type == CollectiveType::kAllGather) return bytes * members;
    if (type == CollectiveType::kReduceScatter) return bytes / members;
    return bytes;
  }

  void MakePhases(Rank& rank, const SimNode& node, int64_t chunk, Stream& stream) {
    stream.phases.clear();
    const CollectiveType type = node.collective;
    std::vector<size_t> dims;
    for (size_t i = 0; i < std::min(machine_.dims.size(), ImplementedDims(type)); ++i) {
      if (machine_.dims[i].npus > 1 && ((node.dims >> i) & 1) != 0) dims.push_back(i);
    }
    int64_t bytes = chunk;
    const auto add = [&](CollectiveType part, size_t dim, bool aware) {
      Phase phase{.type = part, .choice = ChoiceOf(type, dim), .dim = dim, .bytes = bytes};
      const int64_t me = travel_.Coordinate(rank.place, dim);
      phase.members = {.base = rank.place - me * travel_.Stride(dim),
                       .stride = travel_.Stride(dim),
                       .count = machine_.dims[dim].npus,
                       .me = me};
      phase.queue = QueueOf(rank, dim, part, aware, phase.backward);
      bytes = DataAfter(part, bytes, phase.members.count);
      stream.phases.push_back(phase);
    };
    const bool aware = type == CollectiveType::kAllReduce && system_.bandwidth_aware;
    if (const AlgorithmChoice choice = ChoiceOf(type, 0); choice.whole && !dims.empty()) {
      Phase phase{.type = type, .choice = choice, .bytes = bytes};
      phase.members = {.count = total_, .me = rank.place};
      phase.queue = QueueOf(rank, 0, type, aware, phase.backward);
      stream.phases.push_back(phase);
      return;
    }
    if (aware && !dims.empty()) {
      for (size_t i = 0; i + 1 < dims.size(); ++i) {
        add(CollectiveType::kReduceScatter, dims[i], true);
      }
      add(CollectiveType::kAllReduce, dims.back(), true);
      for (size_t i = dims.size() - 1; i-- > 0;) add(CollectiveType::kAllGather, dims[i], true);
      return;
    }
    if (type == CollectiveType::kAllGather) std::ranges::reverse(dims);
    for (const size_t dim : dims) add(type, dim, false);
  }

  void MakeGroupPhase(Rank& rank, Index at, const SimNode& node, int64_t chunk,
                      const std::vector<int64_t>& group, Stream& stream) {
    stream.phases.clear();
    const auto me = std::ranges::find(group, rank.place) - group.begin();
    if (me == static_cast<int64_t>(group.size())) {
      return Fail(at, stream.node, "found a collective of a group that the rank is not in");
    }
    if (group.size() == 1) return;
    Phase phase{.type = node.collective, .dim = 0, .in_group = true, .bytes = chunk};
    if (ImplementedDims(node.collective) == 1) phase.choice = ChoiceOf(node.collective, 0);
    phase.members = {.listed = &group, .count = static_cast<int64_t>(group.size()), .me = me};
    const bool aware = node.collective == CollectiveType::kAllReduce && system_.bandwidth_aware;
    phase.queue = QueueOf(rank, 0, node.collective, aware, phase.backward);
    stream.phases.push_back(phase);
  }

  static bool FitsMembers(const Phase& phase) {
    const CollectiveAlgorithm algorithm = phase.choice.algorithm;
    const bool halves = algorithm == CollectiveAlgorithm::kHalvingDoubling ||
                        algorithm == CollectiveAlgorithm::kDoubleBinaryTree;
    return !halves || std::has_single_bit(static_cast<uint64_t>(phase.members.count));
  }

  Index NewStream() {
    if (free_streams_.empty()) {
      streams_.emplace_back();
      return static_cast<Index>(streams_.size() - 1);
    }
    const Index id = free_streams_.back();
    free_streams_.pop_back();
    return id;
  }

  // ---- streams and their queues

  const Phase& PhaseOf(const Stream& stream) const { return stream.phases[stream.phase - 1]; }

  void FinishStream(Index id) {
    const Index set = streams_[id].data_set;
    if (--data_sets_[set].left == 0) Complete(data_sets_[set].rank, data_sets_[set].node);
    free_streams_.push_back(id);
  }

  // The stream goes from its queue, if it is in one, to the next.
  void NextPhase(Index id) {
    const Index at = streams_[id].rank;
    const bool was_queued = streams_[id].phase > 0;
    const Index old = was_queued ? PhaseOf(streams_[id]).queue : 0;
    const bool ends = streams_[id].phase == streams_[id].phases.size();
    if (ends) FinishStream(id);
    if (!ends) {
      Stream& stream = streams_[id];
      ++stream.phase;
      ranks_[at].queues[PhaseOf(stream).queue].waiting.push(
          {.priority = stream.priority, .order = ranks_[at].next_order++, .stream = id});
    }
    const Index next = ends ? 0 : PhaseOf(streams_[id]).queue;
    if (was_queued) {
      --ranks_[at].queues[old].running;
      StartStreams(at, old);
    }
    if (!ends) StartStreams(at, next);
  }
  void StartStreams(Index at, Index queue) {
    while (ranks_[at].queues[queue].running < most_running_ &&
           !ranks_[at].queues[queue].waiting.empty()) {
      StreamQueue& place = ranks_[at].queues[queue];
      const Index id = place.waiting.top().stream;
      place.waiting.pop();
      ++place.running;
      Start(id);
    }
  }

  // ---- algorithms

  bool Reduces(const Stream& stream) const {
    const CollectiveType type = PhaseOf(stream).type;
    return type == CollectiveType::kReduceScatter ||
           (type == CollectiveType::kAllReduce && stream.toggle);
  }
  static int64_t Around(int64_t index, int64_t by, int64_t count) {
    return ((index + by) % count + count) % count;
  }

  void Start(Index id) {
    Stream& stream = streams_[id];
    if (stream.custom != nullptr) return StartCustom(id);
    const Phase& phase = PhaseOf(stream);
    const int64_t p = phase.members.count;
    const int64_t me = phase.members.me;
    const CollectiveType type = phase.type;
    const bool all_reduce = type == CollectiveType::kAllReduce;
    stream.packets.clear();
    stream.first_packet = 0;
    stream.free = stream.zero = stream.nonzero = stream.received = 0;
    stream.toggle = false;
    stream.parallel = 1;
    stream.step = 0;
    const int64_t way = phase.backward ? -1 : 1;
    stream.target = Around(me, way, p);
    stream.source = Around(me, -way, p);
    stream.bytes = type == CollectiveType::kAllGather ? phase.bytes : phase.bytes / p;
    stream.left = all_reduce ? 2 * (p - 1) : p - 1;
    switch (phase.choice.algorithm) {
      case CollectiveAlgorithm::kRing:
        if (type == CollectiveType::kAllToAll) stream.left = p * (p - 1) / 2;
        stream.reductions = p - 1;
        break;
      case CollectiveAlgorithm::kDirect:
        stream.parallel = std::min(phase.choice.window.value_or(p - 1), p - 1);
        stream.reductions = stream.parallel * (phase.in_group ? p - 1 : 1);
        break;
      case CollectiveAlgorithm::kHalvingDoubling: {
        const auto depth = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(p)) - 1);
        stream.left = all_reduce ? 2 * depth : depth;
        stream.reductions = depth - 1;
        const bool gathers = type == CollectiveType::kAllGather;
        stream.bytes = gathers ? phase.bytes : phase.bytes / 2;
        stream.offset = gathers ? static_cast<double>(p) / 2 : 1;
        stream.multiplier = gathers ? 0.5 : 2;
        FindPartner(stream);
        break;
      }
      case CollectiveAlgorithm::kDoubleBinaryTree: return StartTree(id);
    }
    const int64_t parallel = stream.parallel;
    for (int64_t i = 0; i < parallel; ++i) Insert(id);
  }

  void FindPartner(Stream& stream) const {
    const Members& members = PhaseOf(stream).members;
    const auto offset = static_cast<int64_t>(stream.offset);
    const bool ahead = offset == 0 || members.me / offset % 2 == 0;
    stream.target = stream.source = Around(members.me, ahead ? offset : -offset, members.count);
  }

  // A message that can be sent once what it carries is handled.
  void Insert(Index id) {
    Stream& stream = streams_[id];
    const Phase& phase = PhaseOf(stream);
    if (stream.zero == 0 && stream.nonzero == 0) {
      stream.zero = stream.parallel;
      stream.nonzero = stream.reductions;
      stream.toggle = !stream.toggle;
    }
    stream.packets.push_back({.target = phase.members.RankAt(stream.target),
                              .source = phase.members.RankAt(stream.source),
                              .bytes = stream.bytes});
    const bool reduces = stream.zero == 0 && Reduces(stream);
    --(stream.zero > 0 ? stream.zero : stream.nonzero);
    Handle(id, reduces, stream.bytes);
    if (phase.choice.algorithm == CollectiveAlgorithm::kDirect) {
      const int64_t way = phase.backward ? -1 : 1;
      const int64_t p = phase.members.count;
      stream.target = Around(stream.target, way, p);
      if (stream.target == phase.members.me) stream.target = Around(stream.target, way, p);
      stream.source = Around(stream.source, -way, p);
      if (stream.source == phase.members.me) stream.source = Around(stream.source, -way, p);
    } else if (phase.choice.algorithm == CollectiveAlgorithm::kHalvingDoubling) {
      stream.offset *= stream.multiplier;
      stream.bytes = static_cast<int64_t>(static_cast<double>(stream.bytes) / stream.multiplier);
      if (phase.type == CollectiveType::kAllReduce &&
          static_cast<int64_t>(stream.offset) == phase.members.count) {
        stream.multiplier = 0.5;
        stream.offset *= stream.multiplier;
        stream.bytes = static_cast<int64_t>(static_cast<double>(stream.bytes) / stream.multiplier);
      }
      FindPartner(stream);
    }
  }
  void Handle(Index id, bool reduces, int64_t bytes) {
    const Stream& stream = streams_[id];
    const int64_t delay = PhaseOf(stream).in_group ? kGroupDelay : system_.endpoint_delay;
    PlanLocal(stream.rank, delay,
              {.kind = LocalKind::kHandled, .reduces = reduces, .subject = id, .bytes = bytes});
  }
  void Handled(const Local& local) {
    if (!local.reduces) return Step(local.subject);
    int64_t access = 0;
    if (system_.memory_bandwidth > 0) {
      access =
          WholeNanos(static_cast<double>(local.bytes) / (system_.memory_bandwidth * 1e9) * 1e9);
    }
    PlanLocal(streams_[local.subject].rank, 3 * access,
              {.kind = LocalKind::kReduced, .subject = local.subject});
  }

  void Step(Index id) {
    Stream& stream = streams_[id];
    const Phase& phase = PhaseOf(stream);
    if (phase.choice.algorithm == CollectiveAlgorithm::kDoubleBinaryTree) return StepTree(id);
    ++stream.free;
    const int64_t others = phase.members.count - 1;
    if (phase.choice.algorithm == CollectiveAlgorithm::kDirect &&
        phase.type == CollectiveType::kAllReduce && stream.left <= others) {
      if (stream.received < others) return;
      for (int64_t i = 0; i < stream.parallel; ++i) SendPacket(id);
    } else {
      SendPacket(id);
    }
    if (streams_[id].left == 0 && streams_[id].free == streams_[id].parallel) NextPhase(id);
  }
  void SendPacket(Index id) {
    Stream& stream = streams_[id];
    if (stream.first_packet == stream.packets.size() || stream.left == 0 || stream.free == 0) {
      return;
    }
    const Packet packet = stream.packets[stream.first_packet++];
    if (stream.first_packet == stream.packets.size()) {
      stream.packets.clear();
      stream.first_packet = 0;
    }
    --stream.left;
    --stream.free;
    Exchange(id, packet.target, packet.source, packet.bytes);
  }
  void Exchange(Index id, int64_t target, int64_t source, int64_t bytes) {
    const int64_t ordinal = by_class_ ? ++streams_[id].exchanges : 0;
    SendTo(id, target, bytes, ordinal);
    ReceiveFrom(id, source, bytes, ordinal);
  }
  void SendTo(Index id, int64_t target, int64_t bytes, int64_t ordinal = 0) {
    const Stream& stream = streams_[id];
    Send({.bytes = bytes,
          .tag = stream.tag,
          .ordinal = ordinal,
          .source = stream.rank,
          .target = ClassOf(target),
          .from = ranks_[stream.rank].place,
          .to = target});
  }
  void ReceiveFrom(Index id, int64_t source, int64_t bytes, int64_t ordinal = 0) {
    const Stream& stream = streams_[id];
    Receive({.kind = Receiver::Kind::kStream, .rank = stream.rank, .subject = id},
            {.tag = stream.tag,
             .bytes = bytes,
             .ordinal = ordinal,
             .source = ClassOf(source),
             .target = stream.rank},
            source);
  }
  void MessageCame(Index id) {
    Stream& stream = streams_[id];
    if (PhaseOf(stream).choice.algorithm == CollectiveAlgorithm::kDoubleBinaryTree) {
      return TreeMessage(id);
    }
    ++stream.received;
    Insert(id);
  }

  // ---- double binary tree: the second tree is the first one with its root at the other end

  void StartTree(Index id) {
    Stream& stream = streams_[id];
    const Phase& phase = PhaseOf(stream);
    const int64_t p = phase.members.count;
    const int64_t me = phase.members.me;
    const bool second = ranks_[stream.rank].next_tree[phase.dim];
    ranks_[stream.rank].next_tree[phase.dim] = !second;
    const int64_t root = second ? 0 : p - 1;
    const int64_t first = second ? 1 : 0;  // of the perfect tree below the root
    stream.bytes = phase.bytes;
    stream.parent = stream.child[0] = stream.child[1] = -1;
    const int64_t top = first + p / 2 - 1;
    if (me == root) {
      stream.role = TreeRole::kRoot;
      stream.child[0] = top;
    } else {
      // In-order numbers: with one added, the lowest bit that is set tells the height.
      const int64_t number = me - first + 1;
      const int64_t low = number & -number;
      stream.role = low == 1 ? TreeRole::kLeaf : TreeRole::kInner;
      const int64_t up = ((number & (2 * low)) != 0 ? number - low : number + low);
      stream.parent = me == top ? root : first + up - 1;
      if (low > 1) {
        stream.child[0] = me - low / 2;
        stream.child[1] = me + low / 2;
      }
    }
    switch (stream.role) {
      case TreeRole::kLeaf: Handle(id, false, stream.bytes); break;
      case TreeRole::kInner:
        ReceiveFrom(id, phase.members.RankAt(stream.child[0]), stream.bytes);
        ReceiveFrom(id, phase.members.RankAt(streams_[id].child[1]), streams_[id].bytes);
        break;
      case TreeRole::kRoot:
        ReceiveFrom(id, phase.members.RankAt(stream.child[0]), stream.bytes);
        break;
    }
  }
  void TreeMessage(Index id) {
    Stream& stream = streams_[id];
    ++stream.received;
    Handle(id, stream.role != TreeRole::kLeaf, stream.bytes);
  }
  void StepTree(Index id) {
    Stream& stream = streams_[id];
    const Members members = PhaseOf(stream).members;
    const int64_t bytes = stream.bytes;
    const int step = stream.step++;
    const auto rank_of = [&](int64_t index) { return members.RankAt(index); };
    switch (stream.role) {
      case TreeRole::kLeaf:
        if (step == 0) {
          const int64_t parent = rank_of(stream.parent);
          SendTo(id, parent, bytes);
          ReceiveFrom(id, parent, bytes);
        } else {
          NextPhase(id);
        }
        break;
      case TreeRole::kInner:
        if (step == 1) {  // both children's are added
          const int64_t parent = rank_of(stream.parent);
          SendTo(id, parent, bytes);
          ReceiveFrom(id, parent, bytes);
        } else if (step == 2) {
          const int64_t left = rank_of(stream.child[0]);
          const int64_t right = rank_of(stream.child[1]);
          SendTo(id, left, bytes);
          SendTo(id, right, bytes);
          NextPhase(id);
        }
        break;
      case TreeRole::kRoot:
        SendTo(id, rank_of(stream.child[0]), bytes);
        NextPhase(id);
        break;
    }
  }

  // ---- collectives that are programs: whatever can begin does

  void StartCustom(Index id) {
    Stream& stream = streams_[id];
    stream.waits = stream.custom->program->waits;
    stream.nodes_left = stream.custom->program->nodes.size();
    const std::vector<uint32_t> waits = stream.waits;
    for (Index node = 0; node < waits.size(); ++node) {
      if (waits[node] == 0) IssueCustom(id, node);
    }
    if (waits.empty()) NextPhase(id);
  }
  void IssueCustom(Index id, Index index) {
    const Stream& stream = streams_[id];
    const SimNode& node = stream.custom->program->nodes[index];
    const int64_t peer = stream.custom->PeerOf(node);
    const Receiver done{
        .kind = Receiver::Kind::kCustom, .rank = stream.rank, .subject = id, .node = index};
    const bool communicates = node.kind == NodeKind::kSend || node.kind == NodeKind::kRecv;
    if (communicates && (peer < 0 || peer >= total_)) {
      return Fail(stream.rank, stream.node, "found a message to or from no rank in its program");
    }
    if (node.kind == NodeKind::kSend) {
      Send({.bytes = node.bytes,
            .tag = node.tag % kTagSpace,
            .source = stream.rank,
            .target = ClassOf(peer),
            .from = ranks_[stream.rank].place,
            .to = peer,
            .sender = done});
    } else if (node.kind == NodeKind::kRecv) {
      Receive(done,
              {.tag = node.tag % kTagSpace,
               .bytes = node.bytes,
               .source = ClassOf(peer),
               .target = stream.rank},
              peer);
    } else {
      PlanLocal(stream.rank, node.duration > 0 ? node.duration : 1,
                {.kind = LocalKind::kCustomDone, .subject = id, .node = index});
    }
  }
  void CompleteCustom(Index id, Index index) {
    Stream& stream = streams_[id];
    if (--stream.nodes_left == 0) return NextPhase(id);
    for (const Index child : stream.custom->program->children[index]) {
      if (--stream.waits[child] == 0) IssueCustom(id, child);
    }
  }

  const SimMachine& machine_;
  const SystemModel& system_;
  const RankGroups& groups_;
  const RankClasses& classes_;
  const bool by_class_;
  const Travel travel_;
  const int64_t total_;
  int64_t most_running_ = 1;

  EventQueue<Event> events_;
  std::vector<Rank> ranks_;
  std::vector<Message> messages_;
  std::vector<Index> free_messages_;
  std::vector<Message> held_;
  std::vector<std::pair<Receiver, MatchKey>> posted_;
  std::vector<Receiver> received_;
  std::vector<Index> free_received_;
  std::unordered_map<MatchKey, Match, MatchHash> matches_;
  std::vector<Link> links_;
  std::vector<DataSet> data_sets_;
  std::deque<Stream> streams_;
  std::vector<Index> free_streams_;
  std::unordered_map<int64_t, int64_t> memory_free_;
  uint64_t messages_sent_ = 0;
  std::optional<Error> failed_;
  bool ambiguous_ = false;  // in which order a rank is told of what
};

}  // namespace

Result<SimResult> Simulate(const SimMachine& machine, const SimWorkload& workload,
                           const SimOptions& options) {
  if (machine.npus() != static_cast<int64_t>(workload.ranks.size())) {
    return BadInput(
        fmt::format("found {} programs for {} NPUs", workload.ranks.size(), machine.npus()));
  }
  if (machine.congestion && machine.dims.size() != 1) {
    return BadInput("found a network of several dimensions, expected one with congestion");
  }
  if (options.by_class) {
    const RankClasses classes = FindRankClasses(machine, workload);
    if (!classes.is_trivial()) {
      Engine engine(machine, workload, classes);
      Result<SimResult> result = engine.Run();
      const bool finished = result && std::ranges::all_of(result->ranks, &SimRankResult::finished);
      if (finished && !engine.ambiguous()) return result;
    }
  }
  return Engine(machine, workload, EachRank(workload)).Run();
}

}  // namespace etude
