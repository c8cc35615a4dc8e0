#pragma once

#include <string_view>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// Modules of the program, as the profiler writes them: a label "nn.Module: Linear_0" around what
// the module did, or the path "Module Hierarchy" of an operator,
// "A(Net)::forward.fc(Linear)::forward".

// "Linear_0" of such a label; "" for all other names.
std::string_view ModuleOfLabel(std::string_view name);

// The modules around `node` by its path, outermost first, as "fc" and "Linear" of "fc(Linear)::…";
// empty if it has none. Views point into the trace.
struct ModuleStep {
  std::string_view name;
  std::string_view type;  // "" if not given
};
std::vector<ModuleStep> ModulePath(const Trace& trace, NodeId node);

}  // namespace etude
