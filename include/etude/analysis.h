#pragma once

// Analyses and verdicts of a recorded run, and tables of them.

#include "src/analysis/compare/trace_diff.h"         // IWYU pragma: export
#include "src/analysis/health.h"                     // IWYU pragma: export
#include "src/analysis/memory/memory_use.h"          // IWYU pragma: export
#include "src/analysis/time/breakdown.h"             // IWYU pragma: export
#include "src/analysis/time/critical_path.h"         // IWYU pragma: export
#include "src/analysis/view/trace_stats.h"           // IWYU pragma: export
#include "src/report/tables/breakdown_tables.h"      // IWYU pragma: export
#include "src/report/tables/critical_path_tables.h"  // IWYU pragma: export
#include "src/report/tables/diff_tables.h"           // IWYU pragma: export
#include "src/report/tables/stats_tables.h"          // IWYU pragma: export
#include "src/report/text/table.h"                   // IWYU pragma: export
#include "src/run/recorded_run.h"                    // IWYU pragma: export
