#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/cli/record/paced_steps.h"
#include "src/report/certificate/run_facts.h"

namespace etude {

// `etude replay --paced` of a capture, or a program that `etude benchmark` wrote, in the same mode:
// runs a step whenever it is asked to.
class PacedReplay {
 public:
  struct Options {
    std::string capture;
    std::string benchmark;  // the program that runs in place of a replay; "" for a replay
    std::string python;     // that runs the benchmark, or starts its ranks
    int64_t rank = 0;
    int64_t world_size = 1;  // more than one: as many processes, of which `rank` is timed
    std::optional<int64_t> threads;
    bool pin = false;           // each rank to its own processors
    bool experimental = false;  // also on a GPU
    std::vector<std::string> libraries;
    bool gaps = false;  // whether those of the program pass
    bool quiet = false;
    std::chrono::milliseconds timeout{};  // of a step
    const GpuSensors& gpus;               // outlive it
  };

  // Starts it and waits until it is set up. Says on standard error what it finds wrong; the error
  // has its exit code.
  static Result<PacedReplay> Start(ProcessTree& tree, const Options& options);

  // kInternal if it has ended, which it does not do by itself.
  Result<PacedStep> Step();
  // Learns which of the recorded kernels run, for facts(), of a replay. kUnavailable if it does not
  // answer in time.
  Status FindKernels();
  // Lets it end. What is left of it `tree` ends.
  Status End();

  const ReplayFacts& facts() const { return facts_; }
  // Of a step, by shapes; nullopt if the replay does not say.
  std::optional<double> flop() const { return flop_; }
  std::optional<double> bytes() const { return bytes_; }
  const StepWatch& watch() const { return watch_; }

 private:
  PacedReplay(ProcessTree& tree, pid_t process, LineChannel channel, StepWatch watch)
      : tree_(tree), process_(process), channel_(std::move(channel)), watch_(std::move(watch)) {}

  tl::unexpected<Error> HasEnded();

  ProcessTree& tree_;
  pid_t process_;
  LineChannel channel_;
  StepWatch watch_;
  std::string name_;  // "replay" or "benchmark"
  std::chrono::milliseconds timeout_{};
  pid_t stepping_ = 0;  // the process that runs steps, once it has said who it is
  ReplayFacts facts_;
  std::optional<double> flop_;
  std::optional<double> bytes_;
};

}  // namespace etude
