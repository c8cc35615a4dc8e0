#pragma once

#include <string_view>
#include <vector>

#include "src/run/activity.h"
#include "src/trace/trace.h"

namespace etude {

// Name of the part of a program that has no module.
inline constexpr std::string_view kNoModule = "(no module)";

// Which module of the model each node belongs to, as far as the trace tells: the name of the
// innermost label "nn.Module: …" above it, or above what launched it. What autograd runs backward
// belongs to the module of the last forward operator with its sequence number. A trace without such
// labels has the user's own labels instead (record_function), without step marks and those that
// name a communication.
class Modules {
 public:
  Modules(const Trace& trace, const Launches& launches);

  // kNoModule if there is none.
  std::string_view name(NodeId node) const;
  // kNone if there is none; of nodes of one module the same.
  StringId id(NodeId node) const { return modules_[node.index()]; }

 private:
  const Trace* trace_;
  std::vector<StringId> modules_;
};

}  // namespace etude
