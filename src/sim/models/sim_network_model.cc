#include "src/sim/models/sim_network_model.h"

#include <deque>
#include <utility>
#include <vector>

#include "src/sim/models/flow_network.h"

namespace etude {
namespace {

// Network without queues: messages do not delay each other.
class UnawareNetwork final : public SimNetworkModel {
 public:
  UnawareNetwork(const SimInput& input, SimTimeline& timeline)
      : input_(input),
        timeline_(timeline),
        last_(input.class_count()),
        sent_(input.class_count() * input.machine.dims.size()) {}

  std::string_view name() const override { return "astra-sim-2.0/analytical-unaware"; }
  Travel::Parts Send(SimIndex message, int64_t from, int64_t to, int64_t bytes) override {
    const size_t source = input_.ClassOf(from).index();
    Last& last = last_[source];
    if (last.to != to || last.bytes != bytes) {
      const Travel::Way way = input_.travel.WayOf(from, to);
      last = {.to = to,
              .bytes = bytes,
              .way = way,
              .time = input_.travel.Time(way, bytes),
              .parts = input_.travel.PartsOf(way, bytes)};
    }
    if (last.way.hops > 0) {
      Sent& sent = sent_[source * input_.machine.dims.size() + last.way.dim];
      ++sent.messages;
      sent.bytes += bytes;
      sent.hop_bytes += bytes * last.way.hops;
    }
    timeline_.Plan(timeline_.now() + last.time, SimEventKind::kArrival, message);
    return last.parts;
  }
  bool Arrive(SimIndex /*message*/) override { return true; }
  void FreeLink(SimIndex /*link*/) override {}
  std::vector<SimLinkUse> Links() const override {
    std::vector<SimLinkUse> links;
    const size_t dims = input_.machine.dims.size();
    for (size_t i = 0; i < sent_.size(); ++i) {
      if (sent_[i].messages == 0) continue;
      SimLinkUse& link = links.emplace_back();
      link.from = static_cast<int64_t>(i / dims);
      link.dim = i % dims;
      link.messages = sent_[i].messages;
      link.bytes = sent_[i].bytes;
      link.hop_bytes = sent_[i].hop_bytes;
    }
    return links;
  }

 private:
  // Last message of a rank; most ranks send the same again.
  struct Last {
    int64_t to = -1;
    int64_t bytes = 0;
    Travel::Way way;
    int64_t time = 0;  // ns
    Travel::Parts parts;
  };
  struct Sent {
    uint64_t messages = 0;
    int64_t bytes = 0;
    int64_t hop_bytes = 0;  // times the links on the way
  };

  const SimInput& input_;
  SimTimeline& timeline_;
  std::vector<Last> last_;  // by class of ranks
  std::vector<Sent> sent_;  // by class of ranks and dimension
};

// Links of one dimension that carry whole messages one after the other.
class AwareNetwork final : public SimNetworkModel {
 public:
  AwareNetwork(const SimInput& input, SimTimeline& timeline)
      : dim_(input.machine.dims[0]),
        total_(input.total),
        travel_(input.travel),
        bytes_per_ns_(travel_.BytesPerNano(0)),
        timeline_(timeline) {
    const auto npus = static_cast<size_t>(total_);
    links_.resize(dim_.shape == NetworkShape::kFullyConnected ? npus * npus : 2 * npus);
    FindFaults(travel_.faults());
  }

  std::string_view name() const override { return "astra-sim-2.0/analytical-aware"; }
  Travel::Parts Send(SimIndex message, int64_t from, int64_t to, int64_t bytes) override {
    if (message >= transfers_.size()) transfers_.resize(message + size_t{1});
    transfers_[message] = {.at = from, .from = from, .to = to, .bytes = bytes, .since = 0};
    if (from == to) {
      timeline_.Plan(timeline_.now(), SimEventKind::kArrival, message);
    } else {
      EnterLink(message);
    }
    return travel_.PartsOf(travel_.WayOf(from, to), bytes);
  }
  bool Arrive(SimIndex message) override {
    if (transfers_[message].at == transfers_[message].to) return true;
    EnterLink(message);
    return false;
  }
  void FreeLink(SimIndex index) override {
    Link& link = links_[index];
    link.busy = false;
    if (link.waiting.empty()) return;
    const SimIndex message = link.waiting.front();
    link.waiting.pop_front();
    link.use.waited += timeline_.now() - transfers_[message].since;
    UseLink(message);
  }
  std::vector<SimLinkUse> Links() const override {
    std::vector<SimLinkUse> links;
    for (const Link& link : links_) {
      if (link.use.messages > 0) links.push_back(link.use);
    }
    return links;
  }

 private:
  struct Transfer {
    int64_t at = 0;  // current device
    int64_t from = 0;
    int64_t to = 0;
    int64_t bytes = 0;
    int64_t since = 0;  // begin of its wait for a link
  };
  struct Link {
    bool busy = false;
    SimLinkUse use;
    std::deque<SimIndex> waiting;  // messages
  };

