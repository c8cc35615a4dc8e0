#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/sim/engine/simulator.h"
#include "src/sim/machine/machine.h"
#include "src/sim/program/sim_program.h"

// Reference simulator for tests: a literal implementation of docs/models/astra_sim_2.md, with
// functions in lists and numbers in maps. Slow; shares only types with Simulate.
namespace etude::plain {

using Function = std::function<void()>;

// Rounds down, with the same bound as all times.
inline int64_t Floor(double time) { return static_cast<int64_t>(std::min(time, 1e17)); }

// Events by time, in the order of planning at equal times.
class Clock {
 public:
  int64_t now = 0;

  void At(int64_t time, Function what) {
    lists_[time].push_back(std::move(what));
    ++planned;
  }
  void Run(const std::optional<std::string>& failed) {
    while (!lists_.empty() && !failed) {
      const auto first = lists_.begin();
      now = first->first;
      while (!first->second.empty() && !failed) {
        const Function what = std::move(first->second.front());
        first->second.pop_front();
        what();
      }
      lists_.erase(first);
    }
  }

  uint64_t planned = 0;

 private:
  std::map<int64_t, std::list<Function>> lists_;
};

// Transports bytes between NPUs.
class Network {
 public:
  Network(const SimMachine& machine, Clock& clock) : machine_(machine), clock_(clock) {}

  void Carry(int64_t from, int64_t to, int64_t bytes, Function arrived) {
    if (from == to) return clock_.At(clock_.now, std::move(arrived));
    if (!machine_.congestion) {
      return clock_.At(clock_.now + Unaware(from, to, bytes), std::move(arrived));
    }
    const auto way = std::make_shared<std::list<int64_t>>(Devices(machine_.dims[0], from, to));
    Hop(way, bytes, std::move(arrived));
  }

 private:
  using Way =
      std::shared_ptr<std::list<int64_t>>;  // remaining devices; the first is the current one

  double BytesPerNano(size_t dim) const {
    return machine_.dims[dim].bandwidth * 1073741824.0 / 1e9;
  }
  // Combined fault of all slow links between two devices; the second may be a switch.
  struct Fault {
    double share = 1;
    double latency = 0;
  };
  Fault FaultOf(size_t dim, int64_t a, int64_t b) const {
    Fault all;
    for (const SlowLink& link : machine_.slow_links) {
      bool is_it = link.npu == a || link.npu == b;
      if (link.other) is_it = is_it && (*link.other == a || *link.other == b);
      if (!link.other) is_it = is_it && link.dim == dim;
      if (!is_it) continue;
      all.share *= link.share;
      all.latency += link.latency;
    }
    return all;
  }
  Fault FaultOfWay(size_t dim, const std::list<int64_t>& devices) const {
    Fault all;
    for (auto next = std::next(devices.begin()); next != devices.end(); ++next) {
      const Fault one = FaultOf(dim, *std::prev(next), *next);
      all.share = std::min(all.share, one.share);
      all.latency += one.latency;
    }
    return all;
  }

  int64_t Unaware(int64_t from, int64_t to, int64_t bytes) const {
    const int64_t source = from;
    int64_t stride = 1;
    for (size_t i = 0; i < machine_.dims.size(); ++i) {
      const NetworkDim& dim = machine_.dims[i];
      const int64_t a = from % dim.npus;
      const int64_t b = to % dim.npus;
      from /= dim.npus;
      to /= dim.npus;
      if (a == b) {
        stride *= dim.npus;
        continue;
      }
      std::list<int64_t> way = Devices(dim, a, b);
      const auto hops = static_cast<double>(way.size() - 1);
      for (int64_t& device : way) {
        device = device == dim.npus ? -1 : source + (device - a) * stride;
      }
      const Fault fault = FaultOfWay(i, way);
      return Floor(hops * dim.latency + fault.latency +
                   static_cast<double>(bytes) / (BytesPerNano(i) * fault.share));
    }
    return 0;
  }

  // Devices between two NPUs of a dimension; a switch has the number after the last NPU.
  static std::list<int64_t> Devices(const NetworkDim& dim, int64_t from, int64_t to) {
    if (dim.shape == NetworkShape::kFullyConnected) return {from, to};
    if (dim.shape == NetworkShape::kSwitch) return {from, dim.npus, to};
    const int64_t clockwise = (to + dim.npus - from) % dim.npus;
    const int64_t step = clockwise <= dim.npus - clockwise ? 1 : dim.npus - 1;
    std::list<int64_t> devices{from};
    while (devices.back() != to) devices.push_back((devices.back() + step) % dim.npus);
    return devices;
  }
  struct Link {
    bool busy = false;
    std::list<Function> waiting;
  };
  void Hop(const Way& way, int64_t bytes, Function arrived) {
    const int64_t here = way->front();
    way->pop_front();
    const int64_t next = way->front();
    Link& link = links_[{here, next}];
    const Fault fault = FaultOf(0, here, next);
    const Function use = [this, &link, fault, way, bytes, arrived = std::move(arrived)] {
      link.busy = true;
      const double load = static_cast<double>(bytes) / (BytesPerNano(0) * fault.share);
      const double latency = machine_.dims[0].latency + fault.latency;
      clock_.At(clock_.now + Floor(latency + load), [this, way, bytes, arrived] {
        if (way->size() == 1) return arrived();
        Hop(way, bytes, arrived);
      });
      clock_.At(clock_.now + Floor(load), [&link] {
        link.busy = false;
        if (link.waiting.empty()) return;
        const Function waiting = std::move(link.waiting.front());
        link.waiting.pop_front();
        waiting();
      });
    };
    if (link.busy) {
      link.waiting.push_back(use);
    } else {
      use();
    }
  }

  const SimMachine& machine_;
  Clock& clock_;
  std::map<std::pair<int64_t, int64_t>, Link> links_;
};

// Messages between NPUs, matched by tag, ends, size and their count so far.
class Messages {
 public:
  Messages(bool rendezvous, Network& network, Clock& clock)
      : rendezvous_(rendezvous), network_(network), clock_(clock) {}

  void Send(int64_t from, int64_t to, int64_t bytes, int64_t tag, Function arrived) {
    if (!rendezvous_) return SendNow(from, to, bytes, tag, std::move(arrived));
    ReceiveNow(to, from, kControl, tag + kControlTag,
               [=, this, arrived = std::move(arrived)] { SendNow(from, to, bytes, tag, arrived); });
  }
  void Receive(int64_t from, int64_t to, int64_t bytes, int64_t tag, Function came) {
    if (!rendezvous_) return ReceiveNow(from, to, bytes, tag, std::move(came));
    SendNow(to, from, kControl, tag + kControlTag,
            [=, this, came = std::move(came)] { ReceiveNow(from, to, bytes, tag, came); });
  }

