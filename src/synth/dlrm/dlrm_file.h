#pragma once

#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/synth/dlrm/dlrm_model.h"

namespace etude {

// Parses the description of a recommendation model in TOML: docs/formats/model.md. `path` is its
// name in messages. kBadInput with file, line and column as in ParseTransformer.
Result<DlrmModel> ParseDlrm(std::string_view text, const std::string& path);

}  // namespace etude
