#include "src/compat/chakra/et_converter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "src/base/text/ascii.h"
#include "src/compat/chakra/chakra_fails.h"
#include "src/compat/chakra/chakra_message.h"
#include "src/compat/chakra/flat_map.h"
#include "src/compat/chakra_link/groups.h"
#include "src/compat/python/py_json.h"

namespace etude::compat {
namespace {

// Longest dependency chain before Python stops: its limit of 1000 frames, less those already in use
// when the search for cycles begins.
constexpr size_t kMaxChain = 994;

constexpr auto kConvertedSchemas = std::to_array<std::string_view>(
    {"1.0.2-chakra.0.0.4", "1.0.3-chakra.0.0.4", "1.1.0-chakra.0.0.4", "1.1.1-chakra.0.0.4"});
constexpr std::string_view kSchemaWithoutParser = "1.1.1-chakra.1.0.0";

// Names of collectives in kernel names, in search order, without '_' and '-'.
struct CollectiveName {
  std::string_view part;
  ChakraComm type;
};
constexpr auto kCollectives = std::to_array<CollectiveName>({
    {"allreduce", ChakraComm::kAllReduce},
    {"alltoall", ChakraComm::kAllToAll},
    {"allgather", ChakraComm::kAllGather},
    {"reducescatter", ChakraComm::kReduceScatter},
    {"broadcast", ChakraComm::kBroadcast},
});

bool IsThreadRoot(std::string_view name) {
  return name == "[pytorch|profiler|execution_trace|thread]" ||
         name == "[pytorch|profiler|execution_graph|thread]";
}

std::optional<ChakraComm> CollectiveOf(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == '_' || c == '-') continue;
    plain += Lower(c);
  }
  for (const CollectiveName& row : kCollectives) {
    if (Contains(plain, row.part)) return row.type;
  }
  if (Contains(name, "ncclDevKernel_SendRecv")) return ChakraComm::kAllToAll;
  return std::nullopt;
}

// Attributes of a communication.
struct Comm {
  std::optional<ChakraComm> comm_type;  // of collectives
  int64_t comm_size = 0;
  EtText pg_name;
};

class EtConverter {
 public:
  EtConverter(EtTrace& trace, const std::string& name)
      : metadata_(trace.metadata), nodes_(trace.nodes), args_(trace.args), name_(name) {}

  Status Run(const Sink& sink) {
    ETUDE_RETURN_IF_ERROR(MakeMetadata());
    ETUDE_RETURN_IF_ERROR(MapNodes());
    ETUDE_RETURN_IF_ERROR(ConvertNodes());
    AddDataDeps();
    DropDangling();
    ETUDE_RETURN_IF_ERROR(CheckCycles());
    return Write(sink);
  }

 private:
  struct Dep {
    uint64_t id = 0;
    uint32_t next = kNoRow;  // of the same node
  };

  std::string Where(uint32_t node) const {
    return fmt::format("{}: node {}", name_, nodes_[node].id);
  }

  Status MakeMetadata();
  Status TextField(std::string_view key, std::string_view json);
  Status UintField(std::string_view key, std::string_view json);
  Status MapNodes();
  Status ConvertNodes();
  Status ConvertNode(uint32_t row);
  Status ConvertGpuChild(uint32_t row);
  Result<ChakraType> TypeOf(uint32_t row);
  Result<int64_t> CommSize(uint32_t row) const;
  void AddDataDeps();
  void AddDataDepsFrom(uint32_t root, Groups& children, std::vector<uint32_t>& visited);
  void AddDep(uint32_t row, uint64_t id);
  void DropDangling();
  Status CheckCycles();
  Status Write(const Sink& sink);
  void WriteNode(uint32_t row, ByteBuffer& body);
  void WriteIo(uint32_t field, const std::string_view (&io)[3], ByteBuffer& body);
  void WriteAttrs(uint32_t row, ByteBuffer& body);

  const EtMetadata& metadata_;
  std::vector<EtNode>& nodes_;
  const std::vector<EtArgs>& args_;
  const std::string& name_;
  ByteBuffer metadata_bytes_;

