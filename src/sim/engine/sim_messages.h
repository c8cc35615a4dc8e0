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
  // Notifies a receiver. `chain`: up to now; nullptr: not part of a collective.
  virtual void Tell(const MessageReceiver& receiver, const SimChain* chain) = 0;
};

// Transports messages from send to notification. With rendezvous, a message starts after its
// receiver has posted the receive, by a control message of 8,192 bytes. A message continues the
// sender's chain; its receiver continues the chain of whichever came last, message or receive.
class SimMessages {
 public:
  SimMessages(const SimInput& input, SimTimeline& timeline, SimNetworkModel& network,
              TieWatch& ties, MessageListener& listener)
      : input_(input), timeline_(timeline), network_(network), ties_(ties), listener_(listener) {}

  // Sends a message. `chain`: up to now; nullptr: not part of a collective.
  void Send(const SimMessage& message, const SimChain* chain);
  // Posts a receive. `from`: the sending rank itself.
  void Receive(const MessageReceiver& receiver, const MatchKey& key, int64_t from,
               const SimChain* chain);

  // Sends a message without a receive, also with rendezvous. `sender` is notified of its arrival.
  void SendAlone(const SimMessage& message, const SimChain& chain) { SendNow(message, &chain); }
  // Starts a transfer by the switches of the network. `done` is notified of its end. kBadInput if
  // no switches connect the members.
  Status SendBySwitches(const SwitchTransfer& transfer, const MessageReceiver& done,
                        const SimChain& chain);

  // Event handlers.
  void Arrive(const SimEvent& event);
  void Received(const SimEvent& event);
  // Returns the source of the message of an arrival event.
  RankClassId SourceOf(const SimEvent& arrival) const { return messages_[arrival.subject].source; }

  uint64_t sent() const { return sent_; }
  uint64_t unreceived() const { return mailbox_.unreceived(); }

 private:
  // A receiver whose message arrived before the receive was posted.
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
  SimPool<SimMessage> messages_;  // in flight
  SimPool<Receipt> receipts_;
  SimChains chains_;  // of messages and receipts
  // For rendezvous.
  SimPool<SimMessage> held_;
  SimPool<std::pair<MessageReceiver, MatchKey>> posted_;
  uint64_t sent_ = 0;
};

}  // namespace etude
