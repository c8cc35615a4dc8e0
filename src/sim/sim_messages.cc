#include "src/sim/sim_messages.h"

#include <optional>

namespace etude {
namespace {

constexpr int64_t kRendezvousBytes = 8192;

}  // namespace

void SimMessages::Send(const SimMessage& message) {
  if (!input_.system.rendezvous) return SendNow(message);
  Post(
      {.kind = MessageReceiver::Kind::kSend, .rank = message.source, .subject = held_.Add(message)},
      {.tag = message.tag + kRendezvousTag,
       .bytes = kRendezvousBytes,
       .ordinal = message.ordinal,
       .source = message.target,
       .target = message.source});
}

void SimMessages::SendNow(const SimMessage& message) {
  ++sent_;
  network_.Send(messages_.Add(message), message.from, message.to, message.bytes);
}

void SimMessages::Receive(const MessageReceiver& receiver, const MatchKey& key, int64_t from) {
  if (!input_.system.rendezvous) return Post(receiver, key);
  // At the arrival of what tells the sender the receive is posted.
  SendNow({.bytes = kRendezvousBytes,
           .tag = key.tag + kRendezvousTag,
           .ordinal = key.ordinal,
           .source = key.target,
           .target = key.source,
           .from = input_.PlaceOf(key.target),
           .to = from,
           .sender = {.kind = MessageReceiver::Kind::kPostReceive,
                      .rank = key.target,
                      .subject = posted_.Add({receiver, key})}});
}

void SimMessages::Post(const MessageReceiver& receiver, const MatchKey& key) {
  if (input_.by_class) {
    ties_.TouchMail(HashOf(key), receiver.kind == MessageReceiver::Kind::kStream
                                     ? TieWatch::Mail::kPostedByStream
                                     : TieWatch::Mail::kPostedByNode);
  }
  if (!mailbox_.Post(key, receiver)) return;
  timeline_.Plan(timeline_.now(), SimEventKind::kReceived, receipts_.Add(receiver));
}

void SimMessages::Tell(const MessageReceiver& receiver) {
  switch (receiver.kind) {
    case MessageReceiver::Kind::kSend: return SendNow(held_.Take(receiver.subject));
    case MessageReceiver::Kind::kPostReceive: {
      const auto [who, key] = posted_.Take(receiver.subject);
      return Post(who, key);
    }
    case MessageReceiver::Kind::kNobody:
    case MessageReceiver::Kind::kNode:
    case MessageReceiver::Kind::kStream:
    case MessageReceiver::Kind::kCustom: return listener_.Tell(receiver);
  }
}

void SimMessages::Received(const SimEvent& event) {
  const MessageReceiver receiver = receipts_.Take(event.subject);
  ties_.Begin(receiver.rank, timeline_.now(), {.planned = event.planned, .cause = event.cause});
  Tell(receiver);
}

void SimMessages::Arrive(const SimEvent& event) {
  if (!network_.Arrive(event.subject)) return;
  const SimMessage message = messages_.Take(event.subject);
  if (message.sender.kind != MessageReceiver::Kind::kNobody) {
    ties_.Begin(message.source, timeline_.now(), {.planned = event.planned, .cause = event.cause});
    Tell(message.sender);
  }
  ties_.Begin(
      message.target, timeline_.now(),
      {.planned = event.planned, .cause = event.cause, .source = message.source, .to = message.to});
  const MatchKey key = KeyOf(message);
  if (input_.by_class) ties_.TouchMail(HashOf(key), TieWatch::Mail::kDelivered);
  const std::optional<MessageReceiver> receiver = mailbox_.Deliver(key);
  if (receiver) Tell(*receiver);
}

}  // namespace etude
