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

// A node of a host or linked trace as the pieces of JSON text that it is. A piece that is not there
// is an empty view; no JSON value is empty.
namespace etude::compat {

// The keys of a node that mean something to Chakra's tools.
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
  // Of schema 1.0.1, whose nodes are flat.
  kParent,
  kRfId,
  kOther,
};
inline constexpr size_t kNodeKeyCount = static_cast<size_t>(NodeKey::kOther) + 1;
// The beginning of such a member as json.dump writes it, "\"id\": "; "" for kOther.
std::string_view TextOf(NodeKey key);

// The attributes that become attributes of a Chakra node, in its order.
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
  std::array<std::string_view, kNodeKeyCount> keys;  // by NodeKey; kOther stays empty
  IoText inputs;
  IoText outputs;
  std::array<std::string_view, kNodeAttrCount> attrs;  // by NodeAttr
  std::vector<NodeAttrMember> other_attrs;             // in the order of the file
  std::vector<NodeMember> members;                     // in the order of the file
  bool broken_attrs = false;                           // one of them lacks its name or value

  std::string_view key(NodeKey which) const { return keys[static_cast<size_t>(which)]; }
  std::string_view attr(NodeAttr which) const { return attrs[static_cast<size_t>(which)]; }
};

// Reads nodes off a scanner. Owns texts that had to be rewritten because a key stood twice in them:
// views into these end with it. Not thread-safe.
class NodeTextReader {
 public:
  explicit NodeTextReader(size_t max_depth) : max_depth_(max_depth) {}

  // Reads the object that comes next into `node`; false, without a fault, if it is none.
  bool Read(JsonScanner& scanner, NodeText& node);

  // A text that lives as long as the reader.
  std::string_view Keep(std::string text) { return kept_.emplace_back(std::move(text)); }

 private:
  // Reads the value of a member, of which the node wants to know the inside.
  std::string_view ReadMember(JsonScanner& scanner, NodeKey kind, NodeText& node);
  void ReadInside(JsonScanner& scanner, NodeKey kind, NodeText& node);
  void ReadIo(JsonScanner& scanner, IoText& io);
  void ReadAttrs(JsonScanner& scanner, NodeText& node);

  size_t max_depth_;
  bool irregular_ = false;
  std::deque<std::string> kept_;
};

// A whole number of JSON text; nullopt if it is anything else or does not fit.
std::optional<int64_t> TextInt(std::string_view json);
std::optional<uint64_t> TextUint(std::string_view json);
inline bool IsNull(std::string_view json) { return json == "null"; }
inline bool IsString(std::string_view json) { return !json.empty() && json[0] == '"'; }
// What is between the quotes of a string, for comparing: escapes stay as they are.
inline std::string_view Inside(std::string_view json) {
  return json.size() < 2 ? std::string_view() : json.substr(1, json.size() - 2);
}
inline bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace etude::compat
