#pragma once

#include <string>

namespace etude {

// Returns a line on the share (0..1) of a recorded step's time that operators took, and its
// consequence for a replay, which runs only operators.
std::string OperatorShareText(double share);

}  // namespace etude
