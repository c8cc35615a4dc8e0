#include "src/python/columns.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace etude::python {
namespace {

using Type = Column::Type;
using Meaning = Column::Meaning;

template <typename T, size_t N>
std::array<std::string_view, N> NamesOf() {
  std::array<std::string_view, N> names;
  for (size_t i = 0; i < N; ++i) names[i] = Name(static_cast<T>(i));
  return names;
}

std::span<const std::string_view> NodeKindNames() {
  static const std::array names = NamesOf<NodeKind, kNodeKindCount>();
  return names;
}
std::span<const std::string_view> PlaceNames() {
  static const std::array names = NamesOf<Place, kPlaceCount>();
  return names;
}
std::span<const std::string_view> DepKindNames() {
  static const std::array names = NamesOf<DepKind, kDepKindCount>();
  return names;
}
constexpr std::array<std::string_view, 2> kRoleNames = {"input", "output"};

// Returns the exported type of a T. Ids are exported as int32, with kNone as -1.
template <typename T>
constexpr Type TypeOf() {
  if constexpr (std::is_same_v<T, uint64_t>) return Type::kUInt64;
  if constexpr (sizeof(T) == 1) return Type::kInt8;
  if constexpr (sizeof(T) == 4) return Type::kInt32;
  return Type::kInt64;
}

// Makes the columns of one table.
class Maker {
 public:
  Maker(const TracePtr& trace, size_t rows) {
    made_.trace = trace;
    made_.rows = rows;
  }

  // Adds a column whose values are always known, or ids that may be none.
  template <typename T>
  Column& Add(std::string name, const std::vector<T>& values, Meaning meaning) {
    if (values.size() == made_.rows) return Put<T>(std::move(name), values.data(), meaning);
    std::shared_ptr<const void> memory = made_.trace->Kept(name, [&] {
      auto full = std::make_shared<std::vector<T>>(values.begin(), values.end());
      full->resize(made_.rows);
      return full;
    });
    const auto* full = static_cast<const std::vector<T>*>(memory.get());
    Column& column = Put<T>(std::move(name), full->data(), meaning);
    column.memory = std::move(memory);
    return column;
  }

  template <typename T>
  void AddKnown(std::string name, const KnownColumn<T>& values) {
    if (values.values().size() == made_.rows) {
      Put<T>(std::move(name), values.values().data(), Meaning::kNumber).known =
          values.known_bits().data();
      return;
    }
    struct Full {
      std::vector<T> values;
      std::vector<uint64_t> known;
    };
    std::shared_ptr<const void> memory = made_.trace->Kept(name, [&] {
      auto full = std::make_shared<Full>();
      full->values.assign(values.values().begin(), values.values().end());
      full->known.assign(values.known_bits().begin(), values.known_bits().end());
      full->values.resize(made_.rows);
      full->known.resize((made_.rows + 63) / 64);
      return full;
    });
    const auto* full = static_cast<const Full*>(memory.get());
    Column& column = Put<T>(std::move(name), full->values.data(), Meaning::kNumber);
    column.known = full->known.data();
    column.memory = std::move(memory);
  }

  // Adds a member of the table's structs.
  template <typename S, typename T>
  void AddMember(std::string name, std::span<const S> rows, T S::*member, Meaning meaning) {
    Column& column =
        Put<T>(std::move(name), rows.empty() ? nullptr : &(rows.front().*member), meaning);
    column.stride = sizeof(S);
  }

  Columns Take() { return std::move(made_); }

 private:
  template <typename T>
  Column& Put(std::string name, const T* data, Meaning meaning) {
    return made_.columns.emplace_back(Column{.name = std::move(name),
                                             .type = TypeOf<T>(),
                                             .meaning = meaning,
                                             .data = data,
                                             .rows = made_.rows,
                                             .stride = sizeof(T),
                                             .trace = made_.trace});
  }

  Columns made_;
};

struct UseRows {
  std::vector<NodeId> nodes;
  std::vector<uint8_t> roles;
  std::vector<uint32_t> arguments;
  std::vector<TensorId> tensors;
};

// Adds the tensors in `values`, with lists flattened. Nesting is bounded by the file's limit.
void AddUses(const Trace& trace, NodeId node, uint8_t role, std::span<const Value> values,
             UseRows& rows) {
  std::vector<std::span<const Value>> open;
  for (size_t argument = 0; argument < values.size(); ++argument) {
    open.push_back(values.subspan(argument, 1));
    while (!open.empty()) {
      if (open.back().empty()) {
        open.pop_back();
        continue;
      }
      const Value value = open.back().front();
      open.back() = open.back().subspan(1);
      if (value.kind == ValueKind::kList) open.push_back(trace.values(value.as_list()));
      if (value.kind != ValueKind::kTensor) continue;
      rows.nodes.push_back(node);
      rows.roles.push_back(role);
      rows.arguments.push_back(static_cast<uint32_t>(argument));
      rows.tensors.push_back(value.as_tensor());
    }
  }
}

UseRows FindUses(const Trace& trace) {
  UseRows rows;
  ForEachNode(trace, [&](NodeId node) {
    AddUses(trace, node, 0, trace.inputs(node), rows);
    AddUses(trace, node, 1, trace.outputs(node), rows);
  });
  return rows;
}

}  // namespace

size_t Column::value_bytes() const {
  switch (type) {
    case Type::kInt8: return 1;
    case Type::kInt32: return 4;
    case Type::kInt64:
    case Type::kUInt64: return 8;
  }
  return 8;
}

int64_t Column::Get(size_t row) const {
  const char* at = static_cast<const char*>(data) + row * stride;
  const auto read = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<int64_t>(value);
  };
  switch (type) {
    case Type::kInt8: return read(int8_t{});
    case Type::kInt32: return read(int32_t{});
    case Type::kInt64:
    case Type::kUInt64: return read(int64_t{});
  }
  return 0;
}

