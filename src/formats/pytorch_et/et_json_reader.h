#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "src/formats/trace_reader.h"

namespace etude {

struct ElementRules;

// Known versions of PyTorch's execution trace; others of the same form are read with a warning.
struct EtVersion {
  std::string_view schema;  // prefix of the schema text
  std::string_view added;   // additions to the previous version
};
std::span<const EtVersion> KnownEtVersions();
bool IsKnownEtVersion(std::string_view schema);

// Returns true for node keys known to the reader.
bool IsEtNodeKey(std::string_view key);
// Returns the format of nodes, for repairs.
const ElementRules& EtNodeRules();

// Key prefix of extras from a node's `attrs`; the attribute's name follows, and the text is the
// whole attribute object {"name":…,"type":…,"value":…}. Extras without the prefix are keys of the
// node itself.
inline constexpr std::string_view kEtAttrPrefix = "attrs/";

// Attribute with a node's kind if nothing else determines it; as in Chakra traces.
inline constexpr std::string_view kEtKindAttr = "etude_kind";
// Key in inputs and outputs that marks tensors made from Python numbers (value_text.h).
inline constexpr std::string_view kEtNumbersKey = "etude_numbers";

// Reads PyTorch execution traces (JSON) and linked traces (in addition with times and device
// nodes). docs/formats/pytorch-et.md has the mapping. In short, beyond the plain columns:
//   ctrl_deps            the (first) number is the parent, further ones are kControl dependencies
//   sync_dep             kSync dependencies
//   inter_thread_dep     a kData dependency
//   inclusive_dur, exclusive_dur, ts   duration, exclusive and start
//   cat, stream          kind, Place::kDevice and the lane
// Each collective has one host node that carries its Comm and is a kCollective, kSend or kRecv:
// record_param_comms, or else the backend's label ("gloo:all_reduce").
std::unique_ptr<TraceReader> MakeEtJsonReader(std::string name, const ReadOptions& options,
                                              const RunContext& context);

}  // namespace etude
