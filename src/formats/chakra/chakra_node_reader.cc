#include "src/formats/chakra/chakra_node_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "src/base/text/utf8.h"
#include "src/base/units.h"
#include "src/formats/chakra/chakra_kind.h"
#include "src/formats/io/protobuf.h"
#include "src/formats/pytorch_et/et_names.h"

namespace etude::chakra {
namespace {

using protobuf::Delimited;
using protobuf::Varint;
using protobuf::View;

const AttrRow* FindAttr(std::string_view name) {
  const auto row = std::ranges::find(kAttrs, name, &AttrRow::name);
  return row == kAttrs.end() ? nullptr : &*row;
}

// Returns nullopt on overflow.
std::optional<Nanos> FromMicros(uint64_t micros) {
  if (micros > static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / kNanosPerMicro)) {
    return std::nullopt;
  }
  return Nanos{static_cast<int64_t>(micros) * kNanosPerMicro};
}

}  // namespace

NodeReader::NodeReader(TraceBuilder& builder, const Limits& limits)
    : builder_(builder), comms_(builder), io_parser_(limits.depth) {}

void NodeReader::SetDefaults(StringId process, bool inclusive, bool host_computes) {
  process_ = process;
  inclusive_ = inclusive;
  host_computes_ = host_computes;
}

void NodeReader::Keep(std::string_view key, std::string_view field) {
  draft_.extras.push_back({.key = builder_.Intern(key),
                           .text = builder_.Intern(field),
                           .form = Extra::Form::kProtobuf});
}

void NodeReader::ReadIo(std::string_view message, std::string_view field, Io& io) {
  io.plain = io.plain && io.field.empty();
  io.field = field;
  protozero::pbf_reader reader(message.data(), message.size());
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case Delimited(IoField::kValues): io.text.values = View(reader.get_view()); break;
      case Delimited(IoField::kShapes): io.text.shapes = View(reader.get_view()); break;
      case Delimited(IoField::kTypes): io.text.types = View(reader.get_view()); break;
      default: io.plain = false; reader.skip();
    }
  }
}

// `begin` is the beginning of the field under the cursor, tag included.
void NodeReader::ReadField(protozero::pbf_reader& reader, const char* begin) {
  const auto field = [&] {
    return std::string_view(begin, static_cast<size_t>(reader.data().data() - begin));
  };
  const auto add_deps = [&](std::vector<uint64_t>& deps) {
    for (const uint64_t id : reader.get_packed_uint64()) deps.push_back(id);
  };
  const uint32_t number = reader.tag();
  switch (reader.tag_and_type()) {
    case Varint(NodeField::kId): draft_.row.source_id = reader.get_uint64(); return;
    case Delimited(NodeField::kName): draft_.name = View(reader.get_view()); return;
    case Varint(NodeField::kType): {
      // An enumeration is 32 bits; future files may have unknown values.
      draft_.type = static_cast<uint32_t>(reader.get_uint64());
      const auto row = std::ranges::find(kNodeTypes, draft_.type, &NodeTypeRow::number);
      const bool known = row != kNodeTypes.end() &&
                         (row->kind != NodeKind::kUnknown || draft_.type == kInvalidNode);
      if (!known) Keep("type", field());
      return;
    }
    case Delimited(NodeField::kCtrlDeps): return add_deps(draft_.ctrl_deps);
    case Varint(NodeField::kCtrlDeps): draft_.ctrl_deps.push_back(reader.get_uint64()); return;
    case Delimited(NodeField::kDataDeps): return add_deps(draft_.data_deps);
    case Varint(NodeField::kDataDeps): draft_.data_deps.push_back(reader.get_uint64()); return;
    case Varint(NodeField::kStartMicros):
      draft_.start_micros = reader.get_uint64();
      if (!FromMicros(*draft_.start_micros)) Keep("start_time_micros", field());
      return;
    case Varint(NodeField::kDurationMicros):
      draft_.duration_micros = reader.get_uint64();
      if (!FromMicros(*draft_.duration_micros)) Keep("duration_micros", field());
      return;
    case Delimited(NodeField::kInputs): {
      const std::string_view message = View(reader.get_view());
      return ReadIo(message, field(), draft_.inputs);
    }
    case Delimited(NodeField::kOutputs): {
      const std::string_view message = View(reader.get_view());
      return ReadIo(message, field(), draft_.outputs);
    }
    case Delimited(NodeField::kAttr): {
      const std::string_view message = View(reader.get_view());
      return ReadAttr(message, field());
    }
    default: reader.skip(); Keep("field " + std::to_string(number), field());
  }
}

