#include "src/trace/job/packed_trace.h"

#include <algorithm>
#include <concepts>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "src/base/container/hash.h"
#include "src/trace/program_parts.h"
#include "src/trace/reference_forecast.h"
#include "src/trace/trace_builder.h"
#include "src/trace/trace_copy.h"
#include "src/trace/words/cut_text.h"

namespace etude {
namespace {

constexpr uint64_t kNoTemplate = UINT32_MAX;

// Returns true for fields with the distance back to another node.
template <typename Field>
bool IsReference(Field field) {
  return field == Field::kParent || field == Field::kDependency;
}

uint64_t ContextOf(uint64_t what, size_t slot) { return HashMix(HashMix(0, what), slot + 1); }

// A node with all its facts.
struct PackedNode {
  NodeRow row;          // without parent
  uint64_t parent = 0;  // distance back to the parent, as a signed number; 0: none
  std::vector<std::pair<uint64_t, DepKind>> deps;  // distance back and kind
  std::optional<Comm> comm;
  std::vector<Extra> extras;
};

// Passes all facts of a node to `coder`: those of its token to Fixed, the others to Number. Packing
// and unpacking share this function and therefore agree.
//
// Codes enum values up to `last`.
template <typename Coder, typename T>
void CodeEnum(Coder& coder, T& value, T last) {
  auto number = static_cast<uint64_t>(value);
  coder.Fixed(number);
  coder.Expect(number <= static_cast<uint64_t>(last));
  value = static_cast<T>(number);
}

template <typename Coder, typename Tag>
void CodeFixedId(Coder& coder, Id<Tag>& id) {
  uint64_t number = id.value();
  coder.Fixed(number);
  id = Id<Tag>(static_cast<uint32_t>(number));
  coder.ExpectRow(id);
}

// Codes a count of items for which the token contains further facts.
template <typename Coder>
void CodeCount(Coder& coder, uint64_t& count) {
  coder.Fixed(count);
  coder.ExpectFixed(count);
}

template <typename Coder, typename Tag, typename Field>
void CodeId(Coder& coder, Field field, size_t slot, Id<Tag>& id) {
  uint64_t known = id ? 1 : 0;
  coder.Fixed(known);
  if (known == 0) return;
  uint64_t number = id.value();
  coder.Number(field, slot, number);
  id = Id<Tag>(static_cast<uint32_t>(number));
  coder.ExpectRow(id);
}

template <typename Coder, std::integral T, typename Field>
void CodeKnown(Coder& coder, Field field, size_t slot, std::optional<T>& value) {
  uint64_t known = value ? 1 : 0;
  coder.Fixed(known);
  if (known == 0) return;
  auto number = static_cast<uint64_t>(value.value_or(0));
  coder.Number(field, slot, number);
  value = static_cast<T>(number);
}

// Codes Nanos and Bytes.
template <typename Coder, typename T, typename Field>
  requires requires(T value) { value.count; }
void CodeKnown(Coder& coder, Field field, size_t slot, std::optional<T>& value) {
  std::optional<int64_t> count;
  if (value) count = value->count;
  CodeKnown(coder, field, slot, count);
  if (count) value = T{*count};
}

template <typename Coder, typename T>
void CodeFixedKnown(Coder& coder, std::optional<T>& value) {
  uint64_t known = value ? 1 : 0;
  coder.Fixed(known);
  if (known == 0) return;
  auto number = static_cast<uint64_t>(value.value_or(T{}));
  coder.Fixed(number);
  value = static_cast<T>(number);
}

template <typename Field, typename Coder>
void CodeComm(Coder& coder, std::optional<Comm>& comm) {
  uint64_t known = comm ? 1 : 0;
  coder.Fixed(known);
  if (known == 0) return;
  if (!comm) comm.emplace();
  CodeEnum(coder, comm->type, CollectiveType::kBarrier);
  CodeEnum(coder, comm->dtype, DType::kQInt32);
  CodeFixedId(coder, comm->name);
  CodeFixedId(coder, comm->group);
  CodeKnown(coder, Field::kComm, 0, comm->bytes);
  CodeKnown(coder, Field::kComm, 1, comm->in_elements);
  CodeKnown(coder, Field::kComm, 2, comm->out_elements);
  CodeId(coder, Field::kComm, 3, comm->in_split);
  CodeId(coder, Field::kComm, 4, comm->out_split);
  CodeKnown(coder, Field::kComm, 5, comm->root);
  CodeKnown(coder, Field::kComm, 6, comm->src);
  CodeKnown(coder, Field::kComm, 7, comm->dst);
  CodeKnown(coder, Field::kComm, 8, comm->tag);
  CodeKnown(coder, Field::kComm, 9, comm->group_size);
  CodeKnown(coder, Field::kComm, 10, comm->priority);
}

template <typename Field, typename Coder>
void CodeNode(Coder& coder, PackedNode& node) {
  NodeRow& row = node.row;
  CodeEnum(coder, row.kind, NodeKind::kMetadata);
  CodeEnum(coder, row.place, Place::kDevice);
  CodeFixedId(coder, row.lane);
  coder.TemplateOf(row.name);
  CodeId(coder, Field::kName, 0, row.name);
  uint64_t has_parent = node.parent == 0 ? 0 : 1;
  coder.Fixed(has_parent);
  if (has_parent != 0) coder.Number(Field::kParent, 0, node.parent);
  uint64_t deps = node.deps.size();
  CodeCount(coder, deps);
  node.deps.resize(deps);
  for (size_t i = 0; i < deps; ++i) {
    CodeEnum(coder, node.deps[i].second, DepKind::kSync);
    coder.Number(Field::kDependency, i, node.deps[i].first);
  }
  coder.Number(Field::kId, 0, row.source_id);
  CodeKnown(coder, Field::kStart, 0, row.start);
  CodeKnown(coder, Field::kDuration, 0, row.duration);
  CodeKnown(coder, Field::kExclusive, 0, row.exclusive);
  CodeId(coder, Field::kInputs, 0, row.inputs);
  CodeId(coder, Field::kOutputs, 0, row.outputs);
  CodeKnown(coder, Field::kRfId, 0, row.rf_id);
  CodeKnown(coder, Field::kFwParent, 0, row.fw_parent);
  CodeKnown(coder, Field::kSeqId, 0, row.seq_id);
  CodeFixedKnown(coder, row.scope);
  CodeFixedKnown(coder, row.tid);
  CodeKnown(coder, Field::kFwTid, 0, row.fw_tid);
  CodeFixedId(coder, row.op_schema);
  CodeFixedId(coder, row.kernel_backend);
  CodeId(coder, Field::kText, 0, row.kernel_file);
  CodeId(coder, Field::kText, 1, row.tensor_range);
  CodeId(coder, Field::kText, 2, row.index_statistics);
  CodeId(coder, Field::kText, 3, row.index_values);
  CodeKnown(coder, Field::kCorrelation, 0, row.correlation);
  CodeKnown(coder, Field::kExternalId, 0, row.external_id);
  CodeComm<Field>(coder, node.comm);
  uint64_t extras = node.extras.size();
  CodeCount(coder, extras);
  node.extras.resize(extras);
  for (size_t i = 0; i < extras; ++i) {
    CodeFixedId(coder, node.extras[i].key);
    CodeEnum(coder, node.extras[i].form, Extra::Form::kProtobuf);
    coder.TemplateOf(node.extras[i].text);
    CodeId(coder, Field::kExtra, i, node.extras[i].text);
  }
}

// Returns the number of lists in a trace whose tables contain only entries in use: the highest id
// in use is the last one.
size_t ValueListCount(const Trace& trace) {
  size_t count = 0;
  std::vector<ValueListId> open;
  std::vector<bool> seen;
  const auto see = [&](ValueListId list) {
    if (!list) return;
    count = std::max(count, list.index() + 1);
    if (seen.size() < count) seen.resize(2 * count);
    if (seen[list.index()]) return;
    seen[list.index()] = true;
    open.push_back(list);
  };
  ForEachNode(trace, [&](NodeId node) {
    see(trace.input_list(node));
    see(trace.output_list(node));
    while (!open.empty()) {
      const ValueListId list = open.back();
      open.pop_back();
      for (const Value& value : trace.values(list)) {
        if (value.kind == ValueKind::kList) see(value.as_list());
      }
    }
  });
  return count;
}

// Parts of a table row as numbers; `set` restores the row from them.
constexpr size_t kTensorParts = 13;
std::array<uint64_t, kTensorParts> PartsOf(const TensorUse& use) {
  return {use.device.value(),
          use.type.value(),
          use.shape.value(),
          use.strides.value(),
          use.tensor,
          use.storage,
          static_cast<uint64_t>(use.offset),
          static_cast<uint64_t>(use.numel),
          static_cast<uint64_t>(use.element_bytes),
          static_cast<uint64_t>(use.storage_bytes),
          static_cast<uint64_t>(use.requires_grad),
          static_cast<uint64_t>(use.number_kind),
          use.number};
}

TensorUse TensorOf(const std::array<uint64_t, kTensorParts>& parts) {
  TensorUse use;
  use.device = StringId(static_cast<uint32_t>(parts[0]));
  use.type = StringId(static_cast<uint32_t>(parts[1]));
  use.shape = IntListId(static_cast<uint32_t>(parts[2]));
  use.strides = IntListId(static_cast<uint32_t>(parts[3]));
  use.tensor = parts[4];
  use.storage = parts[5];
  use.offset = static_cast<int64_t>(parts[6]);
  use.numel = static_cast<int64_t>(parts[7]);
  use.element_bytes = static_cast<int64_t>(parts[8]);
  use.storage_bytes = static_cast<int64_t>(parts[9]);
  use.requires_grad = static_cast<Known>(parts[10]);
  use.number_kind = static_cast<ValueKind>(parts[11]);
  use.number = parts[12];
  return use;
}

}  // namespace

class TracePacker {
 public:
  using Field = PackedTrace::Field;

