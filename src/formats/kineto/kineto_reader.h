#pragma once

#include <memory>
#include <string>

#include "src/formats/trace_reader.h"

namespace etude {

// Returns a reader of Kineto's and other Chrome traces (JSON): an object with `traceEvents`, or the
// bare array. The reader cuts the JSON into events, from which a ProfileBuilder makes the trace
// (docs/formats/kineto.md). A node's source id is the number of its event in the file. Arguments
// without a column become extras.
std::unique_ptr<TraceReader> MakeKinetoReader(std::string name, const ReadOptions& options,
                                              const RunContext& context);

}  // namespace etude
