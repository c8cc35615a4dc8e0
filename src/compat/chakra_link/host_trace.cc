#include "src/compat/chakra_link/host_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/text/utf8.h"
#include "src/compat/chakra/chakra_fails.h"
#include "src/compat/chakra/flat_map.h"
#include "src/compat/python/py_json.h"

namespace etude::compat {
namespace {

constexpr std::string_view kFlatSchema = "\"1.0.1\"";
constexpr std::string_view kStrideSchema = "\"1.1.1-chakra.0.0.4\"";
constexpr auto kHostSchemas = std::to_array<std::string_view>({
    kFlatSchema,
    "\"1.0.2-chakra.0.0.4\"",
    "\"1.0.3-chakra.0.0.4\"",
    "\"1.0.4-chakra.0.0.4\"",
    "\"1.1.0-chakra.0.0.4\"",
    kStrideSchema,
});

// The node from which the loader starts.
constexpr uint64_t kRootId = 1;

class HostReader {
 public:
  HostReader(std::string_view text, const std::string& name, const HostTraceOptions& options,
             const Limits& limits, NodeTextReader& reader)
      : scanner_(text, name, limits.depth),
        text_size_(text.size()),
        name_(name),
        options_(options),
        limits_(limits),
        reader_(reader) {}

  Result<HostTrace> Run() {
    if (!scanner_.EnterObject()) {
      return BadInput(name_ + ": found no JSON object, expected an execution trace");
    }
    bool first = true;
    std::string_view key;
    while (scanner_.NextMember(first, key)) ReadTop(key);
    scanner_.ExpectEnd();
    ETUDE_RETURN_IF_ERROR(scanner_.status());
    ETUDE_RETURN_IF_ERROR(Check());
    trace_.is_flat = trace_.metadata.schema == kFlatSchema;
    MarkLinked();
    return std::move(trace_);
  }

 private:
  void ReadTop(std::string_view key) {
    std::string_view value;
    if (key == "\"nodes\"" && scanner_.EnterArray()) {
      saw_nodes_ = true;
      ReadNodes();
    } else {
      value = scanner_.Value();
      if (scanner_.TakeIrregular()) value = reader_.Keep(WithoutRepeatedKeys(value));
      SetMetadata(key, value, trace_.metadata);
    }
    const auto known = std::ranges::find(trace_.top, key, &TopMember::key);
    if (known == trace_.top.end()) {
      trace_.top.push_back({.key = key, .value = value});
    } else {
      known->value = value;
    }
  }

  void ReadNodes() {
    trace_.nodes.clear();
    trace_.members.clear();
    trace_.et = {};
    lacks_ = {};
    // Unused address space is free; nodes are rarely shorter than this.
    constexpr size_t kShortNode = 512;
    const size_t expected = text_size_ / kShortNode;
    trace_.nodes.reserve(expected);
    if (options_.want_members) trace_.members.reserve(7 * expected);
    if (options_.want_et_nodes) {
      trace_.et.nodes.reserve(expected);
      trace_.et.args.reserve(expected);
    }
    NodeText text;
    bool first = true;
    while (scanner_.NextElement(first)) {
      if (!reader_.Read(scanner_, text)) {
        scanner_.Fail("found a node that is no object");
        return;
      }
      if (trace_.nodes.size() >= limits_.nodes) scanner_.Fail("found more nodes than 'nodes'");
      if (scanner_.failed()) return;
      AddNode(text);
    }
  }

  void AddNode(const NodeText& text) {
    HostNode& node = trace_.nodes.emplace_back();
    const auto id = TextUint(text.key(NodeKey::kId));
    if (!id) {
      scanner_.Fail("found a node whose id is no whole number");
      return;
    }
    node.id = *id;
    // The required form depends on the schema, which is known later.
    lacks_.nested |= LacksNested(text);
    lacks_.strides |= text.inputs.strides.empty() || text.outputs.strides.empty();
    const bool is_flat = text.key(NodeKey::kCtrlDeps).empty();
    lacks_.flat |= text.key(NodeKey::kParent).empty() || text.key(NodeKey::kInputs).empty();
    const auto parent = TextUint(text.key(is_flat ? NodeKey::kParent : NodeKey::kCtrlDeps));
    if (!is_flat && !parent) scanner_.Fail("found a node whose ctrl_deps is no whole number");
    node.has_parent = parent.has_value();
    node.parent = parent.value_or(0);
    const std::string_view rf_id = is_flat ? text.key(NodeKey::kRfId) : text.attr(NodeAttr::kRfId);
    if (const auto value = TextInt(rf_id)) {
      node.has_rf_id = true;
      node.rf_id = *value;
    }
    if (options_.want_members) {
      node.first_member = static_cast<uint32_t>(trace_.members.size());
      node.member_count = static_cast<uint32_t>(text.members.size());
      trace_.members.insert(trace_.members.end(), text.members.begin(), text.members.end());
    }
    if (options_.want_et_nodes) AddEtNode(text, reader_, trace_.et);
  }

