#pragma once

#include <string_view>
#include <vector>

#include "src/run/activity.h"
#include "src/trace/trace.h"

namespace etude {

// Name for nodes without a module.
inline constexpr std::string_view kNoModule = "(no module)";

// Module of the model for each node, as far as recorded: the name of the innermost label
// "nn.Module: …" above it, or above its launcher. Autograd's backward work belongs to the module of
// the last forward operator with its sequence number. In a trace without such labels, the user's
// own labels (record_function) are used, except step marks and names of communications.
class Modules {
 public:
  Modules(const Trace& trace, const Launches& launches);

  // Returns kNoModule if there is none.
  std::string_view name(NodeId node) const;
  // Returns kNone if there is none; equal for nodes of one module.
  StringId id(NodeId node) const { return modules_[node.index()]; }

 private:
  const Trace* trace_;
  std::vector<StringId> modules_;
};

}  // namespace etude