  FlatMap row_of_id_;
  std::vector<uint32_t> order_;      // rows in the order of Python's dict: file order, each id once
  std::vector<uint32_t> parent_;     // by row; kNoRow: missing node
  std::vector<uint32_t> converted_;  // rows in the order of their first conversion
  std::vector<uint8_t> is_converted_;  // by row
  std::vector<uint8_t> has_ctrl_;      // by row: ctrl_deps is the parent
  std::vector<ChakraType> types_;      // by row
  std::vector<uint32_t> comm_of_;      // by row: into comms_
  std::vector<Comm> comms_;
  std::vector<Dep> deps_;
  std::vector<uint32_t> first_dep_;  // by row: into deps_
  std::vector<uint32_t> last_dep_;
  ByteBuffer scratch_;
  ByteBuffer io_bytes_;      // both IOInfo fields of the node written last
  uint32_t io_of_ = kNoRow;  // their EtArgs
};

Status EtConverter::TextField(std::string_view key, std::string_view json) {
  ByteBuffer attr;
  AppendBytesField(1, key, attr);
  if (!IsNull(json)) {
    if (!IsString(json)) {
      return ChakraFails(name_, fmt::format("a {} that is no string", key), "TypeError");
    }
    AppendBytesField(29, DecodeString(json), attr);
  }
  AppendBytesField(2, attr.view(), metadata_bytes_);
  return {};
}

Status EtConverter::UintField(std::string_view key, std::string_view json) {
  ByteBuffer attr;
  AppendBytesField(1, key, attr);
  if (!IsNull(json)) {
    const auto value = TextUint(json);
    if (!value) {
      return ChakraFails(name_, fmt::format("a {} that is no whole number of 64 bits", key),
                         "TypeError or ValueError");
    }
    AppendVarintField(13, *value, attr);
  }
  AppendBytesField(2, attr.view(), metadata_bytes_);
  return {};
}

Status EtConverter::MakeMetadata() {
  const EtMetadata& m = metadata_;
  if (m.schema.empty() || m.pid.empty() || m.time.empty() || m.start_ts.empty() ||
      m.finish_ts.empty()) {
    return ChakraFails(name_, "no schema, pid, time, start_ts or finish_ts", "KeyError");
  }
  if (!nodes_.empty()) {
    const std::string schema = IsString(m.schema) ? DecodeString(m.schema) : std::string(m.schema);
    if (schema == kSchemaWithoutParser) {
      return ChakraFails(name_, "schema " + schema + ", which it lists but cannot read",
                         "AttributeError");
    }
    if (std::ranges::count(kConvertedSchemas, schema) == 0) {
      return ChakraFails(name_, "schema " + schema, "ValueError");
    }
  }
  ETUDE_RETURN_IF_ERROR(TextField("schema", m.schema));
  ETUDE_RETURN_IF_ERROR(UintField("pid", m.pid));
  ETUDE_RETURN_IF_ERROR(TextField("time", m.time));
  ETUDE_RETURN_IF_ERROR(UintField("start_ts", m.start_ts));
  return UintField("finish_ts", m.finish_ts);
}

Status EtConverter::MapNodes() {
  if (nodes_.size() >= kNoRow) return BadInput(name_ + ": found more than four billion nodes");
  row_of_id_ = FlatMap(nodes_.size());
  std::vector<uint32_t> place;  // in order_, by row
  place.resize(nodes_.size());
  for (uint32_t row = 0; row < nodes_.size(); ++row) {
    uint32_t& known = row_of_id_.Insert(nodes_[row].id, row);
    if (known == row) {
      place[row] = static_cast<uint32_t>(order_.size());
      order_.push_back(row);
    } else {
      // For a repeated id the last node counts, at the position of the first.
      place[row] = place[known];
      order_[place[row]] = row;
      known = row;
    }
  }
  parent_.assign(nodes_.size(), kNoRow);
  for (const uint32_t row : order_) {
    if (nodes_[row].has_parent) parent_[row] = row_of_id_.Find(nodes_[row].parent);
  }
  return {};
}