void NodeReader::ReadAttr(std::string_view message, std::string_view field) {
  DecodeAttr(message, attr_);
  const AttrRow* row = attr_.plain ? FindAttr(attr_.name) : nullptr;
  const bool taken =
      row != nullptr && !draft_.layout.Has(row->attr) && SetAttr(row->attr, attr_.value);
  if (taken) return draft_.layout.Add(*row, attr_.value.type);
  // The first of several attributes with one name counts; the others are kept.
  draft_.extras.push_back(ExtraOf(attr_, field, builder_));
  draft_.layout.AddExtra();
}

// Empty text is treated as missing.
bool NodeReader::SetText(StringId& column, const AttrValue& value) {
  if (value.form != AttrValue::Form::kText || !utf8::IsValid(value.text)) return false;
  if (!value.text.empty()) column = builder_.Intern(value.text);
  return true;
}

bool NodeReader::SetComm(Attr attr, const AttrValue& value) {
  Comm& comm = draft_.comm;
  const auto set_int = [&](std::optional<int64_t>& column) {
    column = value.AsInt64();
    return column.has_value();
  };
  const auto set_ints = [&](IntListId& column) {
    if (value.form != AttrValue::Form::kInts || value.type != ValueType::kInt64List) return false;
    column = builder_.InternInts(value.ints);
    return true;
  };
  switch (attr) {
    case Attr::kCommType: {
      const auto number = value.AsInt64();
      const auto type = number ? CollectiveFromNumber(*number) : std::nullopt;
      if (type) comm.type = *type;
      return type.has_value();
    }
    case Attr::kCommSize: {
      const auto bytes = value.AsInt64();
      if (bytes) comm.bytes = Bytes{*bytes};
      return bytes.has_value();
    }
    case Attr::kPgName: return SetText(comm.group, value);
    case Attr::kCommPriority: return set_int(comm.priority);
    case Attr::kCommSrc: return set_int(comm.src);
    case Attr::kCommDst: return set_int(comm.dst);
    case Attr::kCommTag: return set_int(comm.tag);
    case Attr::kCommRoot: return set_int(comm.root);
    case Attr::kCollectiveName: return SetText(comm.name, value);
    case Attr::kDtype:
      if (value.form == AttrValue::Form::kText) comm.dtype = DTypeFromText(value.text);
      return comm.dtype != DType::kUnknown;
    case Attr::kInElements: return set_int(comm.in_elements);
    case Attr::kOutElements: return set_int(comm.out_elements);
    case Attr::kInSplit: return set_ints(comm.in_split);
    case Attr::kOutSplit: return set_ints(comm.out_split);
    case Attr::kPgSize: return set_int(comm.group_size) && *comm.group_size >= 1;
    default: return false;
  }
}

