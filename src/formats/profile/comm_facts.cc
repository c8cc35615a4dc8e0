#include "src/formats/profile/comm_facts.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "src/base/text/bounded_json.h"
#include "src/formats/json/json_text.h"

namespace etude {
namespace {

constexpr auto kCommFields = std::to_array<CommFieldInfo>({
    {CommField::kName, "collective_name", "Collective name"},
    {CommField::kDType, "dtype", "dtype"},
    {CommField::kInElements, "in_msg_nelems", "In msg nelems"},
    {CommField::kOutElements, "out_msg_nelems", "Out msg nelems"},
    {CommField::kInSplit, "in_split_size", "In split size"},
    {CommField::kOutSplit, "out_split_size", "Out split size"},
    {CommField::kRankStart, "global_rank_start", "Global rank start"},
    {CommField::kRankStride, "global_rank_stride", "Global rank stride"},
    {CommField::kGroup, "pg_name", "Process Group Name"},
    {CommField::kGroupDescription, "pg_desc", "Process Group Description"},
    {CommField::kGroupSize, "pg_size", "Group size"},
    {CommField::kGroupRanks, "", "Process Group Ranks"},
    {CommField::kSource, "comm_src", "Src Rank"},
    {CommField::kDestination, "comm_dst", "Dst Rank"},
    {CommField::kType, "comm_type", "comm_type"},
    {CommField::kBytes, "comm_size", "comm_size"},
    {CommField::kRoot, "comm_root", "comm_root"},
    {CommField::kTag, "comm_tag", "comm_tag"},
    {CommField::kPriority, "comm_priority", "comm_priority"},
});

// Names of collectives that represent no communication of their own.
struct NameKind {
  std::string_view name;
  NodeKind kind;
};
constexpr auto kOtherCommNames = std::to_array<NameKind>({
    {"wait", NodeKind::kSync},
    {"init", NodeKind::kMetadata},
});

// Groups larger than this keep start, stride and size, but no list.
constexpr int64_t kMaxListedRanks = int64_t{1} << 20;

// PyTorch writes stride 0 for a group of one, -1 for ranks that are not evenly spaced.
bool AreEven(const CommFacts& facts) {
  if (!facts.rank_start || !facts.rank_stride || facts.group_size.value_or(0) < 1) return false;
  return *facts.rank_stride > 0 || (*facts.rank_stride == 0 && facts.group_size == 1);
}

std::optional<std::vector<int64_t>> RanksOfFacts(const CommFacts& facts) {
  if (facts.group_ranks) return facts.group_ranks;
  if (!AreEven(facts) || *facts.group_size > kMaxListedRanks) return std::nullopt;
  std::vector<int64_t> ranks;
  for (int64_t member = 0; member < *facts.group_size; ++member) {
    const std::optional<int64_t> rank = RankOfMember(facts, member);
    if (!rank) return std::nullopt;
    ranks.push_back(*rank);
  }
  return ranks;
}

StringId TextOrNone(TraceBuilder& builder, std::string_view text) {
  return text.empty() ? StringId::None() : builder.Intern(text);
}

bool SetNumber(std::optional<int64_t>& to, std::string_view text) {
  to = JsonInt(text);
  return to.has_value();
}

bool SetSplit(std::vector<int64_t>& to, std::string_view text) {
  auto list = ParseIntList(text);
  if (!list) return false;
  to = *std::move(list);
  return true;
}

// Returns the number of elements of a tensor with these sizes; nullopt if they are not sizes.
std::optional<int64_t> ElementsOf(const nlohmann::json& sizes) {
  if (!sizes.is_array()) return std::nullopt;
  int64_t elements = 1;
  for (const auto& size : sizes) {
    if (!size.is_number_integer() || size.get<int64_t>() < 0) return std::nullopt;
    if (__builtin_mul_overflow(elements, size.get<int64_t>(), &elements)) return std::nullopt;
  }
  return elements;
}

}  // namespace

const CommFieldInfo& Info(CommField field) {
  return *std::ranges::find(kCommFields, field, &CommFieldInfo::field);
}

std::optional<CommField> CommFieldOfAttr(std::string_view attr) {
  const auto row = std::ranges::find(kCommFields, attr, &CommFieldInfo::attr);
  if (attr.empty() || row == kCommFields.end()) return std::nullopt;
  return row->field;
}

std::optional<CommField> CommFieldOfArg(std::string_view arg) {
  const auto row = std::ranges::find(kCommFields, arg, &CommFieldInfo::arg);
  if (arg.empty() || row == kCommFields.end()) return std::nullopt;
  return row->field;
}

bool SetCommFact(CommFacts& facts, CommField field, std::string_view text) {
  facts.any = true;
  switch (field) {
    case CommField::kName: facts.name = text; return true;
    case CommField::kDType:
      facts.dtype = DTypeFromText(text);
      return facts.dtype != DType::kUnknown;
    case CommField::kInElements: return SetNumber(facts.in_elements, text);
    case CommField::kOutElements: return SetNumber(facts.out_elements, text);
    case CommField::kInSplit: return SetSplit(facts.in_split, text);
    case CommField::kOutSplit: return SetSplit(facts.out_split, text);
    // The remaining fields describe the group rather than the node. The group takes the fields that
    // it has columns for, and the node keeps the text.
    case CommField::kRankStart: SetNumber(facts.rank_start, text); return false;
    case CommField::kRankStride: SetNumber(facts.rank_stride, text); return false;
    case CommField::kGroup: facts.group = text; return true;
    case CommField::kGroupDescription: facts.group_description = text; return false;
    case CommField::kGroupSize: return SetNumber(facts.group_size, text) && *facts.group_size >= 1;
    case CommField::kGroupRanks: facts.group_ranks = ParseIntList(text); return false;
    case CommField::kSource: return SetNumber(facts.source, text);
    case CommField::kDestination: return SetNumber(facts.destination, text);
    case CommField::kType:
      facts.type = CollectiveFromOwnName(text).value_or(CollectiveType::kUnknown);
      return facts.type != CollectiveType::kUnknown;
    case CommField::kBytes: return SetNumber(facts.bytes, text);
    case CommField::kRoot: return SetNumber(facts.root, text);
    case CommField::kTag: return SetNumber(facts.tag, text);
    case CommField::kPriority: return SetNumber(facts.priority, text);
  }
  return false;
}

void SetTensors(CommFacts& facts, std::string_view dims, std::string_view types) {
  const auto tensors = ParseBounded<nlohmann::json>(dims);
  const auto names = ParseBounded<nlohmann::json>(types);
  if (!tensors.is_array() || !names.is_array() || tensors.size() != names.size()) return;
  std::optional<int64_t> sum;
  DType dtype = DType::kUnknown;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].is_array() || !names[i].is_string()) return;
    const std::string& name = names[i].get_ref<const std::string&>();
    const DType known = DTypeFromText(name);
    const bool is_list = name == "TensorList";
    if (!is_list && known == DType::kUnknown) continue;  // a number, or nothing
    if (dtype == DType::kUnknown) dtype = known;
    for (const auto& sizes : is_list ? tensors[i] : nlohmann::json::array({tensors[i]})) {
      const auto elements = ElementsOf(sizes);
      int64_t total = 0;
      if (!elements || __builtin_add_overflow(sum.value_or(0), *elements, &total)) return;
      sum = total;
    }
  }
  facts.in_elements = sum;
  facts.dtype = dtype;
}

