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

// The original program under the hook in its paced mode (python/etude/recording/pacing.py): all its
// ranks stop at the end of each step until they are told to run the next one, together. Its
// standard output goes to our standard error; the other streams are ours.
class PacedProgram {
 public:
  struct Options {
    std::vector<std::string> command;
    std::string capture;  // folder
    int64_t rank = 0;     // whose steps are timed
    int64_t world_size = 1;
    int64_t warmup = 5;
    std::chrono::milliseconds timeout{};  // of a step
    const GpuSensors& gpus;               // outlive it
  };

  // Starts it and waits until all its ranks have warmed up. kUnavailable if the command is not
  // there; kBadInput if the program shows no steps, or not those of the capture.
  static Result<std::unique_ptr<PacedProgram>> Start(ProcessTree& tree, const Options& options);
  ~PacedProgram();
  PacedProgram(const PacedProgram&) = delete;
  PacedProgram& operator=(const PacedProgram&) = delete;

  // Runs one step on every rank; nullopt: the program has ended.
  Result<std::optional<PacedStep>> Step();
  // Ends it at the step where it stands or, with `finish`, lets it run on unwatched to its end.
  // What is left of it `tree` ends.
  Status End(bool finish);

  // Of the rank that is timed.
  std::optional<int64_t> threads() const { return threads_; }
  const MachineFacts& machine() const { return machine_; }
  const NamedTexts& versions() const { return versions_; }
  const std::optional<NamedTexts>& environment() const { return environment_; }
  int64_t warmup_steps() const { return warmup_steps_; }
  const StepWatch& watch() const { return *watch_; }
  // How it failed, once it has ended: ProcessTree::HowItFailed.
  Result<std::string> HowItFailed() { return tree_.HowItFailed(process_); }

 private:
  struct Peer {
    explicit Peer(int socket, pid_t who) : channel(socket), process(who) {}
    LineChannel channel;
    pid_t process;
    std::optional<int64_t> rank;  // once it has said so
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
  std::string folder_;  // of the socket, ours alone; "" once all ranks are there
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