  explicit TracePacker(const Trace& trace) : trace_(trace) {}

  PackedTrace Run() {
    packed_.info_ = trace_.info();
    packed_.stats_ = trace_.stats();
    packed_.node_count_ = trace_.node_count();
    PackTexts();
    PackTables();
    PackRest();
    PackNodes();
    for (size_t i = 0; i < PackedTrace::kFields; ++i) {
      packed_.numbers_[i] = PackNumbers(columns_[i].numbers, columns_[i].contexts);
    }
    return std::move(packed_);
  }

  // Interface of a coder for CodeNode.
  void Fixed(uint64_t& value) { token_.push_back(value); }
  void Number(Field field, size_t slot, uint64_t& value) { said_.push_back({field, slot, value}); }
  void TemplateOf(StringId text) {
    token_.push_back(text ? template_of_[text.index()] : kNoTemplate);
  }
  void Expect(bool) {}
  void ExpectFixed(uint64_t&) {}
  template <typename Tag>
  void ExpectRow(Id<Tag>) {}

 private:
  struct Column {
    std::vector<int64_t> numbers;
    std::vector<uint64_t> contexts;
  };
  struct Said {
    Field field;
    size_t slot;
    uint64_t value;
  };

  void Add(Field field, uint64_t context, uint64_t value) {
    Column& column = columns_[static_cast<size_t>(field)];
    column.numbers.push_back(static_cast<int64_t>(value));
    column.contexts.push_back(context);
  }

