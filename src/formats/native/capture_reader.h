#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "src/base/run_context.h"
#include "src/formats/trace_reader.h"

namespace etude {

// Begins the schema of captures; their version follows.
inline constexpr std::string_view kNativeSchema = "etude-native-";
// Extra of a thread's node: the lower 32 bits of its pthread_self(), as CUPTI calls threads.
inline constexpr std::string_view kPosixThreadKey = "posix_thread";

// Reads a capture of the native recorder (docs/formats/native_capture.md), also one that is still
// growing or was cut: what is complete counts, calls without an end have no duration.
std::unique_ptr<TraceReader> MakeCaptureReader(std::string name, const ReadOptions& options,
                                               const RunContext& context);

}  // namespace etude
