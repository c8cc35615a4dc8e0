#pragma once

#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/synth/plan_settings.h"
#include "src/synth/transformer/transformer_model.h"

namespace etude {

struct TransformerFile {
  TransformerModel model;
  PlanSettings plan;  // [plan]
  KeyPlaces places;   // "model.heads", "plan.tp"
};

// Parses the description of a model in TOML: docs/formats/model.md. `path` is its name in messages.
// kBadInput with file, line and column for invalid TOML, unknown keys and presets (with the nearest
// known one), values of another form, and shapes that do not fit together.
Result<TransformerFile> ParseTransformerFile(std::string_view text, const std::string& path);

}  // namespace etude
