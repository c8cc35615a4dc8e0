#pragma once

#include <span>
#include <string_view>

#include "src/synth/network.h"

namespace etude {

// A published network. docs/models/network.md has what it comes to.
struct NetworkPreset {
  std::string_view name;
  std::string_view source;
  NetworkModel (*make)();
};

// Of images' classes, and of noise.
std::span<const NetworkPreset> CnnPresets();
std::span<const NetworkPreset> DiffusionPresets();
// nullptr: there is none of this name.
const NetworkPreset* FindNetworkPreset(std::span<const NetworkPreset> presets,
                                       std::string_view name);

}  // namespace etude
