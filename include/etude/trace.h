#pragma once

// Traces: readers for all formats, and the trace model.

#include "src/base/result.h"          // IWYU pragma: export
#include "src/base/run_context.h"     // IWYU pragma: export
#include "src/base/units.h"           // IWYU pragma: export
#include "src/formats/read_trace.h"   // IWYU pragma: export
#include "src/trace/trace.h"          // IWYU pragma: export
#include "src/trace/trace_builder.h"  // IWYU pragma: export
