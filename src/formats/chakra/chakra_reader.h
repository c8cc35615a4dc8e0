#pragma once

#include <memory>
#include <string>

#include "src/formats/trace_reader.h"

namespace etude {

// Reads Chakra traces (protobuf, .et): a GlobalMetadata message, then Node messages, each after its
// length.
std::unique_ptr<TraceReader> MakeChakraReader(std::string name, const ReadOptions& options,
                                              const RunContext& context);

}  // namespace etude
