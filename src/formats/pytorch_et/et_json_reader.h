#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "src/formats/trace_reader.h"

namespace etude {

struct ElementRules;

// Versions of PyTorch's execution trace that were seen; others of the same shape are read too, with
// a warning.
struct EtVersion {
  std::string_view schema;  // beginning of the schema text
  std::string_view added;   // what it has beyond the row before
};
std::span<const EtVersion> KnownEtVersions();
bool IsKnownEtVersion(std::string_view schema);

// Whether a key of a node means something to the reader.
bool IsEtNodeKey(std::string_view key);
// How nodes are written, for repairs.
const ElementRules& EtNodeRules();

// Extras that come from a node's `attrs` have this before the attribute's name as key, and the
// whole attribute object {"name":…,"type":…,"value":…} as text. Extras without it are keys of the
// node itself.
inline constexpr std::string_view kEtAttrPrefix = "attrs/";

// The attribute that says the kind of a node where nothing else does; as in Chakra traces.
inline constexpr std::string_view kEtKindAttr = "etude_kind";
// Key of inputs and outputs that says which tensors were Python numbers (value_text.h).
inline constexpr std::string_view kEtNumbersKey = "etude_numbers";

// Reads PyTorch execution traces (JSON) and linked traces (the same with times and device nodes).
// See docs/formats/pytorch-et.md for what goes where. In short, beyond the plain columns:
//   ctrl_deps            the (first) number is the parent, further ones are kControl dependencies
//   sync_dep             kSync dependencies
//   inter_thread_dep     a kData dependency
//   inclusive_dur, exclusive_dur, ts   duration, exclusive and start
//   cat, stream          kind, Place::kDevice and the lane
// Each collective has one host node that carries its Comm and is a kCollective, kSend or kRecv:
// record_param_comms, or the backend's label ("gloo:all_reduce") where there is none.
std::unique_ptr<TraceReader> MakeEtJsonReader(std::string name, const ReadOptions& options,
                                              const RunContext& context);

}  // namespace etude
