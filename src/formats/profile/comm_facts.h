#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"

namespace etude {

// Facts that PyTorch records about a communication, in its execution trace (attributes of
// record_param_comms) and in its profiler (args of an event).
enum class CommField : uint8_t {
  kName,  // of the collective
  kDType,
  kInElements,  // this rank's input
  kOutElements,
  kInSplit,  // text of a list
  kOutSplit,
  kRankStart,  // the group's first rank in the job
  kRankStride,
  kGroup,  // name of the process group
  kGroupDescription,
  kGroupSize,
  kGroupRanks,  // text of a list
  kSource,      // rank
  kDestination,
  // Fields that only Etude's own linked traces and timelines contain.
  kType,  // Name(CollectiveType)
  kBytes,
  kRoot,
  kTag,
  kPriority,
};
inline constexpr size_t kCommFieldCount = static_cast<size_t>(CommField::kPriority) + 1;

struct CommFieldInfo {
  CommField field;
  std::string_view attr;  // in execution traces; "" if never present
  std::string_view arg;   // in Kineto traces; "" if never present
};
const CommFieldInfo& Info(CommField field);
std::optional<CommField> CommFieldOfAttr(std::string_view attr);
std::optional<CommField> CommFieldOfArg(std::string_view arg);

// The facts of one communication before they become a Comm. Views must outlive it.
struct CommFacts {
  bool any = false;
  std::string_view name;
  DType dtype = DType::kUnknown;
  std::optional<int64_t> in_elements;
  std::optional<int64_t> out_elements;
  std::vector<int64_t> in_split;
  std::vector<int64_t> out_split;
  std::optional<int64_t> rank_start;
  std::optional<int64_t> rank_stride;
  std::string_view group;
  std::string_view group_description;
  std::optional<int64_t> group_size;
  std::optional<std::vector<int64_t>> group_ranks;
  std::optional<int64_t> source;
  std::optional<int64_t> destination;
  std::optional<int64_t> root;
  CollectiveType type = CollectiveType::kUnknown;  // if the name does not determine it
  std::optional<int64_t> bytes;                    // if elements and type do not determine it
  std::optional<int64_t> tag;
  std::optional<int64_t> priority;
};

// Adds one fact. `text` is the unescaped text of a JSON string or the token of a number. Returns
// true if MakeComm preserves the fact completely, so that it need not be kept elsewhere.
bool SetCommFact(CommFacts& facts, CommField field, std::string_view text);
// Copies from `others` the facts that `facts` lack.
void FillGaps(CommFacts& facts, const CommFacts& others);

// Adds the tensors of a backend's label in a profile. `dims` is JSON such as [[8, 1024], [[4], [2,
// 2]]], and `types` JSON such as ["float", "TensorList"]. Does nothing if they have another form.
void SetTensors(CommFacts& facts, std::string_view dims, std::string_view types);

Comm MakeComm(TraceBuilder& builder, const CommFacts& facts);

// Sets the sizes of a scatter for a rank without input. `bytes` is the input of the root, of which
// each of `ranks` ranks receives an equal part.
void SizeScatter(Comm& comm, std::optional<int64_t> ranks);
// Returns the rank in the job of a member of the group (0: its first), if the facts determine it.
std::optional<int64_t> RankOfMember(const CommFacts& facts, int64_t member);
// Adds the process group of the facts, if they name one, to the groups of the trace.
void AddGroupOf(TraceBuilder& builder, const CommFacts& facts);

// Returns the kind of the node for a communication with this name: kCollective for "allreduce",
// kSend for "send", kSync for "wait", kMetadata for "init".
NodeKind KindOfCommunication(std::string_view name);
// Parses "[1, 2]" or "1,2". Returns nullopt for anything else, such as a truncated list ("[1, 2,
// ...]").
std::optional<std::vector<int64_t>> ParseIntList(std::string_view text);

}  // namespace etude
