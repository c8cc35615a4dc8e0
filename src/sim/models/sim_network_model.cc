#include "src/sim/models/sim_network_model.h"

#include <deque>
#include <utility>
#include <vector>

#include "src/sim/models/flow_network.h"
#include "src/sim/models/queued_links.h"

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
  bool Arrive(const SimEvent& /*event*/) override { return true; }
  void FreeLink(const SimEvent& /*event*/) override {}
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

// Links of one dimension that carry whole messages one after the other. With classes of ranks, a
// link represents all links of its class.
class AwareNetwork final : public SimNetworkModel {
 public:
  AwareNetwork(const SimInput& input, SimTimeline& timeline, TieWatch& ties)
      : input_(input),
        dim_(input.machine.dims[0]),
        paths_(input.machine),
        travel_(input.travel),
        bytes_per_ns_(travel_.BytesPerNano(0)),
        timeline_(timeline),
        ties_(ties),
        links_(paths_.count()) {
    if (travel_.faults().empty()) return;
    for (SimIndex link = 0; link < links_.size(); ++link) {
      faults_.push_back(paths_.FaultOf(link, travel_.faults()));
    }
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
  bool Arrive(const SimEvent& event) override {
    const Transfer& transfer = transfers_[event.subject];
    if (transfer.at == transfer.to) return true;
    const bool at_switch = transfer.at == input_.total;
    // A message at the switch counts as from its sender, others as from the link that they crossed.
    const SimIndex next = paths_.Next(transfer.at, transfer.from, transfer.to).link;
    const bool ahead = next < static_cast<SimIndex>(input_.total);
    ties_.Begin(at_switch ? ties_.PortOf(input_.ClassOf(transfer.to)) : input_.ClassOf(transfer.at),
                timeline_.now(),
                {.planned = event.planned,
                 .cause = event.cause,
                 .source = input_.ClassOf(at_switch ? transfer.from : transfer.at),
                 .to = at_switch ? transfer.to
                       : ahead   ? kFromBehind
                                 : kFromAhead});
    EnterLink(event.subject);
    return false;
  }
  void FreeLink(const SimEvent& event) override {
    const auto [from, to] = paths_.EndsOf(event.subject);
    ties_.Begin(from == input_.total ? ties_.PortOf(input_.ClassOf(to)) : input_.ClassOf(from),
                timeline_.now(), {.planned = event.planned, .cause = event.cause});
    const SimIndex one = ClassOf(event.subject);
    ties_.TouchLink(one);
    Link& link = links_[one];
    link.busy = false;
    if (link.waiting.empty()) return;
    const SimIndex message = link.waiting.front();
    link.waiting.pop_front();
    link.use.waited += timeline_.now() - transfers_[message].since;
    UseLink(message);
  }
  std::vector<SimLinkUse> Links() const override {
    std::vector<SimLinkUse> links;
    for (SimIndex link = 0; link < links_.size(); ++link) {
      const SimLinkUse& use = links_[ClassOf(link)].use;
      if (use.messages == 0) continue;
      links.push_back(use);
      const auto [from, to] = paths_.EndsOf(link);
      links.back().from = from;
      links.back().to = to;
    }
    return links;
  }

 private:
  // Directions of a ring, in place of a rank.
  static constexpr int64_t kFromBehind = -2;
  static constexpr int64_t kFromAhead = -3;

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

  // Returns the link that represents a link.
  SimIndex ClassOf(SimIndex link) const {
    return input_.classes.class_of_link.empty() ? link : input_.classes.class_of_link[link];
  }
  void EnterLink(SimIndex message) {
    Transfer& transfer = transfers_[message];
    const SimIndex one = ClassOf(paths_.Next(transfer.at, transfer.from, transfer.to).link);
    ties_.TouchLink(one);
    Link& link = links_[one];
    if (link.busy) {
      transfer.since = timeline_.now();
      link.waiting.push_back(message);
    } else {
      UseLink(message);
    }
  }
  void UseLink(SimIndex message) {
    Transfer& transfer = transfers_[message];
    const auto [link, next] = paths_.Next(transfer.at, transfer.from, transfer.to);
    Link& used = links_[ClassOf(link)];
    used.busy = true;
    const LinkFault fault = faults_.empty() ? LinkFault{} : faults_[link];
    const double load = static_cast<double>(transfer.bytes) / (bytes_per_ns_ * fault.share);
    const int64_t busy = WholeNanos(load);
    const int64_t now = timeline_.now();
    ++used.use.messages;
    used.use.bytes += transfer.bytes;
    used.use.busy += busy;
    transfer.at = next;
    timeline_.Plan(now + WholeNanos(dim_.latency + fault.latency + load), SimEventKind::kArrival,
                   message);
    if (busy == 0) ties_.PlansAfter();
    timeline_.Plan(now + busy, SimEventKind::kLinkFree, link);
  }

  const SimInput& input_;
  const NetworkDim& dim_;
  const QueuedLinks paths_;
  const Travel& travel_;
  const double bytes_per_ns_;
  SimTimeline& timeline_;
  TieWatch& ties_;
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
  bool Arrive(const SimEvent& /*event*/) override { return true; }
  void FreeLink(const SimEvent& /*event*/) override {}
  std::vector<SimLinkUse> Links() const override { return {}; }

 private:
  const CollectiveTimes& times_;
  SimTimeline& timeline_;
};

}  // namespace

std::unique_ptr<SimNetworkModel> MakeSimNetworkModel(const SimInput& input, SimTimeline& timeline,
                                                     TieWatch& ties) {
  if (input.machine.times != nullptr) {
    return std::make_unique<TimedNetwork>(*input.machine.times, timeline);
  }
  if (input.machine.graph != nullptr) return MakeFlowNetwork(input, timeline, ties);
  if (input.machine.congestion) return std::make_unique<AwareNetwork>(input, timeline, ties);
  return std::make_unique<UnawareNetwork>(input, timeline);
}

}  // namespace etude
