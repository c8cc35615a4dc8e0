#include "src/formats/pytorch_et/et_json_reader.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/container/key_finder.h"
#include "src/formats/chakra/chakra_kind.h"
#include "src/formats/json/json_reader_base.h"
#include "src/formats/json/json_text.h"
#include "src/formats/json/json_walk.h"
#include "src/formats/json/mend_element.h"
#include "src/formats/profile/comm_facts.h"
#include "src/formats/profile/process_groups.h"
#include "src/formats/profile/profile_categories.h"
#include "src/formats/pytorch_et/et_comm.h"
#include "src/formats/pytorch_et/et_names.h"
#include "src/formats/pytorch_et/et_values.h"

namespace etude {
namespace {

constexpr auto kVersions = std::to_array<EtVersion>({
    {"1.0.1", "flat nodes: parent, inputs, input_shapes, input_types, …"},
    {"1.0.2", "nested nodes: ctrl_deps, inputs{values,shapes,types}, attrs[{name,type,value}]"},
    {"1.0.3", "process groups as (name, description) in record_param_comms"},
    {"1.0.4", "attributes kernel_backend and kernel_file"},
    {"1.1.0", "attributes of record_param_comms: collective_name, dtype, in_msg_nelems, …"},
    {"1.1.1", "inputs.strides and outputs.strides; attribute tensor_range"},
});

// Meaning of a node's key or an attribute's name.
enum class Field : uint8_t {
  kUnknown,
  kId,
  kName,
  kCtrlDeps,
  kInputs,
  kOutputs,
  kAttrs,
  // Keys of flat nodes.
  kParent,
  kInputShapes,
  kInputTypes,
  kInputStrides,
  kOutputShapes,
  kOutputTypes,
  kOutputStrides,
  // Attributes, which are keys in flat nodes.
  kRfId,
  kFwParent,
  kSeqId,
  kScope,
  kTid,
  kFwTid,
  kOpSchema,
  kKernelBackend,
  kKernelFile,
  kTensorRange,
  kIndexStatistics,
  kIndexValues,
  kKind,
  // Keys of linked nodes.
  kInclusive,
  kExclusive,
  kTs,
  kInterThreadDep,
  kSyncDep,
  kCat,
  kPh,
  kStream,
  kPgName,
  // Keys of linked nodes that Etude adds.
  kDevice,
  kCorrelation,
  kExternalId,
  kProcess,
  kThread,
};

struct FieldRow {
  std::string_view name;
  Field field;
};

constexpr auto kNodeFields = std::to_array<FieldRow>({
    {"id", Field::kId},
    {"name", Field::kName},
    {"ctrl_deps", Field::kCtrlDeps},
    {"inputs", Field::kInputs},
    {"outputs", Field::kOutputs},
    {"attrs", Field::kAttrs},
    {"inclusive_dur", Field::kInclusive},
    {"exclusive_dur", Field::kExclusive},
    {"ts", Field::kTs},
    {"inter_thread_dep", Field::kInterThreadDep},
    {"sync_dep", Field::kSyncDep},
    {"cat", Field::kCat},
    {"ph", Field::kPh},
    {"stream", Field::kStream},
    {"pg_name", Field::kPgName},
    {"device", Field::kDevice},
    {"correlation", Field::kCorrelation},
    {"external_id", Field::kExternalId},
    {"process", Field::kProcess},
    {"thread", Field::kThread},
    {"parent", Field::kParent},
    {"input_shapes", Field::kInputShapes},
    {"input_types", Field::kInputTypes},
    {"input_strides", Field::kInputStrides},
    {"output_shapes", Field::kOutputShapes},
    {"output_types", Field::kOutputTypes},
    {"output_strides", Field::kOutputStrides},
});

constexpr auto kAttrFields = std::to_array<FieldRow>({
    {"rf_id", Field::kRfId},
    {"fw_parent", Field::kFwParent},
    {"seq_id", Field::kSeqId},
    {"scope", Field::kScope},
    {"tid", Field::kTid},
    {"fw_tid", Field::kFwTid},
    {"op_schema", Field::kOpSchema},
    {"kernel_backend", Field::kKernelBackend},
    {"kernel_file", Field::kKernelFile},
    {"tensor_range", Field::kTensorRange},
    {"index_statistics", Field::kIndexStatistics},
    {"index_values", Field::kIndexValues},
    {kEtKindAttr, Field::kKind},
});

// Every key that a node may have; flat nodes also have those of attributes.
constexpr auto kNodeKeys = [] {
  std::array<std::string_view, kNodeFields.size() + kAttrFields.size()> keys;
  for (size_t i = 0; i < kNodeFields.size(); ++i) keys[i] = kNodeFields[i].name;
  for (size_t i = 0; i < kAttrFields.size(); ++i)
    keys[kNodeFields.size() + i] = kAttrFields[i].name;
  return keys;
}();
// The observer does not escape quotation marks in names: between "name": " and ", "ctrl_deps" in
// nested nodes, ", "id" in flat ones.
constexpr auto kKeysAfterNodeName = std::to_array<std::string_view>({"ctrl_deps", "id"});
constexpr ElementRules kNodeRules = {
    .keys = kNodeKeys, .after_name = kKeysAfterNodeName, .first = "id", .required = "id"};

class FieldFinder {
 public:
  Field OfNode(std::string_view key) {
    const FieldRow* row = node_.Find(key);
    return row == nullptr ? OfAttr(key) : row->field;
  }
  Field OfAttr(std::string_view name) {
    const FieldRow* row = attr_.Find(name);
    return row == nullptr ? Field::kUnknown : row->field;
  }

