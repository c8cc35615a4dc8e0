#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/compat/chakra/node_text.h"
#include "src/compat/python/py_number.h"

namespace etude::compat {

// An integer attribute of a Chakra node. None is an attribute without a value.
struct EtInt {
  int64_t value = 0;
  bool is_none = false;
};

// A text attribute of a Chakra node. A missing pg_name is an empty text.
struct EtText {
  std::string_view text;
  bool is_none = false;
  bool is_wrong = false;  // the value cannot be a text attribute

  bool is_empty() const { return text.empty() && !is_none && !is_wrong; }
};

// Reason for which the converter would fail on a node.
enum class EtFault : uint8_t {
  kNone,
  kSurrogate,
  kMissingInt,
  kIntType,
  kMissingSchema,
  kTextType,
  kDurationText,
  kDurationType,
  kDurationRange,
  kMissingIo,
  kBrokenAttr,
  kClobberingAttr,
  kIdType,
  kMissingParent,
  kParentType,
  kNameType,
  kDepType,
};
struct EtProblem {
  std::string_view what;
  std::string_view exception;  // Python exception
};
const EtProblem& ProblemOf(EtFault fault);

// Keys of a node that an attribute of the same name overrides.
struct EtOverrides {
  bool name : 1 = false;
  bool duration : 1 = false;
  bool cat : 1 = false;
  bool stream : 1 = false;
  bool pg_name : 1 = false;
  bool dep : 1 = false;
};

// Data that a device operation shares with the host node it was made from. Arguments are pieces of
// JSON text; views are valid as long as the reader of the node.
struct EtArgs {
  std::string_view inputs[3];                  // values, shapes, types
  std::string_view outputs[3];                 // values, shapes, types
  std::array<EtInt, kNodeAttrCount - 1> ints;  // by NodeAttr
  EtText op_schema;
};

// Other data of a node that chakra_converter uses.
struct EtNode {
  uint64_t id = 0;
  uint64_t parent = 0;
  uint64_t duration_micros = 0;
  uint64_t inter_thread_dep = 0;  // 0: none
  std::string_view name;
  EtText pg_name;
  EtInt stream;
  uint32_t args = 0;        // index of its EtArgs
  bool has_parent = false;  // false: no valid parent
  bool is_gpu = false;      // its `cat` is not null
  EtOverrides overrides;
  EtFault fault = EtFault::kNone;
};

// Data of the whole trace that chakra_converter uses: texts of JSON values.
struct EtMetadata {
  std::string_view schema;
  std::string_view pid;
  std::string_view time;
  std::string_view start_ts;
  std::string_view finish_ts;
};

// Sets the member of `metadata` for `key`, which includes its quotes.
void SetMetadata(std::string_view key, std::string_view value, EtMetadata& metadata);

// Nodes and their shared arguments.
struct EtNodes {
  std::vector<EtNode> nodes;
  std::vector<EtArgs> args;
};

// Adds a node. Decoded texts are owned by `reader`.
void AddEtNode(const NodeText& from, NodeTextReader& reader, EtNodes& to);

// Set single members from JSON texts. Invalid values become the node's fault.
void SetEtText(std::string_view json, NodeTextReader& reader, std::string_view& to, EtNode& node);
void SetEtPgName(std::string_view json, NodeTextReader& reader, EtNode& node);
void SetEtDuration(const PyNumber& duration, EtNode& node);
EtInt EtIntOf(std::string_view json, EtNode& node);

// A linked or host trace. Views point into `text` and into `reader`.
struct EtTrace : EtNodes {
  EtMetadata metadata;
};
Result<EtTrace> ReadEtTrace(std::string_view text, const std::string& name, const Limits& limits,
                            NodeTextReader& reader);

}  // namespace etude::compat
