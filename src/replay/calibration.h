#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace etude {

// What becomes of one operator after the step was tried out.
struct TrialVerdict {
  enum class Action : uint8_t {
    kSkip,
    kUseParts,         // the operators that it called take its place
    kRunBeside,        // it runs by itself, besides the operator that called it
    kWithoutGradient,  // it runs without the gradient to come that it had
  };
  uint32_t position = 0;  // in the recorded step
  Action action = Action::kSkip;
  std::string reason;  // why it is skipped
};

// What trying out a step found: operators to replace, to skip or to add, in the order of finding,
// round by round.
struct Calibration {
  std::vector<TrialVerdict> deadly;  // operators that killed the process, before the first round
  std::vector<std::vector<TrialVerdict>> rounds;
  std::vector<uint32_t> coerced;  // positions of operators whose results have other sizes
  std::vector<uint32_t> changed;  // storage versions from outside that the step writes to
};

std::string Serialise(const Calibration& calibration);
Result<Calibration> ParseCalibration(std::string_view text);

// Where a tried-out operator announces itself, so that the parent knows which one killed a child.
using Announce = std::function<void(uint32_t position)>;

struct ChildDeath {
  uint32_t position = UINT32_MAX;
  std::string how;
};
// Runs `work` in a forked child and returns what it returned; kInternal if it threw. The child's
// memory, and what libtorch caches in it, are gone with it: the caller's heap stays as it was. If
// the child dies, `died` gets the position announced last and the signal's name, and the result is
// an error. kUnavailable if the system gives no process.
Result<std::string> RunInChild(const std::function<Result<std::string>(const Announce&)>& work,
                               std::optional<ChildDeath>& died);

}  // namespace etude