  static bool LacksNested(const NodeText& text) {
    const auto lacks = [](const IoText& io) {
      return io.values.empty() || io.shapes.empty() || io.types.empty();
    };
    return text.broken_attrs || lacks(text.inputs) || lacks(text.outputs) ||
           text.key(NodeKey::kName).empty() || text.key(NodeKey::kCtrlDeps).empty() ||
           std::ranges::any_of(text.attrs, [](std::string_view value) { return value.empty(); });
  }

  Status Check() const {
    const std::string_view schema = trace_.metadata.schema;
    if (schema.empty() || trace_.metadata.pid.empty() || !saw_nodes_) {
      return ChakraFails(name_, "no schema, pid or nodes", "KeyError");
    }
    if (std::ranges::count(kHostSchemas, schema) == 0) {
      return ChakraFails(name_, fmt::format("schema {}", schema), "ValueError");
    }
    if (schema == kFlatSchema ? lacks_.flat : lacks_.nested) {
      return ChakraFails(name_, "a node that lacks a part or an attribute which its schema has",
                         "KeyError or ValueError");
    }
    if (schema == kStrideSchema && lacks_.strides) {
      return ChakraFails(name_, "a node without strides in a trace of their schema", "KeyError");
    }
    if (std::ranges::none_of(trace_.nodes,
                             [](const HostNode& node) { return node.id == kRootId; })) {
      return ChakraFails(name_, "no node with id 1", "KeyError");
    }
    return {};
  }

  // Marks nodes whose ancestors lead to node 1; for duplicate ids only the last node counts.
  void MarkLinked() {
    std::vector<HostNode>& nodes = trace_.nodes;
    FlatMap row_of_id(nodes.size());
    for (uint32_t row = 0; row < nodes.size(); ++row) row_of_id.Set(nodes[row].id, row);
    enum State : uint8_t { kUnknown, kOnWay, kLinked, kApart };
    std::vector<uint8_t> state(nodes.size(), kUnknown);
    std::vector<uint32_t> way;
    for (uint32_t row = 0; row < nodes.size(); ++row) {
      uint32_t at = row_of_id.Find(nodes[row].id);
      if (at != row) continue;
      way.clear();
      while (at != kNoRow && state[at] == kUnknown && nodes[at].id != kRootId) {
        state[at] = kOnWay;
        way.push_back(at);
        at = nodes[at].has_parent ? row_of_id.Find(nodes[at].parent) : kNoRow;
      }
      const bool linked = at != kNoRow && (nodes[at].id == kRootId || state[at] == kLinked);
      for (const uint32_t passed : way) state[passed] = linked ? kLinked : kApart;
      if (nodes[row].id == kRootId) state[row] = kLinked;
      nodes[row].is_linked = state[row] == kLinked;
    }
  }

  struct Lacks {
    bool nested = false;
    bool flat = false;
    bool strides = false;
  };

  JsonScanner scanner_;
  size_t text_size_;
  const std::string& name_;
  const HostTraceOptions& options_;
  const Limits& limits_;
  NodeTextReader& reader_;
  HostTrace trace_;
  Lacks lacks_;
  bool saw_nodes_ = false;
};

}  // namespace

Result<HostTrace> ReadHostTrace(std::string_view text, const std::string& name,
                                const HostTraceOptions& options, const Limits& limits,
                                NodeTextReader& reader) {
  if (!utf8::IsValid(text)) {
    return ChakraFails(name, "bytes that are not UTF-8", "UnicodeDecodeError");
  }
  return HostReader(text, name, options, limits, reader).Run();
}

}  // namespace etude::compat
