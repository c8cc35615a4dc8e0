#pragma once

#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/synth/dlrm/dlrm_model.h"

namespace etude {

// A description of a recommendation model in TOML: docs/formats/model.md. `path` is what messages
// call it. kBadInput with file, line and column as ParseTransformer.
Result<DlrmModel> ParseDlrm(std::string_view text, const std::string& path);

}  // namespace etude
