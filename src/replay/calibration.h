#pragma once

#include <cstddef>
#include <cstdint>
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
    kGiveValues,       // it is given values that it can work with
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

}  // namespace etude
