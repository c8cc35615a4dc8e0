#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/synth/network/network.h"
#include "src/synth/network/network_presets.h"

namespace etude {

// Parses the description of a network in TOML: docs/formats/model.md. `path` is its name in
// messages, `presets` are the presets that it may name. kBadInput with file, line and column for
// invalid TOML, unknown keys, types, layers and presets (with the nearest known one), values of
// another form, and shapes that do not fit together.
Result<NetworkModel> ParseNetwork(std::string_view text, const std::string& path,
                                  std::span<const NetworkPreset> presets);

}  // namespace etude