  void PackTexts() {
    packed_.text_count_ = trace_.strings().size();
    std::map<std::string, uint32_t> templates;
    for (size_t i = 0; i < packed_.text_count_; ++i) {
      CutText cut = CutNumbers(trace_.text(StringId::FromIndex(i)));
      const auto [at, added] =
          templates.emplace(cut.form, static_cast<uint32_t>(packed_.templates_.size()));
      if (added) packed_.templates_.push_back(cut.form);
      template_of_.push_back(at->second);
      Add(Field::kTextTemplate, 0, at->second);
      for (size_t k = 0; k < cut.numbers.size(); ++k) {
        Add(Field::kTextNumber, ContextOf(at->second, k), static_cast<uint64_t>(cut.numbers[k]));
      }
    }
  }

  void PackTables() {
    packed_.int_list_count_ = trace_.int_lists().size();
    for (size_t i = 0; i < packed_.int_list_count_; ++i) {
      const auto ints = trace_.ints(IntListId::FromIndex(i));
      Add(Field::kIntCount, 0, ints.size());
      for (size_t k = 0; k < ints.size(); ++k) {
        Add(Field::kInt, ContextOf(ints.size(), k), static_cast<uint64_t>(ints[k]));
      }
    }
    packed_.tensor_count_ = trace_.tensor_count();
    for (size_t i = 0; i < packed_.tensor_count_; ++i) {
      const auto parts = PartsOf(trace_.tensor(TensorId::FromIndex(i)));
      for (size_t k = 0; k < parts.size(); ++k) Add(Field::kTensorPart, k, parts[k]);
    }
    packed_.value_list_count_ = ValueListCount(trace_);
    for (size_t i = 0; i < packed_.value_list_count_; ++i) {
      const auto values = trace_.values(ValueListId::FromIndex(i));
      Add(Field::kValueCount, 0, values.size());
      for (const Value& value : values) {
        const auto kind = static_cast<uint64_t>(value.kind);
        Add(Field::kValuePart, 0, kind);
        Add(Field::kValuePart, ContextOf(kind, 1), value.type.value());
        Add(Field::kValuePart, ContextOf(kind, 2), value.payload);
      }
    }
    packed_.lane_count_ = trace_.lane_count();
    for (size_t i = 0; i < packed_.lane_count_; ++i) {
      const Lane& lane = trace_.lane(LaneId::FromIndex(i));
      Add(Field::kLanePart, 0, lane.process.value());
      Add(Field::kLanePart, 1, lane.thread.value());
      Add(Field::kLanePart, 2, static_cast<uint64_t>(int64_t{lane.device}));
      Add(Field::kLanePart, 3, static_cast<uint64_t>(int64_t{lane.stream}));
    }
  }

