#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/cli/app/options.h"

namespace etude {

// An option of an edits file.
struct PlacedOption {
  std::string place;               // "edits.toml:3:1"
  std::string name;                // "layers"
  std::vector<std::string> words;  // as on the command line: {"--layers", "12"}
};

// Reads a file of edits (docs/commands/whatif.md) as options of a command, which declares
// `options`. Relative paths, values of the options in `paths`, become paths from the working
// directory. kBadInput for other keys and for values that are no text, number or truth, or list of
// texts for repeatable options.
Result<std::vector<PlacedOption>> ReadEditsFile(const std::string& path, const Options& options,
                                                const std::vector<std::string_view>& paths,
                                                const Limits& limits);

}  // namespace etude
