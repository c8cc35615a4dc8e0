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

// `etude replay --paced` of a capture, or a program written by `etude benchmark`, in the same mode:
// runs a step on request.
class PacedReplay {
 public:
  struct Options {
    std::string capture;
    std::string benchmark;  // program that runs instead of a replay; "" for a replay
    std::string python;     // runs the benchmark, or starts its ranks
    std::string device;     // "": by the trace, or the benchmark's CPU
    int64_t rank = 0;
    int64_t world_size = 1;  // above 1: as many processes, of which `rank` is timed
    std::optional<int64_t> threads;
    bool pin = false;           // pins each rank to separate processors
    bool experimental = false;  // allows GPUs
    std::vector<std::string> libraries;
    bool gaps = false;  // gaps of the program pass
    bool quiet = false;
    std::chrono::milliseconds timeout{};  // per step
    const GpuSensors& gpus;               // must outlive the replay
  };

  // Starts the replay and waits until it is set up. It reports errors on standard error; the
  // returned error has its exit code.
  static Result<PacedReplay> Start(ProcessTree& tree, const Options& options);

  // Runs a step. kInternal if the replay has ended, which it does not do by itself.
  Result<PacedStep> Step();
  // Determines which recorded kernels a replay runs, for facts(). kUnavailable if there is no
  // answer in time.
  Status FindKernels();
  // Ends the replay. Remaining processes are ended by `tree`.
  Status End();

  const ReplayFacts& facts() const { return facts_; }
  // Return the work of a step, by shapes; nullopt if the replay does not report it.
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
  pid_t stepping_ = 0;  // the process that runs steps, once known
  ReplayFacts facts_;
  std::optional<double> flop_;
  std::optional<double> bytes_;
};

}  // namespace etude
