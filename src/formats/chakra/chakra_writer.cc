#include "src/formats/chakra/chakra_writer.h"

#include <protozero/exception.hpp>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "src/base/units.h"
#include "src/formats/chakra/chakra_attr.h"
#include "src/formats/chakra/chakra_kind.h"
#include "src/formats/chakra/chakra_schema.h"
#include "src/formats/io/protobuf.h"
#include "src/formats/json/value_text.h"
#include "src/formats/pytorch_et/et_comm.h"
#include "src/formats/pytorch_et/et_names.h"
#include "src/trace/simulated.h"

namespace etude {
namespace {

using chakra::Attr;
using chakra::AttrRow;
using chakra::GlobalAttr;
using chakra::GlobalAttrRow;
using chakra::IoField;
using chakra::MetadataField;
using chakra::NodeField;
using chakra::ValueType;

using protobuf::FieldTag;
using protobuf::Payload;

constexpr uint32_t Number(NodeField field) { return static_cast<uint32_t>(field); }

std::string JsonName(std::string_view key) {
  std::string name(chakra::kJsonPrefix);
  name += key;
  return name;
}

// Rounds halves up.
uint64_t ToMicros(int64_t nanos) {
  const auto count = static_cast<uint64_t>(nanos);
  return count / kNanosPerMicro + (count % kNanosPerMicro >= kNanosPerMicro / 2 ? 1 : 0);
}

// Extras of a node or a trace, by destination.
struct SortedExtras {
  std::vector<const Extra*> attrs;
  std::vector<std::string_view> others;  // fields after the attributes
  std::string_view type;
  std::string_view start;
  std::string_view duration;
  std::string_view inputs;
  std::string_view outputs;
  std::string_view layout;

  void Clear() {
    attrs.clear();
    others.clear();
    type = start = duration = inputs = outputs = layout = {};
  }
};

class ChakraWriter {
 public:
  ChakraWriter(const Trace& trace, const ChakraWriteOptions& options, const ByteSink& sink)
      : trace_(trace), options_(options), host_computes_(HostComputes(trace)), out_(sink) {}

  Result<ChakraWriteReport> Run() {
    PlanIds();
    FindInclusive();
    WriteMetadata();
    for (const NodeId node : order_) {
      WriteNode(node);
      ETUDE_RETURN_IF_ERROR(out_.FlushIfFull());
    }
    ETUDE_RETURN_IF_ERROR(out_.Flush());
    report_.nodes = order_.size();
    report_.bytes = out_.bytes();
    return report_;
  }

 private:
  // Assigns the ids to be written and the order of the nodes.
  void PlanIds() {
    if (!options_.verbatim) {
      order_ = trace_.NodesBySourceId();
      const auto id_of = [&](NodeId node) { return trace_.source_id(node); };
      if (std::ranges::adjacent_find(order_, {}, id_of) == order_.end()) return;
      report_.renumbered = true;
    }
    order_.resize(trace_.node_count());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = NodeId::FromIndex(i);
  }

  void FindInclusive() {
    if (trace_.traits().exclusive_durations) return;
    ForEachNode(trace_, [&](NodeId node) { inclusive_ |= trace_.duration(node).has_value(); });
  }

  uint64_t IdOf(NodeId node) const {
    return report_.renumbered ? node.value() : trace_.source_id(node);
  }

  void AppendFrame() {
    protozero::write_varint(std::back_inserter(out_.text()), message_.size());
    out_.text() += message_;
    message_.clear();
  }

  void SortExtras(std::span<const Extra> extras, uint32_t attr_field) {
    extras_.Clear();
    for (const Extra& extra : extras) {
      const std::string_view text = trace_.text(extra.text);
      if (extra.form == Extra::Form::kJson) {
        extras_.attrs.push_back(&extra);
        continue;
      }
      if (text.empty()) continue;
      const uint32_t number = FieldTag(text) >> 3;
      if (number == attr_field) {
        extras_.attrs.push_back(&extra);
      } else if (number == chakra::kLayoutField) {
        extras_.layout = Payload(text);
      } else if (attr_field != Number(NodeField::kAttr)) {
        extras_.others.push_back(text);
      } else {
        switch (static_cast<NodeField>(number)) {
          case NodeField::kType: extras_.type = text; break;
          case NodeField::kStartMicros: extras_.start = text; break;
          case NodeField::kDurationMicros: extras_.duration = text; break;
          case NodeField::kInputs: extras_.inputs = text; break;
          case NodeField::kOutputs: extras_.outputs = text; break;
          default: extras_.others.push_back(text);
        }
      }
    }
  }

