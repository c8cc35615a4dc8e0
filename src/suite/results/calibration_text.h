#pragma once

#include <string_view>

namespace etude::suite {

// docs/suite/calibration.json as it was when the program was built.
std::string_view CalibrationText();

}  // namespace etude::suite
