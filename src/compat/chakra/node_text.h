#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/compat/chakra/json_scanner.h"

// A node of a host or linked trace as pieces of JSON text. Missing pieces are empty views; JSON
// values are never empty.
namespace etude::compat {

// Keys of a node that Chakra's tools use.
enum class NodeKey : uint8_t {
  kId,
  kName,
  kCtrlDeps,
  kInputs,
  kOutputs,
  kAttrs,
  kInclusiveDur,
  kExclusiveDur,
  kTs,
  kInterThreadDep,
  kSyncDep,
  kCat,
  kPh,
  kStream,
  kPgName,
  // Schema 1.0.1 only, whose nodes are flat.
  kParent,
  kRfId,
  kOther,
};
inline constexpr size_t kNodeKeyCount = static_cast<size_t>(NodeKey::kOther) + 1;
// Returns the beginning of such a member as written by json.dump, "\"id\": "; "" for kOther.
std::string_view TextOf(NodeKey key);

// Attributes that become attributes of a Chakra node, in its order.
enum class NodeAttr : uint8_t { kRfId, kFwParent, kSeqId, kScope, kTid, kFwTid, kOpSchema };
inline constexpr size_t kNodeAttrCount = static_cast<size_t>(NodeAttr::kOpSchema) + 1;
std::string_view Name(NodeAttr attr);

struct NodeMember {
  NodeKey kind = NodeKey::kOther;
  std::string_view key;  // with quotes
  std::string_view value;
};

struct IoText {
  std::string_view values;
  std::string_view shapes;
  std::string_view types;
  std::string_view strides;
};

struct NodeAttrMember {
  std::string_view name;  // with quotes
  std::string_view value;
};

struct NodeText {
  std::array<std::string_view, kNodeKeyCount> keys;  // by NodeKey; kOther is empty
  IoText inputs;
  IoText outputs;
  std::array<std::string_view, kNodeAttrCount> attrs;  // by NodeAttr
  std::vector<NodeAttrMember> other_attrs;             // in file order
  std::vector<NodeMember> members;                     // in file order
  bool broken_attrs = false;                           // an attribute lacks its name or value

  std::string_view key(NodeKey which) const { return keys[static_cast<size_t>(which)]; }
  std::string_view attr(NodeAttr which) const { return attrs[static_cast<size_t>(which)]; }
};

// Reads nodes from a scanner. Owns texts that were rewritten due to repeated keys: views into these
// are valid as long as the reader. Not thread-safe.
class NodeTextReader {
 public:
  explicit NodeTextReader(size_t max_depth) : max_depth_(max_depth) {}

  // Reads the next object into `node`. Returns false, without an error, if the next value is not an
  // object.
  bool Read(JsonScanner& scanner, NodeText& node);

  // Returns a view of the text, which lives as long as the reader.
  std::string_view Keep(std::string text) { return kept_.emplace_back(std::move(text)); }

 private:
  // Reads the value of a member, and its contents if the node needs them.
  std::string_view ReadMember(JsonScanner& scanner, NodeKey kind, NodeText& node);
  void ReadInside(JsonScanner& scanner, NodeKey kind, NodeText& node);
  void ReadIo(JsonScanner& scanner, IoText& io);
  void ReadAttrs(JsonScanner& scanner, NodeText& node);

  size_t max_depth_;
  bool irregular_ = false;
  std::deque<std::string> kept_;
};

// Parse an integer in JSON text; nullopt for anything else or on overflow.
std::optional<int64_t> TextInt(std::string_view json);
std::optional<uint64_t> TextUint(std::string_view json);
inline bool IsNull(std::string_view json) { return json == "null"; }
inline bool IsString(std::string_view json) { return !json.empty() && json[0] == '"'; }
// Returns the text between the quotes of a string, with escapes, for comparisons.
inline std::string_view Inside(std::string_view json) {
  return json.size() < 2 ? std::string_view() : json.substr(1, json.size() - 2);
}
inline bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace etude::compat
