#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/formats/chakra/chakra_attr_value.h"

namespace etude::chakra {

// Attribute of a node: its value, and the bytes of the whole AttributeProto for values that
// AttrValue does not decode (bool lists, doubles in lists, doc_string …).
struct NodeAttr {
  std::string_view name;
  AttrValue value;
  std::string_view message;
};

// Texts of a node's inputs or outputs; "" if missing.
struct NodeIo {
  std::string_view values;
  std::string_view shapes;
  std::string_view types;
};

// Returns true if a message is a GlobalMetadata and not a Node. `is_first` decides for ambiguous
// messages: the first one of a file should be metadata.
bool IsMetadata(std::string_view message, bool is_first);

// View of a Node message (docs/formats/chakra.md) in place: each accessor searches the bytes and
// allocates only its result. The bytes must outlive the view and have passed ReadNodeHead. The last
// of several fields with one number counts, and the first of several attributes with one name.
class NodeView {
 public:
  NodeView(uint64_t id, std::string_view message) : id_(id), message_(message) {}

  uint64_t id() const { return id_; }
  // Returns the bytes of the ChakraProtoMsg.Node.
  std::string_view message() const { return message_; }

  std::string_view name() const;
  // Returns the number of a NodeType (see kNodeTypes); 0 (INVALID_NODE) if missing.
  uint32_t type() const;
  std::optional<uint64_t> start_micros() const;
  std::optional<uint64_t> duration_micros() const;
  // Return the ids in file order, with repetitions.
  std::vector<uint64_t> ctrl_deps() const;
  std::vector<uint64_t> data_deps() const;
  NodeIo inputs() const;
  NodeIo outputs() const;
  std::optional<NodeAttr> FindAttr(std::string_view name) const;
  // Returns all attributes in file order.
  std::vector<NodeAttr> attrs() const;

 private:
  std::optional<std::string_view> BytesField(NodeField field) const;
  std::optional<uint64_t> VarintField(NodeField field) const;
  std::vector<uint64_t> Ids(NodeField field) const;
  NodeIo Io(NodeField field) const;

  uint64_t id_;
  std::string_view message_;
};

// Kinds of dependencies of a node to use.
struct DependencyKinds {
  bool ctrl = true;
  bool data = true;
};

// Facts of a node outside its attributes.
struct NodeHead {
  uint64_t id = 0;
  std::vector<uint64_t> deps;  // of the requested kinds, with repetitions
};

// Checks a whole Node message and extracts its id and dependencies. Returns the error, or "".
std::string_view ReadNodeHead(std::string_view message, DependencyKinds kinds, NodeHead& head);

// Checks a GlobalMetadata message. Returns the error, or "".
std::string_view CheckMetadata(std::string_view message);

}  // namespace etude::chakra
