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

void SimMessages::Received(SimIndex receipt, int64_t planned) {
  const MessageReceiver receiver = receipts_.Take(receipt);
  coincidences_.AddOwn(receiver.rank, timeline_.now(), planned);
  Tell(receiver);
}

void SimMessages::Arrive(SimIndex index, int64_t planned) {
  if (!network_.Arrive(index)) return;
  const SimMessage message = messages_.Take(index);
  if (message.sender.kind != MessageReceiver::Kind::kNobody) {
    coincidences_.AddOwn(message.source, timeline_.now(), planned);
    Tell(message.sender);
  }
  const std::optional<MessageReceiver> receiver = mailbox_.Deliver(KeyOf(message));
  const bool is_stream = receiver && receiver->kind == MessageReceiver::Kind::kStream;
  coincidences_.Add(message.target, timeline_.now(), planned, message.source, message.to,
                    is_stream ? receiver->subject : kNoIndex);
  if (receiver) Tell(*receiver);
}

}  // namespace etude
