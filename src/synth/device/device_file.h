#pragma once

#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/synth/device/device_model.h"

namespace etude {

// A description of a device in TOML: docs/formats/device.md. `path` is what messages call it.
// kBadInput with file, line and column for what is no TOML, unknown keys and presets, and values of
// another form.
Result<DeviceModel> ParseDevice(std::string_view text, const std::string& path);

}  // namespace etude
