#pragma once

#include <string_view>

namespace etude::suite {

// Returns docs/suite/calibration.json as of the build.
std::string_view CalibrationText();

}  // namespace etude::suite
