#include "src/formats/kineto/comm_facts.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "src/base/text/ascii.h"
#include "src/base/text/bounded_json.h"
#include "src/base/text/function_name.h"
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

// Collective names that stand for no communication of their own.
struct NameKind {
  std::string_view name;
  NodeKind kind;
};
constexpr auto kOtherCommNames = std::to_array<NameKind>({
    {"wait", NodeKind::kSync},
    {"init", NodeKind::kMetadata},
});

// Kernels that say by what follows what they do.
constexpr auto kCommKernels = std::to_array<std::string_view>({
    "ncclKernel",     // NCCL before 2.19, RCCL
    "ncclDevKernel",  // NCCL since
    "mscclKernel",    // RCCL with MSCCL
    // On symmetric memory: NCCL 2.27, and since 2.28
    "ncclSymDevKernel", "ncclSymkDevKernel",
    "hcom_",  // HCCL, of Ascend's devices
});

// Functions of kernels that communicate without NCCL, by their name and, where that could be
// anyone's, the namespaces that they are in.
struct CommFunction {
  std::string_view space;  // what these end with; "": any
  std::string_view name;   // "a*": whatever begins with a
  CollectiveType type;
};
constexpr auto kCommFunctions = std::to_array<CommFunction>({
    {"", "rcclGenericKernel*", CollectiveType::kUnknown},
    // PyTorch's symmetric memory, and FBGEMM. A template's argument makes the two-shot kernel a
    // reduce-scatter.
    {"", "multimem_all_reduce_kernel", CollectiveType::kAllReduce},
    {"", "multimem_one_shot_all_reduce_kernel", CollectiveType::kAllReduce},
    {"", "multimem_one_shot_reduce_kernel", CollectiveType::kReduce},
    {"", "multimem_all_gather_kernel", CollectiveType::kAllGather},
    {"", "one_shot_all_reduce_kernel", CollectiveType::kAllReduce},
    {"", "one_shot_all_reduce", CollectiveType::kAllReduce},
    {"", "two_shot_all_reduce_kernel_inplace", CollectiveType::kAllReduce},
    {"", "two_shot_all_reduce_kernel", CollectiveType::kUnknown},
    {"", "two_shot_all_reduce", CollectiveType::kAllReduce},
    // PyTorch's on NVSHMEM
    {"", "allToAllV", CollectiveType::kAllToAll},
    {"", "allToAllV_2d", CollectiveType::kAllToAll},
    // vLLM, SGLang, AITER and their quick reduce
    {"", "cross_device_reduce_1stage*", CollectiveType::kAllReduce},
    {"", "cross_device_reduce_2stage*", CollectiveType::kAllReduce},
    {"", "allreduce_prototype*", CollectiveType::kAllReduce},
    {"", "reduce_scatter_cross_device_store*", CollectiveType::kReduceScatter},
    {"", "allgather_lastdim*", CollectiveType::kAllGather},
    {"", "allgather_vec*", CollectiveType::kAllGather},
    {"", "allgather_naive*", CollectiveType::kAllGather},
    // MSCCL++: its collectives, and the executor of plans of any
    {"mscclpp::collective", "allreduce*", CollectiveType::kAllReduce},
    {"mscclpp::collective", "allgather*", CollectiveType::kAllGather},
    {"mscclpp::collective", "alltoall*", CollectiveType::kAllToAll},
    {"mscclpp::collective", "reduceScatter*", CollectiveType::kReduceScatter},
    {"mscclpp::collective", "broadcast*", CollectiveType::kBroadcast},
    {"mscclpp", "executionKernel*", CollectiveType::kUnknown},
    // XLA's own
    {"", "AllReduceKernelImpl", CollectiveType::kAllReduce},
    // TensorRT-LLM and FlashInfer
    {"", "allreduce_fusion_kernel*", CollectiveType::kAllReduce},
    {"", "moereduce_allreduce_fusion_kernel*", CollectiveType::kAllReduce},
    {"", "moefinalize_allreduce_fusion_kernel*", CollectiveType::kAllReduce},
    {"", "lowPrecisionTwoShotAllReduceKernel", CollectiveType::kAllReduce},
    {"", "lowPrecisionTwoShotHierAllReduceKernel", CollectiveType::kAllReduce},
    {"", "oneShotAllReduceKernel", CollectiveType::kAllReduce},
    {"", "twoShotAllReduceKernel", CollectiveType::kAllReduce},
    {"", "oneshotAllreduceFusionKernel", CollectiveType::kAllReduce},
    {"", "twoshotAllreduceKernel", CollectiveType::kAllReduce},
    {"", "moeA2ADispatchKernel", CollectiveType::kAllToAll},
    {"", "moeA2ACombineKernel", CollectiveType::kAllToAll},
    // TransformerEngine's overlap: all-gathers, reduce-scatters, pieces of rings
    {"", "userbuffers_fp16_sum_inplace_gpu_*", CollectiveType::kUnknown},
    {"", "kuserbuffers_push*", CollectiveType::kUnknown},
    // DeepEP (deep_ep, dpsk::ep), and its hybrid mode
    {"ep::intranode", "dispatch", CollectiveType::kAllToAll},
    {"ep::intranode", "combine", CollectiveType::kAllToAll},
    {"ep::intranode", "notify_dispatch", CollectiveType::kAllToAll},
    {"ep::intranode", "cached_notify*", CollectiveType::kBarrier},
    {"ep::intranode", "barrier", CollectiveType::kBarrier},
    {"ep::internode", "dispatch", CollectiveType::kAllToAll},
    {"ep::internode", "combine", CollectiveType::kAllToAll},
    {"ep::internode", "notify_dispatch", CollectiveType::kAllToAll},
    {"ep::internode", "cached_notify*", CollectiveType::kBarrier},
    {"ep::internode_ll", "dispatch", CollectiveType::kAllToAll},
    {"ep::internode_ll", "combine", CollectiveType::kAllToAll},
    {"hybrid_ep", "dispatch_kernel", CollectiveType::kAllToAll},
    {"hybrid_ep", "combine_kernel", CollectiveType::kAllToAll},
    {"hybrid_ep", "device_sync_kernel", CollectiveType::kBarrier},
    // MORI
    {"", "EpDispatch*", CollectiveType::kAllToAll},
    {"", "EpCombine*", CollectiveType::kAllToAll},
});

