#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "src/formats/chakra/chakra_attr_value.h"

namespace etude::chakra {

// An attribute of a node: its value, and the bytes of the whole AttributeProto for values that
// AttrValue does not take apart (bool lists, doubles in lists, doc_string …).
struct NodeAttr {
  std::string_view name;
  AttrValue value;
  std::string_view message;
};

// The texts of a node's inputs or outputs; "" where the file has none.
struct NodeIo {
  std::string_view values;
  std::string_view shapes;
  std::string_view types;
};

// Whether a message is a GlobalMetadata and not a Node. The first one of a file should be;
// `is_first`: so one of which neither can be told is.
bool IsMetadata(std::string_view message, bool is_first);

// A Node message (docs/formats/chakra.md), looked at where its bytes are: each accessor searches
// them and allocates nothing but its result. The bytes must outlive the view and be what
// ReadNodeHead accepted. Of several fields of one number the last one counts, of several attributes
// of one name the first one.
class NodeView {
 public:
  NodeView(uint64_t id, std::string_view message) : id_(id), message_(message) {}

  uint64_t id() const { return id_; }
  // The bytes of the ChakraProtoMsg.Node.
  std::string_view message() const { return message_; }

  std::string_view name() const;
  // The number of a NodeType; kNodeTypes has their names. Absent is 0, INVALID_NODE.
  uint32_t type() const;
  std::optional<uint64_t> start_micros() const;
  std::optional<uint64_t> duration_micros() const;
  // In the file's order, with repetitions.
  std::vector<uint64_t> ctrl_deps() const;
  std::vector<uint64_t> data_deps() const;
  NodeIo inputs() const;
  NodeIo outputs() const;
  std::optional<NodeAttr> FindAttr(std::string_view name) const;
  // All of them, in the file's order.
  std::vector<NodeAttr> attrs() const;

 private:
  std::optional<std::string_view> BytesField(NodeField field) const;
  std::optional<uint64_t> VarintField(NodeField field) const;
  std::vector<uint64_t> Ids(NodeField field) const;
  NodeIo Io(NodeField field) const;

  uint64_t id_;
  std::string_view message_;
};

// Which dependencies of a node count.
struct DependencyKinds {
  bool ctrl = true;
  bool data = true;
};

// What is known of a node without looking at its attributes.
struct NodeHead {
  uint64_t id = 0;
  std::vector<uint64_t> deps;  // of the kinds asked for, with repetitions
};

// Checks a whole Node message and takes its id and dependencies out. Returns why it is malformed,
// or "" if it is not.
std::string_view ReadNodeHead(std::string_view message, DependencyKinds kinds, NodeHead& head);

// Checks a GlobalMetadata message likewise.
std::string_view CheckMetadata(std::string_view message);

}  // namespace etude::chakra