  uint64_t sent = 0;
  uint64_t unreceived() const { return arrived_.size(); }

 private:
  static constexpr int64_t kControl = 8192;  // bytes
  static constexpr int64_t kControlTag = 1'000'000'000;
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t>;

  void SendNow(int64_t from, int64_t to, int64_t bytes, int64_t tag, Function arrived) {
    ++sent;
    const Key key{tag, from, to, bytes};
    const std::pair<Key, int64_t> numbered{key, sends_[key]++};
    network_.Carry(from, to, bytes, [this, numbered, arrived = std::move(arrived)] {
      if (arrived) arrived();
      const auto waiting = waiting_.find(numbered);
      if (waiting == waiting_.end()) {
        arrived_.insert(numbered);
        return;
      }
      const Function came = std::move(waiting->second);
      waiting_.erase(waiting);
      came();
    });
  }
  void ReceiveNow(int64_t from, int64_t to, int64_t bytes, int64_t tag, Function came) {
    const Key key{tag, from, to, bytes};
    const std::pair<Key, int64_t> numbered{key, receives_[key]++};
    if (arrived_.erase(numbered) == 0) {
      waiting_[numbered] = std::move(came);
    } else {
      clock_.At(clock_.now, std::move(came));
    }
  }

  const bool rendezvous_;
  Network& network_;
  Clock& clock_;
  std::map<Key, int64_t> sends_;
  std::map<Key, int64_t> receives_;
  std::set<std::pair<Key, int64_t>> arrived_;
  std::map<std::pair<Key, int64_t>, Function> waiting_;
};

// Plans a function for an NPU after a delay in ns.
using Later = std::function<void(int64_t, Function)>;

// A bus with two sides that send to each other.
class Bus {
 public:
  struct Load {
    int64_t bytes = 0;
    bool processed = false;  // handled at the other side, before all else
    bool back = false;       // is sent back by the other side
    Function done;
  };

  // `inside`: traffic at the left side crosses a second bus, from right to left and back.
  Bus(const SharedBus& model, bool inside, const Clock& clock, const Later& later)
      : model_(model), clock_(clock), later_(later) {
    for (int i = 0; i < 2; ++i) sides_[i].other = &sides_[1 - i];
    if (!inside) return;
    SharedBus inner = model;
    inner.nanos_of_byte = 0.0038;
    inner_ = std::make_unique<Bus>(inner, false, clock, later);
  }

  void FromLeft(const Load& load) {
    if (inner_ == nullptr) return Push(sides_[0], load);
    inner_->FromRight({.bytes = load.bytes, .done = [=, this] { Push(sides_[0], load); }});
  }
  void FromRight(const Load& load) { Push(sides_[1], load); }

 private:
  enum class State { kFree, kSending, kReceiving };
  struct Side {
    Side* other = nullptr;
    State state = State::kFree;
    State before = State::kFree;
    int64_t last = 0;
    int64_t sent = 0;  // since the last receive
    std::list<Load> out, in, work;
  };

  void In(double time, Function what) { later_(Floor(std::max(time, 0.0)), std::move(what)); }
  void Push(Side& side, const Load& load) {
    side.out.push_back(load);
    Look(side);
  }
  void Look(Side& side) {
    if (side.state != State::kFree || side.out.empty()) return;
    Side& other = *side.other;
    if (side.sent > 8 && !other.out.empty() && other.sent <= 8) {
      if (other.state == State::kFree) Look(other);
      return;
    }
    int64_t offset = model_.overhead;
    if (side.before == State::kSending && offset + (clock_.now - side.last) <= model_.gap) {
      offset = model_.gap - (clock_.now - side.last);
    }
    const Load load = side.out.front();
    side.out.pop_front();
    const double bytes = static_cast<double>(load.bytes - 1) * model_.nanos_of_byte;
    const auto first = static_cast<double>(offset);
    other.in.push_back(load);
    other.before = other.state;
    other.state = State::kReceiving;
    other.sent = 0;
    In(first + bytes + static_cast<double>(model_.latency) + static_cast<double>(model_.overhead),
       [this, &other] { Received(other); });
    side.state = State::kSending;
    In(first + bytes, [this, &side] {
      side.last = clock_.now;
      side.before = side.state;
      side.state = State::kFree;
      ++side.sent;
      Look(side);
    });
  }
  void Received(Side& side) {
    side.last = clock_.now;
    side.before = side.state;
    if (side.in.size() < 2) side.state = State::kFree;
    Load load = side.in.front();
    side.in.pop_front();
    if (load.processed) {
      load.processed = false;
      Inside(side, load, true, [=, this, &side] {
        side.work.push_back(load);
        if (side.work.size() == 1) Work(side);
        Look(side);
      });
    } else {
      Leave(side, load);
    }
    Look(side);
  }
  void Work(Side& side) {
    const int64_t hundreds = side.work.front().bytes / 100;
    In(static_cast<double>(hundreds * model_.reduction + 50), [this, &side] {
      const Load load = side.work.front();
      side.work.pop_front();
      Leave(side, load);
      if (!side.work.empty()) Work(side);
      Look(side);
    });
  }
  void Leave(Side& side, Load load) {
    if (load.back) {
      load.back = false;
      return Inside(side, load, true, [=, this, &side] { Push(side, load); });
    }
    Inside(side, load, false, [=, this, &side] {
      load.done();
      Look(side);
    });
  }
  void Inside(const Side& side, const Load& load, bool back, const Function& then) {
    if (inner_ == nullptr || &side != &sides_[0]) return then();
    inner_->FromLeft({.bytes = load.bytes, .back = back, .done = then});
  }

  const SharedBus model_;
  const Clock& clock_;
  const Later later_;
  Side sides_[2];
  std::unique_ptr<Bus> inner_;
};

enum class Slot { kHost, kDevice, kComm };

struct Stream;
using StreamPtr = std::shared_ptr<Stream>;

// Phase of a collective: an algorithm among some NPUs.
struct Phase {
  CollectiveType type = CollectiveType::kUnknown;
  AlgorithmChoice choice;
  int64_t bytes = 0;
  std::vector<int64_t> npus;
  int64_t me = 0;  // index
  int64_t queue = 0;
  bool backward = false;
  bool local = false;     // in a group
  int64_t root = 0;       // index
  bool mirrored = false;  // the second of two trees
};

struct Npu {
  int64_t id = 0;
  const SimRank* self = nullptr;
  std::map<int64_t, std::list<Function>> ticks;
  std::unique_ptr<Bus> bus;