void FillGaps(CommFacts& facts, const CommFacts& others) {
  const auto fill = [](auto& to, const auto& from) {
    if (to == std::remove_cvref_t<decltype(to)>()) to = from;
  };
  fill(facts.any, others.any);
  fill(facts.name, others.name);
  fill(facts.dtype, others.dtype);
  fill(facts.in_elements, others.in_elements);
  fill(facts.out_elements, others.out_elements);
  fill(facts.in_split, others.in_split);
  fill(facts.out_split, others.out_split);
  fill(facts.rank_start, others.rank_start);
  fill(facts.rank_stride, others.rank_stride);
  fill(facts.group, others.group);
  fill(facts.group_description, others.group_description);
  fill(facts.group_size, others.group_size);
  fill(facts.group_ranks, others.group_ranks);
  fill(facts.source, others.source);
  fill(facts.destination, others.destination);
  fill(facts.root, others.root);
  fill(facts.type, others.type);
  fill(facts.bytes, others.bytes);
  fill(facts.tag, others.tag);
  fill(facts.priority, others.priority);
}

Comm MakeComm(TraceBuilder& builder, const CommFacts& facts) {
  Comm comm;
  comm.type = facts.type != CollectiveType::kUnknown
                  ? facts.type
                  : CollectiveFromName(facts.name).value_or(CollectiveType::kUnknown);
  comm.name = TextOrNone(builder, facts.name);
  comm.group = TextOrNone(builder, facts.group);
  comm.dtype = facts.dtype;
  comm.in_elements = facts.in_elements;
  comm.out_elements = facts.out_elements;
  const auto element_bytes = ElementBytes(facts.dtype);
  int64_t bytes = 0;
  if (facts.bytes) {
    comm.bytes = Bytes{*facts.bytes};
  } else if (facts.in_elements && element_bytes &&
             !__builtin_mul_overflow(*facts.in_elements, *element_bytes, &bytes)) {
    comm.bytes = Bytes{bytes};
  }
  if (!facts.in_split.empty()) comm.in_split = builder.InternInts(facts.in_split);
  if (!facts.out_split.empty()) comm.out_split = builder.InternInts(facts.out_split);
  comm.root = facts.root;
  comm.src = facts.source;
  comm.dst = facts.destination;
  comm.tag = facts.tag;
  comm.priority = facts.priority;
  comm.group_size = facts.group_size;
  SizeScatter(comm, comm.group_size);
  return comm;
}

