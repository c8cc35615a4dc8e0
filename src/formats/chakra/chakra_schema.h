#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/trace/words/enums.h"

// Chakra's protobuf schema (ChakraProtoMsg, unchanged from 0.0.4 to 1.0.0), and the attributes
// known to Etude. Reader, writer and docs/formats/chakra.md use only these tables.
namespace etude::chakra {

enum class MetadataField : uint32_t { kVersion = 1, kAttr = 2 };

enum class NodeField : uint32_t {
  kId = 1,
  kName = 2,
  kType = 3,
  kCtrlDeps = 4,
  kDataDeps = 5,
  kStartMicros = 6,
  kDurationMicros = 7,
  kInputs = 8,
  kOutputs = 9,
  kAttr = 10,
};

enum class IoField : uint32_t { kValues = 1, kShapes = 2, kTypes = 3 };

enum class AttrField : uint32_t { kName = 1, kDocString = 2 };

// Types of an attribute's value, as field numbers of AttributeProto. A list is a message of a
// repeated field 1; its number is that of its element plus one.
enum class ValueType : uint32_t {
  kNone = 0,  // attribute without a value
  kDouble = 3,
  kFloat = 5,
  kInt32 = 7,
  kInt64 = 9,
  kInt64List = 10,
  kUint32 = 11,
  kUint64 = 13,
  kUint64List = 14,
  kSint32 = 15,
  kSint64 = 17,
  kFixed32 = 19,
  kFixed64 = 21,
  kSfixed32 = 23,
  kSfixed64 = 25,
  kBool = 27,
  kString = 29,
  kBytesList = 32,  // the last one
};

// Trace kinds for Chakra types; kUnknown if a trace has none (the field is then kept unchanged).
// Types 8 to 10 are reserved by the storage proposal (mlcommons/chakra #216).
struct NodeTypeRow {
  uint32_t number;
  std::string_view name;
  NodeKind kind;
};
inline constexpr auto kNodeTypes = std::to_array<NodeTypeRow>({
    {0, "INVALID_NODE", NodeKind::kUnknown},
    {1, "METADATA_NODE", NodeKind::kMetadata},
    {2, "MEM_LOAD_NODE", NodeKind::kMemLoad},
    {3, "MEM_STORE_NODE", NodeKind::kMemStore},
    {4, "COMP_NODE", NodeKind::kCompute},
    {5, "COMM_SEND_NODE", NodeKind::kSend},
    {6, "COMM_RECV_NODE", NodeKind::kRecv},
    {7, "COMM_COLL_NODE", NodeKind::kCollective},
    {8, "STORAGE_NODE", NodeKind::kUnknown},
    {9, "BATCH_NODE", NodeKind::kUnknown},
    {10, "CHECKPOINT_NODE", NodeKind::kUnknown},
});
inline constexpr uint32_t kInvalidNode = 0;
inline constexpr uint32_t kCompNode = 4;

struct CommTypeRow {
  int64_t number;
  std::string_view name;
  CollectiveType type;
};
inline constexpr auto kCommTypes = std::to_array<CommTypeRow>({
    {0, "ALL_REDUCE", CollectiveType::kAllReduce},
    {1, "REDUCE", CollectiveType::kReduce},
    {2, "ALL_GATHER", CollectiveType::kAllGather},
    {3, "GATHER", CollectiveType::kGather},
    {4, "SCATTER", CollectiveType::kScatter},
    {5, "BROADCAST", CollectiveType::kBroadcast},
    {6, "ALL_TO_ALL", CollectiveType::kAllToAll},
    {7, "REDUCE_SCATTER", CollectiveType::kReduceScatter},
    {8, "REDUCE_SCATTER_BLOCK", CollectiveType::kReduceScatterBlock},
    {9, "BARRIER", CollectiveType::kBarrier},
});

// Attributes of a node with a column in a Trace, in the order in which they are written.
enum class Attr : uint8_t {
  // Written by chakra_converter.
  kRfId,
  kFwParent,
  kSeqId,
  kScope,
  kTid,
  kFwTid,
  kOpSchema,
  kIsCpuOp,
  kStream,
  kCommType,
  kCommSize,
  kPgName,
  // In addition read by simulators.
  kCommPriority,
  kCommSrc,
  kCommDst,
  kCommTag,
  kCommRoot,
  // In addition in PyTorch's own trace, under the same names.
  kKernelBackend,
  kKernelFile,
  kTensorRange,
  kCollectiveName,
  kDtype,
  kInElements,
  kOutElements,
  kInSplit,
  kOutSplit,
  kPgSize,
  // In device traces.
  kDevice,
  kCorrelation,
  kExternalId,
  kPid,
  kThread,
  // Etude's own, for facts that the format cannot hold.
  kKind,
  kParent,
  kSyncDeps,
  kStartNs,
  kDurationNs,
  kInclusiveNs,
  kInputStrides,
  kOutputStrides,
  kIndexStatistics,
  kIndexValues,
};

struct AttrRow {
  Attr attr;
  std::string_view name;
  ValueType type;  // type when writing; other whole-number types are read too
  std::string_view help;
};
inline constexpr auto kAttrs = std::to_array<AttrRow>({
    {Attr::kRfId, "rf_id", ValueType::kInt64, "PyTorch's record function id"},
    {Attr::kFwParent, "fw_parent", ValueType::kInt64, "PyTorch's forward parent"},
    {Attr::kSeqId, "seq_id", ValueType::kInt64, "autograd sequence number, -1: none"},
    {Attr::kScope, "scope", ValueType::kInt64, "record scope: 0 function, 1 backward, 7 user"},
    {Attr::kTid, "tid", ValueType::kInt64, "number of the host thread, as PyTorch counts them"},
    {Attr::kFwTid, "fw_tid", ValueType::kInt64, "thread of the forward operator"},
    {Attr::kOpSchema, "op_schema", ValueType::kString, "operator schema, \"\": none"},
    {Attr::kIsCpuOp, "is_cpu_op", ValueType::kBool, "runs on the host"},
    {Attr::kStream, "stream", ValueType::kInt64, "device stream; 0 on host nodes of PyTorch"},
    {Attr::kCommType, "comm_type", ValueType::kInt64, "CollectiveCommType"},
    {Attr::kCommSize, "comm_size", ValueType::kInt64, "bytes"},
    {Attr::kPgName, "pg_name", ValueType::kString, "name of the process group"},
    {Attr::kCommPriority, "comm_priority", ValueType::kInt32, "larger goes first"},
    {Attr::kCommSrc, "comm_src", ValueType::kInt32, "rank of the sender"},
    {Attr::kCommDst, "comm_dst", ValueType::kInt32, "rank of the receiver"},
    {Attr::kCommTag, "comm_tag", ValueType::kInt32, "tag of a message"},
    {Attr::kCommRoot, "comm_root", ValueType::kInt32, "root of a rooted collective"},
    {Attr::kKernelBackend, "kernel_backend", ValueType::kString, "compiled kernel: its compiler"},
    {Attr::kKernelFile, "kernel_file", ValueType::kString, "compiled kernel: its source"},
    {Attr::kTensorRange, "tensor_range", ValueType::kString, "range of integer tensors, JSON"},
    {Attr::kCollectiveName, "collective_name", ValueType::kString, "collective as recorded"},
    {Attr::kDtype, "dtype", ValueType::kString, "element type of a collective"},
    {Attr::kInElements, "in_msg_nelems", ValueType::kInt64, "elements put in"},
    {Attr::kOutElements, "out_msg_nelems", ValueType::kInt64, "elements got out"},
    {Attr::kInSplit, "in_split_size", ValueType::kInt64List, "elements put in, per rank"},
    {Attr::kOutSplit, "out_split_size", ValueType::kInt64List, "elements got out, per rank"},
    {Attr::kPgSize, "pg_size", ValueType::kInt64, "ranks of the process group"},
    {Attr::kDevice, "device", ValueType::kInt64, "number of the device"},
    {Attr::kCorrelation, "correlation", ValueType::kInt64, "ties a device op to its launch"},
    {Attr::kExternalId, "external_id", ValueType::kInt64, "Kineto's External id"},
    {Attr::kPid, "etude_process", ValueType::kString, "process, as the device trace names it"},
    {Attr::kThread, "etude_thread", ValueType::kString, "thread, as the device trace names it"},
    {Attr::kKind, "etude_kind", ValueType::kString,
     "kind of node, where type and other attributes do not say it"},
    {Attr::kParent, "etude_parent", ValueType::kBool,
     "whether the first of ctrl_deps is the caller, where the rule does not say so"},
    {Attr::kSyncDeps, "etude_sync_deps", ValueType::kUint64List,
     "which of data_deps are synchronisation"},
    {Attr::kStartNs, "etude_start_ns", ValueType::kInt64, "start, not in whole microseconds"},
    {Attr::kDurationNs, "etude_dur_ns", ValueType::kInt64, "duration, not in whole microseconds"},
    {Attr::kInclusiveNs, "etude_inclusive_ns", ValueType::kInt64,
     "duration with children, where it differs from the duration without"},
    {Attr::kInputStrides, "etude_input_strides", ValueType::kString, "beside inputs.shapes"},
    {Attr::kOutputStrides, "etude_output_strides", ValueType::kString, "beside outputs.shapes"},
    {Attr::kIndexStatistics, "etude_index_statistics", ValueType::kString,
     "statistics of integer tensors, JSON"},
    {Attr::kIndexValues, "etude_index_values", ValueType::kString,
     "elements of integer tensors, JSON"},
});
inline constexpr size_t kAttrCount = kAttrs.size();
inline constexpr const AttrRow& Row(Attr attr) { return kAttrs[static_cast<size_t>(attr)]; }

// Attributes of the GlobalMetadata with a place in a Trace.
enum class GlobalAttr : uint8_t {
  kSchema,
  kPid,
  kTime,
  kStartTs,
  kFinishTs,
  kRank,
  kWorldSize,
  kInclusive,
  kProcessGroups,
};

struct GlobalAttrRow {
  GlobalAttr attr;
  std::string_view name;
  ValueType type;
  std::string_view help;
};
inline constexpr auto kGlobalAttrs = std::to_array<GlobalAttrRow>({
    {GlobalAttr::kSchema, "schema", ValueType::kString, "version of the trace it was made from"},
    {GlobalAttr::kPid, "pid", ValueType::kUint64, "process"},
    {GlobalAttr::kTime, "time", ValueType::kString, "wall clock of the recording"},
    {GlobalAttr::kStartTs, "start_ts", ValueType::kUint64, "the observer's clock, milliseconds"},
    {GlobalAttr::kFinishTs, "finish_ts", ValueType::kUint64, "the observer's clock, milliseconds"},
    {GlobalAttr::kRank, "etude_rank", ValueType::kInt64, "rank in the job"},
    {GlobalAttr::kWorldSize, "etude_world_size", ValueType::kInt64, "ranks of the job"},
    {GlobalAttr::kInclusive, "etude_inclusive", ValueType::kBool,
     "the nodes' durations with children are known too (etude_inclusive_ns)"},
    {GlobalAttr::kProcessGroups, "etude_process_groups", ValueType::kString,
     "JSON list of {pg_name, pg_desc, backend_config, ranks, group_size}"},
});
inline constexpr size_t kGlobalAttrCount = kGlobalAttrs.size();
inline constexpr const GlobalAttrRow& Row(GlobalAttr attr) {
  return kGlobalAttrs[static_cast<size_t>(attr)];
}

// Prefix of string attributes that hold extras from JSON; the key and JSON text follow.
inline constexpr std::string_view kJsonPrefix = "json:";

// Layout of a file's attributes, if it differs from the default order or types, so that the file
// can be written back unchanged. An Extra whose text begins with the tag of this field (a number
// unused in Chakra's messages), then two bytes per attribute: Attr + 1 and its ValueType, or
// kLayoutExtra and 0 for the next one kept as an Extra.
inline constexpr uint32_t kLayoutField = 50001;
inline constexpr uint8_t kLayoutExtra = 0xFF;

}  // namespace etude::chakra
