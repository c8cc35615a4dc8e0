#pragma once

#include <string_view>

namespace etude::suite {

// Return docs/suite/calibration.json and docs/suite/variation.json as of the build.
std::string_view CalibrationText();
std::string_view VariationText();

}  // namespace etude::suite
