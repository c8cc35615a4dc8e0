#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace etude::compat {

// Flags of chakra_generator.
struct GeneratorRequest {
  int64_t num_npus = 64;
  int64_t default_runtime = 5;  // microseconds
  int64_t default_tensor_size = 1024;
  int64_t default_comm_size = 65536;
};

// Receives a complete file.
using FileSink = std::function<Status(const std::string& name, std::string_view bytes)>;

// Makes the files of chakra_generator: traces of one or two nodes, each kind for each NPU.
// kBadInput for sizes that do not fit into their field.
Status GenerateChakra(const GeneratorRequest& request, const FileSink& sink);

}  // namespace etude::compat
