#pragma once

#include <string>

namespace etude {

// How much of a recorded step's time its operators took, `share` in 0..1, and what that means for a
// replay, which runs nothing else: one line.
std::string OperatorShareText(double share);

}  // namespace etude
