#pragma once

#include <string_view>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// Module of the program: a label of the profiler ("nn.Module: Linear_0") or of the native recorder
// ("nn.Module: Net.layers.0.fc (Linear)"), or an element of an operator's path "Module Hierarchy"
// ("A(Net)::forward.fc(Linear)::forward").
struct ModuleStep {
  std::string_view name;
  std::string_view type;  // "" if missing
};

bool IsModuleLabel(std::string_view name);

// Returns "Linear_0", or "Net.layers.0.fc" and "Linear", for such a label; an empty name for other
// names.
ModuleStep ModuleOfLabel(std::string_view name);

// Returns the modules around `node` by its path, outermost first, such as "fc" and "Linear" for
// "fc(Linear)::…"; empty if it has none. Views point into the trace.
std::vector<ModuleStep> ModulePath(const Trace& trace, NodeId node);

}  // namespace etude
