#include "src/sim/sim_messages.h"

#include <optional>

namespace etude {
namespace {

constexpr int64_t kRendezvousBytes = 8192;

template <typename T>
SimIndex Keep(std::vector<T>& all, std::vector<SimIndex>& unused, const T& value) {
  if (unused.empty()) {
    all.push_back(value);
    return static_cast<SimIndex>(all.size() - 1);
  }
  const SimIndex index = unused.back();
  unused.pop_back();
  all[index] = value;
  return index;
}

}  // namespace

void SimMessages::Send(const SimMessage& message) {
  if (!input_.system.rendezvous) return SendNow(message);
  held_.push_back(message);
  Post({.kind = MessageReceiver::Kind::kSend,
        .rank = message.source,
        .subject = static_cast<SimIndex>(held_.size() - 1)},
       {.tag = message.tag + kRendezvousTag,
        .bytes = kRendezvousBytes,
        .ordinal = message.ordinal,
        .source = message.target,
        .target = message.source});
}

void SimMessages::SendNow(const SimMessage& message) {
  ++sent_;
  network_.Send(Keep(messages_, free_messages_, message), message.from, message.to, message.bytes);
}

void SimMessages::Receive(const MessageReceiver& receiver, const MatchKey& key, int64_t from) {
  if (!input_.system.rendezvous) return Post(receiver, key);
  // At the arrival of what tells the sender the receive is posted.
  posted_.emplace_back(receiver, key);
  SendNow({.bytes = kRendezvousBytes,
           .tag = key.tag + kRendezvousTag,
           .ordinal = key.ordinal,
           .source = key.target,
           .target = key.source,
           .from = input_.PlaceOf(key.target),
           .to = from,
           .sender = {.kind = MessageReceiver::Kind::kPostReceive,
                      .rank = key.target,
                      .subject = static_cast<SimIndex>(posted_.size() - 1)}});
}

void SimMessages::Post(const MessageReceiver& receiver, const MatchKey& key) {
  ties_.TouchMail(HashOf(key), receiver.kind == MessageReceiver::Kind::kStream
                                   ? TieWatch::Mail::kPostedByStream
                                   : TieWatch::Mail::kPostedByNode);
  if (!mailbox_.Post(key, receiver)) return;
  timeline_.Plan(timeline_.now(), SimEventKind::kReceived,
                 Keep(receipts_, free_receipts_, receiver));
}

void SimMessages::Tell(const MessageReceiver& receiver) {
  switch (receiver.kind) {
    case MessageReceiver::Kind::kSend: return SendNow(held_[receiver.subject]);
    case MessageReceiver::Kind::kPostReceive: {
      const auto [who, key] = posted_[receiver.subject];
      return Post(who, key);
    }
    case MessageReceiver::Kind::kNobody:
    case MessageReceiver::Kind::kNode:
    case MessageReceiver::Kind::kStream:
    case MessageReceiver::Kind::kCustom: return listener_.Tell(receiver);
  }
}

void SimMessages::Received(const SimEvent& event) {
  const MessageReceiver receiver = receipts_[event.subject];
  free_receipts_.push_back(event.subject);
  ties_.Begin(receiver.rank, timeline_.now(), {.planned = event.planned, .cause = event.cause});
  Tell(receiver);
}

void SimMessages::Arrive(const SimEvent& event) {
  if (!network_.Arrive(event.subject)) return;
  const SimMessage message = messages_[event.subject];
  free_messages_.push_back(event.subject);
  if (message.sender.kind != MessageReceiver::Kind::kNobody) {
    ties_.Begin(message.source, timeline_.now(), {.planned = event.planned, .cause = event.cause});
    Tell(message.sender);
  }
  ties_.Begin(
      message.target, timeline_.now(),
      {.planned = event.planned, .cause = event.cause, .source = message.source, .to = message.to});
  const MatchKey key = KeyOf(message);
  ties_.TouchMail(HashOf(key), TieWatch::Mail::kDelivered);
  const std::optional<MessageReceiver> receiver = mailbox_.Deliver(key);
  if (receiver) Tell(*receiver);
}

}  // namespace etude