  void PackRest() {
    packed_.group_count_ = trace_.process_groups().size();
    for (const ProcessGroup& group : trace_.process_groups()) {
      Add(Field::kGroupPart, 0, group.name.value());
      Add(Field::kGroupPart, 1, group.description.value());
      Add(Field::kGroupPart, 2, group.backend.value());
      Add(Field::kGroupPart, 3, group.ranks.value());
      Add(Field::kGroupPart, 4, group.size ? 1 : 0);
      Add(Field::kGroupPart, 5, static_cast<uint64_t>(group.size.value_or(0)));
    }
    packed_.dangling_count_ = trace_.dangling().size();
    for (const Trace::Dangling& dangling : trace_.dangling()) {
      Add(Field::kDanglingPart, 0, dangling.node.value());
      Add(Field::kDanglingPart, 1, dangling.source_id);
      Add(Field::kDanglingPart, 2, static_cast<uint64_t>(dangling.kind));
      Add(Field::kDanglingPart, 3, dangling.is_parent ? 1 : 0);
    }
  }

  void PackNodes() {
    TraceBuilder same({}, trace_);
    TraceCopy copy(trace_, same);
    std::map<std::vector<uint64_t>, uint32_t> tokens;
    std::vector<uint32_t> sequence;
    std::vector<std::vector<Said>> references;  // by node
    ForEachNode(trace_, [&](NodeId at) {
      const auto before = [&](NodeId other) { return uint64_t{at.value()} - other.value(); };
      PackedNode node{.row = copy.Row(at)};
      if (trace_.parent(at)) node.parent = before(trace_.parent(at));
      const auto deps = trace_.deps(at);
      for (size_t i = 0; i < deps.size(); ++i) {
        node.deps.emplace_back(before(deps[i]), trace_.dep_kinds(at)[i]);
      }
      if (const Comm* comm = trace_.comm(at)) node.comm = *comm;
      node.extras.assign(trace_.extras(at).begin(), trace_.extras(at).end());
      token_.clear();
      said_.clear();
      CodeNode<Field>(*this, node);
      const auto [known, added] = tokens.emplace(token_, static_cast<uint32_t>(tokens.size()));
      if (added) packed_.tokens_.push_back(token_);
      sequence.push_back(known->second);
      references.emplace_back();
      for (const Said& said : said_) {
        if (IsReference(said.field)) {
          references.back().push_back(said);
        } else {
          Add(said.field, ContextOf(known->second, said.slot), said.value);
        }
      }
    });
    packed_.program_ = FindMotifs(sequence, static_cast<uint32_t>(tokens.size()), PartBegins());
    ReferenceForecast forecast(packed_.program_);
    for (size_t i = 0; i < references.size(); ++i) {
      forecast.BeginNode();
      for (const Said& said : references[i]) {
        if (const auto expected = forecast.Expected()) {
          Add(Field::kRepeated, 0, said.value - *expected);
        } else {
          Add(said.field, ContextOf(sequence[i], said.slot), said.value);
        }
        forecast.Add(said.value);
      }
    }
  }

