#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/synth/network/network.h"
#include "src/synth/network/network_presets.h"

namespace etude {

// A description of a network in TOML: docs/formats/model.md. `path` is what messages call it,
// `presets` are those that it may name. kBadInput with file, line and column for what is no TOML,
// unknown keys, types, layers and presets (with the nearest one that is known), values of another
// form, and shapes that do not fit together.
Result<NetworkModel> ParseNetwork(std::string_view text, const std::string& path,
                                  std::span<const NetworkPreset> presets);

}  // namespace etude
