#include "src/sim/models/shared_bus.h"

#include <algorithm>

#include "src/sim/machine/travel.h"

namespace etude {
namespace {

constexpr double kInnerNanosOfByte = 0.0038;
// Maximum of consecutive sends of an end before the other end goes first.
constexpr int64_t kMostInRow = 8;
constexpr int64_t kReductionStart = 50;  // ns

}  // namespace

SharedBuses::SharedBuses(const SharedBus& bus, const SimInput& input, SimTimeline& timeline,
                         HandlingListener& listener)
    : bus_(bus), timeline_(timeline), listener_(listener), buses_(input.class_count()) {}

void SharedBuses::Carry(RankClassId rank_class, const Handling& handling,
                        const LocalEvent& handled) {
  const Transfer transfer{.bytes = handling.bytes,
                          .reduces = handling.came && handling.reduces,
                          .returns = handling.came && handling.goes_on,
                          .handled = handled};
  if (handling.came) return Request(rank_class, kMemory, transfer);
  GoInside(rank_class, kInnerMemory, transfer, Then::kSend, false);
}

void SharedBuses::Do(RankClassId rank_class, const LocalEvent& event) {
  const auto end = static_cast<End>(event.subject);
  switch (event.kind) {
    case LocalKind::kBusSent: Sent(rank_class, end); break;
    case LocalKind::kBusCame: Came(rank_class, end); break;
    case LocalKind::kBusReduced: Reduced(rank_class); break;
    default: return;
  }
  SendNext(rank_class, end);
}

void SharedBuses::Request(RankClassId rank_class, End end, const Transfer& transfer) {
  buses_[rank_class.index()].ports[end].to_send.push_back(transfer);
  SendNext(rank_class, end);
}

void SharedBuses::GoInside(RankClassId rank_class, End from, const Transfer& outer, Then then,
                           bool returns) {
  Request(rank_class, from,
          {.bytes = outer.bytes, .returns = returns, .outer = outer_.Add(outer), .then = then});
}

void SharedBuses::Sent(RankClassId rank_class, End end) {
  Port& port = buses_[rank_class.index()].ports[end];
  port.since = timeline_.now();
  port.did = port.does;
  port.does = Does::kNothing;
  ++port.in_row;
}

void SharedBuses::Came(RankClassId rank_class, End end) {
  Port& port = buses_[rank_class.index()].ports[end];
  port.since = timeline_.now();
  port.did = port.does;
  if (port.coming.size() < 2) port.does = Does::kNothing;
  Transfer transfer = port.coming.front();
  port.coming.pop_front();
  if (transfer.reduces) {  // only at the NPU's end
    transfer.reduces = false;
    GoInside(rank_class, kInnerNpu, transfer, Then::kReduce, true);
  } else if (transfer.returns) {
    transfer.returns = false;
    if (end == kNpu) {
      GoInside(rank_class, kInnerNpu, transfer, Then::kSend, true);
    } else {
      port.to_send.push_back(transfer);
    }
  } else if (end == kNpu) {
    GoInside(rank_class, kInnerNpu, transfer, Then::kFinish, false);
  } else if (end == kMemory) {
    listener_.Handled(transfer.handled);
  } else {
    BackFromInside(rank_class, transfer);
  }
}

void SharedBuses::BackFromInside(RankClassId rank_class, const Transfer& inner) {
  const Transfer outer = outer_.Take(inner.outer);
  switch (inner.then) {
    case Then::kFinish: listener_.Handled(outer.handled); break;
    case Then::kSend: buses_[rank_class.index()].ports[kNpu].to_send.push_back(outer); break;
    case Then::kReduce:
      buses_[rank_class.index()].reductions.push_back(outer);
      if (buses_[rank_class.index()].reductions.size() == 1) PlanReduction(rank_class);
      break;
  }
  SendNext(rank_class, kNpu);
}

void SharedBuses::PlanReduction(RankClassId rank_class) {
  const double hundreds =
      static_cast<double>(buses_[rank_class.index()].reductions.front().bytes / 100);
  const double time = hundreds * static_cast<double>(bus_.reduction) + kReductionStart;
  timeline_.PlanLocal(rank_class, WholeNanos(time),
                      {.kind = LocalKind::kBusReduced, .subject = kNpu});
}

void SharedBuses::Reduced(RankClassId rank_class) {
  std::list<Transfer>& reductions = buses_[rank_class.index()].reductions;
  Transfer transfer = reductions.front();
  reductions.pop_front();
  const bool returns = transfer.returns;
  transfer.returns = false;
  GoInside(rank_class, kInnerNpu, transfer, returns ? Then::kSend : Then::kFinish, returns);
  if (!reductions.empty()) PlanReduction(rank_class);
}

// Sends the next transfer if the end can.
void SharedBuses::SendNext(RankClassId rank_class, End end) {
  Port& port = buses_[rank_class.index()].ports[end];
  Port& other = buses_[rank_class.index()].ports[Other(end)];
  if (port.does != Does::kNothing || port.to_send.empty()) return;
  if (port.in_row > kMostInRow && !other.to_send.empty() && other.in_row <= kMostInRow) {
    return SendNext(rank_class, Other(end));
  }
  const int64_t since = timeline_.now() - port.since;
  const bool gaps = port.did == Does::kSends && bus_.overhead + since <= bus_.gap;
  const auto start = static_cast<double>(gaps ? bus_.gap - since : bus_.overhead);
  const Transfer transfer = port.to_send.front();
  port.to_send.pop_front();
  const double of_byte = end < kInnerNpu ? bus_.nanos_of_byte : kInnerNanosOfByte;
  const double sending = start + static_cast<double>(transfer.bytes - 1) * of_byte;
  const double coming =
      sending + static_cast<double>(bus_.latency) + static_cast<double>(bus_.overhead);
  const auto plan = [&](double time, LocalKind kind, End at) {
    timeline_.PlanLocal(rank_class, WholeNanos(std::max(time, 0.0)), {.kind = kind, .subject = at});
  };
  other.coming.push_back(transfer);
  other.did = other.does;
  other.does = Does::kReceives;
  other.in_row = 0;
  plan(coming, LocalKind::kBusCame, Other(end));
  port.does = Does::kSends;
  plan(sending, LocalKind::kBusSent, end);
}

}  // namespace etude