  // Returns the positions where a part of the program begins or ends, if the trace has parts.
  std::vector<size_t> PartBegins() const {
    const Result<std::vector<ProgramSpan>> spans = StatedParts(trace_);
    std::vector<size_t> begins;
    if (!spans || spans->empty()) return begins;
    const std::vector<const ProgramSpan*> of = SpansOfNodes(trace_, *spans);
    for (size_t i = 1; i < of.size(); ++i) {
      if (of[i] != of[i - 1]) begins.push_back(i);
    }
    return begins;
  }

  const Trace& trace_;
  PackedTrace packed_;
  std::array<Column, PackedTrace::kFields> columns_;
  std::vector<uint64_t> template_of_;  // by text
  std::vector<uint64_t> token_;        // of the current node
  std::vector<Said> said_;
};

// Unpacks a trace. The bytes may be invalid: inconsistent values set `fault_`, and nothing is
// indexed by them.
class TraceUnpacker {
 public:
  using Field = PackedTrace::Field;

  TraceUnpacker(const PackedTrace& packed, const Limits& limits)
      : packed_(packed), limits_(limits), builder_(limits) {
    for (const PackedNumbers& numbers : packed.numbers_) readers_.emplace_back(numbers);
    // Limit as for any compressed file; a row of a table or a list counts as 64 bytes.
    constexpr uint64_t kRowBytes = 64;
    if (packed.source_bytes_ != 0 && packed.source_bytes_ < UINT64_MAX / limits.ratio) {
      rows_left_ = (limits.ratio_grace_bytes + limits.ratio * packed.source_bytes_) / kRowBytes;
    }
  }

  Result<Trace> Run() {
    Expect(packed_.program_.is_sound());
    builder_.info() = packed_.info_;
    for (const StatInfo& info : StatTable()) {
      if (!FoundByBuilder(info.stat)) builder_.stats().Count(info.stat, packed_.stats_[info.stat]);
    }
    UnpackTexts();
    UnpackTables();
    for (const Extra& extra : packed_.info_.extras) {
      ExpectRow(extra.key);
      ExpectRow(extra.text);
    }
    UnpackGroups();
    UnpackNodes();
    UnpackDangling();
    if (too_large_) {
      return BadInput(
          "found far more content than its size allows, expected a trace within the limit 'ratio'");
    }
    if (fault_)
      return BadInput("found numbers that are invalid in a trace, expected a packed trace");
    return builder_.Finish();
  }

  // Interface of a coder for CodeNode.
  void Fixed(uint64_t& value) {
    const std::vector<uint64_t>& token = packed_.tokens_[token_];
    Expect(at_ < token.size());
    value = fault_ ? 0 : token[at_++];
  }
  void Number(Field field, size_t slot, uint64_t& value) {
    const auto expected = IsReference(field) ? forecast_->Expected() : std::nullopt;
    value = expected ? *expected + Next(Field::kRepeated, 0) : Next(field, ContextOf(token_, slot));
    if (IsReference(field)) forecast_->Add(value);
  }
  void TemplateOf(StringId) { ++at_; }
  void Expect(bool fits) { fault_ = fault_ || !fits; }
  void ExpectFixed(uint64_t& count) {
    Expect(count <= packed_.tokens_[token_].size());
    if (fault_) count = 0;
  }
  template <typename Tag>
  void ExpectRow(Id<Tag> id) {
    if (id) Expect(id.index() < Rows(id));
  }

 private:
  size_t Rows(StringId) const { return packed_.text_count_; }
  size_t Rows(IntListId) const { return packed_.int_list_count_; }
  size_t Rows(ValueListId) const { return packed_.value_list_count_; }
  size_t Rows(TensorId) const { return packed_.tensor_count_; }
  size_t Rows(LaneId) const { return packed_.lane_count_; }
  size_t Rows(NodeId) const { return packed_.node_count_; }

  // Reserves `count` more rows; returns false if they exceed the limit.
  bool Take(uint64_t count) {
    if (count > rows_left_) {
      too_large_ = true;
      fault_ = true;
    } else {
      rows_left_ -= count;
    }
    return !fault_;
  }

  uint64_t Next(Field field, uint64_t context) {
    return static_cast<uint64_t>(readers_[static_cast<size_t>(field)].Next(context));
  }
  template <typename IdType>
  IdType NextId(Field field, uint64_t context) {
    const uint64_t number = Next(field, context);
    Expect(number <= UINT32_MAX);
    const IdType id(static_cast<uint32_t>(number));
    ExpectRow(id);
    return fault_ ? IdType::None() : id;
  }
  int32_t NextSmall(Field field, uint64_t context) {
    const auto number = static_cast<int64_t>(Next(field, context));
    Expect(number >= INT32_MIN && number <= INT32_MAX);
    return static_cast<int32_t>(number);
  }

