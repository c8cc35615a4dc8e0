#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace etude {

// Change to one operator as a result of trying out the step.
struct TrialVerdict {
  enum class Action : uint8_t {
    kSkip,
    kUseParts,         // replaced by the operators that it called
    kRunBeside,        // runs separately, in addition to its caller
    kWithoutGradient,  // runs without its gradient to come
    kGiveValues,       // receives valid input values
  };
  uint32_t position = 0;  // position in the recorded step
  Action action = Action::kSkip;
  std::string reason;  // for kSkip
};

// Result of trying out a step: operators to replace, skip or add, in the order of discovery, by
// round.
struct Calibration {
  std::vector<TrialVerdict>
      deadly;  // operators that killed the process, found before the first round
  std::vector<std::vector<TrialVerdict>> rounds;
  std::vector<uint32_t>
      coerced;  // positions of operators whose results have unrecorded sizes or types
  std::vector<uint32_t> changed;  // outside storage versions that the step writes to
};

std::string Serialise(const Calibration& calibration);
Result<Calibration> ParseCalibration(std::string_view text);

}  // namespace etude