Result<ChakraType> EtConverter::TypeOf(uint32_t row) {
  EtNode& node = nodes_[row];
  if (Contains(node.name, "process_group:init")) return ChakraType::kMetadata;
  if (!node.is_gpu) return ChakraType::kComp;
  if (Contains(node.name, "ncclDevKernel_SendRecv")) {
    const uint32_t parent = parent_[row];
    if (parent == kNoRow) return ChakraFails(Where(row), "no parent", "KeyError");
    std::string_view keyword = nodes_[parent].name;
    if (keyword == "record_param_comms") {
      const uint32_t grandparent = parent_[parent];
      if (grandparent == kNoRow) return ChakraFails(Where(parent), "no parent", "KeyError");
      keyword = nodes_[grandparent].name;
      const EtText& pg_name = nodes_[parent].pg_name;
      if (!pg_name.is_empty()) node.pg_name = pg_name;
    }
    if (Contains(keyword, "send")) return ChakraType::kSend;
    if (Contains(keyword, "recv")) return ChakraType::kRecv;
    if (Contains(keyword, "nccl:all_to_all")) return ChakraType::kColl;
  }
  if (Contains(node.name, "ncclKernel") || Contains(node.name, "ncclDevKernel")) {
    return ChakraType::kColl;
  }
  return ChakraType::kComp;
}

