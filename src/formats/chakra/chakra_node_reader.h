#pragma once

#include <protozero/pbf_reader.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/limits.h"
#include "src/formats/chakra/chakra_attr.h"
#include "src/formats/json/value_text.h"
#include "src/formats/pytorch_et/et_comm.h"
#include "src/trace/trace_builder.h"

namespace etude::chakra {

// Converts Node messages to rows of a trace. Not thread-safe; the builder must outlive it.
class NodeReader {
 public:
  NodeReader(TraceBuilder& builder, const Limits& limits);

  // Sets `process`, the process of nodes without their own; `inclusive`: durations with children
  // are recorded in addition; `host_computes`: device nodes for simulators are host nodes
  // (HostComputes). To be called before the first node.
  void SetDefaults(StringId process, bool inclusive, bool host_computes);
  // Adds the node in `message`. Throws protozero::exception, with nothing added, if it is
  // malformed.
  void Read(std::string_view message);
  // Resolves facts that depend on several nodes.
  void Finish() { comms_.Finish(); }

 private:
  // Texts of an IOInfo field.
  struct Io {
    IoText text;
    std::string_view field;    // the whole field, tag included; "" if it is missing
    bool plain = true;         // contains only the three texts
    std::string_view strides;  // of Etude's attribute
  };

  // Facts of a node before it becomes a row.
  struct Draft {
    NodeRow row;
    Lane lane;
    Comm comm;
    bool has_comm = false;
    uint32_t type = 0;
    std::string_view name;
    std::string_view process;
    std::string_view thread;
    bool has_process = false;
    bool has_thread = false;
    std::optional<int64_t> stream;
    std::optional<NodeKind> kind;
    std::optional<bool> first_is_parent;
    std::optional<uint64_t> start_micros;
    std::optional<uint64_t> duration_micros;
    std::optional<int64_t> start_ns;
    std::optional<int64_t> duration_ns;
    std::optional<int64_t> inclusive_ns;
    std::vector<uint64_t> ctrl_deps;
    std::vector<uint64_t> data_deps;
    std::vector<int64_t> sync_deps;
    Io inputs;
    Io outputs;
    std::vector<Extra> extras;
    AttrLayout layout;
  };

  void ReadField(protozero::pbf_reader& reader, const char* begin);
  void ReadAttr(std::string_view message, std::string_view field);
  bool SetAttr(Attr attr, const AttrValue& value);
  bool SetText(StringId& column, const AttrValue& value);
  bool SetComm(Attr attr, const AttrValue& value);
  void ReadIo(std::string_view message, std::string_view field, Io& io);
  void Keep(std::string_view key, std::string_view field);

  void SettleTimes();
  void SettlePlace();
  void SettleLayout();
  ValueListId SettleIo(Io& io, std::string_view key);
  bool IsTextOf(const Io& io, std::span<const Value> values);
  void SettleDependencies(NodeId node);

  TraceBuilder& builder_;
  EtCommReader comms_;
  IoParser io_parser_;
  StringId process_;
  bool inclusive_ = false;
  bool host_computes_ = false;
  Draft draft_;
  AttrMessage attr_;
  std::string scratch_;
};

}  // namespace etude::chakra
