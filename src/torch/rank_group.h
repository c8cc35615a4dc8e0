#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

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
// Operators get it as c10d's process group, with Gloo behind it. Not thread-safe.
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

  // Makes collectives possible. All ranks call it, as they do the next; both wait for as long as
  // it takes, and fail with kInternal if the lead has gone.
  Status Connect();
  // Returns when every rank has called it as often.
  Status Meet();

  // Tells something to all; returns what a rank told, once it has. Each rank tells one thing.
  Status Tell(std::string_view bytes);
  Result<std::string> ToldBy(int64_t rank);

  // The arguments that operators take, of types ProcessGroup and ReduceOp.
  const c10::IValue& process_group() const;
  const c10::IValue& sum() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Waits for a collective, given the Work that it returned. Throws what the collective throws.
void WaitForWork(const c10::IValue& work);

}  // namespace etude
