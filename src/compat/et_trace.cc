#include "src/compat/et_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "src/compat/py_number.h"
#include "src/formats/utf8.h"

namespace etude::compat {
namespace {

// Attributes that become fields of the converter's node object and overwrite what it works with.
constexpr auto kClobbering = std::to_array<std::string_view>({
    "id",
    "parent",
    "inputs",
    "outputs",
    "children",
    "gpu_children",
    "data_deps",
    "comm_size",
    "get_op_type",
    "is_gpu_op",
    "is_cpu_op",
    "is_metadata_op",
    "is_nccl_op",
    "add_child",
    "add_gpu_child",
    "add_data_dep",
    "is_record_param_comms_op",
});

// The characters of a JSON string; a problem if they cannot be written as UTF-8.
std::string_view TextOf(std::string_view json, NodeTextReader& reader, EtNode& node) {
  if (IsPlain(json)) return json.substr(1, json.size() - 2);
  std::string decoded = DecodeString(json);
  if (HasSurrogate(decoded)) node.problem = {"a lone surrogate in a string", "UnicodeEncodeError"};
  return reader.Keep(std::move(decoded));
}

EtInt IntOf(std::string_view json, EtNode& node) {
  if (json.empty()) {
    node.problem = {"one of rf_id, fw_parent, seq_id, scope, tid, fw_tid is missing",
                    "AttributeError"};
    return {};
  }
  if (IsNull(json)) return {.kind = EtInt::Kind::kNone};
  if (json == "true") return {.value = 1};
  if (json == "false") return {.value = 0};
  const auto value = TextInt(json);
  if (!value) {
    node.problem = {"an attribute that should be a whole number of 64 bits is none", "TypeError"};
    return {};
  }
  return {.value = *value};
}

EtText TextAttr(std::string_view json, NodeTextReader& reader, EtNode& node) {
  if (IsNull(json)) return {.is_none = true};
  if (!IsString(json)) {
    node.problem = {"an attribute that should be a string is none", "TypeError"};
    return {};
  }
  return {.text = TextOf(json, reader, node)};
}

// int() of a duration, as an unsigned number.
uint64_t DurationOf(std::string_view json, EtNode& node) {
  constexpr double kTooMuch = 18446744073709551616.0;
  if (json.empty() || json == "false") return 0;
  if (json == "true") return 1;
  if (IsString(json)) {
    const std::string_view text = json.substr(1, json.size() - 2);
    if (const auto value = TextUint(text)) return *value;
    node.problem = {"exclusive_dur is a text", "ValueError"};
    return 0;
  }
  if (const auto value = TextUint(json)) return *value;
  const auto number = ParsePyNumber(json);
  if (!number) {
    node.problem = {"exclusive_dur is no finite number", "TypeError or ValueError"};
    return 0;
  }
  const double real = std::trunc(number->AsDouble());
  if (real < 0 || real >= kTooMuch) {
    node.problem = {"exclusive_dur is negative or too large", "ValueError"};
    return 0;
  }
  return static_cast<uint64_t>(real);
}

void SetIo(std::string_view whole, const IoText& io, std::string_view (&to)[3], EtNode& node) {
  to[0] = io.values;
  to[1] = io.shapes;
  to[2] = io.types;
  if (whole.empty() || io.values.empty() || io.shapes.empty() || io.types.empty()) {
    node.problem = {"inputs or outputs without values, shapes or types", "KeyError"};
  }
}

// The last attribute of this name, which stands for the node's own key, or `own`.
std::string_view Overridden(const NodeText& from, std::string_view name, std::string_view own) {
  for (const NodeAttrMember& attr : from.other_attrs) {
    if (attr.name.substr(1, attr.name.size() - 2) == name) own = attr.value;
  }
  return own;
}

void CheckAttrs(const NodeText& from, EtNode& to) {
  if (from.broken_attrs) to.problem = {"an attribute without name or value", "KeyError"};
  for (const NodeAttrMember& attr : from.other_attrs) {
    const std::string_view name = attr.name.substr(1, attr.name.size() - 2);
    if (std::ranges::count(kClobbering, name) != 0) {
      to.problem = {"an attribute with the name of a field of the converter's own",
                    "any exception"};
    }
  }
}

}  // namespace

tl::unexpected<Error> ChakraFails(std::string_view where, std::string_view what,
                                  std::string_view exception) {
  return BadInput(
      fmt::format("{}: found {}; Chakra 1.0.0 fails here too ({})", where, what, exception));
}

void SetMetadata(std::string_view key, std::string_view value, EtMetadata& metadata) {
  if (key == "\"schema\"") metadata.schema = value;
  if (key == "\"pid\"") metadata.pid = value;
  if (key == "\"time\"") metadata.time = value;
  if (key == "\"start_ts\"") metadata.start_ts = value;
  if (key == "\"finish_ts\"") metadata.finish_ts = value;
}

void MakeEtNode(const NodeText& from, NodeTextReader& reader, EtNode& to) {
  to = EtNode();
  if (const auto id = TextUint(from.key(NodeKey::kId))) {
    to.id = *id;
  } else {
    to.problem = {"an id that is no whole number of 64 bits", "TypeError or ValueError"};
  }
  const std::string_view parent = from.key(NodeKey::kCtrlDeps);
  if (parent.empty()) to.problem = {"no ctrl_deps", "KeyError"};
  if (const auto id = TextUint(parent)) {
    to.has_parent = true;
    to.parent = *id;
  } else if (!parent.empty() && (parent[0] == '[' || parent[0] == '{')) {
    to.problem = {"ctrl_deps that are a list or an object", "TypeError"};
  }
  SetIo(from.key(NodeKey::kInputs), from.inputs, to.inputs, to);
  SetIo(from.key(NodeKey::kOutputs), from.outputs, to.outputs, to);
  for (size_t i = 0; i < to.ints.size(); ++i) to.ints[i] = IntOf(from.attrs[i], to);
  const std::string_view op_schema = from.attr(NodeAttr::kOpSchema);
  if (op_schema.empty()) {
    to.problem = {"op_schema is missing", "AttributeError"};
  } else {
    to.op_schema = TextAttr(op_schema, reader, to);
  }

  // Attributes overwrite keys of the same name.
  const bool none = from.other_attrs.empty();
  const auto key = [&](NodeKey which, std::string_view name) {
    return none ? from.key(which) : Overridden(from, name, from.key(which));
  };
  const std::string_view name = key(NodeKey::kName, "name");
  if (IsString(name)) {
    to.name = TextOf(name, reader, to);
  } else {
    to.problem = {"a name that is no string", "TypeError"};
  }
  to.duration_micros = DurationOf(key(NodeKey::kExclusiveDur, "exclusive_dur"), to);
  const std::string_view cat = key(NodeKey::kCat, "cat");
  to.is_gpu = !cat.empty() && !IsNull(cat);
  const std::string_view dep = key(NodeKey::kInterThreadDep, "inter_thread_dep");
  if (!dep.empty() && !IsNull(dep)) {
    if (const auto id = TextUint(dep)) {
      to.inter_thread_dep = *id;
    } else {
      to.problem = {"an inter_thread_dep that is no id", "TypeError or ValueError"};
    }
  }
  const std::string_view stream = key(NodeKey::kStream, "stream");
  if (!stream.empty()) to.stream = IntOf(stream, to);
  const std::string_view pg_name = key(NodeKey::kPgName, "pg_name");
  if (!pg_name.empty()) {
    if (IsString(pg_name) || IsNull(pg_name)) {
      to.pg_name = TextAttr(pg_name, reader, to);
    } else if (to.is_gpu) {
      to.problem = {"a pg_name that is no string", "TypeError"};
    }
  }
  CheckAttrs(from, to);
}

Result<EtTrace> ReadEtTrace(std::string_view text, const std::string& name, const Limits& limits,
                            NodeTextReader& reader) {
  if (!utf8::IsValid(text)) {
    return ChakraFails(name, "bytes that are not UTF-8", "UnicodeDecodeError");
  }
  JsonScanner scanner(text, name, limits.depth);
  EtTrace trace;
  NodeText node;
  bool saw_nodes = false;
  bool first = true;
  std::string_view key;
  if (!scanner.EnterObject()) return BadInput(name + ": found no JSON object, expected a trace");
  while (scanner.NextMember(first, key)) {
    if (key != "\"nodes\"" || !scanner.EnterArray()) {
      SetMetadata(key, scanner.Value(), trace.metadata);
      continue;
    }
    saw_nodes = true;
    trace.nodes.clear();
    bool first_node = true;
    while (scanner.NextElement(first_node)) {
      if (!reader.Read(scanner, node)) {
        scanner.Fail("found a node that is no object");
        break;
      }
      if (trace.nodes.size() >= limits.nodes)
        scanner.Fail("found more nodes than the limit 'nodes'");
      MakeEtNode(node, reader, trace.nodes.emplace_back());
    }
  }
  scanner.ExpectEnd();
  ETUDE_RETURN_IF_ERROR(scanner.status());
  if (!saw_nodes) return ChakraFails(name, "no nodes", "KeyError");
  return trace;
}

}  // namespace etude::compat
