#pragma once

#include <span>

#include "src/synth/network/network.h"
#include "src/synth/preset.h"

namespace etude {

// A published network, which `model` makes. docs/models/network.md has what it comes to.
using NetworkPreset = Preset<NetworkModel (*)()>;

// Of images' classes, and of noise.
std::span<const NetworkPreset> CnnPresets();
std::span<const NetworkPreset> DiffusionPresets();

}  // namespace etude
