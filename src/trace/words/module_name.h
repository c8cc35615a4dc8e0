#pragma once

#include <string_view>
#include <vector>

#include "src/trace/trace.h"

namespace etude {

// Modules of the program: a label around what the module did, of the profiler "nn.Module:
// Linear_0", of the native recorder "nn.Module: Net.layers.0.fc (Linear)"; or the path "Module
// Hierarchy" of an operator, "A(Net)::forward.fc(Linear)::forward".
struct ModuleStep {
  std::string_view name;
  std::string_view type;  // "" if not given
};

bool IsModuleLabel(std::string_view name);

// "Linear_0", or "Net.layers.0.fc" and "Linear", of such a label; without a name for all others.
ModuleStep ModuleOfLabel(std::string_view name);

// The modules around `node` by its path, outermost first, as "fc" and "Linear" of "fc(Linear)::…";
// empty if it has none. Views point into the trace.
std::vector<ModuleStep> ModulePath(const Trace& trace, NodeId node);

}  // namespace etude