 private:
  KeyFinder<FieldRow, kNodeFields.size()> node_{kNodeFields};
  KeyFinder<FieldRow, kAttrFields.size()> attr_{kAttrFields};
};

// Scalar of an attribute or key: the unescaped text of a string, or else a token.
struct Scalar {
  bool is_string = false;
  std::string_view text;
};

class EtJsonReader : public JsonReaderBase {
 public:
  EtJsonReader(std::string name, const ReadOptions& options, const RunContext& context)
      : JsonReaderBase({.name = std::move(name),
                        .array_keys = {"nodes"},
                        .bare_array = false,
                        .limits = context.limits,
                        .rules = &EtNodeRules()},
                       "node", options, context),
        comms_(builder()) {
    builder().info().SetFormat(TraceFormat::kPyTorchEt);
  }

 private:
  using Value = simdjson::ondemand::value;
  using Object = simdjson::ondemand::object;
  static constexpr auto kSuccess = simdjson::SUCCESS;
  static constexpr auto kMissing = simdjson::NO_SUCH_FIELD;
  static constexpr auto kWrongType = simdjson::INCORRECT_TYPE;

  // Facts of a node before it becomes a row.
  struct Node {
    NodeRow row;
    bool has_id = false;
    std::string_view name;
    bool has_name = false;
    bool is_device = false;
    std::string_view category;
    std::optional<int32_t> stream;
    std::optional<int32_t> device;
    std::optional<std::string_view> process;
    std::optional<std::string_view> thread;
    std::string_view group;        // of a linked device node
    std::optional<NodeKind> kind;  // if stated
    CommFacts facts;
    std::optional<uint64_t> inter_thread_dep;
  };

  simdjson::error_code ReadElement(const JsonItem&, Object object) override {
    node_ = Node();
    control_deps_.clear();
    sync_deps_.clear();
    extras_.clear();
    inputs_.Clear();
    outputs_.Clear();
    const auto read = [this](std::string_view key, Value& value) { return ReadKey(key, value); };
    if (const auto error = ForEachMember(object, read)) return error;
    if (!node_.has_id) return Problem("found no 'id'", kMissing);
    if (!node_.has_name) return Problem("found no 'name'", kMissing);
    return AddNode();
  }