  std::vector<uint32_t> waits;
  std::set<uint32_t> free;  // ready nodes that have not begun
  std::set<Slot> taken;
  size_t left = 0;
  size_t in_flight = 0;
  bool woke_none = false;  // a node without work freed another node

  int64_t streams = 0;
  std::map<int64_t, int64_t> group_streams;
  int64_t priority = 0;
  std::map<int64_t, std::list<std::pair<StreamPtr, bool>>> queues;  // true: running
  std::map<size_t, int64_t> turn, turn_up, turn_down;               // next queue, by dimension
  std::map<std::pair<CollectiveType, size_t>, int64_t> trees;

  SimRankResult result;
  std::map<char, std::vector<std::pair<int64_t, int64_t>>> spans;  // by kind of work
};

struct Stream {
  Npu* npu = nullptr;
  std::shared_ptr<int64_t> set;  // unfinished streams of the collective
  uint32_t node = 0;
  int64_t tag = 0;
  int64_t priority = 0;
  std::list<Phase> phases;  // remaining phases
  std::optional<Phase> phase;

  // State of the algorithm.
  struct Packet {
    int64_t to = 0;
    int64_t from = 0;
    int64_t bytes = 0;
  };
  std::list<Packet> packets;
  int64_t stream_count = 0;
  int64_t par = 1;
  int64_t free = 0;
  int64_t zero = 0;
  int64_t nonzero = 0;
  int64_t nonzero_of_round = 0;
  int64_t received = 0;
  bool toggle = false;
  int64_t msg = 0;
  int64_t receiver = 0;  // indices
  int64_t sender = 0;
  double offset = 1;
  double factor = 2;
  int64_t to_come = 0;  // tree: children whose messages are not handled
  int64_t unseen = 0;   // tree: children whose messages have not arrived
  int64_t far = 1;      // barrier: distance
  const SimRank* custom = nullptr;
  std::vector<uint32_t> waits;
  size_t left = 0;
};

// Handling of a rank's own data, or of a received message.
struct Handling {
  int64_t bytes = 0;
  bool came = false;
  bool reduces = false;
  bool goes_on = false;
};

class Engine {
 public:
  Engine(const SimMachine& machine, const SimWorkload& workload)
      : machine_(machine),
        system_(machine.system),
        workload_(workload),
        network_(machine, clock_),
        messages_(machine.system.rendezvous, network_, clock_),
        total_(machine.npus()) {}

  Result<SimResult> Run() {
    for (int64_t id = 0; id < total_; ++id) {
      Npu& npu = npus_.emplace_back();
      npu.id = id;
      npu.self = &workload_.ranks[static_cast<size_t>(id)];
      const SimProgram& program = *npu.self->program;
      if (system_.shared_bus) {
        npu.bus = std::make_unique<Bus>(
            *system_.shared_bus, true, clock_,
            [this, &npu](int64_t delay, Function what) { Later(npu, delay, std::move(what)); });
      }
      npu.waits = program.waits;
      npu.left = program.nodes.size();
      npu.result.begins.assign(npu.left, -1);
      npu.result.ends.assign(npu.left, -1);
      for (uint32_t i = 0; i < npu.left; ++i) {
        if (npu.waits[i] == 0) npu.free.insert(i);
      }
    }
    for (Npu& npu : npus_) {
      if (!failed_) IssueFree(npu);
    }
    clock_.Run(failed_);
    if (failed_) return BadInput(*failed_);
    SimResult result;
    result.events = clock_.planned;
    result.messages = messages_.sent;
    result.unreceived = messages_.unreceived();
    for (Npu& npu : npus_) {
      result.class_of.push_back(static_cast<uint32_t>(npu.id));
      result.first.push_back(npu.id);
      SimRankResult& one = npu.result;
      one.finished = npu.left == 0;
      for (const int64_t end : one.ends) one.wall = std::max(one.wall, end);
      one.host = Union(npu.spans['h']);
      one.device = Union(npu.spans['d']);
      one.comm = Union(npu.spans['c']);
      one.memory = Union(npu.spans['m']);
      result.ranks.push_back(std::move(one));
    }
    return result;
  }

 private:
  static constexpr int64_t kTags = 500'000'000;

  // Returns the length of the union of the spans.
  static int64_t Union(const std::vector<std::pair<int64_t, int64_t>>& spans) {
    std::map<int64_t, int64_t> change;
    for (const auto& [begin, end] : spans) {
      ++change[begin];
      --change[end];
    }
    int64_t total = 0;
    int64_t open = 0;
    int64_t before = 0;
    for (const auto& [time, by] : change) {
      if (open > 0) total += time - before;
      open += by;
      before = time;
    }
    return total;
  }

  void Fail(const std::string& what) {
    if (!failed_) failed_ = what;
  }

  // Plans `what` in `delay` ns, together with all that the NPU does then.
  void Later(Npu& npu, int64_t delay, Function what) {
    const int64_t tick = clock_.now + delay;
    if (!npu.ticks.contains(tick)) {
      clock_.At(tick, [this, &npu, tick] {
        std::list<Function>& calls = npu.ticks[tick];
        while (!calls.empty()) {
          const Function call = std::move(calls.front());
          calls.pop_front();
          if (!failed_) call();
        }
        npu.ticks.erase(tick);
      });
    }
    npu.ticks[tick].push_back(std::move(what));
  }

  // ---- nodes

  static std::optional<Slot> SlotOf(const SimNode& node) {
    if (node.kind == NodeKind::kRecv) return std::nullopt;
    if (node.on_host) return Slot::kHost;
    return node.kind == NodeKind::kCompute ? Slot::kDevice : Slot::kComm;
  }
  const SimNode& NodeOf(const Npu& npu, uint32_t index) const {
    return npu.self->program->nodes[index];
  }

