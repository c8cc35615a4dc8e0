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

// What a replay does where the recorded program was busy with no operator.
enum class GapMode : uint8_t { kNone, kRecorded };

struct ReplayOptions {
  std::string device;         // "": the GPU if the trace used one and there is one, else CPU
  bool experimental = false;  // also on devices on which no replay has been tried
  int64_t warmup = 5;
  int64_t iterations = 20;
  int64_t threads = 1;
  uint64_t seed = 0;
  size_t step = 0;                    // of several recorded ones
  std::vector<size_t> alike;          // recorded steps of its kind, whose times count as well
  bool compiled_kernels = false;      // as RecordedStep::Select takes it
  std::string label;                  // replay only what is below the first node named so
  std::vector<std::string> skip;      // operators not to run: base or full names
  std::vector<std::string> only;      // if not empty: run only these
  std::vector<std::string> stand_in;  // whose recorded time passes as a gap if they cannot run
  std::string recording;              // where to keep the recording of the replay; "": nowhere
  // The other ranks, each of which replays its own trace with the same numbers of steps; null: the
  // rank is replayed alone. Not owned.
  RankGroup* group = nullptr;
  // Operators make what they made for a backward pass when they were recorded.
  bool gradients = true;
  bool paced = false;  // steps begin when somebody asks for them
  GapMode gaps = GapMode::kNone;
  // Another machine, emulated, and what is known of how long communications take here; nullopt: as
  // it is.
  std::optional<TimeScale> scale;
  CommModel comm;
  // What the host took for the step without recording. Recorded gaps are shortened by what
  // recording made the step longer; nullopt: they are taken as they are.
  std::optional<Nanos> original_step;
  // What of that the program waited, which is no time of the processor.
  Waiting original_waiting;
  // Bytes from which on the program's C library mapped blocks, where that is known.
  std::optional<int64_t> mmap_threshold;
  // Page faults of a step of the program, which the replay is to have; nullopt: as its heap has it.
  std::optional<int64_t> minor_faults;
  // What the program's steps added to its memory, at the peak; nullopt: unknown.
  std::optional<Bytes> memory_growth;
  // What devices did for which host node of the trace; null: not known. Not owned.
  const std::vector<LaunchedWork>* launched = nullptr;
  // What trying out the step has found earlier; null: it is tried out. Not owned.
  const Calibration* calibration = nullptr;
};

}  // namespace etude
