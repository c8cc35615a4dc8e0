#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace c10 {
struct IValue;
}

namespace etude {

// Where the ranks of a replay find each other: a socket of this machine that listens. Made by the
// process that starts the ranks, which inherit it.
struct MeetingPlace {
  int listener = -1;  // file descriptor
  uint16_t port = 0;

  // kUnavailable if the system gives none.
  static Result<MeetingPlace> Open();
};

// The local processes that replay a job together, one per recorded rank, seen from one of them.
// Operators get the job's process groups from it, each with Gloo behind it. Not thread-safe.
class RankGroup {
 public:
  struct Member {
    int64_t rank = 0;
    int64_t size = 1;
    int64_t lead = 0;  // the rank that keeps what the others tell
    MeetingPlace place;
    std::chrono::milliseconds timeout{60'000};  // of a collective without progress
  };

  // Connects to nobody and starts no thread, so that the process can be forked.
  explicit RankGroup(const Member& member);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int64_t rank() const;
  int64_t size() const;

  // The process group that the job called `name`, of `ranks` of the job in the group's order: the
  // argument that operators take. Operators that name a group find it by this name. To be asked
  // for before Connect. kUnavailable if these cannot be the ranks of a group that this rank is in.
  Result<c10::IValue> Group(const std::string& name, const std::vector<int64_t>& ranks);

  // Makes the collectives of the groups asked for possible. All ranks call it, as they do the next;
  // both wait for as long as it takes, and fail with kInternal if the lead has gone. kBadInput if
  // not all ranks of a group have asked for it.
  Status Connect();
  // Returns when every rank has called it as often.
  Status Meet();

  // Tells something to all; returns what a rank told, once it has. Each rank tells one thing.
  Status Tell(std::string_view bytes);
  Result<std::string> ToldBy(int64_t rank);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The argument of type ReduceOp, by c10d's number of a reduction without parameters.
c10::IValue MakeReduction(uint8_t number);

// Waits for a collective, given the Work that it returned. Throws what the collective throws.
void WaitForWork(const c10::IValue& work);

}  // namespace etude
