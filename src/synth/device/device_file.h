#pragma once

#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/synth/device/device_model.h"

namespace etude {

// Parses the description of a device in TOML: docs/formats/device.md. `path` is its name in
// messages. kBadInput with file, line and column for invalid TOML, unknown keys and presets, and
// values of another form.
Result<DeviceModel> ParseDevice(std::string_view text, const std::string& path);

}  // namespace etude