// Returns false if the column cannot hold the attribute's value.
bool NodeReader::SetAttr(Attr attr, const AttrValue& value) {
  Draft& draft = draft_;
  NodeRow& row = draft.row;
  const auto set_uint = [&](std::optional<uint64_t>& column) {
    column = value.AsUint64();
    return column.has_value();
  };
  const auto set_int = [&](std::optional<int64_t>& column) {
    column = value.AsInt64();
    return column.has_value();
  };
  const auto set_bool = [&](std::optional<bool>& flag) {
    const auto number = value.AsInt64();
    if (number && (*number == 0 || *number == 1)) flag = *number == 1;
    return flag.has_value();
  };
  const auto set_view = [&](std::string_view& text, bool& has) {
    has = value.form == AttrValue::Form::kText && utf8::IsValid(value.text);
    if (has) text = value.text;
    return has;
  };
  const auto set_strides = [&](Io& io) {
    if (value.form == AttrValue::Form::kText) io.strides = value.text;
    return !io.strides.empty();
  };
  switch (attr) {
    case Attr::kRfId: return set_uint(row.rf_id);
    case Attr::kFwParent: return set_uint(row.fw_parent);
    case Attr::kSeqId: return set_int(row.seq_id);
    case Attr::kScope: {
      const auto scope = value.AsUint64();
      if (scope && *scope <= UINT8_MAX) row.scope = static_cast<uint8_t>(*scope);
      return row.scope.has_value();
    }
    case Attr::kTid: return set_uint(row.tid);
    case Attr::kFwTid: return set_uint(row.fw_tid);
    case Attr::kOpSchema: return SetText(row.op_schema, value);
    case Attr::kIsCpuOp: {
      std::optional<bool> host;
      if (set_bool(host)) row.place = *host ? Place::kHost : Place::kDevice;
      return host.has_value();
    }
    case Attr::kStream: {
      const auto stream = value.AsInt64();
      if (stream && *stream >= 0 && *stream <= INT32_MAX) draft.stream = stream;
      return draft.stream.has_value();
    }
    case Attr::kCommType:
    case Attr::kCommSize:
    case Attr::kPgName:
    case Attr::kCommPriority:
    case Attr::kCommSrc:
    case Attr::kCommDst:
    case Attr::kCommTag:
    case Attr::kCommRoot:
    case Attr::kCollectiveName:
    case Attr::kDtype:
    case Attr::kInElements:
    case Attr::kOutElements:
    case Attr::kInSplit:
    case Attr::kOutSplit:
    case Attr::kPgSize: {
      const bool taken = SetComm(attr, value);
      draft.has_comm = draft.has_comm || taken;
      return taken;
    }
    case Attr::kKernelBackend: return SetText(row.kernel_backend, value);
    case Attr::kKernelFile: return SetText(row.kernel_file, value);
    case Attr::kTensorRange: return SetText(row.tensor_range, value);
    case Attr::kIndexStatistics: return SetText(row.index_statistics, value);
    case Attr::kIndexValues: return SetText(row.index_values, value);
    case Attr::kDevice: {
      const auto device = value.AsInt64();
      if (device && *device >= 0 && *device <= INT32_MAX) {
        draft.lane.device = static_cast<int32_t>(*device);
      }
      return draft.lane.device >= 0;
    }
    case Attr::kCorrelation: return set_int(row.correlation);
    case Attr::kExternalId: return set_int(row.external_id);
    case Attr::kPid: return set_view(draft.process, draft.has_process);
    case Attr::kThread: return set_view(draft.thread, draft.has_thread);
    case Attr::kKind:
      if (value.form == AttrValue::Form::kText) draft.kind = KindFromName(value.text);
      return draft.kind.has_value();
    case Attr::kParent: return set_bool(draft.first_is_parent);
    case Attr::kSyncDeps:
      if (value.form != AttrValue::Form::kInts || value.type != ValueType::kUint64List)
        return false;
      draft.sync_deps = value.ints;
      return true;
    case Attr::kStartNs: return set_int(draft.start_ns);
    case Attr::kDurationNs: return set_int(draft.duration_ns);
    case Attr::kInclusiveNs: return set_int(draft.inclusive_ns);
    case Attr::kInputStrides: return set_strides(draft.inputs);
    case Attr::kOutputStrides: return set_strides(draft.outputs);
  }
  return false;
}

void NodeReader::SettleTimes() {
  NodeRow& row = draft_.row;
  if (draft_.start_ns) {
    row.start = Nanos{*draft_.start_ns};
  } else if (draft_.start_micros) {
    row.start = FromMicros(*draft_.start_micros);
  }
  std::optional<Nanos> own;
  if (draft_.duration_ns) {
    own = Nanos{*draft_.duration_ns};
  } else if (draft_.duration_micros) {
    own = FromMicros(*draft_.duration_micros);
  }
  if (!inclusive_) {
    row.duration = own;
    return;
  }
  row.exclusive = own;
  row.duration = draft_.inclusive_ns ? Nanos{*draft_.inclusive_ns} : own;
}

void NodeReader::SettlePlace() {
  NodeRow& row = draft_.row;
  Lane& lane = draft_.lane;
  if (host_computes_ && row.place == Place::kDevice) row.place = Place::kHost;
  // Host nodes of PyTorch have stream 0, which has no meaning.
  const bool host = row.place == Place::kHost;
  if (draft_.stream && !(host && *draft_.stream == 0)) {
    lane.stream = static_cast<int32_t>(*draft_.stream);
  }
  if (host && row.tid) {
    lane.process = process_;
    lane.thread = builder_.Intern(std::to_string(*row.tid));
  }
  const auto text = [&](std::string_view name) {
    return name.empty() ? StringId::None() : builder_.Intern(name);
  };
  if (draft_.has_process) lane.process = text(draft_.process);
  if (draft_.has_thread) lane.thread = text(draft_.thread);
  if (!(lane == Lane())) row.lane = builder_.InternLane(lane);
  const KindFacts facts{.type = draft_.type,
                        .place = row.place,
                        .from_pytorch = row.rf_id.has_value(),
                        .is_operator = IsEtOperator(static_cast<bool>(row.op_schema),
                                                    builder_.text(row.kernel_backend)),
                        .has_stream = lane.stream >= 0,
                        .name = draft_.name};
  row.kind = draft_.kind.value_or(KindOf(facts));
}

