#pragma once

#include "src/report/text/table.h"
#include "src/trace/trace.h"

namespace etude::python {

// Facts of a trace that are few.
Table LaneTable(const Trace& trace);
Table CommTable(const Trace& trace);
Table GroupTable(const Trace& trace);

}  // namespace etude::python
