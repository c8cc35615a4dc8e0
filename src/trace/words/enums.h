#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// The closed vocabularies of a trace, each with the one table that names its values.
namespace etude {

// What a node stands for.
enum class NodeKind : uint8_t {
  kUnknown,     // the file does not say, or says what we do not know
  kProcess,     // the root of a host trace
  kThread,      // the root of one thread's operators
  kOperator,    // an operator of the framework: it has a schema, or is known to run as one
  kLabel,       // a named region: user annotation, autograd node, module, step mark
  kRuntime,     // a call into the device's runtime or driver
  kKernel,      // work on a device
  kMemcpy,      // a copy by a device's copy engine
  kMemset,      // a fill by a device's copy engine
  kSync,        // a wait between streams, events and host
  kCollective,  // a collective over a process group
  kSend,        // point to point, sending side
  kRecv,        // point to point, receiving side
  kMemLoad,     // a load from (remote) memory
  kMemStore,    // a store to (remote) memory
  kCompute,     // computation of unstated nature (Chakra COMP without a side)
  kMetadata,    // carries facts (process groups), no work
};

// Collectives, sends and receives.
constexpr bool IsCommunication(NodeKind kind) {
  return kind == NodeKind::kCollective || kind == NodeKind::kSend || kind == NodeKind::kRecv;
}

// Where a node runs.
enum class Place : uint8_t { kUnknown, kHost, kDevice };

// Why a node waits for another.
enum class DepKind : uint8_t {
  kControl,  // order demanded by the program: caller before callee, issue order
  kData,     // the node reads what the other wrote, or a tool said it must follow
  kSync,     // synchronisation between streams, threads, host and device
};

// Collectives in the vocabulary of c10d and Chakra.
enum class CollectiveType : uint8_t {
  kUnknown,
  kAllReduce,
  kReduce,
  kAllGather,
  kGather,
  kScatter,
  kBroadcast,
  kAllToAll,
  kReduceScatter,
  kReduceScatterBlock,
  kBarrier,
};

// Element types of tensors.
enum class DType : uint8_t {
  kUnknown,
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex32,
  kComplex64,
  kComplex128,
  kFloat8E4M3Fn,
  kFloat8E5M2,
  kFloat8E4M3Fnuz,
  kFloat8E5M2Fnuz,
  kFloat8E8M0Fnu,
  kQInt8,
  kQUInt8,
  kQInt32,
};

std::string_view Name(NodeKind kind);
std::string_view Name(Place place);
std::string_view Name(DepKind kind);
std::string_view Name(CollectiveType type);
std::string_view Name(DType dtype);

// The collective whose Name is `name`; nullopt if there is none.
std::optional<CollectiveType> CollectiveFromOwnName(std::string_view name);

inline constexpr size_t kNodeKindCount = static_cast<size_t>(NodeKind::kMetadata) + 1;
inline constexpr size_t kPlaceCount = static_cast<size_t>(Place::kDevice) + 1;
inline constexpr size_t kDepKindCount = static_cast<size_t>(DepKind::kSync) + 1;
inline constexpr size_t kCollectiveTypeCount = static_cast<size_t>(CollectiveType::kBarrier) + 1;

// Bytes of one element; nullopt for kUnknown.
std::optional<int64_t> ElementBytes(DType dtype);
// Whether its values are whole numbers: bool, kUnknown and quantised types are not such.
bool IsInteger(DType dtype);
// Whether they are floating-point numbers, 8-bit ones too; complex types are not such.
bool IsFloating(DType dtype);
// The type PyTorch writes as "float", "long int", "c10::BFloat16" …, also inside "Tensor(…)" and as
// Kineto and NCCL metadata spell it ("Float", "BFloat16"); kUnknown for everything else.
DType DTypeFromText(std::string_view text);
// That type as PyTorch's observer writes it: "c10::BFloat16"; "" of kUnknown.
std::string_view TypeText(DType dtype);
// PyTorch's number of a scalar type (c10::ScalarType), as operators take it in `dtype` arguments;
// -1 for kUnknown.
int ScalarTypeNumber(DType dtype);
DType DTypeFromScalarType(int64_t number);

// The collective that a name speaks of ("allreduce_", "nccl:all_reduce",
// "ncclDevKernel_AllGather…", "c10d::_allgather_base_"), by the one table of names; nullopt if the
// name speaks of none. Meant for names of communication nodes only: "aten::scatter" would do as
// well as "c10d::scatter_".
std::optional<CollectiveType> CollectiveFromName(std::string_view name);
// kSend or kRecv where the name says so ("nccl:send", "recv_", "isend"), else nullopt.
std::optional<NodeKind> PointToPointFromName(std::string_view name);

// Whether one of the ranks gives or gets what the others do not.
bool HasRoot(CollectiveType type);
// Whether that one gives.
bool IsFromRoot(CollectiveType type);

}  // namespace etude
