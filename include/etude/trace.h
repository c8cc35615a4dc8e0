#pragma once

// Traces: reading them from files of any format, and what they contain.

#include "src/base/result.h"          // IWYU pragma: export
#include "src/base/run_context.h"     // IWYU pragma: export
#include "src/base/units.h"           // IWYU pragma: export
#include "src/formats/read_trace.h"   // IWYU pragma: export
#include "src/trace/trace.h"          // IWYU pragma: export
#include "src/trace/trace_builder.h"  // IWYU pragma: export
