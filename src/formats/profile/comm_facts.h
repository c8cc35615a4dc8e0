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

// What PyTorch says of a communication, in the words of its execution trace (attributes of
// record_param_comms) and of its profiler (args of an event).
enum class CommField : uint8_t {
  kName,  // of the collective
  kDType,
  kInElements,  // of this rank
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
  // What only Etude's own linked traces and timelines say.
  kType,  // Name(CollectiveType)
  kBytes,
  kRoot,
  kTag,
  kPriority,
};
inline constexpr size_t kCommFieldCount = static_cast<size_t>(CommField::kPriority) + 1;

struct CommFieldInfo {
  CommField field;
  std::string_view attr;  // in execution traces; "" if never there
  std::string_view arg;   // in Kineto traces; "" if never there
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
  CollectiveType type = CollectiveType::kUnknown;  // where the name does not say it
  std::optional<int64_t> bytes;                    // where elements and type do not say it
  std::optional<int64_t> tag;
  std::optional<int64_t> priority;
};

// Takes in one fact: `text` is the unescaped text of a JSON string or the token of a number.
// Returns true if MakeComm says all of it, so that it need not be kept elsewhere.
bool SetCommFact(CommFacts& facts, CommField field, std::string_view text);
// Takes from `others` what `facts` do not say.
void FillGaps(CommFacts& facts, const CommFacts& others);

// Takes in the tensors that a backend's label has in a profile: `dims` is JSON as
// [[8, 1024], [[4], [2, 2]]], `types` as ["float", "TensorList"]. Nothing if it is of other form.
void SetTensors(CommFacts& facts, std::string_view dims, std::string_view types);

Comm MakeComm(TraceBuilder& builder, const CommFacts& facts);

// Where a rank puts nothing into a scatter: `bytes` is what its root puts in, of which each of so
// many ranks receives its part.
void SizeScatter(Comm& comm, std::optional<int64_t> ranks);
// The rank in the job of a member of the group (0: its first), if the facts tell it.
std::optional<int64_t> RankOfMember(const CommFacts& facts, int64_t member);
// The process group that the facts speak of, if they name one, goes to the trace's groups.
void AddGroupOf(TraceBuilder& builder, const CommFacts& facts);

// The kind of the node that stands for a communication of this name: "allreduce" is a kCollective,
// "send" a kSend, "wait" a kSync, "init" kMetadata.
NodeKind KindOfCommunication(std::string_view name);
// "[1, 2]" or "1,2"; nullopt for anything else, such as a list that was cut ("[1, 2, ...]").
std::optional<std::vector<int64_t>> ParseIntList(std::string_view text);

}  // namespace etude