  void UnpackTexts() {
    for (size_t i = 0; i < packed_.text_count_; ++i) {
      const uint64_t at = Next(Field::kTextTemplate, 0);
      Expect(at < packed_.templates_.size() && !packed_.templates_[at].empty());
      if (!Take(1) || !Take(packed_.templates_[at].size() / 8)) return;
      const std::string_view form = packed_.templates_[at];
      std::string text;
      size_t slot = 0;
      for (const char c : form.substr(1)) {
        if (c == CutText::kNumberInText && form.front() == CutText::kWithNumbers) {
          text +=
              std::to_string(static_cast<int64_t>(Next(Field::kTextNumber, ContextOf(at, slot++))));
        } else {
          text += c;
        }
      }
      // An existing row would shift those after it.
      Expect(builder_.Intern(text).index() == i);
    }
  }

  void UnpackTables() {
    std::vector<int64_t> ints;
    for (size_t i = 0; i < packed_.int_list_count_; ++i) {
      const uint64_t count = Next(Field::kIntCount, 0);
      if (!Take(1) || !Take(count)) return;
      ints.resize(count);
      for (size_t k = 0; k < ints.size(); ++k) {
        ints[k] = static_cast<int64_t>(Next(Field::kInt, ContextOf(ints.size(), k)));
      }
      Expect(builder_.InternInts(ints).index() == i);
    }
    for (size_t i = 0; i < packed_.tensor_count_ && Take(1); ++i) {
      std::array<uint64_t, kTensorParts> parts{};
      for (size_t k = 0; k < parts.size(); ++k) parts[k] = Next(Field::kTensorPart, k);
      const TensorUse use = TensorOf(parts);
      ExpectRow(use.device);
      ExpectRow(use.type);
      ExpectRow(use.shape);
      ExpectRow(use.strides);
      Expect(use.requires_grad <= Known::kYes && use.number_kind <= ValueKind::kRaw);
      Expect(builder_.InternTensor(use).index() == i);
    }
    std::vector<Value> values;
    for (size_t i = 0; i < packed_.value_list_count_; ++i) {
      const uint64_t count = Next(Field::kValueCount, 0);
      if (!Take(1) || !Take(count)) return;
      values.resize(count);
      for (Value& value : values) {
        const uint64_t kind = Next(Field::kValuePart, 0);
        value.kind = static_cast<ValueKind>(kind);
        value.type = NextId<StringId>(Field::kValuePart, ContextOf(kind, 1));
        value.payload = Next(Field::kValuePart, ContextOf(kind, 2));
        Expect(kind <= static_cast<uint64_t>(ValueKind::kRaw) && PayloadFits(value, i));
      }
      if (fault_) return;
      Expect(builder_.InternValues(values).index() == i);
    }
    for (size_t i = 0; i < packed_.lane_count_ && Take(1); ++i) {
      Lane lane;
      lane.process = NextId<StringId>(Field::kLanePart, 0);
      lane.thread = NextId<StringId>(Field::kLanePart, 1);
      lane.device = NextSmall(Field::kLanePart, 2);
      lane.stream = NextSmall(Field::kLanePart, 3);
      Expect(builder_.InternLane(lane).index() == i);
    }
  }

  // Returns true if the payload of a value of list `list` is valid; lists contain only earlier
  // lists.
  bool PayloadFits(const Value& value, size_t list) const {
    switch (value.kind) {
      case ValueKind::kNone:
      case ValueKind::kBool:
      case ValueKind::kInt:
      case ValueKind::kDouble: return true;
      case ValueKind::kString:
      case ValueKind::kDevice:
      case ValueKind::kOpaque:
      case ValueKind::kRaw:
        return value.payload == StringId::kNoneValue || value.payload < packed_.text_count_;
      case ValueKind::kTensor: return value.payload < packed_.tensor_count_;
      case ValueKind::kList:
        return value.payload == ValueListId::kNoneValue || value.payload < list;
    }
    return false;
  }

