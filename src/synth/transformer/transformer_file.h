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

// A description of a model in TOML: docs/formats/model.md. `path` is what messages call it.
// kBadInput with file, line and column for what is no TOML, unknown keys and presets (with the
// nearest one that is known), values of another form, and shapes that do not fit together.
Result<TransformerFile> ParseTransformerFile(std::string_view text, const std::string& path);

}  // namespace etude
