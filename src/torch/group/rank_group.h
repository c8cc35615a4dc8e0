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

// Where the ranks of a replay find each other: a TCPStore, which the lead keeps.
struct MeetingPlace {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  int listener = -1;            // a socket that listens at the port already; -1: none does
  bool store_is_there = false;  // somebody else keeps the store, and the lead need not
  bool one_machine = true;
  std::string interface;  // of the network, by which the ranks talk; "": as the system has it
  std::string run;        // keeps apart what shares a store
  // The ranks were started one by one, and whoever did so may not end those that are left when one
  // fails: they end by themselves.
  bool each_ends_itself = false;

  // A socket of this machine that listens. Made by the process that starts the ranks, which inherit
  // it. kUnavailable if the system gives none.
  static Result<MeetingPlace> Open();
};

// The processes that replay a job together, each a recorded rank, seen from one of them. Operators
// get the job's process groups from it: where all ranks of a group are there, with Gloo behind them
// for the CPU's memory and NCCL for that of CUDA devices, else emulated. Not thread-safe.
class RankGroup {
 public:
  struct Member {
    int64_t rank = 0;
    int64_t size = 1;              // ranks of the job
    std::vector<int64_t> present;  // those that are there; empty: all
    int64_t lead = 0;              // the rank that keeps what the others tell
    int64_t local_rank = 0;        // this one's number among those on its machine
    MeetingPlace place;
    std::chrono::milliseconds timeout{60'000};  // of a collective without progress
  };

  // Connects to nobody and starts no thread, so that the process can be forked.
  explicit RankGroup(const Member& member);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int64_t rank() const;
  int64_t local_rank() const;
  int64_t size() const;
  std::chrono::milliseconds timeout() const;
  // Whether a launcher started the ranks, each by itself.
  bool is_launched() const;
  const std::vector<int64_t>& present() const;
  bool is_alone() const { return present().size() == 1; }

  // The ranks of the group that the job called `name`; none if it is not known.
  std::vector<int64_t> RanksOf(const std::string& name) const;
  // Whether all ranks of the group that the job called `name` are there.
  bool IsThere(const std::string& name) const;
  // kUnavailable if ranks cannot talk on a device of this kind.
  Status CheckDevice(const std::string& device) const;
  // The device of whose memory communications are, beside the CPU's: "cuda:0". To be said before
  // Connect.
  void UseDevice(const std::string& device);
  // Whether the group has NCCL behind it for the device's memory.
  bool UsesNccl(const std::string& name) const;
  // Sends and receives in between are given to NCCL as one; EndBatch gives the Work for all. Both
  // throw what PyTorch throws.
  void BeginBatch(const std::string& name);
  c10::IValue EndBatch(const std::string& name);
  // How long a communication takes in a group not all of whose ranks are there; no time unless
  // said. To be said before Connect.
  void SetPeers(const CommModel& model);

  // The process group that the job called `name`, of `ranks` of the job in the group's order: the
  // argument that operators take. Operators that name a group find it by this name. To be asked
  // for before Connect. kBadInput if the job has no such ranks, kUnavailable if these cannot be
  // those of a group that this rank is in.
  Result<c10::IValue> Group(const std::string& name, const std::vector<int64_t>& ranks);

  // Makes the collectives of the groups asked for possible. All ranks call it, as they do the next;
  // both wait for as long as it takes, and fail with kInternal if the lead has gone. `calls` are
  // what this rank is going to do in a step, `left_out` says what of the recorded ones it is not
  // ("" for nothing). kBadInput, saying which rank would wait in what for ever and what ranks leave
  // out, if not all ranks of a group have asked for it or the ranks' calls do not fit together.
  Status Connect(const CommLog& calls, const std::string& left_out = {});
  // Returns when every rank has called it as often. With `in_time`, kInternal if that takes longer
  // than a collective may.
  Status Meet(bool in_time = false);

  // What this rank is at: called by another thread than this one, until the group ends.
  void SetStatus(std::function<RankStatus()> status);
  // What every rank is at and who waits for whom, after a communication of this rank has failed
  // with `error`. Of the ranks that ask at the same time one gets the answer; the others wait to be
  // ended, or learn which one has it.
  Error Explain(Error error);

  // The lead returns when all ranks have called it: the store goes with it.
  Status Leave();

  // Tells something to all; returns what a rank told, once it has. Each rank tells one thing.
  Status Tell(std::string_view bytes);
  Result<std::string> ToldBy(int64_t rank);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The argument of type ReduceOp, by c10d's number of a reduction without parameters; and back.
c10::IValue MakeReduction(uint8_t number);
uint8_t NumberOfReduction(const c10::IValue& reduction);

// Waits for a collective, given the Work that it returned: on a CUDA device its stream does, and
// this thread goes on. Throws what the collective throws.
void WaitForWork(const c10::IValue& work);
// Whether it is over.
bool IsOver(const c10::IValue& work);

}  // namespace etude