  void IssueFree(Npu& npu) {
    const std::set<uint32_t> snapshot = npu.free;
    for (const uint32_t index : snapshot) {
      const std::optional<Slot> slot = SlotOf(NodeOf(npu, index));
      if (slot && npu.taken.contains(*slot)) continue;
      if (failed_) return;
      npu.free.erase(index);
      if (slot) npu.taken.insert(*slot);
      ++npu.in_flight;
      npu.result.begins[index] = clock_.now;
      Issue(npu, index);
    }
    if (npu.woke_none && npu.in_flight == 0) Later(npu, 0, [this, &npu] { IssueFree(npu); });
    npu.woke_none = false;
  }
  // Returns true if a node became ready.
  bool End(Npu& npu, uint32_t index) {
    if (const auto slot = SlotOf(NodeOf(npu, index))) npu.taken.erase(*slot);
    npu.result.ends[index] = clock_.now;
    --npu.in_flight;
    --npu.left;
    bool freed = false;
    for (const uint32_t child : npu.self->program->children[index]) {
      if (--npu.waits[child] > 0) continue;
      npu.free.insert(child);
      freed = true;
    }
    return freed;
  }
  void Skip(Npu& npu, uint32_t index) {
    if (End(npu, index)) npu.woke_none = true;
  }
  void Complete(Npu& npu, uint32_t index) {
    End(npu, index);
    const SimNode& node = NodeOf(npu, index);
    const int64_t begin = npu.result.begins[index];
    npu.result.end = clock_.now;
    const std::pair<int64_t, int64_t> span{begin, clock_.now};
    switch (node.kind) {
      case NodeKind::kCompute: npu.spans[node.on_host ? 'h' : 'd'].push_back(span); break;
      case NodeKind::kMemLoad:
      case NodeKind::kMemStore: npu.spans['m'].push_back(span); break;
      case NodeKind::kCollective:
      case NodeKind::kSend:
      case NodeKind::kRecv: npu.spans['c'].push_back(span); break;
      default: break;
    }
    if (!node.on_host && (system_.replay_only || node.kind == NodeKind::kCompute)) {
      npu.result.computed += clock_.now - begin;
    }
    IssueFree(npu);
  }

  static int64_t Recorded(const SimNode& node) { return node.duration == 0 ? 1 : node.duration; }

  void Issue(Npu& npu, uint32_t index) {
    const SimNode& node = NodeOf(npu, index);
    const auto done = [this, &npu, index] { Complete(npu, index); };
    const auto straggler = machine_.stragglers.find(npu.id);
    const double factor = straggler == machine_.stragglers.end() ? 1 : straggler->second;
    const auto computed = [&](int64_t time) {
      Later(npu, Floor(static_cast<double>(time) * factor), done);
    };
    if (system_.replay_only && node.kind == NodeKind::kCompute) return computed(Recorded(node));
    if (system_.replay_only) return Later(npu, Recorded(node), done);
    const int64_t peer = npu.self->PeerOf(node);
    switch (node.kind) {
      case NodeKind::kMemLoad:
      case NodeKind::kMemStore: return Later(npu, MemoryTime(npu, node), done);
      case NodeKind::kCollective: return Collective(npu, index);
      case NodeKind::kSend:
        if (peer < 0 || peer >= total_) return Fail("no receiver");
        return messages_.Send(npu.id, peer, node.bytes, node.tag % kTags, done);
      case NodeKind::kRecv:
        if (peer < 0 || peer >= total_) return Fail("no sender");
        return messages_.Receive(peer, npu.id, node.bytes, node.tag % kTags, done);
      case NodeKind::kCompute: break;
      default: return Skip(npu, index);
    }
    if (!system_.roofline || node.on_host) return computed(Recorded(node));
    if (node.bytes == 0) return Skip(npu, index);
    const double bandwidth = system_.memory_bandwidth * 1e9;
    if (node.flops == 0) {
      return computed(Floor(static_cast<double>(node.bytes) / bandwidth * 1e9));
    }
    const double flops = static_cast<double>(node.flops);
    const double intensity = flops / static_cast<double>(node.bytes);
    const double rate = std::min(bandwidth * intensity, system_.peak * 1e12);
    computed(Floor(flops / rate * 1e9));
  }

  int64_t MemoryTime(const Npu& npu, const SimNode& node) {
    const RemoteMemory& memory = machine_.memory;
    const int64_t time = memory.latency + Floor(static_cast<double>(node.bytes) / memory.bandwidth);
    if (memory.kind == RemoteMemoryKind::kPerNpu) return time;
    if (memory.kind == RemoteMemoryKind::kNone) {
      Fail("no memory");
      return 0;
    }
    const bool pool = memory.kind == RemoteMemoryKind::kPool;
    int64_t& free_at = memory_free_[pool ? 0 : npu.id / memory.npus_per_node];
    free_at = std::max(free_at, clock_.now) + time;
    return free_at - clock_.now;
  }

  // ---- collectives

  std::vector<AlgorithmChoice> Choices(CollectiveType type) const {
    const auto found = system_.algorithms.find(type);
    return found == system_.algorithms.end() ? std::vector<AlgorithmChoice>() : found->second;
  }

