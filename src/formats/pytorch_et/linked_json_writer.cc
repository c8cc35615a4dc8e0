#include "src/formats/pytorch_et/linked_json_writer.h"

#include <protozero/exception.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/formats/chakra/chakra_attr.h"
#include "src/formats/io/protobuf.h"
#include "src/formats/json/json_text.h"
#include "src/formats/json/value_text.h"
#include "src/formats/native/capture_reader.h"
#include "src/formats/profile/comm_facts.h"
#include "src/formats/profile/comm_kernels.h"
#include "src/formats/profile/profile_categories.h"
#include "src/formats/pytorch_et/et_comm.h"
#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/trace/simulated.h"
#include "src/trace/words/memory_event.h"
#include "src/trace/words/operator_name.h"
#include "src/trace/words/record_scope.h"

namespace etude {
namespace {

// Flat nodes belong to the oldest version; output has the form of the next one.
constexpr std::string_view kFlatVersion = "1.0.1";
constexpr std::string_view kNestedVersion = "1.0.2-chakra.0.0.4";
// The newest version, for traces that do not come from a PyTorch file.
constexpr std::string_view kNewestVersion = "1.1.1-chakra.0.0.4";

// Prefix for written extras whose keys have a meaning to readers.
constexpr std::string_view kRenamedPrefix = "args/";

class LinkedJsonWriter {
 public:
  // Output form: all facts of the trace, or a host trace as written by PyTorch's observer.
  enum class Form : uint8_t { kLinked, kObserver };

  LinkedJsonWriter(const Trace& trace, Form form, const ByteSink& sink)
      : trace_(trace),
        observer_(form == Form::kObserver),
        host_computes_(HostComputes(trace)),
        buffer_(sink) {}

  Result<LinkedWriteReport> Run() {
    PlanIds();
    ForEachNode(trace_, [&](NodeId node) {
      has_strides_ = has_strides_ || HasStrides(trace_, trace_.inputs(node)) ||
                     HasStrides(trace_, trace_.outputs(node));
      is_timed_ = is_timed_ || trace_.start(node) || trace_.place(node) == Place::kDevice;
    });
    WriteHead();
    bool first = true;
    for (const NodeId node : order_) {
      out_ += first ? "\n" : ",\n";
      first = false;
      WriteNode(node);
      ETUDE_RETURN_IF_ERROR(buffer_.FlushIfFull());
    }
    out_ += "\n]}\n";
    ETUDE_RETURN_IF_ERROR(buffer_.Flush());
    report_.nodes = order_.size();
    report_.bytes = buffer_.bytes();
    return report_;
  }

 private:
  void PlanIds() {
    order_.resize(trace_.node_count());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = NodeId::FromIndex(i);
    if (observer_) {
      std::erase_if(order_, [&](NodeId node) {
        return trace_.place(node) == Place::kDevice || IsMemoryEvent(trace_, node);
      });
    }
    const auto id_of = [&](NodeId node) { return trace_.source_id(node); };
    std::ranges::stable_sort(order_, {}, id_of);
    if (std::ranges::adjacent_find(order_, {}, id_of) == order_.end()) return;
    report_.renumbered = true;
    std::ranges::sort(order_);
  }

  std::string IdOf(NodeId node) const {
    return std::to_string(report_.renumbered ? node.value() : trace_.source_id(node));
  }

  void WriteHead() {
    const TraceInfo& info = trace_.info();
    out_ += "{";
    const auto member = [&](std::string_view key, std::string_view json) {
      out_ += JsonString(key);
      out_ += ": ";
      out_ += json;
      out_ += ", ";
    };
    const auto number = [&](std::string_view key, std::optional<int64_t> value) {
      if (value) member(key, std::to_string(*value));
    };
    // Chakra files that are not converted execution traces have the version of their container.
    if (info.schema.starts_with(kNativeSchema)) {
      member("schema", JsonString(kNewestVersion));
    } else if (info.schema.starts_with(kFlatVersion) ||
               (info.traits.states_order && !IsKnownEtVersion(info.schema))) {
      member("schema", JsonString(kNestedVersion));
    } else if (!info.schema.empty()) {
      member("schema", JsonString(info.schema));
    }
    number("pid", info.pid);
    if (!info.time.empty()) member("time", JsonString(info.time));
    number("start_ts", info.start_ts);
    number("finish_ts", info.finish_ts);
    if (observer_) {
      out_ += "\"nodes\": [";
      return;
    }
    bool has_distributed = false;
    for (const Extra& extra : info.extras) {
      const std::string_view key = trace_.text(extra.key);
      if (extra.form == Extra::Form::kProtobuf) {
        ++report_.lost_extras;
        continue;
      }
      has_distributed = has_distributed || key == "distributedInfo";
      member(key, trace_.text(extra.text));
    }
    if (!has_distributed && (info.rank || info.world_size || !trace_.process_groups().empty())) {
      member("distributedInfo", DistributedInfo());
    }
    out_ += "\"nodes\": [";
  }