  // Returns the next link of the message and the device at its other end. The switch is `total_`.
  std::pair<SimIndex, int64_t> NextLink(const Transfer& message) const {
    switch (dim_.shape) {
      case NetworkShape::kFullyConnected:
        return {static_cast<SimIndex>(message.from * total_ + message.to), message.to};
      case NetworkShape::kSwitch:
        if (message.at == total_) return {static_cast<SimIndex>(total_ + message.to), message.to};
        return {static_cast<SimIndex>(message.from), total_};
      case NetworkShape::kGraph:
      case NetworkShape::kRing: break;
    }
    const int64_t ahead = (message.to + total_ - message.from) % total_;
    if (ahead <= total_ - ahead) {
      return {static_cast<SimIndex>(message.at), (message.at + 1) % total_};
    }
    return {static_cast<SimIndex>(total_ + message.at), (message.at + total_ - 1) % total_};
  }
  void FindFaults(const LinkFaults& faults) {
    if (faults.empty()) return;
    faults_.resize(links_.size());
    const auto ends = [&](int64_t link, int64_t from, int64_t to) {
      faults_[static_cast<size_t>(link)] = faults.Of(0, from, to);
    };
    for (int64_t from = 0; from < total_; ++from) {
      switch (dim_.shape) {
        case NetworkShape::kGraph: break;
        case NetworkShape::kFullyConnected:
          for (int64_t to = 0; to < total_; ++to) ends(from * total_ + to, from, to);
          break;
        case NetworkShape::kSwitch:
          ends(from, from, LinkFaults::kSwitch);
          ends(total_ + from, from, LinkFaults::kSwitch);
          break;
        case NetworkShape::kRing:
          ends(from, from, (from + 1) % total_);
          ends(total_ + from, from, (from + total_ - 1) % total_);
          break;
      }
    }
  }
  void EnterLink(SimIndex message) {
    Link& link = links_[NextLink(transfers_[message]).first];
    if (link.busy) {
      transfers_[message].since = timeline_.now();
      link.waiting.push_back(message);
    } else {
      UseLink(message);
    }
  }
  void UseLink(SimIndex message) {
    Transfer& transfer = transfers_[message];
    const auto [link, next] = NextLink(transfer);
    links_[link].busy = true;
    const LinkFault fault = faults_.empty() ? LinkFault{} : faults_[link];
    const double load = static_cast<double>(transfer.bytes) / (bytes_per_ns_ * fault.share);
    const int64_t now = timeline_.now();
    SimLinkUse& use = links_[link].use;
    use.from = transfer.at;
    use.to = next;
    ++use.messages;
    use.bytes += transfer.bytes;
    use.busy += WholeNanos(load);
    transfer.at = next;
    timeline_.Plan(now + WholeNanos(dim_.latency + fault.latency + load), SimEventKind::kArrival,
                   message);
    timeline_.Plan(now + WholeNanos(load), SimEventKind::kLinkFree, link);
  }

  const NetworkDim& dim_;
  const int64_t total_;
  const Travel& travel_;
  const double bytes_per_ns_;
  SimTimeline& timeline_;
  std::vector<Link> links_;
  std::vector<LinkFault> faults_;    // by link; empty: none
  std::vector<Transfer> transfers_;  // by message
};

// Messages of known times, which do not delay each other.
class TimedNetwork final : public SimNetworkModel {
 public:
  TimedNetwork(const CollectiveTimes& times, SimTimeline& timeline)
      : times_(times), timeline_(timeline) {}

  std::string_view name() const override { return times_.name(); }
  // SimExecution refuses messages of unknown times.
  Travel::Parts Send(SimIndex message, int64_t from, int64_t to, int64_t bytes) override {
    const auto time = times_.TimeOfMessage(from, to, bytes);
    const Travel::Parts parts{.transfer = time ? time->nanos : 0};
    timeline_.Plan(timeline_.now() + parts.transfer, SimEventKind::kArrival, message);
    return parts;
  }
  bool Arrive(SimIndex /*message*/) override { return true; }
  void FreeLink(SimIndex /*link*/) override {}
  std::vector<SimLinkUse> Links() const override { return {}; }

 private:
  const CollectiveTimes& times_;
  SimTimeline& timeline_;
};

}  // namespace

std::unique_ptr<SimNetworkModel> MakeSimNetworkModel(const SimInput& input, SimTimeline& timeline) {
  if (input.machine.times != nullptr) {
    return std::make_unique<TimedNetwork>(*input.machine.times, timeline);
  }
  if (input.machine.graph != nullptr) return MakeFlowNetwork(input, timeline);
  if (input.machine.congestion) return std::make_unique<AwareNetwork>(input, timeline);
  return std::make_unique<UnawareNetwork>(input, timeline);
}

}  // namespace etude