// Returns the bytes of one tensor: [tensor, storage, offset, elements, bytes of one, device].
std::optional<int64_t> TensorBytes(std::string_view json) {
  JsonScanner scanner(json, "", json.size());
  if (!scanner.EnterArray()) return std::nullopt;
  std::array<std::optional<int64_t>, 5> items;
  size_t count = 0;
  bool first = true;
  while (scanner.NextElement(first)) {
    const std::string_view item = scanner.Value();
    if (count < items.size()) items[count++] = TextInt(item);
  }
  int64_t bytes = 0;
  if (!items[3] || !items[4] || __builtin_mul_overflow(*items[3], *items[4], &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

Result<int64_t> EtConverter::CommSize(uint32_t row) const {
  const auto fail = [&] {
    return ChakraFails(Where(row), "a tensor argument of another form",
                       "TypeError, IndexError or ValueError");
  };
  const EtArgs& args = args_[nodes_[row].args];
  JsonScanner values(args.inputs[0], "", args.inputs[0].size());
  JsonScanner types(args.inputs[2], "", args.inputs[2].size());
  if (!values.EnterArray() || !types.EnterArray()) return fail();
  int64_t total = 0;
  const auto add = [&](std::string_view tensor) {
    const auto bytes = TensorBytes(tensor);
    return bytes && !__builtin_add_overflow(total, *bytes, &total);
  };
  bool first_value = true;
  bool first_type = true;
  while (values.NextElement(first_value) && types.NextElement(first_type)) {
    const std::string_view value = values.Value();
    const std::string_view type = types.Value();
    if (!IsString(type)) return fail();
    if (!Contains(type, "Tensor")) continue;
    if (!type.starts_with("\"GenericList[Tensor")) {
      if (!add(value)) return fail();
      continue;
    }
    JsonScanner list(value, "", value.size());
    if (!list.EnterArray()) return fail();
    bool first = true;
    while (list.NextElement(first)) {
      if (!add(list.Value())) return fail();
    }
  }
  return total;
}

Status EtConverter::ConvertNode(uint32_t row) {
  const EtNode& node = nodes_[row];
  if (node.fault != EtFault::kNone) {
    const EtProblem& problem = ProblemOf(node.fault);
    return ChakraFails(Where(row), problem.what, problem.exception);
  }
  ETUDE_ASSIGN_OR_RETURN(types_[row], TypeOf(row));
  has_ctrl_[row] = parent_[row] != kNoRow && is_converted_[parent_[row]] != 0 ? 1 : 0;
  return {};
}

Status EtConverter::ConvertGpuChild(uint32_t row) {
  ETUDE_RETURN_IF_ERROR(ConvertNode(row));
  if (types_[row] == ChakraType::kColl || types_[row] == ChakraType::kSend ||
      types_[row] == ChakraType::kRecv) {
    Comm comm;
    if (types_[row] == ChakraType::kColl) {
      comm.comm_type = CollectiveOf(nodes_[row].name);
      if (!comm.comm_type) {
        return ChakraFails(Where(row),
                           fmt::format("a kernel '{}' of no collective it knows", nodes_[row].name),
                           "ValueError");
      }
    }
    ETUDE_ASSIGN_OR_RETURN(comm.comm_size, CommSize(row));
    comm.pg_name = nodes_[row].pg_name;
    if (comm.pg_name.is_wrong) {
      return ChakraFails(Where(row), "a pg_name that is no string", "TypeError");
    }
    comm_of_[row] = static_cast<uint32_t>(comms_.size());
    comms_.push_back(comm);
  }
  if (is_converted_[row] == 0) converted_.push_back(row);
  is_converted_[row] = 1;
  return {};
}

Status EtConverter::ConvertNodes() {
  const size_t count = nodes_.size();
  is_converted_.assign(count, 0);
  has_ctrl_.assign(count, 0);
  types_.assign(count, ChakraType::kComp);
  comm_of_.assign(count, kNoRow);
  converted_.reserve(count);
  // Rows of a group must be in dict order, which repeated ids may change.
  std::vector<uint32_t> gpu_parent(order_.size(), kNoRow);
  for (uint32_t i = 0; i < order_.size(); ++i) {
    if (nodes_[order_[i]].is_gpu) gpu_parent[i] = parent_[order_[i]];
  }
  const Groups gpu_children(gpu_parent, count);
  for (const uint32_t row : order_) {
    const EtNode& node = nodes_[row];
    if (node.is_gpu && !Contains(node.name, "process_group:init")) continue;
    ETUDE_RETURN_IF_ERROR(ConvertNode(row));
    comm_of_[row] = kNoRow;
    if (is_converted_[row] == 0) converted_.push_back(row);
    is_converted_[row] = 1;
    for (const uint32_t place : gpu_children[row]) {
      ETUDE_RETURN_IF_ERROR(ConvertGpuChild(order_[place]));
    }
  }
  return {};
}

void EtConverter::AddDep(uint32_t row, uint64_t id) {
  for (uint32_t i = first_dep_[row]; i != kNoRow; i = deps_[i].next) {
    if (deps_[i].id == id) return;
  }
  const auto added = static_cast<uint32_t>(deps_.size());
  deps_.push_back({.id = id});
  if (first_dep_[row] == kNoRow) {
    first_dep_[row] = added;
  } else {
    deps_[last_dep_[row]].next = added;
  }
  last_dep_[row] = added;
}

void EtConverter::AddDataDepsFrom(uint32_t root, Groups& children, std::vector<uint32_t>& visited) {
  std::vector<uint32_t> stack = {root};
  uint32_t last_host = kNoRow;
  while (!stack.empty()) {
    const uint32_t row = stack.back();
    stack.pop_back();
    if (visited[row] == root) continue;
    visited[row] = root;
    const EtNode& node = nodes_[row];
    if (node.is_gpu && types_[row] != ChakraType::kMetadata) {
      if (last_host != kNoRow) AddDep(row, nodes_[last_host].id);
    } else {
      if (node.inter_thread_dep != 0) AddDep(row, node.inter_thread_dep);
      if (last_host != kNoRow) AddDep(row, nodes_[last_host].id);
      last_host = row;
    }
    for (const uint32_t child : children[row]) {
      if (is_converted_[child] != 0 && visited[child] != root) stack.push_back(child);
    }
  }
}

void EtConverter::AddDataDeps() {
  const size_t count = nodes_.size();
  deps_.reserve(count * 2);
  first_dep_.assign(count, kNoRow);
  last_dep_.assign(count, kNoRow);
  Groups children(parent_, count);
  const auto descending = [&](uint32_t a, uint32_t b) { return nodes_[a].id > nodes_[b].id; };
  for (const uint32_t row : order_) {
    const std::span<uint32_t> group = children[row];
    std::ranges::reverse(group);
    if (!std::ranges::is_sorted(group, descending)) std::ranges::stable_sort(group, descending);
  }
  std::vector<uint32_t> visited(count, kNoRow);
  for (const uint32_t row : converted_) {
    if (IsThreadRoot(nodes_[row].name)) AddDataDepsFrom(row, children, visited);
  }
}

void EtConverter::DropDangling() {
  std::vector<uint8_t> is_needed(nodes_.size(), 0);
  for (const Dep& dep : deps_) {
    const uint32_t row = row_of_id_.Find(dep.id);
    if (row != kNoRow) is_needed[row] = 1;
  }
  std::erase_if(converted_, [&](uint32_t row) {
    const bool dangles = first_dep_[row] == kNoRow && is_needed[row] == 0;
    if (dangles) is_converted_[row] = 0;
    return dangles;
  });
}

Status EtConverter::CheckCycles() {
  enum State : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(nodes_.size(), kNew);
  struct Frame {
    uint32_t row;
    uint32_t next_dep;
  };
  std::vector<Frame> path;
  for (const uint32_t start : converted_) {
    if (state[start] != kNew) continue;
    path.assign(1, {start, first_dep_[start]});
    state[start] = kOpen;
    while (!path.empty()) {
      Frame& frame = path.back();
      if (frame.next_dep == kNoRow) {
        state[frame.row] = kDone;
        path.pop_back();
        continue;
      }
      const uint64_t id = deps_[frame.next_dep].id;
      frame.next_dep = deps_[frame.next_dep].next;
      const uint32_t row = row_of_id_.Find(id);
      if (path.size() >= kMaxChain) {
        return ChakraFails(Where(path[0].row),
                           fmt::format("a chain of more than {} data dependencies", kMaxChain),
                           "RecursionError");
      }
      if (row == kNoRow || is_converted_[row] == 0) {
        return ChakraFails(Where(frame.row),
                           fmt::format("a dependency on {}, which is not there", id), "KeyError");
      }
      if (state[row] == kOpen) {
        return ChakraFails(Where(row), "a cycle of data dependencies", "Exception");
      }
      if (state[row] == kDone) continue;
      state[row] = kOpen;
      path.push_back({row, first_dep_[row]});
    }
  }
  return {};
}

// Begins an attribute whose value takes `value_size` bytes, and reserves room for it.
void BeginAttr(std::string_view name, size_t value_size, ByteBuffer& out) {
  const size_t size = 2 + name.size() + value_size;
  out.Ensure(size + 32);
  PutTag(10, WireType::kBytes, out);
  PutVarint(size, out);
  PutTag(1, WireType::kBytes, out);
  PutVarint(name.size(), out);
  out.Put(name);
}

void AppendAttr(std::string_view name, const EtInt& value, ByteBuffer& out) {
  const auto bits = static_cast<uint64_t>(value.value);
  BeginAttr(name, value.is_none ? 0 : 1 + VarintSize(bits), out);
  if (value.is_none) return;
  PutTag(9, WireType::kVarint, out);
  PutVarint(bits, out);
}

void AppendAttr(std::string_view name, const EtText& value, ByteBuffer& out) {
  const size_t size = value.text.size();
  BeginAttr(name, value.is_none ? 0 : 2 + VarintSize(size) + size, out);
  if (value.is_none) return;
  PutTag(29, WireType::kBytes, out);
  PutVarint(size, out);
  if (size != 0) out.Put(value.text);
}

void EtConverter::WriteIo(uint32_t field, const std::string_view (&io)[3], ByteBuffer& body) {
  scratch_.Clear();
  for (uint32_t i = 0; i < 3; ++i) {
    // The length is known afterwards: room is reserved, and closed up if the length is shorter.
    const size_t begin = scratch_.size();
    scratch_.Ensure(16);
    scratch_.set_end(scratch_.end() + 11);
    AppendPyStr(io[i], scratch_);
    const size_t size = scratch_.size() - begin - 11;
    if (size == 0) {
      scratch_.set_end(scratch_.end() - 11);
      continue;
    }
    const size_t head = 1 + VarintSize(size);
    scratch_.set_end(scratch_.view().data() + begin);
    PutTag(i + 1, WireType::kBytes, scratch_);
    PutVarint(size, scratch_);
    std::memmove(scratch_.end(), scratch_.view().data() + begin + 11, size);
    scratch_.set_end(scratch_.view().data() + begin + head + size);
  }
  AppendBytesField(field, scratch_.view(), body);
}

void EtConverter::WriteAttrs(uint32_t row, ByteBuffer& body) {
  const EtNode& node = nodes_[row];
  const EtArgs& args = args_[node.args];
  for (size_t i = 0; i < args.ints.size(); ++i) {
    AppendAttr(Name(static_cast<NodeAttr>(i)), args.ints[i], body);
  }
  AppendAttr(Name(NodeAttr::kOpSchema), args.op_schema, body);
  // "is_cpu_op", field 27: a bool.
  constexpr std::string_view kIsCpuOp = "\x52\x0e\x0a\x09is_cpu_op\xd8\x01";
  body.Append(kIsCpuOp);
  body.Append(node.is_gpu ? '\0' : '\1');
  if (!node.stream.is_none) AppendAttr("stream", node.stream, body);
  if (comm_of_[row] == kNoRow) return;
  const Comm& comm = comms_[comm_of_[row]];
  if (comm.comm_type) {
    AppendAttr("comm_type", EtInt{.value = static_cast<int64_t>(*comm.comm_type)}, body);
  }
  AppendAttr("comm_size", EtInt{.value = comm.comm_size}, body);
  if (!comm.pg_name.is_empty()) AppendAttr("pg_name", comm.pg_name, body);
}

void EtConverter::WriteNode(uint32_t row, ByteBuffer& body) {
  const EtNode& node = nodes_[row];
  body.Clear();
  if (node.id != 0) AppendVarintField(1, node.id, body);
  if (!node.name.empty()) AppendBytesField(2, node.name, body);
  AppendVarintField(3, static_cast<uint64_t>(types_[row]), body);
  if (has_ctrl_[row] != 0) {
    body.Ensure(16);
    PutTag(4, WireType::kBytes, body);
    PutVarint(VarintSize(node.parent), body);
    PutVarint(node.parent, body);
  }
  if (first_dep_[row] != kNoRow) {
    size_t size = 0;
    for (uint32_t i = first_dep_[row]; i != kNoRow; i = deps_[i].next)
      size += VarintSize(deps_[i].id);
    body.Ensure(size + 16);
    PutTag(5, WireType::kBytes, body);
    PutVarint(size, body);
    for (uint32_t i = first_dep_[row]; i != kNoRow; i = deps_[i].next) PutVarint(deps_[i].id, body);
  }
  if (node.duration_micros != 0 && !Contains(node.name, "Optimizer.step")) {
    AppendVarintField(7, node.duration_micros, body);
  }
  // A device node has the same arguments as its operator, which precedes it.
  if (io_of_ != node.args) {
    io_of_ = node.args;
    io_bytes_.Clear();
    WriteIo(8, args_[node.args].inputs, io_bytes_);
    WriteIo(9, args_[node.args].outputs, io_bytes_);
  }
  body.Append(io_bytes_.view());
  WriteAttrs(row, body);
}

Status EtConverter::Write(const Sink& sink) {
  ByteBuffer out;
  ByteBuffer body;
  AppendMessage(metadata_bytes_.view(), out);
  const auto id = [&](uint32_t row) { return nodes_[row].id; };
  if (!std::ranges::is_sorted(converted_, {}, id)) std::ranges::sort(converted_, {}, id);
  for (const uint32_t row : converted_) {
    WriteNode(row, body);
    AppendMessage(body.view(), out);
    if (out.size() < kFlushBytes) continue;
    ETUDE_RETURN_IF_ERROR(sink(out.view()));
    out.Clear();
  }
  return sink(out.view());
}

}  // namespace

Status WriteChakraEt(EtTrace& trace, const std::string& name, const Sink& sink) {
  return EtConverter(trace, name).Run(sink);
}

}  // namespace etude::compat
