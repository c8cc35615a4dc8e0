#include "src/sim/engine/sim_messages.h"

#include <optional>

namespace etude {
namespace {

constexpr int64_t kRendezvousBytes = 8192;
// TieWatch::Origin::to of the arrival at rank r is kFirstOfLinks - r, which is no rank and none of
// the numbers of a network's links.
constexpr int64_t kFirstOfLinks = -16;

}  // namespace

void SimMessages::Send(const SimMessage& message, const SimChain* chain) {
  if (!input_.system.rendezvous) return SendNow(message, chain);
  Post({.kind = MessageReceiver::Kind::kSend,
        .rank_class = message.source,
        .subject = held_.Add(message)},
       {.tag = message.tag + kRendezvousTag,
        .bytes = kRendezvousBytes,
        .ordinal = message.ordinal,
        .source = message.target,
        .target = message.source},
       chain);
}

void SimMessages::SendNow(SimMessage message, const SimChain* chain) {
  ++sent_;
  message.chain = chain == nullptr ? kNoIndex : chains_.Add(*chain);
  const Travel::Parts parts =
      network_.Send(messages_.Add(message), message.from, message.to, message.bytes);
  // Control messages serve the rendezvous only.
  if (chain == nullptr || message.sender.kind == MessageReceiver::Kind::kPostReceive) return;
  SimChain& on_way = chains_[message.chain];
  on_way.latency += parts.latency;
  on_way.transfer += parts.transfer;
  on_way.until += parts.latency + parts.transfer;
}

Status SimMessages::SendBySwitches(const SwitchTransfer& transfer, const MessageReceiver& done,
                                   const SimChain& chain) {
  ++sent_;
  const SimIndex number = messages_.Add({.bytes = transfer.bytes,
                                         .source = done.rank_class,
                                         .target = done.rank_class,
                                         .sender = done,
                                         .chain = chains_.Add(chain)});
  ETUDE_ASSIGN_OR_RETURN(const Travel::Parts parts, network_.SendBySwitches(number, transfer));
  SimChain& on_way = chains_[messages_[number].chain];
  on_way.latency += parts.latency;
  on_way.transfer += parts.transfer;
  on_way.until += parts.latency + parts.transfer;
  return {};
}

void SimMessages::Receive(const MessageReceiver& receiver, const MatchKey& key, int64_t from,
                          const SimChain* chain) {
  if (!input_.system.rendezvous) return Post(receiver, key, chain);
  // Sends the control message that tells the sender that the receive is posted.
  SendNow({.bytes = kRendezvousBytes,
           .tag = key.tag + kRendezvousTag,
           .ordinal = key.ordinal,
           .source = key.target,
           .target = key.source,
           .from = input_.RankOf(key.target),
           .to = from,
           .sender = {.kind = MessageReceiver::Kind::kPostReceive,
                      .rank_class = key.target,
                      .subject = posted_.Add({receiver, key})}},
          chain);
}

void SimMessages::Post(const MessageReceiver& receiver, const MatchKey& key,
                       const SimChain* chain) {
  if (input_.by_class) {
    ties_.TouchMail(HashOf(key), receiver.kind == MessageReceiver::Kind::kStream
                                     ? TieWatch::Mail::kPostedByStream
                                     : TieWatch::Mail::kPostedByNode);
  }
  if (!mailbox_.Post(key, receiver)) return;
  timeline_.Plan(timeline_.now(), SimEventKind::kReceived,
                 receipts_.Add({.receiver = receiver,
                                .chain = chain == nullptr ? kNoIndex : chains_.Add(*chain)}));
}

void SimMessages::Tell(const MessageReceiver& receiver, const SimChain* chain) {
  switch (receiver.kind) {
    case MessageReceiver::Kind::kSend: return SendNow(held_.Take(receiver.subject), chain);
    case MessageReceiver::Kind::kPostReceive: {
      const auto [who, key] = posted_.Take(receiver.subject);
      return Post(who, key, chain);
    }
    case MessageReceiver::Kind::kNobody:
    case MessageReceiver::Kind::kNode:
    case MessageReceiver::Kind::kStream:
    case MessageReceiver::Kind::kCustom:
    case MessageReceiver::Kind::kMembers:
    case MessageReceiver::Kind::kPlan: return listener_.Tell(receiver, chain);
  }
}

void SimMessages::Received(const SimEvent& event) {
  const Receipt receipt = receipts_.Take(event.subject);
  ties_.Begin(receipt.receiver.rank_class, timeline_.now(),
              {.planned = event.planned, .cause = event.cause});
  if (receipt.chain == kNoIndex) return Tell(receipt.receiver, nullptr);
  const SimChain chain = chains_.Take(receipt.chain);
  Tell(receipt.receiver, &chain);
}

void SimMessages::Arrive(const SimEvent& event) {
  if (!network_.Arrive(event)) return;
  const SimMessage message = messages_.Take(event.subject);
  SimChain its_chain;
  const SimChain* chain = nullptr;
  if (message.chain != kNoIndex) {
    its_chain = chains_.Take(message.chain);
    its_chain.Wait(timeline_.now());
    chain = &its_chain;
  }
  if (message.sender.kind != MessageReceiver::Kind::kNobody) {
    TieWatch::Origin origin{.planned = event.planned, .cause = event.cause};
    if (input_.machine.congestion || input_.machine.graph != nullptr) {
      // The last link planned the arrival, not the sender.
      origin.source = message.target;
      origin.to = kFirstOfLinks - message.to;
    }
    ties_.Begin(message.source, timeline_.now(), origin);
    Tell(message.sender, chain);
    if (message.sender.kind == MessageReceiver::Kind::kMembers ||
        message.sender.kind == MessageReceiver::Kind::kPlan) {
      return;
    }
  }
  ties_.Begin(
      message.target, timeline_.now(),
      {.planned = event.planned, .cause = event.cause, .source = message.source, .to = message.to});
  const MatchKey key = KeyOf(message);
  if (input_.by_class) ties_.TouchMail(HashOf(key), TieWatch::Mail::kDelivered);
  const std::optional<MessageReceiver> receiver = mailbox_.Deliver(key);
  if (receiver) Tell(*receiver, chain);
}

}  // namespace etude