  void Collective(Npu& npu, uint32_t index) {
    const SimNode& node = NodeOf(npu, index);
    const CollectiveType type = node.collective;
    if (system_.Replays(node)) {
      return Later(npu, Recorded(node), [this, &npu, index] { Complete(npu, index); });
    }
    const bool barrier = type == CollectiveType::kBarrier;
    const bool own = barrier || IsTree(type);
    if (!own && type != CollectiveType::kAllReduce && type != CollectiveType::kAllGather &&
        type != CollectiveType::kAllToAll && type != CollectiveType::kReduceScatter) {
      return Fail("no such collective");
    }
    if (node.bytes < 0) return Fail("fewer than 0 bytes");
    const auto custom = system_.programs.find(type);
    if (!own && Choices(type).empty() && custom == system_.programs.end())
      return Fail("no algorithm");
    std::vector<int64_t> group;
    const int64_t number = npu.self->GroupOf(node);
    if (number != 0) {
      const auto found = workload_.groups.find(number);
      if (found == workload_.groups.end()) return Fail("no such group");
      group = found->second;
      if (static_cast<int64_t>(group.size()) == total_) group.clear();
    }
    int64_t root = node.root;
    if (number != 0) {
      const std::vector<int64_t>& listed = workload_.groups.at(number);
      if (root < 0 || root >= static_cast<int64_t>(listed.size())) return Fail("no such root");
      if (group.empty()) root = listed[static_cast<size_t>(root)];
    } else if (root < 0 || root >= total_) {
      return Fail("no such root");
    }
    const auto members = group.empty() ? total_ : static_cast<int64_t>(group.size());
    int64_t size = node.bytes;
    int64_t chunk = size / system_.splits;
    const bool in_parts = type != CollectiveType::kAllGather &&
                          (!own || type == CollectiveType::kScatter);  // one part per rank
    const int64_t parts = own ? members : total_;
    if (in_parts && chunk < parts) {
      chunk = parts;
      size = system_.splits * chunk;
    }
    if (chunk == 0) chunk = 1;
    int64_t count = std::max<int64_t>((size + chunk - 1) / chunk, 1);
    if (custom != system_.programs.end()) count = 1;
    if (barrier) {
      count = 1;
      chunk = 0;
    }
    int64_t priority = node.priority;
    if (system_.order == StreamOrder::kLifo) priority = npu.priority++;
    if (system_.order == StreamOrder::kFifo) priority = npu.priority--;
    const auto set = std::make_shared<int64_t>(count);
    for (int64_t i = 0; i < count && !failed_; ++i) {
      const auto stream = std::make_shared<Stream>();
      stream->npu = &npu;
      stream->set = set;
      stream->node = index;
      stream->priority = priority;
      int64_t place = npu.id;
      if (!group.empty()) {
        place = std::ranges::find(group, npu.id) - group.begin();
        if (place == static_cast<int64_t>(group.size())) return Fail("not in its group");
      }
      if (custom != system_.programs.end()) {
        if (place >= static_cast<int64_t>(custom->second.size())) return Fail("no program");
        stream->custom = &custom->second[static_cast<size_t>(place)];
        stream->phases = {{.type = type}};
      } else if (group.empty()) {
        stream->tag = npu.streams++ + kTags;
        if (own) {
          AddTrees(npu, node, root, chunk, stream->phases);
        } else {
          AddPhases(npu, node, chunk, stream->phases);
        }
      } else {
        const int64_t stream_number = npu.group_streams[number]++;
        stream->tag = number * 1'000'000 + stream_number + kTags;
        if (group.size() > 1) {
          Phase phase{.type = type, .bytes = chunk, .npus = group, .me = place, .local = true};
          if (Choices(type).size() == 1) phase.choice = Choices(type)[0];
          phase.root = root;
          phase.mirrored = stream_number % 2 == 1;
          ChooseQueue(npu, 0, type == CollectiveType::kAllReduce && system_.bandwidth_aware, phase);
          stream->phases.push_back(phase);
        }
      }
      for (const Phase& phase : stream->phases) Check(phase);
      if (failed_) return;
      if (stream->phases.empty()) {
        Later(npu, 0, [this, stream] { Notify(stream); });
      } else {
        Proceed(stream);
      }
    }
  }
  void Check(const Phase& phase) {
    const CollectiveAlgorithm algorithm = phase.choice.algorithm;
    const bool tree = algorithm == CollectiveAlgorithm::kDoubleBinaryTree;
    const size_t count = phase.npus.size();
    if ((tree || algorithm == CollectiveAlgorithm::kHalvingDoubling) &&
        (count & (count - 1)) != 0) {
      Fail("no power of two");
    }
  }

