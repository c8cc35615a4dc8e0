#pragma once

#include <span>

#include "src/synth/network/network.h"
#include "src/synth/preset.h"

namespace etude {

// A published network, made by `model`. docs/models/network.md has its key figures.
using NetworkPreset = Preset<NetworkModel (*)()>;

// Return presets of image classifiers, and of diffusion models.
std::span<const NetworkPreset> CnnPresets();
std::span<const NetworkPreset> DiffusionPresets();

}  // namespace etude