  simdjson::error_code ReadKey(std::string_view key, Value& value) {
    const Field field = fields_.OfNode(key);
    switch (field) {
      case Field::kId: {
        const auto id = JsonUint(ScalarToken(value));
        if (!id) return Problem("'id' is not a 64-bit integer", kWrongType);
        node_.row.source_id = *id;
        node_.has_id = true;
        return kSuccess;
      }
      case Field::kName: node_.has_name = true; return value.get_string().get(node_.name);
      case Field::kCtrlDeps:
      case Field::kParent: return ReadControl(value);
      case Field::kInputs: return ReadArguments(inputs_, value);
      case Field::kOutputs: return ReadArguments(outputs_, value);
      case Field::kInputShapes: return inputs_.ReadShapes(value);
      case Field::kInputTypes: return inputs_.ReadTypes(value);
      case Field::kInputStrides: return inputs_.ReadStrides(value);
      case Field::kOutputShapes: return outputs_.ReadShapes(value);
      case Field::kOutputTypes: return outputs_.ReadTypes(value);
      case Field::kOutputStrides: return outputs_.ReadStrides(value);
      case Field::kAttrs: return ReadAttrs(value);
      case Field::kRfId:
      case Field::kFwParent:
      case Field::kSeqId:
      case Field::kScope:
      case Field::kTid:
      case Field::kFwTid:
      case Field::kOpSchema:
      case Field::kKernelBackend:
      case Field::kKernelFile:
      case Field::kTensorRange:
      case Field::kIndexStatistics:
      case Field::kIndexValues:
      case Field::kKind: {
        Scalar scalar;
        if (const auto error = ReadScalar(value, scalar)) return error;
        return SetColumn(field, scalar) ? kSuccess : Keep(key, value);
      }
      case Field::kInclusive:
      case Field::kExclusive:
      case Field::kTs: return ReadTime(field, key, value);
      case Field::kInterThreadDep: return ReadInterThreadDep(key, value);
      case Field::kSyncDep: linked_ = true; return ReadIds(value, sync_deps_);
      case Field::kCat:
      case Field::kPh:
      case Field::kStream:
      case Field::kPgName: return ReadDeviceKey(field, key, value);
      case Field::kDevice:
      case Field::kCorrelation:
      case Field::kExternalId:
      case Field::kProcess:
      case Field::kThread: return ReadPlaceKey(field, key, value);
      case Field::kUnknown: break;
    }
    return Keep(key, value);
  }

  // Keeps a key without a column as JSON text.
  simdjson::error_code Keep(std::string_view key, Value& value) {
    return KeepAs(builder().Intern(key), value.raw_json_token().data());
  }
  simdjson::error_code KeepAs(StringId key, const char* begin) {
    const auto text = RawText(begin);
    if (!text) return Problem("a value is not valid JSON", simdjson::TAPE_ERROR);
    extras_.push_back({.key = key, .text = builder().Intern(*text)});
    return kSuccess;
  }

  simdjson::error_code ReadScalar(Value& value, Scalar& scalar) {
    scalar.text = ScalarToken(value);
    scalar.is_string = scalar.text.starts_with('"');
    return scalar.is_string ? value.get_string().get(scalar.text) : kSuccess;
  }

  // Reads a number, a list of numbers, or null.
  simdjson::error_code ReadIds(Value& value, std::vector<uint64_t>& ids) {
    const auto read_id = [&](Value& item) {
      const auto id = JsonUint(ScalarToken(item));
      if (!id) return Problem("a dependency is not a node id", kWrongType);
      ids.push_back(*id);
      return kSuccess;
    };
    const std::string_view token = ScalarToken(value);
    if (token == "null") return kSuccess;
    return token.starts_with('[') ? ForEachElement(value, read_id) : read_id(value);
  }

  simdjson::error_code ReadControl(Value& value) {
    control_deps_.clear();
    return ReadIds(value, control_deps_);
  }

  simdjson::error_code ReadArguments(EtArguments& arguments, Value& value) {
    if (ScalarToken(value).starts_with('[')) return arguments.ReadValues(value);  // flat node
    return ForEachMember(value, [&](std::string_view key, Value& part) {
      if (Is(key, "values")) return arguments.ReadValues(part);
      if (Is(key, "shapes")) return arguments.ReadShapes(part);
      if (Is(key, "types")) return arguments.ReadTypes(part);
      if (Is(key, "strides")) return arguments.ReadStrides(part);
      if (key == kEtNumbersKey) return arguments.ReadNumbers(part);
      const std::string_view side = &arguments == &inputs_ ? "inputs/" : "outputs/";
      return Keep(std::string(side) + std::string(key), part);
    });
  }