// A kernel's name as the tables have it: mangled ones are decoded.
class WrittenName {
 public:
  explicit WrittenName(std::string_view kernel) : name_(kernel) {
    if (kernel.starts_with("_Z")) decoded_ = MangledFunctionPath(kernel);
    if (decoded_.empty() && kernel.ends_with(".kd")) decoded_ = DemangledName(kernel);
    if (!decoded_.empty()) name_ = decoded_;
  }
  WrittenName(const WrittenName&) = delete;
  WrittenName& operator=(const WrittenName&) = delete;
  std::string_view text() const { return name_; }

 private:
  std::string decoded_;
  std::string_view name_;
};

// "a::b::c" of "void (anonymous namespace)::a::b::c<int>(float*)", with what stands before it.
std::string_view WithoutParameters(std::string_view kernel) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  size_t end = kernel.find_first_of("<(");
  while (end != std::string_view::npos && kernel.substr(end).starts_with(kAnonymous)) {
    end = kernel.find_first_of("<(", end + kAnonymous.size());
  }
  return kernel.substr(0, end);
}

bool IsNamed(std::string_view function, std::string_view name) {
  if (!name.ends_with('*')) return function == name;
  name.remove_suffix(1);
  return function.starts_with(name);
}

const CommFunction* FindCommFunction(std::string_view kernel) {
  std::string_view rest = WithoutParameters(kernel);
  const size_t end = rest.find_last_of(": ");
  const std::string_view function = end == rest.npos ? rest : rest.substr(end + 1);
  rest = rest.substr(0, end == rest.npos ? 0 : end);
  if (rest.ends_with(':')) rest.remove_suffix(1);
  const std::string_view space = rest.substr(rest.find_last_of(' ') + 1);
  const auto row = std::ranges::find_if(kCommFunctions, [&](const CommFunction& known) {
    return IsNamed(function, known.name) && space.ends_with(known.space);
  });
  return row == kCommFunctions.end() ? nullptr : &*row;
}

bool IsNcclKernel(std::string_view name) {
  return std::ranges::any_of(kCommKernels,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

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

// Of a tensor of these sizes; nullopt if they are none.
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
    // The rest says more of the group than of the node: the group takes what it can, and the node
    // keeps the words.
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

bool IsCommKernel(std::string_view name) {
  const WrittenName written(name);
  return IsNcclKernel(written.text()) || FindCommFunction(written.text()) != nullptr;
}

bool SpeaksOfCommunication(std::string_view kernel) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"allreduce", "all_reduce", "allgather", "all_gather", "alltoall", "all_to_all",
       "reducescatter", "reduce_scatter", "cross_device", "nccl", "rccl", "msccl", "shmem"});
  const WrittenName written(kernel);
  const std::string_view function = WithoutParameters(written.text());
  // The compiler names kernels after all that is fused in them: what follows a collective, too.
  if (function.starts_with("triton_")) return false;
  std::string lower(function);
  for (char& c : lower) c = Lower(c);
  return std::ranges::any_of(kWords,
                             [&](std::string_view word) { return lower.find(word) != lower.npos; });
}

CollectiveType CollectiveOfKernel(std::string_view name) {
  const WrittenName written(name);
  const CommFunction* function =
      IsNcclKernel(written.text()) ? nullptr : FindCommFunction(written.text());
  if (function != nullptr) return function->type;
  return CollectiveFromName(written.text()).value_or(CollectiveType::kUnknown);
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
