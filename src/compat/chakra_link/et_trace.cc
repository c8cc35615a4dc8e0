#include "src/compat/chakra_link/et_trace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/base/text/utf8.h"
#include "src/compat/chakra/chakra_fails.h"
#include "src/compat/python/py_json.h"

namespace etude::compat {
namespace {

// Attributes that become fields of the converter's node object and overwrite its own.
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

// By EtFault.
constexpr auto kProblems = std::to_array<EtProblem>({
    {"", ""},
    {"a lone surrogate in a string", "UnicodeEncodeError"},
    {"one of rf_id, fw_parent, seq_id, scope, tid, fw_tid is missing", "AttributeError"},
    {"an attribute that should be a whole number of 64 bits is none", "TypeError"},
    {"op_schema is missing", "AttributeError"},
    {"an attribute that should be a string is none", "TypeError"},
    {"exclusive_dur is a text", "ValueError"},
    {"exclusive_dur is no finite number", "TypeError or ValueError"},
    {"exclusive_dur is negative or too large", "ValueError"},
    {"inputs or outputs without values, shapes or types", "KeyError"},
    {"an attribute without name or value", "KeyError"},
    {"an attribute with the name of a field of the converter's own", "any exception"},
    {"an id that is no whole number of 64 bits", "TypeError or ValueError"},
    {"no ctrl_deps", "KeyError"},
    {"ctrl_deps that are a list or an object", "TypeError"},
    {"a name that is no string", "TypeError"},
    {"an inter_thread_dep that is no id", "TypeError or ValueError"},
});

// Returns the characters of a JSON string; a fault if they cannot be encoded as UTF-8.
std::string_view TextOf(std::string_view json, NodeTextReader& reader, EtNode& node) {
  if (IsPlain(json)) return Inside(json);
  std::string decoded = DecodeString(json);
  if (HasSurrogate(decoded)) node.fault = EtFault::kSurrogate;
  return reader.Keep(std::move(decoded));
}

EtText TextAttr(std::string_view json, NodeTextReader& reader, EtNode& node) {
  if (IsNull(json)) return {.is_none = true};
  if (!IsString(json)) {
    node.fault = EtFault::kTextType;
    return {};
  }
  return {.text = TextOf(json, reader, node)};
}

// Sets the duration to int() of the text.
void SetDuration(std::string_view json, EtNode& node) {
  if (json.empty() || json == "false") return;
  if (IsString(json)) {
    const auto value = TextUint(Inside(json));
    if (!value) node.fault = EtFault::kDurationText;
    node.duration_micros = value.value_or(0);
  } else if (const auto whole = TextUint(json)) {
    node.duration_micros = *whole;
  } else if (json == "true") {
    node.duration_micros = 1;
  } else if (const auto number = ParsePyNumber(json)) {
    SetEtDuration(*number, node);
  } else {
    node.fault = EtFault::kDurationType;
  }
}

void SetIo(std::string_view whole, const IoText& io, std::string_view (&to)[3], EtNode& node) {
  to[0] = io.values;
  to[1] = io.shapes;
  to[2] = io.types;
  if (whole.empty() || io.values.empty() || io.shapes.empty() || io.types.empty()) {
    node.fault = EtFault::kMissingIo;
  }
}

// Attributes that override keys of the node: the last one of each name.
struct Keys {
  std::string_view name;
  std::string_view exclusive_dur;
  std::string_view cat;
  std::string_view inter_thread_dep;
  std::string_view stream;
  std::string_view pg_name;
};

Keys OverrideKeys(const NodeText& from, EtNode& to) {
  Keys keys{.name = from.key(NodeKey::kName),
            .exclusive_dur = from.key(NodeKey::kExclusiveDur),
            .cat = from.key(NodeKey::kCat),
            .inter_thread_dep = from.key(NodeKey::kInterThreadDep),
            .stream = from.key(NodeKey::kStream),
            .pg_name = from.key(NodeKey::kPgName)};
  if (from.broken_attrs) to.fault = EtFault::kBrokenAttr;
  for (const NodeAttrMember& attr : from.other_attrs) {
    const std::string_view name = Inside(attr.name);
    if (name == "pg_name") {
      keys.pg_name = attr.value;
      to.overrides.pg_name = true;
    } else if (name == "name") {
      keys.name = attr.value;
      to.overrides.name = true;
    } else if (name == "exclusive_dur") {
      keys.exclusive_dur = attr.value;
      to.overrides.duration = true;
    } else if (name == "cat") {
      keys.cat = attr.value;
      to.overrides.cat = true;
    } else if (name == "stream") {
      keys.stream = attr.value;
      to.overrides.stream = true;
    } else if (name == "inter_thread_dep") {
      keys.inter_thread_dep = attr.value;
      to.overrides.dep = true;
    } else if (std::ranges::count(kClobbering, name) != 0) {
      to.fault = EtFault::kClobberingAttr;
    }
  }
  return keys;
}

}  // namespace

const EtProblem& ProblemOf(EtFault fault) { return kProblems[static_cast<size_t>(fault)]; }

EtInt EtIntOf(std::string_view json, EtNode& node) {
  if (json.empty()) {
    node.fault = EtFault::kMissingInt;
    return {};
  }
  if (IsNull(json)) return {.is_none = true};
  if (json == "true") return {.value = 1};
  if (json == "false") return {.value = 0};
  const auto value = TextInt(json);
  if (!value) {
    node.fault = EtFault::kIntType;
    return {};
  }
  return {.value = *value};
}

void SetEtText(std::string_view json, NodeTextReader& reader, std::string_view& to, EtNode& node) {
  to = TextOf(json, reader, node);
}

void SetEtPgName(std::string_view json, NodeTextReader& reader, EtNode& node) {
  // Used only if a device operation communicates.
  if (IsString(json) || IsNull(json)) {
    node.pg_name = TextAttr(json, reader, node);
  } else {
    node.pg_name = {.is_wrong = true};
  }
}

void SetEtDuration(const PyNumber& duration, EtNode& node) {
  constexpr double kTooMuch = 18446744073709551616.0;
  const double real = std::trunc(duration.AsDouble());
  if (real < 0 || real >= kTooMuch) {
    node.fault = EtFault::kDurationRange;
    return;
  }
  node.duration_micros =
      duration.is_float ? static_cast<uint64_t>(real) : static_cast<uint64_t>(duration.whole);
}

void SetMetadata(std::string_view key, std::string_view value, EtMetadata& metadata) {
  if (key == "\"schema\"") metadata.schema = value;
  if (key == "\"pid\"") metadata.pid = value;
  if (key == "\"time\"") metadata.time = value;
  if (key == "\"start_ts\"") metadata.start_ts = value;
  if (key == "\"finish_ts\"") metadata.finish_ts = value;
}

void AddEtNode(const NodeText& from, NodeTextReader& reader, EtNodes& all) {
  EtNode& to = all.nodes.emplace_back();
  EtArgs& args = all.args.emplace_back();
  to.args = static_cast<uint32_t>(all.args.size() - 1);
  if (const auto id = TextUint(from.key(NodeKey::kId))) {
    to.id = *id;
  } else {
    to.fault = EtFault::kIdType;
  }
  const std::string_view parent = from.key(NodeKey::kCtrlDeps);
  if (parent.empty()) to.fault = EtFault::kMissingParent;
  if (const auto id = TextUint(parent)) {
    to.has_parent = true;
    to.parent = *id;
  } else if (!parent.empty() && (parent[0] == '[' || parent[0] == '{')) {
    to.fault = EtFault::kParentType;
  }
  SetIo(from.key(NodeKey::kInputs), from.inputs, args.inputs, to);
  SetIo(from.key(NodeKey::kOutputs), from.outputs, args.outputs, to);
  for (size_t i = 0; i < args.ints.size(); ++i) args.ints[i] = EtIntOf(from.attrs[i], to);
  const std::string_view op_schema = from.attr(NodeAttr::kOpSchema);
  if (op_schema.empty()) {
    to.fault = EtFault::kMissingSchema;
  } else {
    args.op_schema = TextAttr(op_schema, reader, to);
  }

  const Keys keys = OverrideKeys(from, to);
  if (IsString(keys.name)) {
    SetEtText(keys.name, reader, to.name, to);
  } else {
    to.fault = EtFault::kNameType;
  }
  SetDuration(keys.exclusive_dur, to);
  to.is_gpu = !keys.cat.empty() && !IsNull(keys.cat);
  if (!keys.inter_thread_dep.empty() && !IsNull(keys.inter_thread_dep)) {
    const auto id = TextUint(keys.inter_thread_dep);
    if (!id) to.fault = EtFault::kDepType;
    to.inter_thread_dep = id.value_or(0);
  }
  if (!keys.stream.empty()) to.stream = EtIntOf(keys.stream, to);
  if (!keys.pg_name.empty()) SetEtPgName(keys.pg_name, reader, to);
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
    trace.args.clear();
    bool first_node = true;
    while (scanner.NextElement(first_node)) {
      if (!reader.Read(scanner, node)) {
        scanner.Fail("found a node that is no object");
        break;
      }
      if (trace.nodes.size() >= limits.nodes)
        scanner.Fail("found more nodes than the limit 'nodes'");
      AddEtNode(node, reader, trace);
    }
  }
  scanner.ExpectEnd();
  ETUDE_RETURN_IF_ERROR(scanner.status());
  if (!saw_nodes) return ChakraFails(name, "no nodes", "KeyError");
  return trace;
}

}  // namespace etude::compat