  void WriteExtraAttr(const Extra& extra, uint32_t attr_field) {
    const std::string_view text = trace_.text(extra.text);
    if (extra.form == Extra::Form::kProtobuf) {
      message_ += text;
      return;
    }
    chakra::AddTextAttr(message_, attr_field, JsonName(trace_.text(extra.key)), text);
  }

  // Writes all attributes: first those in the recorded layout, then the others. `write`(row, type,
  // noted) writes one of `rows` if it has a value.
  template <typename Rows, typename Write>
  void WriteAttrs(const Rows& rows, uint32_t attr_field, Write write) {
    uint64_t written = 0;
    size_t extra = 0;
    for (size_t i = 0; i + 1 < extras_.layout.size(); i += 2) {
      const auto token = static_cast<uint8_t>(extras_.layout[i]);
      const auto type = static_cast<ValueType>(static_cast<uint8_t>(extras_.layout[i + 1]));
      if (token == chakra::kLayoutExtra) {
        if (extra < extras_.attrs.size()) WriteExtraAttr(*extras_.attrs[extra++], attr_field);
      } else if (token >= 1 && token <= rows.size() && ((written >> (token - 1u)) & 1) == 0) {
        write(rows[token - 1u], type, true);
        written |= uint64_t{1} << (token - 1u);
      }
    }
    // A recorded layout decides whether empty values are written.
    noted_ = !extras_.layout.empty();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (((written >> i) & 1) == 0) write(rows[i], rows[i].type, false);
    }
    noted_ = false;
    while (extra < extras_.attrs.size()) WriteExtraAttr(*extras_.attrs[extra++], attr_field);
  }

  void WriteMetadata();
  void WriteGlobalAttr(const GlobalAttrRow& row, ValueType type, bool noted);
  std::string ProcessGroupsJson() const;

  void WriteNode(NodeId node);
  void PlanDependencies(NodeId node);
  void PlanTimes(NodeId node);
  void WriteIo(NodeField field, ValueListId list, std::string_view raw);
  const std::string& IoMessage(ValueListId list);
  void WriteAttr(const AttrRow& row, ValueType type, bool noted);
  void WriteCommAttr(const AttrRow& row, ValueType type, bool noted);
  bool KindNeedsAttr() const;
  Lane DefaultLane();

  // Write one attribute if it has a value. An empty text is written only if in the recorded layout.
  void Put(const AttrRow& row, ValueType type, std::optional<int64_t> value) {
    if (value) chakra::AddIntAttr(message_, kNodeAttr, row.name, type, *value);
  }
  void Put(const AttrRow& row, ValueType type, std::optional<uint64_t> value) {
    if (value) chakra::AddUintAttr(message_, kNodeAttr, row.name, type, *value);
  }
  void PutText(const AttrRow& row, StringId text, bool even_if_empty) {
    if (!text && !even_if_empty) return;
    PutText(row, trace_.text(text));
  }
  void PutText(const AttrRow& row, std::string_view text) {
    chakra::AddTextAttr(message_, kNodeAttr, row.name, text);
  }
  void PutInts(const AttrRow& row, std::span<const int64_t> ints) {
    chakra::AddIntsAttr(message_, kNodeAttr, row.name, row.type, ints);
  }

  static constexpr uint32_t kNodeAttr = Number(NodeField::kAttr);

