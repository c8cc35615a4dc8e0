#pragma once

#include <cstdint>
#include <utility>

#include "src/sim/engine/mailbox.h"
#include "src/sim/engine/sim_chain.h"
#include "src/sim/engine/sim_message.h"
#include "src/sim/engine/sim_pool.h"
#include "src/sim/engine/sim_timeline.h"
#include "src/sim/engine/tie_watch.h"
#include "src/sim/models/sim_network_model.h"

namespace etude {

class MessageListener {
 public:
  virtual ~MessageListener() = default;
  // `chain`: up to now; nullptr: of no collective.
  virtual void Tell(const MessageReceiver& receiver, const SimChain* chain) = 0;
};

// Messages from their sending to who is told that they have come. With rendezvous a message starts
// when its receiver has said that it waits, by a message of 8,192 bytes. A message goes on with the
// chain of what sends it, who receives it with that of what came last: the message, or the
// receiver.
class SimMessages {
 public:
  SimMessages(const SimInput& input, SimTimeline& timeline, SimNetworkModel& network,
              TieWatch& ties, MessageListener& listener)
      : input_(input), timeline_(timeline), network_(network), ties_(ties), listener_(listener) {}

  // `chain`: up to now; nullptr: of no collective.
  void Send(const SimMessage& message, const SimChain* chain);
  // `from`: the rank itself.
  void Receive(const MessageReceiver& receiver, const MatchKey& key, int64_t from,
               const SimChain* chain);

  // Events.
  void Arrive(const SimEvent& event);
  void Received(const SimEvent& event);
  // Of a message that is to arrive.
  RankClassId SourceOf(const SimEvent& arrival) const { return messages_[arrival.subject].source; }

  uint64_t sent() const { return sent_; }
  uint64_t unreceived() const { return mailbox_.unreceived(); }

 private:
  // What is there before it was asked for.
  struct Receipt {
    MessageReceiver receiver;
    SimIndex chain = kNoIndex;
  };

  void SendNow(SimMessage message, const SimChain* chain);
  void Post(const MessageReceiver& receiver, const MatchKey& key, const SimChain* chain);
  void Tell(const MessageReceiver& receiver, const SimChain* chain);

  const SimInput& input_;
  SimTimeline& timeline_;
  SimNetworkModel& network_;
  TieWatch& ties_;
  MessageListener& listener_;
  Mailbox mailbox_;
  SimPool<SimMessage> messages_;  // on their way
  SimPool<Receipt> receipts_;
  SimChains chains_;  // of both
  // Of rendezvous.
  SimPool<SimMessage> held_;
  SimPool<std::pair<MessageReceiver, MatchKey>> posted_;
  uint64_t sent_ = 0;
};

}  // namespace etude