bool Column::is_known(size_t row) const {
  switch (meaning) {
    case Meaning::kNumber: return known == nullptr || ((known[row / 64] >> (row % 64)) & 1) != 0;
    case Meaning::kRow:
    case Meaning::kText:
    case Meaning::kIntList: return Get(row) >= 0;
    case Meaning::kName: return true;
  }
  return false;
}

const Column* Columns::Find(std::string_view name) const {
  const auto found = std::ranges::find(columns, name, &Column::name);
  return found == columns.end() ? nullptr : &*found;
}

Status CheckSizes(const Trace& trace) {
  constexpr auto kMost = static_cast<size_t>(std::numeric_limits<int32_t>::max());
  for (const size_t size : {trace.node_count(), trace.strings().size(), trace.tensor_count(),
                            trace.lane_count(), trace.int_lists().size()}) {
    if (size <= kMost) continue;
    return Unavailable(
        fmt::format("found {} nodes, strings, tensors or lists in one trace, expected "
                    "at most {} of each in Python",
                    size, kMost));
  }
  return {};
}

Columns NodeColumns(const TracePtr& shared) {
  const Trace& trace = shared->trace();
  const TraceColumns& columns = trace.columns();
  Maker maker(shared, trace.node_count());
  maker.Add("id", columns.source_id, Meaning::kNumber);
  maker.Add("name", columns.name, Meaning::kText);
  maker.Add("kind", columns.kind, Meaning::kName).names = NodeKindNames();
  maker.Add("place", columns.place, Meaning::kName).names = PlaceNames();
  maker.Add("parent", columns.parent, Meaning::kRow);
  maker.Add("lane", columns.lane, Meaning::kRow);
  maker.AddKnown("start_ns", columns.start);
  maker.AddKnown("duration_ns", columns.duration);
  maker.AddKnown("exclusive_ns", columns.exclusive);
  maker.AddKnown("rf_id", columns.rf_id);
  maker.AddKnown("seq_id", columns.seq_id);
  maker.AddKnown("tid", columns.tid);
  maker.AddKnown("correlation", columns.correlation);
  maker.AddKnown("external_id", columns.external_id);
  maker.Add("op_schema", columns.op_schema, Meaning::kText);
  maker.Add("kernel_backend", columns.kernel_backend, Meaning::kText);
  return maker.Take();
}

Columns TensorColumns(const TracePtr& shared) {
  const std::span<const TensorUse> tensors = shared->trace().tensors();
  Maker maker(shared, tensors.size());
  maker.AddMember("tensor", tensors, &TensorUse::tensor, Meaning::kNumber);
  maker.AddMember("storage", tensors, &TensorUse::storage, Meaning::kNumber);
  maker.AddMember("offset", tensors, &TensorUse::offset, Meaning::kNumber);
  maker.AddMember("numel", tensors, &TensorUse::numel, Meaning::kNumber);
  maker.AddMember("element_bytes", tensors, &TensorUse::element_bytes, Meaning::kNumber);
  maker.AddMember("device", tensors, &TensorUse::device, Meaning::kText);
  maker.AddMember("type", tensors, &TensorUse::type, Meaning::kText);
  maker.AddMember("shape", tensors, &TensorUse::shape, Meaning::kIntList);
  maker.AddMember("strides", tensors, &TensorUse::strides, Meaning::kIntList);
  return maker.Take();
}

Columns TensorUseColumns(const TracePtr& shared) {
  const std::shared_ptr<const void> memory = shared->Kept(
      "tensor_uses", [&] { return std::make_shared<UseRows>(FindUses(shared->trace())); });
  const auto& rows = *static_cast<const UseRows*>(memory.get());
  Maker maker(shared, rows.nodes.size());
  maker.Add<NodeId>("node", rows.nodes, Meaning::kRow);
  maker.Add<uint8_t>("role", rows.roles, Meaning::kName).names = kRoleNames;
  maker.Add<uint32_t>("argument", rows.arguments, Meaning::kNumber);
  maker.Add<TensorId>("tensor", rows.tensors, Meaning::kRow);
  Columns made = maker.Take();
  for (Column& column : made.columns) column.memory = memory;
  return made;
}

Dependencies DependencyColumns(const TracePtr& shared) {
  const Csr<NodeId>& deps = shared->trace().all_deps();
  const size_t nodes = shared->trace().node_count();
  Dependencies made;
  const auto fill = [&](Column& column, std::string name, Type type, Meaning meaning) {
    column.name = std::move(name);
    column.type = type;
    column.meaning = meaning;
    column.stride = column.value_bytes();
    column.trace = shared;
  };
  fill(made.offsets, "offsets", Type::kInt64, Meaning::kNumber);
  fill(made.targets, "target", Type::kInt32, Meaning::kRow);
  fill(made.kinds, "kind", Type::kInt8, Meaning::kName);
  made.kinds.names = DepKindNames();
  made.offsets.rows = nodes + 1;
  if (deps.begins().size() == nodes + 1) {
    made.offsets.data = deps.begins().data();
  } else {
    using Offsets = std::vector<int64_t>;
    made.offsets.memory =
        shared->Kept("offsets", [&] { return std::make_shared<Offsets>(nodes + 1); });
    made.offsets.data = static_cast<const Offsets*>(made.offsets.memory.get())->data();
  }
  made.targets.data = deps.values().data();
  made.kinds.data = shared->trace().all_dep_kinds().values().data();
  made.targets.rows = made.kinds.rows = deps.values().size();
  return made;
}

}  // namespace etude::python