  simdjson::error_code ReadAttrs(Value& value) {
    return ForEachElement(value, [this](Value& attr) { return ReadAttr(attr); });
  }

  simdjson::error_code ReadAttr(Value& attr) {
    const char* begin = attr.raw_json_token().data();
    std::string_view name;
    Scalar scalar;
    const auto read = [&](std::string_view key, Value& value) -> simdjson::error_code {
      if (Is(key, "name")) return value.get_string().get(name);
      return Is(key, "value") ? ReadScalar(value, scalar) : kSuccess;
    };
    if (const auto error = ForEachMember(attr, read)) return error;
    const Field field = fields_.OfAttr(name);
    if (field != Field::kUnknown && SetColumn(field, scalar)) return kSuccess;
    if (field == Field::kUnknown && scalar.text != "null") {
      const auto fact = CommFieldOfAttr(name);
      if (fact && SetCommFact(node_.facts, *fact, scalar.text)) return kSuccess;
    }
    std::string key(kEtAttrPrefix);
    key += name;
    return KeepAs(builder().Intern(key), begin);
  }

  // Returns false if the column cannot hold the value.
  bool SetColumn(Field field, const Scalar& scalar) {
    NodeRow& row = node_.row;
    const auto set_uint = [&](std::optional<uint64_t>& column) {
      if (!scalar.is_string) column = JsonUint(scalar.text);
      return column.has_value();
    };
    // The observer writes "" for missing text.
    const auto set_text = [&](StringId& column) {
      if (scalar.is_string && !scalar.text.empty()) column = builder().Intern(scalar.text);
      return scalar.is_string;
    };
    switch (field) {
      case Field::kRfId: return set_uint(row.rf_id);
      case Field::kFwParent: return set_uint(row.fw_parent);
      case Field::kTid: return set_uint(row.tid);
      case Field::kFwTid: return set_uint(row.fw_tid);
      case Field::kSeqId:
        if (!scalar.is_string) row.seq_id = JsonInt(scalar.text);
        return row.seq_id.has_value();
      case Field::kScope: {
        const auto scope = scalar.is_string ? std::nullopt : JsonUint(scalar.text);
        if (scope && *scope <= UINT8_MAX) row.scope = static_cast<uint8_t>(*scope);
        return row.scope.has_value();
      }
      case Field::kOpSchema: return set_text(row.op_schema);
      case Field::kKernelBackend: return set_text(row.kernel_backend);
      case Field::kKernelFile: return set_text(row.kernel_file);
      case Field::kTensorRange: return set_text(row.tensor_range);
      case Field::kIndexStatistics: return set_text(row.index_statistics);
      case Field::kIndexValues: return set_text(row.index_values);
      case Field::kKind:
        if (scalar.is_string) node_.kind = chakra::KindFromName(scalar.text);
        return node_.kind.has_value();
      default: return false;
    }
  }

  simdjson::error_code ReadTime(Field field, std::string_view key, Value& value) {
    linked_ = true;
    const std::string_view token = ScalarToken(value);
    const JsonTime time = JsonMicros(token);
    if (!time.nanos) return Keep(key, value);
    if (time.rounded) builder().stats().Count(Stat::kRoundedTime);
    if (field == Field::kInclusive) node_.row.duration = time.nanos;
    if (field == Field::kExclusive) node_.row.exclusive = time.nanos;
    if (field == Field::kTs) node_.row.start = time.nanos;
    return kSuccess;
  }

  simdjson::error_code ReadInterThreadDep(std::string_view key, Value& value) {
    linked_ = true;
    const std::string_view token = ScalarToken(value);
    if (token == "null") return kSuccess;
    node_.inter_thread_dep = JsonUint(token);
    return node_.inter_thread_dep ? kSuccess : Keep(key, value);
  }

