#include "src/formats/chakra/chakra_node_view.h"

#include <protozero/pbf_reader.hpp>

#include <utility>

#include "src/formats/chakra/chakra_attr.h"
#include "src/formats/io/protobuf.h"

namespace etude::chakra {
namespace {

using protobuf::Delimited;
using protobuf::Varint;
using protobuf::View;
using protozero::pbf_reader;

// Calls `fn(reader)` for each field; `fn` reads or skips it. Returns the error of a malformed
// message, or "".
template <typename Fn>
std::string_view ForEachField(std::string_view message, Fn fn) {
  try {
    pbf_reader reader(message.data(), message.size());
    while (reader.next()) fn(reader);
  } catch (const protozero::exception& error) {
    return error.what();
  }
  return "";
}

// Calls `fn` for the fields of one number and wire type.
template <typename Fn>
void ForEachOf(std::string_view message, uint32_t tag, Fn fn) {
  ForEachField(message, [&](pbf_reader& reader) {
    if (reader.tag_and_type() != tag) return reader.skip();
    fn(reader);
  });
}

void AddIds(pbf_reader& reader, std::vector<uint64_t>& ids) {
  if (reader.wire_type() == protozero::pbf_wire_type::varint) {
    ids.push_back(reader.get_uint64());
  } else {
    for (const uint64_t id : reader.get_packed_uint64()) ids.push_back(id);
  }
}

NodeIo DecodeIo(pbf_reader reader) {
  NodeIo io;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Delimited(IoField::kValues): io.values = View(reader.get_view()); break;
      case Delimited(IoField::kShapes): io.shapes = View(reader.get_view()); break;
      case Delimited(IoField::kTypes): io.types = View(reader.get_view()); break;
      default: reader.skip();
    }
  }
  return io;
}

// Returns true if the bytes are an AttributeProto with a name.
bool IsNamedAttr(std::string_view bytes) {
  bool has_name = false;
  const std::string_view why = ForEachField(bytes, [&](pbf_reader& reader) {
    if (reader.tag_and_type() != Delimited(AttrField::kName)) return reader.skip();
    has_name = View(reader.get_view()) != "";
  });
  return why.empty() && has_name;
}

}  // namespace

// Both have fields 1 and 2: version and attributes in the metadata, id and name in a node.
bool IsMetadata(std::string_view message, bool is_first) {
  constexpr char kIdTag = '\x08';
  if (message.starts_with(kIdTag)) return false;
  try {
    bool has_attr = false;
    pbf_reader reader(message.data(), message.size());
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case Delimited(MetadataField::kVersion): return true;
        case Delimited(MetadataField::kAttr):
          if (!IsNamedAttr(View(reader.get_view()))) return false;
          has_attr = true;
          break;
        default: {
          const uint32_t field = reader.tag();
          const bool is_node = field >= static_cast<uint32_t>(NodeField::kId) &&
                               field <= static_cast<uint32_t>(NodeField::kAttr);
          if (is_node) return false;
          reader.skip();
        }
      }
    }
    return has_attr || is_first;
  } catch (const protozero::exception&) {
    return is_first;
  }
}

std::string_view ReadNodeHead(std::string_view message, DependencyKinds kinds, NodeHead& head) {
  head.id = 0;
  head.deps.clear();
  std::vector<uint64_t> other;
  AttrMessage attr;
  return ForEachField(message, [&](pbf_reader& reader) {
    switch (reader.tag_and_type()) {
      case Varint(NodeField::kId): head.id = reader.get_uint64(); break;
      case Delimited(NodeField::kCtrlDeps):
      case Varint(NodeField::kCtrlDeps): AddIds(reader, kinds.ctrl ? head.deps : other); break;
      case Delimited(NodeField::kDataDeps):
      case Varint(NodeField::kDataDeps): AddIds(reader, kinds.data ? head.deps : other); break;
      case Delimited(NodeField::kInputs):
      case Delimited(NodeField::kOutputs): DecodeIo(reader.get_message()); break;
      case Delimited(NodeField::kAttr): DecodeAttr(View(reader.get_view()), attr); break;
      default: reader.skip();
    }
  });
}

std::string_view CheckMetadata(std::string_view message) {
  AttrMessage attr;
  return ForEachField(message, [&](pbf_reader& reader) {
    if (reader.tag_and_type() != Delimited(MetadataField::kAttr)) return reader.skip();
    DecodeAttr(View(reader.get_view()), attr);
  });
}

std::optional<std::string_view> NodeView::BytesField(NodeField field) const {
  std::optional<std::string_view> bytes;
  ForEachOf(message_, Delimited(field),
            [&](pbf_reader& reader) { bytes = View(reader.get_view()); });
  return bytes;
}

std::optional<uint64_t> NodeView::VarintField(NodeField field) const {
  std::optional<uint64_t> number;
  ForEachOf(message_, Varint(field), [&](pbf_reader& reader) { number = reader.get_uint64(); });
  return number;
}

std::vector<uint64_t> NodeView::Ids(NodeField field) const {
  std::vector<uint64_t> ids;
  ForEachField(message_, [&](pbf_reader& reader) {
    const uint32_t tag = reader.tag_and_type();
    if (tag != Delimited(field) && tag != Varint(field)) return reader.skip();
    AddIds(reader, ids);
  });
  return ids;
}

NodeIo NodeView::Io(NodeField field) const {
  NodeIo io;
  ForEachOf(message_, Delimited(field),
            [&](pbf_reader& reader) { io = DecodeIo(reader.get_message()); });
  return io;
}

std::vector<NodeAttr> NodeView::attrs() const {
  std::vector<NodeAttr> all;
  ForEachOf(message_, Delimited(NodeField::kAttr), [&](pbf_reader& reader) {
    const std::string_view message = View(reader.get_view());
    AttrMessage attr;
    DecodeAttr(message, attr);
    all.push_back({.name = attr.name, .value = std::move(attr.value), .message = message});
  });
  return all;
}

std::optional<NodeAttr> NodeView::FindAttr(std::string_view name) const {
  std::optional<NodeAttr> found;
  ForEachOf(message_, Delimited(NodeField::kAttr), [&](pbf_reader& reader) {
    const std::string_view message = View(reader.get_view());
    if (found) return;
    AttrMessage attr;
    DecodeAttr(message, attr);
    if (attr.name != name) return;
    found = {.name = attr.name, .value = std::move(attr.value), .message = message};
  });
  return found;
}

std::string_view NodeView::name() const { return BytesField(NodeField::kName).value_or(""); }
uint32_t NodeView::type() const {
  return static_cast<uint32_t>(VarintField(NodeField::kType).value_or(kInvalidNode));
}
std::optional<uint64_t> NodeView::start_micros() const {
  return VarintField(NodeField::kStartMicros);
}
std::optional<uint64_t> NodeView::duration_micros() const {
  return VarintField(NodeField::kDurationMicros);
}
std::vector<uint64_t> NodeView::ctrl_deps() const { return Ids(NodeField::kCtrlDeps); }
std::vector<uint64_t> NodeView::data_deps() const { return Ids(NodeField::kDataDeps); }
NodeIo NodeView::inputs() const { return Io(NodeField::kInputs); }
NodeIo NodeView::outputs() const { return Io(NodeField::kOutputs); }

}  // namespace etude::chakra
