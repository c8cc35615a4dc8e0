#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/compat/chakra/node_text.h"
#include "src/compat/chakra_link/et_trace.h"

namespace etude::compat {

// A node of a PyTorch execution trace.
struct HostNode {
  uint64_t id = 0;
  uint64_t parent = 0;
  int64_t rf_id = 0;
  bool has_parent = false;
  bool has_rf_id = false;
  bool is_linked = false;  // reachable from node 1; Chakra ignores other nodes
  uint32_t first_member = 0;
  uint32_t member_count = 0;
};

struct TopMember {
  std::string_view key;    // with quotes
  std::string_view value;  // empty for the nodes
};

// A PyTorch execution trace. Views point into its text and into the reader.
struct HostTrace {
  std::vector<TopMember> top;
  EtMetadata metadata;
  std::vector<HostNode> nodes;      // in file order
  std::vector<NodeMember> members;  // of all nodes
  EtNodes et;                       // by node; empty unless requested
  bool is_flat = false;  // schema 1.0.1: the caller is `parent`, which linking does not change

  std::span<const NodeMember> members_of(const HostNode& node) const {
    return std::span(members).subspan(node.first_member, node.member_count);
  }
};

struct HostTraceOptions {
  bool want_members = true;
  bool want_et_nodes = false;
};

// Reads the trace, with the checks of chakra_trace_link and its loader.
Result<HostTrace> ReadHostTrace(std::string_view text, const std::string& name,
                                const HostTraceOptions& options, const Limits& limits,
                                NodeTextReader& reader);

}  // namespace etude::compat
