#pragma once

#include <memory>
#include <string>

#include "src/formats/trace_reader.h"

namespace etude {

// Reads Kineto's and other Chrome traces (JSON): an object with `traceEvents`, or the bare array.
// Cuts the JSON into events, of which a ProfileBuilder makes the trace; docs/formats/kineto.md says
// what goes where. A node's source id is the number of its event in the file. Arguments without a
// column become extras.
std::unique_ptr<TraceReader> MakeKinetoReader(std::string name, const ReadOptions& options,
                                              const RunContext& context);

}  // namespace etude