  // In the profiler's format.
  std::string DistributedInfo() const {
    std::string json = "{";
    const auto add = [&](const std::string& text) {
      if (json.size() > 1) json += ", ";
      json += text;
    };
    const TraceInfo& info = trace_.info();
    if (info.rank) add("\"rank\": " + std::to_string(*info.rank));
    if (info.world_size) add("\"world_size\": " + std::to_string(*info.world_size));
    std::string groups;
    for (const ProcessGroup& group : trace_.process_groups()) {
      if (!groups.empty()) groups += ", ";
      groups += "{\"pg_name\": " + JsonString(trace_.text(group.name));
      if (group.description) groups += ", \"pg_desc\": " + Text(group.description);
      if (group.backend) groups += ", \"backend_config\": " + Text(group.backend);
      if (group.size) groups += ", \"pg_size\": " + std::to_string(*group.size);
      if (group.ranks) groups += ", \"ranks\": " + Ints(group.ranks);
      groups += "}";
    }
    if (!groups.empty()) add("\"pg_config\": [" + groups + "]");
    return json + "}";
  }

  std::string Text(StringId id) const { return JsonString(trace_.text(id)); }
  std::string Ints(IntListId id) const {
    std::string json = "[";
    for (const int64_t number : trace_.ints(id)) {
      if (json.size() > 1) json += ", ";
      json += std::to_string(number);
    }
    return json + "]";
  }

  void Key(std::string_view key) {
    out_ += ", ";
    AppendJsonString(key, out_);
    out_ += ": ";
  }
  void Member(std::string_view key, std::string_view json) {
    Key(key);
    out_ += json;
  }

  void WriteNode(NodeId node) {
    const bool device = trace_.place(node) == Place::kDevice;
    out_ += "{\"id\": " + IdOf(node);
    Member("name", Text(trace_.name_id(node)));
    WriteControl(node);
    WriteIo("inputs", "inputs/", node, trace_.inputs(node));
    WriteIo("outputs", "outputs/", node, trace_.outputs(node));
    Key("attrs");
    out_ += "[";
    first_attr_ = true;
    // Device nodes inherit PyTorch's facts of the operator they belong to.
    WriteAttrs(device ? Operator(node) : node);
    if (observer_) {
      if (trace_.name(node) == kRecordParamComms) WriteCommAttrs(node);
      out_ += "]}";
      return;
    }
    if (KindNeedsAttr(node)) Attr(kEtKindAttr, "string", JsonString(Name(trace_.kind(node))));
    WriteCommAttrs(node);
    WriteExtraAttrs(node);
    out_ += "]";
    WriteExtras(node);
    WriteTimes(node);
    WriteDependencies(node);
    if (device) WriteDevice(node);
    WriteLane(node);
    out_ += "}";
  }

  NodeId Operator(NodeId node) const {
    NodeId above = trace_.parent(node);
    if (trace_.rf_id(node)) return node;
    while (above && trace_.place(above) == Place::kDevice) above = trace_.parent(above);
    return above ? above : node;
  }