  void UnpackGroups() {
    for (size_t i = 0; i < packed_.group_count_ && Take(1); ++i) {
      ProcessGroup group;
      group.name = NextId<StringId>(Field::kGroupPart, 0);
      group.description = NextId<StringId>(Field::kGroupPart, 1);
      group.backend = NextId<StringId>(Field::kGroupPart, 2);
      group.ranks = NextId<IntListId>(Field::kGroupPart, 3);
      const bool sized = Next(Field::kGroupPart, 4) != 0;
      const auto size = static_cast<int64_t>(Next(Field::kGroupPart, 5));
      if (sized) group.size = size;
      builder_.AddProcessGroup(group);
    }
  }

  void UnpackNodes() {
    if (fault_ || packed_.node_count_ > limits_.nodes || !Take(packed_.node_count_)) {
      return Expect(false);
    }
    const std::vector<uint32_t> sequence = packed_.program_.Expand(packed_.node_count_ + 1);
    Expect(sequence.size() == packed_.node_count_);
    if (fault_) return;
    forecast_.emplace(packed_.program_);
    std::vector<std::pair<NodeId, NodeId>> parents;
    std::vector<uint64_t> ids;
    for (const uint32_t token : sequence) {
      token_ = token;
      at_ = 0;
      forecast_->BeginNode();
      PackedNode node;
      CodeNode<Field>(*this, node);
      if (!Take(node.deps.size() + node.extras.size())) return;
      const NodeId at = builder_.AddNode(node.row);
      ids.push_back(node.row.source_id);
      const auto before = [&](uint64_t distance) {
        const NodeId other(static_cast<uint32_t>(at.value() - distance));
        Expect(other.index() < packed_.node_count_);
        return other;
      };
      if (node.parent != 0) parents.emplace_back(at, before(node.parent));
      for (const auto& [distance, kind] : node.deps) {
        const NodeId dep = before(distance);
        if (!fault_) builder_.AddDep(at, dep, kind);
      }
      if (node.comm) builder_.SetComm(at, *node.comm);
      for (const Extra& extra : node.extras) builder_.AddExtra(at, extra);
      if (fault_) return;
    }
    if (fault_) return;
    for (const auto& [node, parent] : parents) builder_.SetParent(node, ids[parent.index()]);
  }

  void UnpackDangling() {
    for (size_t i = 0; i < packed_.dangling_count_ && Take(1); ++i) {
      const auto node = NextId<NodeId>(Field::kDanglingPart, 0);
      const uint64_t source_id = Next(Field::kDanglingPart, 1);
      const uint64_t kind = Next(Field::kDanglingPart, 2);
      const bool is_parent = Next(Field::kDanglingPart, 3) != 0;
      Expect(node && kind < kDepKindCount);
      if (fault_) return;
      if (is_parent) {
        builder_.SetParent(node, source_id);
      } else {
        builder_.AddDep(node, source_id, static_cast<DepKind>(kind));
      }
    }
  }

  const PackedTrace& packed_;
  const Limits& limits_;
  TraceBuilder builder_;
  std::vector<NumberReader> readers_;  // by Field
  uint64_t rows_left_ = UINT64_MAX;    // max number of further rows
  bool fault_ = false;
  bool too_large_ = false;
  std::optional<ReferenceForecast> forecast_;
  uint32_t token_ = 0;  // current node's token, and position in it
  size_t at_ = 0;
};

Result<PackedTrace> PackedTrace::Pack(const Trace& trace, const Limits& limits) {
  // Tables in the order of use: a new entry has the next number.
  TraceBuilder builder(limits);
  ETUDE_ASSIGN_OR_RETURN(const Trace plain, CopyTrace(trace, builder));
  return TracePacker(plain).Run();
}

Result<Trace> PackedTrace::Unpack(const Limits& limits) const {
  return TraceUnpacker(*this, limits).Run();
}

size_t PackedTrace::memory_bytes() const {
  size_t bytes = sizeof(*this) + info_.extras.capacity() * sizeof(Extra);
  for (const std::string& form : templates_) bytes += sizeof(form) + form.capacity();
  for (const auto& token : tokens_) bytes += sizeof(token) + token.capacity() * sizeof(uint64_t);
  for (const auto& motif : program_.motifs) {
    bytes += sizeof(motif) + motif.capacity() * sizeof(uint32_t);
  }
  bytes += program_.parts.capacity() * sizeof(uint32_t);
  for (const PackedNumbers& numbers : numbers_) bytes += numbers.bytes.capacity();
  return bytes;
}

}  // namespace etude