// Records the layout of the attributes if the writer would choose another one.
void NodeReader::SettleLayout() {
  const NodeRow& row = draft_.row;
  const auto seen = [&](Attr attr) { return draft_.layout.Has(attr); };
  const bool schema_expected = row.op_schema || row.rf_id;
  const bool stream_expected = draft_.lane.stream >= 0 || (row.place == Place::kHost && row.rf_id);
  const bool empty_text = (seen(Attr::kPgName) && !draft_.comm.group) ||
                          (seen(Attr::kCollectiveName) && !draft_.comm.name) ||
                          (seen(Attr::kKernelBackend) && !row.kernel_backend) ||
                          (seen(Attr::kKernelFile) && !row.kernel_file) ||
                          (seen(Attr::kTensorRange) && !row.tensor_range) ||
                          (seen(Attr::kIndexStatistics) && !row.index_statistics) ||
                          (seen(Attr::kIndexValues) && !row.index_values);
  const bool as_written = draft_.layout.is_usual() && !empty_text &&
                          schema_expected == seen(Attr::kOpSchema) &&
                          stream_expected == seen(Attr::kStream);
  if (!as_written) Keep("layout", draft_.layout.Note());
}

bool NodeReader::IsTextOf(const Io& io, std::span<const Value> values) {
  const auto is = [&](std::string_view text, auto append) {
    scratch_.clear();
    append();
    return scratch_ == text;
  };
  constexpr auto kPython = TextStyle::kPython;
  return is(io.text.values, [&] { AppendValues(builder_, values, kPython, scratch_); }) &&
         is(io.text.shapes, [&] { AppendShapes(builder_, values, scratch_); }) &&
         is(io.text.types, [&] { AppendTypes(builder_, values, kPython, scratch_); });
}

// Returns the values in the texts. Keeps the field too if the writer would spell them differently.
ValueListId NodeReader::SettleIo(Io& io, std::string_view key) {
  if (io.field.empty()) return ValueListId::None();
  ValueListId list;
  const bool readable = utf8::IsValid(io.text.values) && utf8::IsValid(io.text.shapes) &&
                        utf8::IsValid(io.text.types);
  io.text.strides = io.strides;
  if (readable) list = io_parser_.Parse(io.text, builder_).value_or(ValueListId::None());
  if (!io.plain || !list || !IsTextOf(io, builder_.values(list))) {
    if (!list) builder_.stats().Count(Stat::kUnknownValue);
    Keep(key, io.field);
  }
  return list;
}

void NodeReader::SettleDependencies(NodeId node) {
  const size_t first = draft_.row.parent ? 1 : 0;
  for (size_t i = first; i < draft_.ctrl_deps.size(); ++i) {
    builder_.AddDep(node, draft_.ctrl_deps[i], DepKind::kControl);
  }
  // Etude's list of sync dependencies is a subsequence of the dependencies.
  size_t sync = 0;
  for (const uint64_t id : draft_.data_deps) {
    const bool is_sync =
        sync < draft_.sync_deps.size() && static_cast<uint64_t>(draft_.sync_deps[sync]) == id;
    if (is_sync) ++sync;
    builder_.AddDep(node, id, is_sync ? DepKind::kSync : DepKind::kData);
  }
}

void NodeReader::Read(std::string_view message) {
  draft_ = Draft();
  protozero::pbf_reader reader(message.data(), message.size());
  while (true) {
    const char* begin = reader.data().data();
    if (!reader.next()) break;
    ReadField(reader, begin);
  }
  NodeRow& row = draft_.row;
  std::string repaired;
  if (!utf8::IsValid(draft_.name)) {
    repaired = utf8::Repair(draft_.name);
    draft_.name = repaired;
    builder_.stats().Count(Stat::kRepairedUtf8);
  }
  row.name = builder_.Intern(draft_.name);
  SettleTimes();
  SettlePlace();
  const bool on_stream = row.place == Place::kDevice && draft_.lane.stream >= 0;
  const bool has_parent = draft_.first_is_parent.value_or(
      CtrlDepIsParent(row.rf_id.has_value(), on_stream, draft_.ctrl_deps.size()));
  if (has_parent && !draft_.ctrl_deps.empty()) row.parent = draft_.ctrl_deps.front();
  SettleLayout();
  row.inputs = SettleIo(draft_.inputs, "inputs");
  row.outputs = SettleIo(draft_.outputs, "outputs");
  const NodeId node = builder_.AddNode(row);
  SettleDependencies(node);
  for (const Extra& extra : draft_.extras) builder_.AddExtra(node, extra);
  if (draft_.has_comm) builder_.SetComm(node, draft_.comm);
  if (row.kind == NodeKind::kMetadata && draft_.name == kProcessGroupInit) {
    comms_.Add(node, row, CommFacts());
  }
}

}  // namespace etude::chakra
