#pragma once

#include "src/report/text/table.h"
#include "src/trace/trace.h"

namespace etude::python {

// Return small tables of a trace.
Table LaneTable(const Trace& trace);
Table CommTable(const Trace& trace);
Table GroupTable(const Trace& trace);

}  // namespace etude::python
