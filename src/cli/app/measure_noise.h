#pragma once

#include "src/analysis/compare/machine_noise.h"

namespace etude {

// Repeats a fixed amount of arithmetic for about a second and times each repetition.
MachineNoise MeasureNoise();

}  // namespace etude
