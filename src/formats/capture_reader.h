#pragma once

#include <memory>
#include <string>

#include "src/base/run_context.h"
#include "src/formats/trace_reader.h"

namespace etude {

// Reads a capture of the native recorder (docs/formats/native_capture.md), also one that is still
// growing or was cut: what is complete counts, calls without an end have no duration.
std::unique_ptr<TraceReader> MakeCaptureReader(std::string name, const ReadOptions& options,
                                               const RunContext& context);

}  // namespace etude