  static bool GoesOut(CollectiveType type) {
    return type == CollectiveType::kBroadcast || type == CollectiveType::kScatter;
  }
  static bool IsTree(CollectiveType type) {
    return GoesOut(type) || type == CollectiveType::kReduce || type == CollectiveType::kGather;
  }
  // From the root along the dimensions from the last to the first, or to the root in reverse. A
  // rank takes part in a dimension if it has the root's coordinates in all lower ones.
  void AddTrees(Npu& npu, const SimNode& node, int64_t root, int64_t bytes,
                std::list<Phase>& phases) {
    const CollectiveType type = node.collective;
    std::vector<Phase> all;
    int64_t stride = 1;
    bool beside = true;
    std::vector<bool> takes_part;
    for (size_t dim = 0; dim < machine_.dims.size(); ++dim) {
      const int64_t count = machine_.dims[dim].npus;
      Phase phase{.type = type, .queue = static_cast<int64_t>(dim)};
      phase.me = npu.id / stride % count;
      phase.root = root / stride % count;
      for (int64_t i = 0; i < count; ++i) phase.npus.push_back(npu.id + (i - phase.me) * stride);
      stride *= count;
      if (count == 1 || (node.dims >> dim & 1) == 0) continue;
      all.push_back(phase);
      takes_part.push_back(beside || type == CollectiveType::kBarrier);
      beside = beside && phase.me == phase.root;
    }
    if (GoesOut(type)) {
      std::ranges::reverse(all);
      std::reverse(takes_part.begin(), takes_part.end());
    }
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].bytes = bytes;
      const auto p = static_cast<int64_t>(all[i].npus.size());
      if (type == CollectiveType::kGather) bytes *= p;
      if (type == CollectiveType::kScatter) bytes /= p;
      if (!takes_part[i]) continue;
      ChooseQueue(npu, static_cast<size_t>(all[i].queue), false, all[i]);
      phases.push_back(all[i]);
    }
  }

  void AddPhases(Npu& npu, const SimNode& node, int64_t bytes, std::list<Phase>& phases) {
    const CollectiveType type = node.collective;
    const std::vector<AlgorithmChoice> choices = Choices(type);
    const bool aware = type == CollectiveType::kAllReduce && system_.bandwidth_aware;
    const auto add = [&](CollectiveType part, size_t dim) {
      Phase phase{.type = part, .choice = choices[dim], .bytes = bytes};
      int64_t stride = 1;
      for (size_t i = 0; i < dim; ++i) stride *= machine_.dims[i].npus;
      const int64_t count = machine_.dims[dim].npus;
      phase.me = npu.id / stride % count;
      for (int64_t i = 0; i < count; ++i) phase.npus.push_back(npu.id + (i - phase.me) * stride);
      if (choices[0].whole) {
        phase.choice = choices[0];
        phase.npus.clear();
        for (int64_t i = 0; i < total_; ++i) phase.npus.push_back(i);
        phase.me = npu.id;
        dim = 0;
      }
      if (phase.choice.algorithm == CollectiveAlgorithm::kDoubleBinaryTree) {
        phase.mirrored = npu.trees[{type, dim}]++ % 2 == 1;
      }
      ChooseQueue(npu, dim, aware, phase);
      const auto p = static_cast<int64_t>(phase.npus.size());
      const bool tree = phase.choice.algorithm == CollectiveAlgorithm::kDoubleBinaryTree;
      if (part == CollectiveType::kAllGather && !tree) bytes *= p;
      if (part == CollectiveType::kReduceScatter && !tree) bytes /= p;
      phases.push_back(phase);
    };
    std::vector<size_t> dims;
    for (size_t i = 0; i < machine_.dims.size() && i < choices.size(); ++i) {
      if (machine_.dims[i].npus > 1 && (node.dims >> i & 1) == 1) dims.push_back(i);
    }
    if (dims.empty()) return;
    if (choices[0].whole) return add(type, 0);
    if (!aware) {
      if (type == CollectiveType::kAllGather) std::ranges::reverse(dims);
      for (const size_t dim : dims) add(type, dim);
      return;
    }
    const size_t last = dims.back();
    dims.pop_back();
    for (const size_t dim : dims) add(CollectiveType::kReduceScatter, dim);
    add(CollectiveType::kAllReduce, last);
    std::ranges::reverse(dims);
    for (const size_t dim : dims) add(CollectiveType::kAllGather, dim);
  }

  void ChooseQueue(Npu& npu, size_t dim, bool aware, Phase& phase) const {
    const int64_t q = system_.queues;
    int64_t queue = 0;
    if (!aware) {
      queue = npu.turn[dim]++ % q;
      phase.backward = q > 1 && queue >= q / 2;
    } else if (phase.type == CollectiveType::kAllGather) {
      const int64_t first = q == 1 ? 0 : q / 2;
      queue = first + npu.turn_down[dim]++ % (q - first);
      phase.backward = true;
    } else {
      queue = npu.turn_up[dim]++ % std::max<int64_t>(q / 2, 1);
    }
    phase.queue = static_cast<int64_t>(dim) * q + queue;
  }

  void Notify(const StreamPtr& stream) {
    if (--*stream->set == 0) Complete(*stream->npu, stream->node);
  }
  // Moves the stream to its next phase and that phase's queue.
  void Proceed(const StreamPtr& stream) {
    Npu& npu = *stream->npu;
    std::optional<int64_t> old;
    if (stream->phase) old = stream->phase->queue;
    const bool ends = stream->phases.empty();
    if (ends) Notify(stream);
    if (old) std::erase_if(npu.queues[*old], [&](auto& entry) { return entry.first == stream; });
    if (!ends) {
      stream->phase = stream->phases.front();
      stream->phases.pop_front();
      auto& queue = npu.queues[stream->phase->queue];
      auto place = queue.begin();
      while (place != queue.end() &&
             (place->second || place->first->priority >= stream->priority)) {
        ++place;
      }
      queue.insert(place, {stream, false});
    }
    if (old) StartWaiting(npu, *old);
    if (!ends) StartWaiting(npu, stream->phase->queue);
  }
  void StartWaiting(Npu& npu, int64_t number) {
    const int64_t most = (system_.active_chunks + system_.queues - 1) / system_.queues;
    while (true) {
      auto& queue = npu.queues[number];
      const auto runs = [](const auto& entry) { return entry.second; };
      if (std::ranges::count_if(queue, runs) >= most) return;
      const auto next = std::ranges::find_if_not(queue, runs);
      if (next == queue.end()) return;
      next->second = true;
      Begin(StreamPtr(next->first));
    }
  }

  // ---- algorithms

  static int64_t Wrap(int64_t index, int64_t p) { return (index % p + p) % p; }
  static int64_t Log2(int64_t p) {
    int64_t log = 0;
    while ((int64_t{1} << (log + 1)) <= p) ++log;
    return log;
  }

  void Begin(const StreamPtr& stream) {
    Stream& s = *stream;
    if (s.custom != nullptr) return BeginCustom(stream);
    const Phase& phase = *s.phase;
    if (phase.type == CollectiveType::kBarrier) {
      s.far = 1;
      return Bundle(stream, {}, [this, stream] { Disseminate(stream); });
    }
    if (IsTree(phase.type)) return BeginBinomial(stream);
    if (phase.choice.algorithm == CollectiveAlgorithm::kDoubleBinaryTree) {
      return BeginTree(stream);
    }
    const auto p = static_cast<int64_t>(phase.npus.size());
    const CollectiveType type = phase.type;
    const bool all_reduce = type == CollectiveType::kAllReduce;
    s.packets.clear();
    s.par = 1;
    s.free = s.zero = s.nonzero = s.received = 0;
    s.toggle = false;
    s.receiver = Wrap(phase.me + (phase.backward ? -1 : 1), p);
    s.sender = Wrap(phase.me - (phase.backward ? -1 : 1), p);
    s.msg = type == CollectiveType::kAllGather ? phase.bytes : phase.bytes / p;
    s.stream_count = all_reduce ? 2 * (p - 1) : p - 1;
    switch (phase.choice.algorithm) {
      case CollectiveAlgorithm::kRing:
        if (type == CollectiveType::kAllToAll) s.stream_count = p * (p - 1) / 2;
        s.nonzero_of_round = p - 1;
        break;
      case CollectiveAlgorithm::kDirect:
        if (!phase.choice.window || *phase.choice.window > p - 1) {
          s.par = p - 1;
        } else {
          s.par = *phase.choice.window;
        }
        s.nonzero_of_round = phase.local ? (p - 1) * s.par : s.par;
        break;
      case CollectiveAlgorithm::kHalvingDoubling:
        s.stream_count = all_reduce ? 2 * Log2(p) : Log2(p);
        s.nonzero_of_round = Log2(p) - 1;
        s.msg = phase.bytes / 2;
        s.offset = 1;
        s.factor = 2;
        if (type == CollectiveType::kAllGather) {
          s.msg = phase.bytes;
          s.offset = static_cast<double>(p) / 2;
          s.factor = 0.5;
        }
        Pair(s);
        break;
      case CollectiveAlgorithm::kBidirectionalRing:
      case CollectiveAlgorithm::kBruck:
      case CollectiveAlgorithm::kPat:
      case CollectiveAlgorithm::kSlicedAllReduce:
      case CollectiveAlgorithm::kDoubleBinaryTree:
      case CollectiveAlgorithm::kInNetwork:
      case CollectiveAlgorithm::kBinomialTree:
      case CollectiveAlgorithm::kDissemination: break;
    }
    for (int64_t i = 0; i < s.par; ++i) Insert(stream);
  }
  static void Pair(Stream& s) {
    const auto p = static_cast<int64_t>(s.phase->npus.size());
    const auto offset = static_cast<int64_t>(s.offset);
    const int64_t me = s.phase->me;
    const bool clockwise = offset == 0 || (me / offset) % 2 == 0;
    s.receiver = s.sender = Wrap(clockwise ? me + offset : me - offset, p);
  }

  void Insert(const StreamPtr& stream) {
    Stream& s = *stream;
    const Phase& phase = *s.phase;
    if (s.zero == 0 && s.nonzero == 0) {
      s.zero = s.par;
      s.nonzero = s.nonzero_of_round;
      s.toggle = !s.toggle;
    }
    const auto npu_at = [&](int64_t index) { return phase.npus[static_cast<size_t>(index)]; };
    s.packets.push_back({npu_at(s.receiver), npu_at(s.sender), s.msg});
    if (s.zero > 0) {
      Bundle(stream, {.bytes = s.msg}, [this, stream] { Step(stream); });
      --s.zero;
    } else {
      const bool reduces = phase.type == CollectiveType::kReduceScatter ||
                           (phase.type == CollectiveType::kAllReduce && s.toggle);
      Bundle(stream,
             {.bytes = s.msg, .came = true, .reduces = reduces, .goes_on = s.nonzero > s.par},
             [this, stream] { Step(stream); });
      --s.nonzero;
    }
    const auto p = static_cast<int64_t>(phase.npus.size());
    if (phase.choice.algorithm == CollectiveAlgorithm::kDirect) {
      const int64_t way = phase.backward ? -1 : 1;
      do {
        s.receiver = Wrap(s.receiver + way, p);
      } while (s.receiver == phase.me);
      do {
        s.sender = Wrap(s.sender - way, p);
      } while (s.sender == phase.me);
    }
    if (phase.choice.algorithm == CollectiveAlgorithm::kHalvingDoubling) {
      const auto next = [&] {
        s.offset *= s.factor;
        s.msg = static_cast<int64_t>(static_cast<double>(s.msg) / s.factor);
      };
      next();
      if (phase.type == CollectiveType::kAllReduce && static_cast<int64_t>(s.offset) == p) {
        s.factor = 0.5;
        next();
      }
      Pair(s);
    }
  }
  void Bundle(const StreamPtr& stream, const Handling& what, const Function& then) {
    const int64_t delay = stream->phase->local ? 10 : system_.endpoint_delay;
    int64_t reduction = 0;
    if (system_.memory_bandwidth > 0) {
      reduction =
          3 * Floor(static_cast<double>(what.bytes) / (system_.memory_bandwidth * 1e9) * 1e9);
    }
    Npu& npu = *stream->npu;
    const Function handled = [this, &npu, reduces = what.reduces, reduction, then] {
      if (!reduces) return then();
      Later(npu, reduction, then);
    };
    if (npu.bus == nullptr || stream->phase->local) return Later(npu, delay, handled);
    if (!what.came) return npu.bus->FromLeft({.bytes = what.bytes, .done = handled});
    npu.bus->FromRight(
        {.bytes = what.bytes, .processed = what.reduces, .back = what.goes_on, .done = handled});
  }
  void Step(const StreamPtr& stream) {
    Stream& s = *stream;
    ++s.free;
    const auto others = static_cast<int64_t>(s.phase->npus.size()) - 1;
    if (s.phase->choice.algorithm == CollectiveAlgorithm::kDirect &&
        s.phase->type == CollectiveType::kAllReduce && s.stream_count <= others) {
      if (s.received < others) return;
      for (int64_t i = 0; i < s.par; ++i) SendPacket(stream);
    } else {
      SendPacket(stream);
    }
    if (s.stream_count == 0 && s.free == s.par) Proceed(stream);
  }
  void SendPacket(const StreamPtr& stream) {
    Stream& s = *stream;
    if (s.packets.empty() || s.stream_count == 0 || s.free == 0) return;
    const Stream::Packet packet = s.packets.front();
    s.packets.pop_front();
    --s.stream_count;
    --s.free;
    messages_.Send(s.npu->id, packet.to, packet.bytes, s.tag, nullptr);
    messages_.Receive(packet.from, s.npu->id, packet.bytes, s.tag, [this, stream] {
      ++stream->received;
      Insert(stream);
    });
  }

  // ---- tree: numbered in order from left to right, with the root at one end

  struct Place {
    int64_t parent = -1;
    std::vector<int64_t> children;
  };
  // Builds the perfect tree with numbers `first` to `first + count - 1`.
  static void Grow(int64_t first, int64_t count, int64_t parent, std::map<int64_t, Place>& tree) {
    const int64_t top = first + count / 2;
    tree[top].parent = parent;
    tree[parent].children.push_back(top);
    if (count == 1) return;
    Grow(first, count / 2, top, tree);
    Grow(top + 1, count / 2, top, tree);
  }
  void BeginTree(const StreamPtr& stream) {
    const Phase& phase = *stream->phase;
    const auto p = static_cast<int64_t>(phase.npus.size());
    std::map<int64_t, Place> tree;
    const int64_t root = phase.mirrored ? 0 : p - 1;
    Grow(phase.mirrored ? 1 : 0, p - 1, root, tree);
    const auto npu_at = [&](int64_t index) { return phase.npus[static_cast<size_t>(index)]; };
    const Place& place = tree[phase.me];
    std::vector<int64_t> children;
    for (const int64_t child : place.children) children.push_back(npu_at(child));
    const bool leaf = children.empty();
    const bool top = phase.me == root;
    const int64_t me = stream->npu->id;
    const int64_t bytes = phase.bytes;
    const int64_t tag = stream->tag;
    const auto down = [=, this] {
      for (const int64_t child : children) messages_.Send(me, child, bytes, tag, nullptr);
      Proceed(stream);
    };
    const int64_t parent = top ? -1 : npu_at(place.parent);
    const auto up = [=, this] {
      if (top) return down();
      messages_.Send(me, parent, bytes, tag, nullptr);
      messages_.Receive(parent, me, bytes, tag, [=, this] {
        Bundle(stream, {.bytes = bytes, .came = true, .reduces = !leaf, .goes_on = !leaf}, down);
      });
    };
    if (leaf) return Bundle(stream, {.bytes = bytes}, up);
    stream->to_come = static_cast<int64_t>(children.size());
    stream->unseen = stream->to_come;
    for (const int64_t child : children) {
      messages_.Receive(child, me, bytes, tag, [=, this] {
        const bool last = --stream->unseen == 0;
        Bundle(stream, {.bytes = bytes, .came = true, .reduces = true, .goes_on = last}, [=] {
          if (--stream->to_come == 0) up();
        });
      });
    }
  }

  // ---- collectives with a root, and barriers

  // Splits ranks from `first` on, counted from the root. The first half, up to a power of two,
  // keeps `first`; the first rank of the other half is its child.
  static void Split(int64_t first, int64_t count, int64_t span,
                    std::map<int64_t, std::list<std::pair<int64_t, int64_t>>>& children) {
    if (span == 1) return;
    const int64_t half = span / 2;
    if (count > half) {
      children[first].emplace_back(first + half, count - half);
      Split(first + half, count - half, half, children);
    }
    Split(first, std::min(count, half), half, children);
  }
  void BeginBinomial(const StreamPtr& stream) {
    const Phase& phase = *stream->phase;
    const CollectiveType type = phase.type;
    const auto p = static_cast<int64_t>(phase.npus.size());
    std::map<int64_t, std::list<std::pair<int64_t, int64_t>>> tree;
    int64_t span = 1;
    while (span < p) span *= 2;
    Split(0, p, span, tree);
    const auto npu_at = [&](int64_t number) {
      return phase.npus[static_cast<size_t>((number + phase.root) % p)];
    };
    const auto size = [&](int64_t ranks) {
      if (type == CollectiveType::kGather) return ranks * phase.bytes;
      if (type == CollectiveType::kScatter) return ranks * (phase.bytes / p);
      return phase.bytes;
    };
    const int64_t number = Wrap(phase.me - phase.root, p);
    std::list<std::pair<int64_t, int64_t>> children;  // NPU, bytes
    for (const auto& [child, ranks] : tree[number]) {
      children.emplace_back(npu_at(child), size(ranks));
    }
    int64_t parent = -1;
    int64_t mine = 0;
    for (const auto& [above, below] : tree) {
      for (const auto& [child, ranks] : below) {
        if (child != number) continue;
        parent = npu_at(above);
        mine = size(ranks);
      }
    }
    const int64_t me = stream->npu->id;
    const int64_t tag = stream->tag;
    const int64_t bytes = phase.bytes;
    if (GoesOut(type)) {
      const auto pass_on = [=, this] {
        for (const auto& [child, much] : children) messages_.Send(me, child, much, tag, nullptr);
        Proceed(stream);
      };
      if (parent < 0) return Bundle(stream, {.bytes = bytes}, pass_on);
      return messages_.Receive(parent, me, mine, tag, [=, this] {
        Bundle(stream, {.bytes = bytes, .came = true, .goes_on = !children.empty()}, pass_on);
      });
    }
    const auto up = [=, this] {
      if (parent >= 0) messages_.Send(me, parent, mine, tag, nullptr);
      Proceed(stream);
    };
    if (children.empty()) return Bundle(stream, {.bytes = bytes}, up);
    stream->to_come = static_cast<int64_t>(children.size());
    stream->unseen = stream->to_come;
    for (const auto& [child, much] : children) {
      messages_.Receive(child, me, much, tag, [=, this] {
        const bool sums = type == CollectiveType::kReduce;
        const bool last = --stream->unseen == 0 && parent >= 0;
        Bundle(stream, {.bytes = bytes, .came = true, .reduces = sums, .goes_on = last}, [=] {
          if (--stream->to_come == 0) up();
        });
      });
    }
  }
  void Disseminate(const StreamPtr& stream) {
    const Phase& phase = *stream->phase;
    const auto p = static_cast<int64_t>(phase.npus.size());
    const int64_t far = stream->far;
    if (far >= p) return Proceed(stream);
    stream->far *= 2;
    const auto npu_at = [&](int64_t index) { return phase.npus[static_cast<size_t>(index)]; };
    messages_.Send(stream->npu->id, npu_at(Wrap(phase.me + far, p)), 0, stream->tag, nullptr);
    messages_.Receive(npu_at(Wrap(phase.me - far, p)), stream->npu->id, 0, stream->tag,
                      [this, stream, more = 2 * far < p] {
                        Bundle(stream, {.came = true, .goes_on = more},
                               [this, stream] { Disseminate(stream); });
                      });
  }

  // ---- collectives defined by programs

  void BeginCustom(const StreamPtr& stream) {
    stream->waits = stream->custom->program->waits;
    stream->left = stream->waits.size();
    const std::vector<uint32_t> waits = stream->waits;
    for (uint32_t i = 0; i < waits.size(); ++i) {
      if (waits[i] == 0) IssueCustom(stream, i);
    }
  }
  void IssueCustom(const StreamPtr& stream, uint32_t index) {
    const SimNode& node = stream->custom->program->nodes[index];
    const int64_t peer = stream->custom->PeerOf(node);
    const Function done = [this, stream, index] {
      if (--stream->left == 0) return Proceed(stream);
      for (const uint32_t child : stream->custom->program->children[index]) {
        if (--stream->waits[child] == 0) IssueCustom(stream, child);
      }
    };
    Npu& npu = *stream->npu;
    const bool sends = node.kind == NodeKind::kSend;
    if (!sends && node.kind != NodeKind::kRecv) return Later(npu, Recorded(node), done);
    if (peer < 0 || peer >= total_) return Fail("no such rank");
    if (sends) return messages_.Send(npu.id, peer, node.bytes, node.tag % kTags, done);
    messages_.Receive(peer, npu.id, node.bytes, node.tag % kTags, done);
  }

  const SimMachine& machine_;
  const SystemModel& system_;
  const SimWorkload& workload_;
  Clock clock_;
  Network network_;
  Messages messages_;
  const int64_t total_;
  std::list<Npu> npus_;
  std::map<int64_t, int64_t> memory_free_;
  std::optional<std::string> failed_;
};

// Simulates each rank individually. The machine must have as many NPUs as there are programs, and a
// single dimension with congestion.
inline Result<SimResult> Simulate(const SimMachine& machine, const SimWorkload& workload) {
  for (const auto& [type, choices] : machine.system.algorithms) {
    for (const AlgorithmChoice& choice : choices) {
      if (choice.algorithm == CollectiveAlgorithm::kInNetwork) return BadInput("no switches");
    }
  }
  return Engine(machine, workload).Run();
}

}  // namespace etude::plain