  const Trace& trace_;
  const ChakraWriteOptions options_;
  const bool host_computes_;
  ChakraWriteReport report_;
  std::vector<NodeId> order_;
  bool inclusive_ = false;
  SinkBuffer out_;
  std::string message_;
  std::string scratch_;
  // Arguments written before, by id modulo the table size.
  struct KnownIo {
    ValueListId list;
    std::string message;
  };
  std::vector<KnownIo> known_io_{256};
  SortedExtras extras_;
  bool noted_ = false;
  std::optional<uint64_t> default_tid_;  // thread of default_lane_
  Lane default_lane_;

  // For the node being written.
  NodeId node_;
  const Comm* comm_ = nullptr;
  bool from_pytorch_ = false;
  bool host_ = false;
  Lane lane_;
  std::vector<uint64_t> ctrl_deps_;
  std::vector<uint64_t> data_deps_;
  std::vector<int64_t> sync_deps_;
  bool first_is_parent_ = false;
  std::optional<Nanos> start_;
  std::optional<Nanos> own_;  // duration without children
};

std::string ChakraWriter::ProcessGroupsJson() const {
  auto list = nlohmann::ordered_json::array();
  for (const ProcessGroup& group : trace_.process_groups()) {
    nlohmann::ordered_json entry;
    entry["pg_name"] = trace_.text(group.name);
    if (group.description) entry["pg_desc"] = trace_.text(group.description);
    if (group.backend) entry["backend_config"] = trace_.text(group.backend);
    if (group.ranks) {
      const auto ranks = trace_.ints(group.ranks);
      entry["ranks"] = std::vector<int64_t>(ranks.begin(), ranks.end());
    }
    if (group.size) entry["group_size"] = *group.size;
    list.push_back(std::move(entry));
  }
  return list.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

void ChakraWriter::WriteGlobalAttr(const GlobalAttrRow& row, ValueType type, bool noted) {
  const TraceInfo& info = trace_.info();
  constexpr auto kField = static_cast<uint32_t>(MetadataField::kAttr);
  const auto put = [&](std::optional<int64_t> value) {
    if (value) chakra::AddIntAttr(message_, kField, row.name, type, *value);
  };
  const auto put_text = [&](std::string_view text) {
    chakra::AddTextAttr(message_, kField, row.name, text);
  };
  switch (row.attr) {
    case GlobalAttr::kSchema: {
      // Without a recorded layout, a schema equal to the container's version came from there.
      const bool is_version = std::ranges::any_of(extras_.others, [&](std::string_view field) {
        return FieldTag(field) >> 3 == static_cast<uint32_t>(MetadataField::kVersion) &&
               Payload(field) == info.schema;
      });
      if (noted || (!info.schema.empty() && !is_version)) put_text(info.schema);
      break;
    }
    case GlobalAttr::kPid: put(info.pid); break;
    case GlobalAttr::kTime:
      if (noted || !info.time.empty()) put_text(info.time);
      break;
    case GlobalAttr::kStartTs: put(info.start_ts); break;
    case GlobalAttr::kFinishTs: put(info.finish_ts); break;
    case GlobalAttr::kRank: put(info.rank); break;
    case GlobalAttr::kWorldSize: put(info.world_size); break;
    case GlobalAttr::kInclusive:
      if (inclusive_) put(1);
      break;
    case GlobalAttr::kProcessGroups: {
      bool listed = false;
      ForEachNode(trace_, [&](NodeId node) { listed |= trace_.name(node) == kProcessGroupInit; });
      if (!listed && !trace_.process_groups().empty()) put_text(ProcessGroupsJson());
      break;
    }
  }
}

void ChakraWriter::WriteMetadata() {
  constexpr auto kField = static_cast<uint32_t>(MetadataField::kAttr);
  SortExtras(trace_.info().extras, kField);
  const auto is_version = [](std::string_view field) {
    return FieldTag(field) >> 3 == static_cast<uint32_t>(MetadataField::kVersion);
  };
  for (const std::string_view field : extras_.others) {
    if (is_version(field)) message_ += field;
  }
  WriteAttrs(chakra::kGlobalAttrs, kField,
             [&](const GlobalAttrRow& row, ValueType type, bool noted) {
               WriteGlobalAttr(row, type, noted);
             });
  for (const std::string_view field : extras_.others) {
    if (!is_version(field)) message_ += field;
  }
  AppendFrame();
}

void ChakraWriter::PlanDependencies(NodeId node) {
  ctrl_deps_.clear();
  data_deps_.clear();
  sync_deps_.clear();
  const NodeId parent = trace_.parent(node);
  first_is_parent_ = static_cast<bool>(parent);
  if (parent) ctrl_deps_.push_back(IdOf(parent));
  const auto add = [&](uint64_t id, DepKind kind) {
    switch (kind) {
      case DepKind::kControl: ctrl_deps_.push_back(id); break;
      case DepKind::kSync: sync_deps_.push_back(static_cast<int64_t>(id)); [[fallthrough]];
      case DepKind::kData: data_deps_.push_back(id); break;
    }
  };
  const auto deps = trace_.deps(node);
  const auto kinds = trace_.dep_kinds(node);
  for (size_t i = 0; i < deps.size(); ++i) add(IdOf(deps[i]), kinds[i]);
  const auto dangling = trace_.dangling();
  auto at = std::ranges::lower_bound(dangling, node, {}, &Trace::Dangling::node);
  for (; at != dangling.end() && at->node == node; ++at) {
    if (!options_.verbatim) {
      ++report_.dropped_references;
    } else if (at->is_parent) {
      first_is_parent_ = true;
      ctrl_deps_.insert(ctrl_deps_.begin(), at->source_id);
    } else {
      add(at->source_id, at->kind);
    }
  }
}

void ChakraWriter::PlanTimes(NodeId node) {
  start_ = trace_.start(node);
  own_ = trace_.exclusive(node);
  const bool leaf = trace_.children(node).empty();
  if (!own_ && (leaf || trace_.traits().exclusive_durations)) own_ = trace_.duration(node);
}

void ChakraWriter::WriteIo(NodeField field, ValueListId list, std::string_view raw) {
  if (!raw.empty()) {
    message_ += raw;
    return;
  }
  if (!list) return;
  protozero::pbf_writer writer(message_);
  writer.add_message(Number(field), IoMessage(list));
}

// Returns the IOInfo of a list of arguments. A call often has those of its caller.
const std::string& ChakraWriter::IoMessage(ValueListId list) {
  KnownIo& known = known_io_[list.index() % known_io_.size()];
  if (known.list == list) return known.message;
  known.list = list;
  known.message.clear();
  protozero::pbf_writer io(known.message);
  const auto add = [&](IoField part, auto append) {
    scratch_.clear();
    append();
    io.add_string(static_cast<uint32_t>(part), scratch_);
  };
  const auto values = trace_.values(list);
  constexpr auto kPython = TextStyle::kPython;
  add(IoField::kValues, [&] { AppendValues(trace_, values, kPython, scratch_); });
  add(IoField::kShapes, [&] { AppendShapes(trace_, values, scratch_); });
  add(IoField::kTypes, [&] { AppendTypes(trace_, values, kPython, scratch_); });
  return known.message;
}

// Returns the lane that the reader assigns to a node without lane attributes.
Lane ChakraWriter::DefaultLane() {
  const auto tid = trace_.tid(node_);
  if (trace_.place(node_) != Place::kHost || !tid) return {};
  if (tid != default_tid_) {
    default_tid_ = tid;
    default_lane_.thread = trace_.strings().Find(std::to_string(*tid));
    const auto pid = trace_.info().pid;
    if (pid) default_lane_.process = trace_.strings().Find(std::to_string(*pid));
  }
  return default_lane_;
}

bool ChakraWriter::KindNeedsAttr() const {
  const NodeKind kind = trace_.kind(node_);
  const LaneId lane = trace_.lane_id(node_);
  const bool is_operator = IsEtOperator(static_cast<bool>(trace_.op_schema(node_)),
                                        trace_.text(trace_.kernel_backend(node_)));
  return chakra::KindOf({.type = chakra::TypeOf(kind),
                         .place = trace_.place(node_),
                         .from_pytorch = trace_.rf_id(node_).has_value(),
                         .is_operator = is_operator,
                         .has_stream = lane && trace_.lane(lane).stream >= 0,
                         .name = trace_.name(node_)}) != kind;
}

void ChakraWriter::WriteCommAttr(const AttrRow& row, ValueType type, bool noted) {
  if (comm_ == nullptr) return;
  const Comm& comm = *comm_;
  switch (row.attr) {
    case Attr::kCommType: return Put(row, type, chakra::NumberOf(comm.type));
    case Attr::kCommSize:
      if (comm.bytes) Put(row, type, std::optional<int64_t>(comm.bytes->count));
      return;
    case Attr::kPgName: return PutText(row, comm.group, noted);
    case Attr::kCommPriority: return Put(row, type, comm.priority);
    case Attr::kCommSrc: return Put(row, type, comm.src);
    case Attr::kCommDst: return Put(row, type, comm.dst);
    case Attr::kCommTag: return Put(row, type, comm.tag);
    case Attr::kCommRoot: return Put(row, type, comm.root);
    case Attr::kCollectiveName: return PutText(row, comm.name, noted);
    case Attr::kDtype:
      if (comm.dtype != DType::kUnknown) PutText(row, Name(comm.dtype));
      return;
    case Attr::kInElements: return Put(row, type, comm.in_elements);
    case Attr::kOutElements: return Put(row, type, comm.out_elements);
    case Attr::kInSplit:
      if (comm.in_split) PutInts(row, trace_.ints(comm.in_split));
      return;
    case Attr::kOutSplit:
      if (comm.out_split) PutInts(row, trace_.ints(comm.out_split));
      return;
    case Attr::kPgSize: return Put(row, type, comm.group_size);
    default: return;
  }
}

void ChakraWriter::WriteAttr(const AttrRow& row, ValueType type, bool noted) {
  const auto put_strides = [&](std::span<const Value> values) {
    if (!HasStrides(trace_, values)) return;
    scratch_.clear();
    AppendStrides(trace_, values, scratch_);
    PutText(row, scratch_);
  };
  const auto put_nanos = [&](std::optional<Nanos> time) {
    if (!time || (time->count >= 0 && time->count % kNanosPerMicro == 0)) return;
    Put(row, type, std::optional<int64_t>(time->count));
  };
  switch (row.attr) {
    case Attr::kRfId: return Put(row, type, trace_.rf_id(node_));
    case Attr::kFwParent: return Put(row, type, trace_.fw_parent(node_));
    case Attr::kSeqId: return Put(row, type, trace_.seq_id(node_));
    case Attr::kScope: {
      const auto scope = trace_.scope(node_);
      if (scope) Put(row, type, std::optional<int64_t>(*scope));
      return;
    }
    case Attr::kTid: return Put(row, type, trace_.tid(node_));
    case Attr::kFwTid: return Put(row, type, trace_.fw_tid(node_));
    case Attr::kOpSchema:
      return PutText(row, trace_.op_schema(node_), noted || (from_pytorch_ && !noted_));
    case Attr::kIsCpuOp:
      if (trace_.place(node_) == Place::kUnknown) return;
      return Put(row, type, std::optional<int64_t>(host_ && !host_computes_ ? 1 : 0));
    case Attr::kStream:
      if (lane_.stream >= 0) return Put(row, type, std::optional<int64_t>(lane_.stream));
      if (host_ && (noted || (from_pytorch_ && !noted_))) Put(row, type, std::optional<int64_t>(0));
      return;
    case Attr::kKernelBackend: return PutText(row, trace_.kernel_backend(node_), noted);
    case Attr::kKernelFile: return PutText(row, trace_.kernel_file(node_), noted);
    case Attr::kTensorRange: return PutText(row, trace_.tensor_range(node_), noted);
    case Attr::kIndexStatistics: return PutText(row, trace_.index_statistics(node_), noted);
    case Attr::kIndexValues: return PutText(row, trace_.index_values(node_), noted);
    case Attr::kDevice:
      if (lane_.device >= 0) Put(row, type, std::optional<int64_t>(lane_.device));
      return;
    case Attr::kCorrelation: return Put(row, type, trace_.correlation(node_));
    case Attr::kExternalId: return Put(row, type, trace_.external_id(node_));
    case Attr::kPid:
      if (lane_.process != DefaultLane().process) PutText(row, trace_.text(lane_.process));
      return;
    case Attr::kThread:
      if (lane_.thread != DefaultLane().thread) PutText(row, trace_.text(lane_.thread));
      return;
    case Attr::kKind:
      if (KindNeedsAttr()) PutText(row, Name(trace_.kind(node_)));
      return;
    case Attr::kParent:
      if (first_is_parent_ ==
          chakra::CtrlDepIsParent(from_pytorch_,
                                  trace_.place(node_) == Place::kDevice && lane_.stream >= 0,
                                  ctrl_deps_.size())) {
        return;
      }
      return Put(row, type, std::optional<int64_t>(first_is_parent_ ? 1 : 0));
    case Attr::kSyncDeps:
      if (!sync_deps_.empty()) PutInts(row, sync_deps_);
      return;
    case Attr::kStartNs: return put_nanos(start_);
    case Attr::kDurationNs: return put_nanos(own_);
    case Attr::kInclusiveNs: {
      const auto duration = trace_.duration(node_);
      if (!inclusive_ || !duration || duration == own_) return;
      return Put(row, type, std::optional<int64_t>(duration->count));
    }
    case Attr::kInputStrides: return put_strides(trace_.inputs(node_));
    case Attr::kOutputStrides: return put_strides(trace_.outputs(node_));
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
    case Attr::kPgSize: return WriteCommAttr(row, type, noted);
  }
}

void ChakraWriter::WriteNode(NodeId node) {
  node_ = node;
  comm_ = trace_.comm(node);
  from_pytorch_ = trace_.rf_id(node).has_value();
  host_ = trace_.place(node) == Place::kHost;
  lane_ = trace_.lane_id(node) ? trace_.lane(trace_.lane_id(node)) : Lane();
  SortExtras(trace_.extras(node), kNodeAttr);
  PlanDependencies(node);
  PlanTimes(node);
  {
    protozero::pbf_writer writer(message_);
    const uint64_t id = IdOf(node);
    if (id != 0) writer.add_uint64(Number(NodeField::kId), id);
    const std::string_view name = trace_.name(node);
    if (!name.empty()) writer.add_string(Number(NodeField::kName), name.data(), name.size());
    const uint32_t type = chakra::TypeOf(trace_.kind(node));
    if (type != 0) {
      writer.add_enum(Number(NodeField::kType), static_cast<int32_t>(type));
    } else {
      message_ += extras_.type;
    }
    writer.add_packed_uint64(Number(NodeField::kCtrlDeps), ctrl_deps_.begin(), ctrl_deps_.end());
    writer.add_packed_uint64(Number(NodeField::kDataDeps), data_deps_.begin(), data_deps_.end());
    if (start_) {
      // A known zero is written, so that it does not read as unknown.
      if (start_->count < 0) ++report_.clipped_times;
      writer.add_uint64(Number(NodeField::kStartMicros),
                        ToMicros(std::max(start_->count, int64_t{0})));
    } else {
      message_ += extras_.start;
    }
    if (own_) {
      writer.add_uint64(Number(NodeField::kDurationMicros), ToMicros(own_->count));
    } else {
      message_ += extras_.duration;
    }
  }
  WriteIo(NodeField::kInputs, trace_.input_list(node), extras_.inputs);
  WriteIo(NodeField::kOutputs, trace_.output_list(node), extras_.outputs);
  WriteAttrs(chakra::kAttrs, kNodeAttr,
             [&](const AttrRow& row, ValueType type, bool noted) { WriteAttr(row, type, noted); });
  for (const std::string_view field : extras_.others) message_ += field;
  AppendFrame();
}

}  // namespace

Result<ChakraWriteReport> WriteChakra(const Trace& trace, const ChakraWriteOptions& options,
                                      const ByteSink& sink) {
  try {
    return ChakraWriter(trace, options, sink).Run();
  } catch (const protozero::exception& error) {
    return MakeError(ErrorCode::kInternal, std::string("writing a Chakra trace: ") + error.what());
  }
}

}  // namespace etude