  simdjson::error_code ReadDeviceKey(Field field, std::string_view key, Value& value) {
    linked_ = true;
    const char* begin = value.raw_json_token().data();
    Scalar scalar;
    if (const auto error = ReadScalar(value, scalar)) return error;
    const bool is_null = !scalar.is_string && scalar.text == "null";
    bool kept = is_null;
    if (field == Field::kCat && scalar.is_string) {
      node_.is_device = true;
      node_.category = scalar.text;
      kept = true;
    } else if (field == Field::kPh) {
      kept = scalar.is_string && scalar.text == "X";
    } else if (field == Field::kStream) {
      const auto stream = JsonInt(scalar.text);
      kept = kept || (stream && *stream >= 0 && *stream <= INT32_MAX);
      if (kept && stream) node_.stream = static_cast<int32_t>(*stream);
    } else if (field == Field::kPgName && scalar.is_string) {
      node_.group = scalar.text;
      kept = true;
    }
    return kept ? kSuccess : KeepAs(builder().Intern(key), begin);
  }

  simdjson::error_code ReadPlaceKey(Field field, std::string_view key, Value& value) {
    const char* begin = value.raw_json_token().data();
    Scalar scalar;
    if (const auto error = ReadScalar(value, scalar)) return error;
    const auto number = scalar.is_string ? std::nullopt : JsonInt(scalar.text);
    bool kept = false;
    if (field == Field::kDevice) {
      kept = number && *number >= 0 && *number <= INT32_MAX;
      if (kept) node_.device = static_cast<int32_t>(*number);
    } else if (field == Field::kCorrelation) {
      node_.row.correlation = number;
      kept = number.has_value();
    } else if (field == Field::kExternalId) {
      node_.row.external_id = number;
      kept = number.has_value();
    } else if (scalar.is_string) {
      (field == Field::kProcess ? node_.process : node_.thread) = scalar.text;
      kept = true;
    }
    return kept ? kSuccess : KeepAs(builder().Intern(key), begin);
  }

  simdjson::error_code AddNode() {
    NodeRow& row = node_.row;
    row.name = builder().Intern(node_.name);
    const auto inputs = inputs_.Build(builder(), element_end());
    const auto outputs = outputs_.Build(builder(), element_end());
    if (!inputs || !outputs)
      return Problem("inputs or outputs are not a list of values", kWrongType);
    row.inputs = *inputs;
    row.outputs = *outputs;
    SetParent();
    SetPlace();
    if (node_.kind) row.kind = *node_.kind;
    SettleGroup();
    const NodeId node = builder().AddNode(row);
    for (const uint64_t id : control_deps_) builder().AddDep(node, id, DepKind::kControl);
    for (const uint64_t id : sync_deps_) builder().AddDep(node, id, DepKind::kSync);
    if (node_.inter_thread_dep) builder().AddDep(node, *node_.inter_thread_dep, DepKind::kData);
    for (const Extra& extra : extras_) builder().AddExtra(node, extra);
    comms_.Add(node, row, std::move(node_.facts), control_deps_);
    return kSuccess;
  }

  // The first control dependency is the caller; the process root refers to itself.
  void SetParent() {
    if (control_deps_.empty()) return;
    const uint64_t parent = control_deps_.front();
    control_deps_.erase(control_deps_.begin());
    const bool is_root = parent == node_.row.source_id &&
                         KindOfEtNode(node_.name, /*is_operator=*/false) == NodeKind::kProcess;
    if (!is_root) node_.row.parent = parent;
  }

  void SetPlace() {
    NodeRow& row = node_.row;
    if (node_.is_device) {
      const ProfileCategory category = FindProfileCategory(node_.category, node_.name);
      row.kind = category.kind;
      row.place = Place::kDevice;
      Lane lane;
      lane.device = node_.device.value_or(-1);
      lane.stream = node_.stream.value_or(-1);
      SetLane(lane);
      if (DefaultProfileCategory(row.kind, row.place) != node_.category) {
        KeepJson("cat", JsonString(node_.category));
      }
      return;
    }
    row.place = Place::kHost;
    row.kind = KindOfEtNode(node_.name, IsEtOperator(static_cast<bool>(row.op_schema),
                                                     builder().text(row.kernel_backend)));
    Lane lane;
    if (row.tid) {
      lane.process = process_;
      lane.thread = builder().Intern(std::to_string(*row.tid));
    }
    if (node_.device) KeepJson("device", std::to_string(*node_.device));
    if (row.tid || node_.process || node_.thread) SetLane(lane);
    if (node_.stream) KeepJson("stream", std::to_string(*node_.stream));
  }