void SizeScatter(Comm& comm, std::optional<int64_t> ranks) {
  if (comm.type != CollectiveType::kScatter || comm.bytes.value_or(Bytes{0}) != Bytes{0}) return;
  const auto element_bytes = ElementBytes(comm.dtype);
  if (!comm.out_elements || !ranks || !element_bytes) return;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(*comm.out_elements, *ranks, &bytes) ||
      __builtin_mul_overflow(bytes, *element_bytes, &bytes)) {
    return;
  }
  comm.bytes = Bytes{bytes};
}

std::optional<int64_t> RankOfMember(const CommFacts& facts, int64_t member) {
  if (member < 0) return std::nullopt;
  if (facts.group_ranks) {
    const auto index = static_cast<size_t>(member);
    return index < facts.group_ranks->size() ? std::optional((*facts.group_ranks)[index])
                                             : std::nullopt;
  }
  int64_t rank = 0;
  if (!AreEven(facts) || member >= *facts.group_size ||
      __builtin_mul_overflow(member, *facts.rank_stride, &rank) ||
      __builtin_add_overflow(rank, *facts.rank_start, &rank)) {
    return std::nullopt;
  }
  return rank;
}

void AddGroupOf(TraceBuilder& builder, const CommFacts& facts) {
  if (facts.group.empty()) return;
  ProcessGroup group;
  group.name = builder.Intern(facts.group);
  group.description = TextOrNone(builder, facts.group_description);
  group.size = facts.group_size;
  if (const auto ranks = RanksOfFacts(facts)) group.ranks = builder.InternInts(*ranks);
  builder.AddProcessGroup(group);
}

NodeKind KindOfCommunication(std::string_view name) {
  for (const NameKind& row : kOtherCommNames) {
    if (row.name == name) return row.kind;
  }
  return PointToPointFromName(name).value_or(NodeKind::kCollective);
}

std::optional<std::vector<int64_t>> ParseIntList(std::string_view text) {
  if (text.starts_with('[')) {
    if (!text.ends_with(']')) return std::nullopt;
    text = text.substr(1, text.size() - 2);
  }
  std::vector<int64_t> list;
  if (text.find_first_not_of(' ') == std::string_view::npos) return list;
  while (true) {
    const size_t comma = text.find(',');
    const auto number = JsonInt(text.substr(0, comma));
    if (!number) return std::nullopt;
    list.push_back(*number);
    if (comma == std::string_view::npos) return list;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace etude
