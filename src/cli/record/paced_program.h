#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/cli/record/paced_steps.h"
#include "src/report/certificate/run_facts.h"

namespace etude {

// The original program under the hook in paced mode (python/etude/recording/pacing.py): all ranks
// stop at the end of each step and run the next one together on request. Its standard output goes
// to this process's standard error; other streams are inherited.
class PacedProgram {
 public:
  struct Options {
    std::vector<std::string> command;
    std::string capture;  // capture folder
    std::string step;     // description of the recorded step
    int64_t rank = 0;     // timed rank
    int64_t world_size = 1;
    int64_t warmup = 5;
    std::chrono::milliseconds timeout{};  // per step
    const GpuSensors& gpus;               // must outlive the program
  };

  // Starts the program and waits until all ranks have warmed up. kUnavailable for a missing
  // command; kBadInput if the program has no steps, or others than the capture's.
  static Result<std::unique_ptr<PacedProgram>> Start(ProcessTree& tree, const Options& options);
  ~PacedProgram();
  PacedProgram(const PacedProgram&) = delete;
  PacedProgram& operator=(const PacedProgram&) = delete;

  // Runs one step on every rank; nullopt: the program has ended.
  Result<std::optional<PacedStep>> Step();
  // Ends the program at the current step or, with `finish`, lets it run to its end unobserved.
  // Remaining processes are ended by `tree`.
  Status End(bool finish);

  // Facts of the timed rank.
  std::optional<int64_t> threads() const { return threads_; }
  const MachineFacts& machine() const { return machine_; }
  const NamedTexts& versions() const { return versions_; }
  const std::optional<NamedTexts>& environment() const { return environment_; }
  int64_t warmup_steps() const { return warmup_steps_; }
  const StepWatch& watch() const { return *watch_; }
  // Returns how the program failed, after its end: ProcessTree::HowItFailed.
  Result<std::string> HowItFailed() { return tree_.HowItFailed(process_); }

 private:
  struct Peer {
    explicit Peer(int socket, pid_t who) : channel(socket), process(who) {}
    LineChannel channel;
    pid_t process;
    std::optional<int64_t> rank;  // set after the peer's greeting
    bool ready = false;
    int64_t steps_seen = 0;
  };

  PacedProgram(ProcessTree& tree, const Options& options) : tree_(tree), options_(options) {}
  Status Listen();
  void StopListening();
  Status Launch();
  Status AwaitReady();
  Status Poll();
  void Accept();
  Status Hear(Peer& peer);
  Status Greet(Peer& peer, const std::string& line);
  Result<std::optional<std::string>> AnswerOf(int64_t rank);
  bool all_ready() const;
  bool has_ended() const;
  Error WhyNotReady(const std::string& how) const;

  ProcessTree& tree_;
  Options options_;
  std::string folder_;  // private folder of the socket; "" after all ranks are connected
  int listener_ = -1;
  pid_t process_ = 0;
  CounterSet counters_;
  std::optional<StepWatch> watch_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::map<int64_t, Peer*> ranks_;
  int64_t most_steps_seen_ = 0;
  std::optional<int64_t> threads_;
  MachineFacts machine_;
  NamedTexts versions_;
  std::optional<NamedTexts> environment_;
  std::optional<int64_t> level_;
  int64_t warmup_steps_ = 0;
};

}  // namespace etude
