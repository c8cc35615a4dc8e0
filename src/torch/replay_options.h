#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/analysis/comm/comm_model.h"
#include "src/analysis/time/host_gaps.h"
#include "src/analysis/time/launched_work.h"
#include "src/base/units.h"
#include "src/replay/calibration.h"
#include "src/torch/group/rank_group.h"
#include "src/transform/edit/time_scale.h"

namespace etude {

// Treatment of times in which the recorded program ran no operator.
enum class GapMode : uint8_t { kNone, kRecorded };

struct ReplayOptions {
  std::string device;         // "": the GPU if the trace used one and one exists, otherwise the CPU
  bool experimental = false;  // allows devices on which replays have not been tried
  int64_t warmup = 5;
  int64_t iterations = 20;
  int64_t threads = 1;
  uint64_t seed = 0;
  size_t step = 0;                // index of the recorded step
  std::vector<size_t> alike;      // recorded steps of the same kind, whose times also count
  bool compiled_kernels = false;  // as in RecordedStep::Select
  std::string label;              // replays only nodes below the first node with this name
  std::vector<std::string> skip;  // operators to skip: base or full names
  std::vector<std::string> only;  // if not empty: runs only these operators
  std::vector<std::string>
      stand_in;           // operators whose recorded time passes as a gap if they cannot run
  std::string recording;  // file for the recording of the replay; "": not kept
  // The other ranks, each of which replays its own trace with the same numbers of steps; null: the
  // rank is replayed alone. Not owned.
  RankGroup* group = nullptr;
  // Reproduce the autograd nodes that operators created when they were recorded.
  bool gradients = true;
  bool paced = false;  // steps begin on request
  GapMode gaps = GapMode::kNone;
  // Emulated machine (nullopt: none), and communication times of this machine.
  std::optional<TimeScale> scale;
  CommModel comm;
  // Duration of the step on the host without recording, for scaling recorded gaps; nullopt: gaps
  // are not scaled.
  std::optional<Nanos> original_step;
  // Part of `original_step` in which the program waited, without CPU time.
  Waiting original_waiting;
  // mmap threshold of the program's C library in bytes, if known.
  std::optional<int64_t> mmap_threshold;
  // Page faults per step of the program, to be reproduced; nullopt: not adjusted.
  std::optional<int64_t> minor_faults;
  // Peak memory added by the program's steps; nullopt: unknown.
  std::optional<Bytes> memory_growth;
  // Device work by launching host node; null: unknown. Not owned.
  const std::vector<LaunchedWork>* launched = nullptr;
  // Result of an earlier trial of the step; null: the step is tried out. Not owned.
  const Calibration* calibration = nullptr;
};

}  // namespace etude
