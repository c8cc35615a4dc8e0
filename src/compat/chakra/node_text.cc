#include "src/compat/chakra/node_text.h"

#include <charconv>

#include "src/compat/python/py_json.h"

namespace etude::compat {
namespace {

// By NodeKey.
constexpr std::array<std::string_view, kNodeKeyCount> kKeyTexts = {
    "\"id\": ",
    "\"name\": ",
    "\"ctrl_deps\": ",
    "\"inputs\": ",
    "\"outputs\": ",
    "\"attrs\": ",
    "\"inclusive_dur\": ",
    "\"exclusive_dur\": ",
    "\"ts\": ",
    "\"inter_thread_dep\": ",
    "\"sync_dep\": ",
    "\"cat\": ",
    "\"ph\": ",
    "\"stream\": ",
    "\"pg_name\": ",
    "\"parent\": ",
    "\"rf_id\": ",
    "",
};

constexpr auto kAttrNames = std::to_array<std::string_view>(
    {"rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid", "op_schema"});

// Returns the kind of a key with its quotes.
NodeKey KindOf(std::string_view key) {
  size_t kind = 0;
  while (!kKeyTexts[kind].empty() &&
         (kKeyTexts[kind].size() != key.size() + 2 || !kKeyTexts[kind].starts_with(key))) {
    ++kind;
  }
  return static_cast<NodeKey>(kind);
}

template <typename T>
std::optional<T> TextNumber(std::string_view json) {
  T value = 0;
  const char* end = json.data() + json.size();
  const auto [stop, error] = std::from_chars(json.data(), end, value);
  if (error != std::errc() || stop != end || json.empty()) return std::nullopt;
  return value;
}

}  // namespace

std::string_view TextOf(NodeKey key) { return kKeyTexts[static_cast<size_t>(key)]; }

std::string_view Name(NodeAttr attr) { return kAttrNames[static_cast<size_t>(attr)]; }

std::optional<int64_t> TextInt(std::string_view json) { return TextNumber<int64_t>(json); }
std::optional<uint64_t> TextUint(std::string_view json) {
  return json == "-0" ? uint64_t{0} : TextNumber<uint64_t>(json);
}

bool NodeTextReader::Read(JsonScanner& scanner, NodeText& node) {
  node.keys.fill({});
  node.inputs = {};
  node.outputs = {};
  node.attrs.fill({});
  node.other_attrs.clear();
  node.members.clear();
  node.broken_attrs = false;
  if (!scanner.EnterObject()) return false;
  bool first = true;
  std::string_view key;
  while (scanner.NextMember(first, key)) {
    if (!scanner.last_is_plain()) {
      ByteBuffer plain;
      AppendPyDumpString(key, plain);
      key = Keep(std::string(plain.view()));
    }
    const NodeKey kind = KindOf(key);
    const std::string_view value = ReadMember(scanner, kind, node);
    if (scanner.failed()) return true;
    bool known = false;
    for (NodeMember& member : node.members) {
      if (member.kind != kind || member.key != key) continue;
      member.value = value;
      known = true;
    }
    if (!known) node.members.push_back({.kind = kind, .key = key, .value = value});
    if (kind != NodeKey::kOther) node.keys[static_cast<size_t>(kind)] = value;
  }
  return true;
}

std::string_view NodeTextReader::ReadMember(JsonScanner& scanner, NodeKey kind, NodeText& node) {
  scanner.TakeIrregular();
  irregular_ = false;
  const char* begin = scanner.Position();
  ReadInside(scanner, kind, node);
  if (scanner.failed()) return {};
  const std::string_view text(begin, static_cast<size_t>(scanner.Last() - begin));
  if (!scanner.TakeIrregular() && !irregular_) return text;
  const std::string_view plain = Keep(WithoutRepeatedKeys(text));
  JsonScanner again(plain, "", max_depth_);
  ReadInside(again, kind, node);
  return plain;
}

void NodeTextReader::ReadInside(JsonScanner& scanner, NodeKey kind, NodeText& node) {
  switch (kind) {
    case NodeKey::kInputs: ReadIo(scanner, node.inputs); break;
    case NodeKey::kOutputs: ReadIo(scanner, node.outputs); break;
    case NodeKey::kAttrs: ReadAttrs(scanner, node); break;
    default: scanner.Value();
  }
}

void NodeTextReader::ReadIo(JsonScanner& scanner, IoText& io) {
  io = {};
  if (!scanner.EnterObject()) {
    scanner.Value();
    return;
  }
  KeySet keys;
  bool first = true;
  std::string_view key;
  while (scanner.NextMember(first, key)) {
    irregular_ |= !keys.Add(key, scanner.last_is_plain());
    const std::string_view value = scanner.Value();
    if (key == "\"values\"") {
      io.values = value;
    } else if (key == "\"shapes\"") {
      io.shapes = value;
    } else if (key == "\"types\"") {
      io.types = value;
    } else if (key == "\"strides\"") {
      io.strides = value;
    }
  }
}

void NodeTextReader::ReadAttrs(JsonScanner& scanner, NodeText& node) {
  node.attrs.fill({});
  node.other_attrs.clear();
  node.broken_attrs = false;
  if (!scanner.EnterArray()) {
    node.broken_attrs = true;
    scanner.Value();
    return;
  }
  bool first_attr = true;
  while (scanner.NextElement(first_attr)) {
    if (!scanner.EnterObject()) {
      node.broken_attrs = true;
      scanner.Value();
      continue;
    }
    std::string_view name;
    std::string_view value;
    std::string_view key;
    bool name_is_plain = true;
    KeySet keys;
    bool first = true;
    while (scanner.NextMember(first, key)) {
      irregular_ |= !keys.Add(key, scanner.last_is_plain());
      const std::string_view text = scanner.Value();
      if (key == "\"name\"") {
        name = text;
        name_is_plain = scanner.last_is_plain();
      } else if (key == "\"value\"") {
        value = text;
      }
    }
    if (!IsString(name) || value.empty()) {
      node.broken_attrs = true;
      continue;
    }
    if (!name_is_plain) {
      ByteBuffer plain;
      AppendPyDumpString(name, plain);
      name = Keep(std::string(plain.view()));
    }
    const std::string_view inside = Inside(name);
    size_t known = 0;
    while (known < kNodeAttrCount && kAttrNames[known] != inside) ++known;
    if (known < kNodeAttrCount) {
      node.attrs[known] = value;
    } else {
      node.other_attrs.push_back({.name = name, .value = value});
    }
  }
}

}  // namespace etude::compat