  // The caller first; the process root calls itself.
  void WriteControl(NodeId node) {
    std::vector<std::string> ids;
    if (const NodeId parent = trace_.parent(node)) {
      ids.push_back(IdOf(parent));
    } else if (trace_.kind(node) == NodeKind::kProcess) {
      ids.push_back(IdOf(node));
    } else if (!report_.renumbered) {
      auto at = std::ranges::lower_bound(trace_.dangling(), node, {}, &Trace::Dangling::node);
      for (; at != trace_.dangling().end() && at->node == node && ids.empty(); ++at) {
        if (at->is_parent) ids.push_back(std::to_string(at->source_id));
      }
    }
    const bool has_caller = !ids.empty();
    const auto kinds = trace_.dep_kinds(node);
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] != DepKind::kControl || observer_) continue;
      // The first one would be taken for the caller.
      if (has_caller) {
        ids.push_back(IdOf(trace_.deps(node)[i]));
      } else {
        ++report_.lost_edges;
      }
    }
    if (ids.size() == 1) {
      Member("ctrl_deps", ids[0]);
      return;
    }
    Key("ctrl_deps");
    out_ += "[";
    for (size_t i = 0; i < ids.size(); ++i) out_ += (i == 0 ? "" : ", ") + ids[i];
    out_ += "]";
  }

  void WriteIo(std::string_view key, std::string_view extra_prefix, NodeId node,
               std::span<const Value> values) {
    Key(key);
    out_ += "{\"values\": ";
    AppendValues(trace_, values, TextStyle::kJson, out_);
    out_ += ", \"shapes\": ";
    AppendShapes(trace_, values, out_);
    out_ += ", \"types\": ";
    AppendTypes(trace_, values, TextStyle::kJson, out_);
    if (has_strides_) {
      out_ += ", \"strides\": ";
      AppendStrides(trace_, values, out_);
    }
    if (!observer_ && HasNumbers(trace_, values)) {
      Key(kEtNumbersKey);
      AppendNumbers(trace_, values, out_);
    }
    for (const Extra& extra : trace_.extras(node)) {
      const std::string_view name = trace_.text(extra.key);
      if (extra.form != Extra::Form::kJson || !name.starts_with(extra_prefix)) continue;
      Member(name.substr(extra_prefix.size()), trace_.text(extra.text));
    }
    out_ += "}";
  }

  void AttrJson(std::string_view object) {
    if (!first_attr_) out_ += ", ";
    first_attr_ = false;
    out_ += object;
  }
  void Attr(std::string_view name, std::string_view type, std::string_view json) {
    AttrJson("{\"name\": ");
    AppendJsonString(name, out_);
    out_ += ", \"type\": ";
    AppendJsonString(type, out_);
    out_ += ", \"value\": ";
    out_ += json;
    out_ += '}';
  }
  template <typename Number>
  void NumberAttr(std::string_view name, std::string_view type, std::optional<Number> value) {
    if (value) Attr(name, type, std::to_string(*value));
  }
  void TextAttr(std::string_view name, StringId text, bool even_if_empty) {
    if (text || even_if_empty) Attr(name, "string", Text(text));
  }

  void WriteAttrs(NodeId node) {
    // The observer has a placeholder for missing values.
    const auto number = [&](std::string_view name, std::string_view type, auto value,
                            int64_t none) {
      if (value || !observer_) return NumberAttr(name, type, value);
      Attr(name, type, std::to_string(none));
    };
    number("rf_id", "uint64", trace_.rf_id(node), 0);
    number("fw_parent", "uint64", trace_.fw_parent(node), 0);
    number("seq_id", "int64", trace_.seq_id(node), -1);
    number("scope", "uint64", trace_.scope(node), int64_t{kUserScope});
    number("tid", "uint64", trace_.tid(node), 0);
    number("fw_tid", "uint64", trace_.fw_tid(node), 0);
    TextAttr("op_schema", trace_.op_schema(node), observer_ || trace_.rf_id(node).has_value());
    TextAttr("kernel_backend", trace_.kernel_backend(node), observer_);
    TextAttr("kernel_file", trace_.kernel_file(node), observer_);
    TextAttr("tensor_range", trace_.tensor_range(node), observer_);
    TextAttr("index_statistics", trace_.index_statistics(node), /*even_if_empty=*/false);
    TextAttr("index_values", trace_.index_values(node), /*even_if_empty=*/false);
  }

  // Returns true for kinds that execution and device traces do not express, or only by names (such
  // as Chakra's).
  bool KindNeedsAttr(NodeId node) const {
    const NodeKind kind = trace_.kind(node);
    const std::string_view name = trace_.name(node);
    if (IsCommunication(kind) && trace_.place(node) == Place::kDevice) return !IsCommKernel(name);
    if (IsCommunication(kind)) return name != kRecordParamComms;
    if (kind == NodeKind::kMetadata) return name != kRecordParamComms && name != kProcessGroupInit;
    return kind == NodeKind::kMemLoad || kind == NodeKind::kMemStore || kind == NodeKind::kCompute;
  }

  static std::string_view CommAttr(CommField field) { return Info(field).attr; }

  void WriteCommAttrs(NodeId node) {
    const Comm* comm = trace_.comm(node);
    if (comm == nullptr) return;
    TextAttr(CommAttr(CommField::kName), comm->name, false);
    if (comm->dtype != DType::kUnknown)
      Attr(CommAttr(CommField::kDType), "string", JsonString(Name(comm->dtype)));
    NumberAttr(CommAttr(CommField::kInElements), "uint64", comm->in_elements);
    NumberAttr(CommAttr(CommField::kOutElements), "uint64", comm->out_elements);
    if (comm->in_split)
      Attr(CommAttr(CommField::kInSplit), "string", JsonString(Ints(comm->in_split)));
    if (comm->out_split)
      Attr(CommAttr(CommField::kOutSplit), "string", JsonString(Ints(comm->out_split)));
    TextAttr(CommAttr(CommField::kGroup), comm->group, false);
    NumberAttr(CommAttr(CommField::kGroupSize), "uint64", comm->group_size);
    NumberAttr(CommAttr(CommField::kSource), "int64", comm->src);
    NumberAttr(CommAttr(CommField::kDestination), "int64", comm->dst);
    NumberAttr(CommAttr(CommField::kRoot), "int64", comm->root);
    NumberAttr(CommAttr(CommField::kTag), "int64", comm->tag);
    NumberAttr(CommAttr(CommField::kPriority), "int64", comm->priority);
    // Usually the name gives the type, and elements and their type the size.
    const auto type = CollectiveFromName(trace_.text(comm->name));
    if (comm->type != type.value_or(CollectiveType::kUnknown)) {
      Attr(CommAttr(CommField::kType), "string", JsonString(Name(comm->type)));
    }
    const auto element_bytes = ElementBytes(comm->dtype);
    const bool size_is_said =
        element_bytes && comm->in_elements && comm->bytes &&
        static_cast<double>(comm->bytes->count) ==
            static_cast<double>(*element_bytes) * static_cast<double>(*comm->in_elements);
    if (comm->bytes && !size_is_said) {
      Attr(CommAttr(CommField::kBytes), "int64", std::to_string(comm->bytes->count));
    }
  }

  void WriteExtraAttrs(NodeId node) {
    for (const Extra& extra : trace_.extras(node)) {
      const std::string_view text = trace_.text(extra.text);
      if (extra.form == Extra::Form::kProtobuf) {
        WriteProtobufAttr(text);
      } else if (trace_.text(extra.key).starts_with(kEtAttrPrefix)) {
        AttrJson(text);
      }
    }
  }

  // Writes an attribute of a Chakra node, if it has a value that JSON can hold.
  void WriteProtobufAttr(std::string_view field) {
    const uint32_t tag = protobuf::FieldTag(field);
    if (tag >> 3 == chakra::kLayoutField) return;  // only the layout of the file
    if (tag != protobuf::Delimited(chakra::NodeField::kAttr)) {
      ++report_.lost_extras;
      return;
    }
    DecodeAttr(protobuf::Payload(field), attr_);
    const chakra::AttrValue& value = attr_.value;
    switch (value.form) {
      case chakra::AttrValue::Form::kSigned:
        return Attr(attr_.name, "int64", std::to_string(static_cast<int64_t>(value.bits)));
      case chakra::AttrValue::Form::kUnsigned:
        return Attr(attr_.name, "uint64", std::to_string(value.bits));
      case chakra::AttrValue::Form::kDouble: {
        std::string number;
        AppendPyDouble(value.real, number);
        if (!std::isfinite(value.real)) number = JsonString(number);
        return Attr(attr_.name, "double", number);
      }
      case chakra::AttrValue::Form::kText:
        return Attr(attr_.name, "string", JsonString(value.text));
      case chakra::AttrValue::Form::kInts: {
        std::string list = "[";
        for (const int64_t number : value.ints) {
          if (list.size() > 1) list += ", ";
          list += std::to_string(number);
        }
        return Attr(attr_.name, "int64_list", list + "]");
      }
      case chakra::AttrValue::Form::kNone: ++report_.lost_extras;
    }
  }

  void WriteExtras(NodeId node) {
    const bool device = trace_.place(node) == Place::kDevice;
    for (const Extra& extra : trace_.extras(node)) {
      const std::string_view key = trace_.text(extra.key);
      if (extra.form != Extra::Form::kJson || key.starts_with(kEtAttrPrefix) ||
          key.starts_with("inputs/") || key.starts_with("outputs/")) {
        continue;
      }
      if (device && (key == kCategoryExtraKey || key == "cat" || key == "pg_name")) continue;
      const bool as_read = !device && (key == "stream" || key == "device");
      const bool reserved = !as_read && IsEtNodeKey(key);
      Member(reserved ? std::string(kRenamedPrefix) + std::string(key) : std::string(key),
             trace_.text(extra.text));
    }
  }

  void WriteTimes(NodeId node) {
    const auto start = trace_.start(node);
    auto inclusive = trace_.duration(node);
    auto exclusive = trace_.exclusive(node);
    if (trace_.traits().exclusive_durations) std::swap(inclusive, exclusive);
    if (!exclusive && trace_.children(node).empty()) exclusive = inclusive;
    // Device nodes, and host nodes in their place, have nothing inside.
    if (!inclusive && (host_computes_ || trace_.place(node) == Place::kDevice)) {
      inclusive = exclusive;
    }
    if (inclusive) Member("inclusive_dur", MicrosText(*inclusive));
    if (exclusive) Member("exclusive_dur", MicrosText(*exclusive));
    if (start) Member("ts", MicrosText(*start));
  }

  // Ids give the order of host nodes on their thread; the format can hold one other data
  // dependency.
  void WriteDependencies(NodeId node) {
    if (!is_timed_) return;
    std::string sync;
    NodeId other_thread;
    const auto deps = trace_.deps(node);
    const auto kinds = trace_.dep_kinds(node);
    for (size_t i = 0; i < deps.size(); ++i) {
      if (kinds[i] == DepKind::kSync) sync += (sync.empty() ? "" : ", ") + IdOf(deps[i]);
      if (kinds[i] != DepKind::kData || deps[i] == trace_.parent(node)) continue;
      const bool on_host = trace_.place(node) == Place::kHost;
      if (on_host && trace_.lane_id(deps[i]) == trace_.lane_id(node)) continue;
      if (other_thread) {
        ++report_.lost_edges;
      } else {
        other_thread = deps[i];
      }
    }
    if (trace_.place(node) == Place::kHost) {
      Member("inter_thread_dep", other_thread ? IdOf(other_thread) : std::string("null"));
    } else if (other_thread) {
      Member("inter_thread_dep", IdOf(other_thread));
    }
    if (!sync.empty()) Member("sync_dep", "[" + sync + "]");
  }

  void WriteDevice(NodeId node) {
    std::string category =
        JsonString(DefaultProfileCategory(trace_.kind(node), trace_.place(node)));
    const Comm* comm = trace_.comm(node);
    std::string group;
    if (comm != nullptr && comm->group) group = Text(comm->group);
    for (const Extra& extra : trace_.extras(node)) {
      const std::string_view key = trace_.text(extra.key);
      if (key == kCategoryExtraKey || key == "cat") category = trace_.text(extra.text);
      if (key == "pg_name") group = trace_.text(extra.text);
    }
    Member("cat", category);
    Member("ph", "\"X\"");
    const LaneId lane = trace_.lane_id(node);
    const int32_t stream = lane ? trace_.lane(lane).stream : -1;
    const int32_t device = lane ? trace_.lane(lane).device : -1;
    Member("stream", stream >= 0 ? std::to_string(stream) : "null");
    if (device >= 0) Member("device", std::to_string(device));
    if (!group.empty()) Member("pg_name", group);
  }

  void WriteLane(NodeId node) {
    if (const auto id = trace_.correlation(node)) Member("correlation", std::to_string(*id));
    if (const auto id = trace_.external_id(node)) Member("external_id", std::to_string(*id));
    const LaneId lane_id = trace_.lane_id(node);
    if (!lane_id) return;
    const Lane& lane = trace_.lane(lane_id);
    const auto pid = trace_.info().pid;
    const auto tid = trace_.tid(node);
    const bool usual_process = pid && trace_.text(lane.process) == std::to_string(*pid);
    const bool usual_thread = tid && trace_.text(lane.thread) == std::to_string(*tid);
    if (lane.process && !usual_process) Member("process", Text(lane.process));
    if (lane.thread && !usual_thread) Member("thread", Text(lane.thread));
  }

  const Trace& trace_;
  const bool observer_;
  const bool host_computes_;
  LinkedWriteReport report_;
  std::vector<NodeId> order_;
  SinkBuffer buffer_;
  std::string& out_ = buffer_.text();
  bool has_strides_ = false;
  bool is_timed_ = false;
  bool first_attr_ = true;
  chakra::AttrMessage attr_;
};

Result<LinkedWriteReport> Write(const Trace& trace, LinkedJsonWriter::Form form,
                                const ByteSink& sink) {
  try {
    return LinkedJsonWriter(trace, form, sink).Run();
  } catch (const protozero::exception& error) {
    return MakeError(ErrorCode::kInternal, std::string("writing a linked trace: ") + error.what());
  }
}

}  // namespace

Result<LinkedWriteReport> WriteLinkedJson(const Trace& trace, const ByteSink& sink) {
  return Write(trace, LinkedJsonWriter::Form::kLinked, sink);
}

Result<LinkedWriteReport> WriteExecutionTrace(const Trace& trace, const ByteSink& sink) {
  return Write(trace, LinkedJsonWriter::Form::kObserver, sink);
}

}  // namespace etude
