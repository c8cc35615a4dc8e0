#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/compat/chakra/generator.h"

namespace etude::compat {

// Flags of chakra_converter Text.
struct TextRequest {
  std::string input;   // for messages
  std::string output;  // prefix of the file names
  int64_t num_npus = 0;
  int64_t num_passes = 0;
};

// Makes the files of chakra_converter Text for `text`, a model in ASTRA-sim 1's format: the
// parallelism, the number of layers, then one layer per line. kBadInput where Chakra stops.
Status ConvertText(std::string_view text, const TextRequest& request, const FileSink& sink);

}  // namespace etude::compat
