#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/analysis/comm/comm_model.h"
#include "src/base/result.h"
#include "src/replay/stuck_ranks.h"
#include "src/run/calls/comm_log.h"

namespace c10 {
struct IValue;
}

namespace etude {

// Rendezvous of a replay's ranks: a TCPStore that the lead hosts.
struct MeetingPlace {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  int listener = -1;            // a socket that already listens at the port; -1: none
  bool store_is_there = false;  // another process hosts the store instead of the lead
  bool one_machine = true;
  std::string interface;  // network interface of the ranks; "": chosen by the system
  std::string run;        // distinguishes runs that share a store
  // The ranks were started individually, so nobody may end the remaining ranks when one fails: they
  // end themselves.
  bool each_ends_itself = false;

  // Opens a listening socket on this machine. Called by the process that starts the ranks, which
  // inherit the socket. kUnavailable if the system refuses.
  static Result<MeetingPlace> Open();
};

// The processes that replay a job together, one per recorded rank, from the view of one of them.
// Provides operators with the job's process groups: groups whose ranks all take part use Gloo for
// CPU memory and NCCL for CUDA devices; others are emulated. Not thread-safe.
class RankGroup {
 public:
  struct Member {
    int64_t rank = 0;
    int64_t size = 1;              // ranks of the job
    std::vector<int64_t> present;  // ranks that take part; empty: all
    int64_t lead = 0;              // rank that hosts the store
    int64_t local_rank = 0;        // number among the ranks of its machine
    MeetingPlace place;
    std::chrono::milliseconds timeout{60'000};  // for a collective without progress
  };

  // Does not connect or start threads, so that the process can fork.
  explicit RankGroup(const Member& member);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int64_t rank() const;
  int64_t local_rank() const;
  int64_t size() const;
  std::chrono::milliseconds timeout() const;
  // Returns whether a launcher started the ranks individually.
  bool is_launched() const;
  const std::vector<int64_t>& present() const;
  bool is_alone() const { return present().size() == 1; }

  // Returns the ranks of the job's group `name`; empty if it is unknown.
  std::vector<int64_t> RanksOf(const std::string& name) const;
  // Returns whether all ranks of the job's group `name` take part.
  bool IsThere(const std::string& name) const;
  // Checks a device. kUnavailable if ranks cannot communicate on this kind of device.
  Status CheckDevice(const std::string& device) const;
  // Sets the device whose memory is communicated, in addition to the CPU's: "cuda:0". Call before
  // Connect.
  void UseDevice(const std::string& device);
  // Returns whether the group uses NCCL for the device's memory.
  bool UsesNccl(const std::string& name) const;
  // Run the sends and receives in between as one NCCL batch; EndBatch returns the Work for all of
  // them. Both throw PyTorch's exceptions.
  void BeginBatch(const std::string& name);
  c10::IValue EndBatch(const std::string& name);
  // Sets the time model of communications in groups with missing ranks; the default is no time.
  // Call before Connect.
  void SetPeers(const CommModel& model);

  // Returns the process group that the job called `name`, of the job's `ranks` in the group's
  // order, as an operator argument. Operators that refer to a group by name find it under this
  // name. Call before Connect. kBadInput for ranks that the job lacks, kUnavailable if the ranks
  // cannot form a group that includes this rank.
  Result<c10::IValue> Group(const std::string& name, const std::vector<int64_t>& ranks);

  // Enables the collectives of the requested groups. Collective: all ranks must call Connect, and
  // Meet. Both wait without limit, and fail with kInternal if the lead has gone. `calls`:
  // communications of this rank in a step. `left_out`: the recorded ones that it skips ("": none).
  // kBadInput if ranks disagree on groups, or their calls do not match; the message names the rank
  // that would wait forever, its communication, and skipped ones.
  Status Connect(const CommLog& calls, const std::string& left_out = {});
  // Waits until every rank has called Meet equally often. With `in_time`: kInternal after a
  // collective's timeout.
  Status Meet(bool in_time = false);

  // Sets the function that returns this rank's status. Another thread calls it, until the group
  // ends.
  void SetStatus(std::function<RankStatus()> status);
  // Extends `error` of a failed communication with the status of all ranks and who waits for whom.
  // If several ranks ask at once, one gets the answer; the others wait to be ended, or learn which
  // rank has it.
  Error Explain(Error error);

  // Leaves the group. The lead waits until all ranks have left, because it hosts the store.
  Status Leave();

  // Exchange values: Tell publishes this rank's bytes, once only; ToldBy waits for a rank's bytes
  // and returns them.
  Status Tell(std::string_view bytes);
  Result<std::string> ToldBy(int64_t rank);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Convert c10d's number of a reduction without parameters to an argument of type ReduceOp, and
// back.
c10::IValue MakeReduction(uint8_t number);
uint8_t NumberOfReduction(const c10::IValue& reduction);

// Waits for the Work of a collective. On a CUDA device the stream waits, and this thread continues.
// Throws the collective's exceptions.
void WaitForWork(const c10::IValue& work);
// Returns whether the Work has completed.
bool IsOver(const c10::IValue& work);

}  // namespace etude
