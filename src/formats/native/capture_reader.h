#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "src/base/run_context.h"
#include "src/formats/trace_reader.h"

namespace etude {

// Prefix of the schema of captures; their version follows.
inline constexpr std::string_view kNativeSchema = "etude-native-";
// Extra of a thread's node: the lower 32 bits of its pthread_self(), the thread id of CUPTI.
inline constexpr std::string_view kPosixThreadKey = "posix_thread";

// Reads a capture of the native recorder (docs/formats/native_capture.md), even if it is still
// growing or was truncated: complete blocks count, and calls without an end have no duration.
std::unique_ptr<TraceReader> MakeCaptureReader(std::string name, const ReadOptions& options,
                                               const RunContext& context);

}  // namespace etude