  // A linked node may contain the device trace's names of its process and thread.
  void SetLane(Lane lane) {
    if (node_.process) lane.process = builder().Intern(*node_.process);
    if (node_.thread) lane.thread = builder().Intern(*node_.thread);
    node_.row.lane = builder().InternLane(lane);
  }

  // Keeps a linked device node's own group name unless its inherited attributes have the same.
  void SettleGroup() {
    if (node_.group.empty()) return;
    if (node_.facts.group.empty()) {
      SetCommFact(node_.facts, CommField::kGroup, node_.group);
    } else if (node_.facts.group != node_.group) {
      KeepJson("pg_name", JsonString(node_.group));
    }
  }

  void KeepJson(std::string_view key, std::string_view json) {
    extras_.push_back({.key = builder().Intern(key), .text = builder().Intern(json)});
  }

  void ReadMember(std::string_view key, std::string_view text) override {
    TraceInfo& info = builder().info();
    if (key == "schema") {
      if (auto schema = Unescaped(text)) {
        info.schema = *std::move(schema);
        return;
      }
    } else if (key == "time") {
      if (auto time = Unescaped(text)) {
        info.time = *std::move(time);
        return;
      }
    } else if (key == "pid") {
      info.pid = JsonInt(text);
      if (info.pid) process_ = builder().Intern(std::to_string(*info.pid));
      if (info.pid) return;
    } else if (key == "start_ts") {
      info.start_ts = JsonInt(text);
      if (info.start_ts) return;
    } else if (key == "finish_ts") {
      info.finish_ts = JsonInt(text);
      if (info.finish_ts) return;
    } else if (key == "distributedInfo") {
      ReadDistributedInfo(builder(), text);
    }
    KeepMember(key, text);
  }

  Status BeforeFinish() override {
    TraceInfo& info = builder().info();
    if (!saw_array()) {
      return BadInput(name() +
                      ": found JSON without an array 'nodes', expected an execution trace");
    }
    if (builder().node_count() == 0 && info.schema.empty()) {
      return BadInput(name() + ": found neither nodes nor 'schema', expected an execution trace");
    }
    if (linked_) info.SetFormat(TraceFormat::kLinked);
    if (!IsKnownEtVersion(info.schema)) {
      context().Warn(name() + ": unknown version '" + info.schema + "', read as " +
                     std::string(kVersions.back().schema));
    }
    comms_.Finish();
    return {};
  }

  FieldFinder fields_;
  EtCommReader comms_;
  EtArguments inputs_;
  EtArguments outputs_;
  Node node_;
  // For the current node; members keep their capacity.
  std::vector<uint64_t> control_deps_;
  std::vector<uint64_t> sync_deps_;
  std::vector<Extra> extras_;
  StringId process_;
  bool linked_ = false;
};

}  // namespace

const ElementRules& EtNodeRules() { return kNodeRules; }

bool IsEtNodeKey(std::string_view key) { return FieldFinder().OfNode(key) != Field::kUnknown; }

std::span<const EtVersion> KnownEtVersions() { return kVersions; }

bool IsKnownEtVersion(std::string_view schema) {
  for (const EtVersion& version : kVersions) {
    if (!schema.starts_with(version.schema)) continue;
    const std::string_view rest = schema.substr(version.schema.size());
    if (rest.empty() || rest.front() == '-') return true;
  }
  return false;
}

std::unique_ptr<TraceReader> MakeEtJsonReader(std::string name, const ReadOptions& options,
                                              const RunContext& context) {
  return std::make_unique<EtJsonReader>(std::move(name), options, context);
}

}  // namespace etude
