#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// Closed vocabularies of a trace, each with one table that names its values.
namespace etude {

// Kind of a node.
enum class NodeKind : uint8_t {
  kUnknown,     // missing or unknown in the file
  kProcess,     // root of a host trace
  kThread,      // root of one thread's operators
  kOperator,    // operator of the framework: has a schema, or is known to run as one
  kLabel,       // named region: user annotation, autograd node, module, step mark
  kRuntime,     // call to the device's runtime or driver
  kKernel,      // work on a device
  kMemcpy,      // copy by a device's copy engine
  kMemset,      // fill by a device's copy engine
  kSync,        // wait between streams, events and host
  kCollective,  // collective over a process group
  kSend,        // point to point, sending side
  kRecv,        // point to point, receiving side
  kMemLoad,     // load from (remote) memory
  kMemStore,    // store to (remote) memory
  kCompute,     // computation of unstated kind (Chakra COMP without a side)
  kMetadata,    // facts (process groups), no work
};

// Returns true for collectives, sends and receives.
constexpr bool IsCommunication(NodeKind kind) {
  return kind == NodeKind::kCollective || kind == NodeKind::kSend || kind == NodeKind::kRecv;
}

// Location where a node runs.
enum class Place : uint8_t { kUnknown, kHost, kDevice };

// Reason why a node waits for another.
enum class DepKind : uint8_t {
  kControl,  // program order: caller before callee, issue order
  kData,     // the node reads data that the other wrote, or a tool stated the order
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

// Returns the collective whose Name is `name`; nullopt if there is none.
std::optional<CollectiveType> CollectiveFromOwnName(std::string_view name);

inline constexpr size_t kNodeKindCount = static_cast<size_t>(NodeKind::kMetadata) + 1;
inline constexpr size_t kPlaceCount = static_cast<size_t>(Place::kDevice) + 1;
inline constexpr size_t kDepKindCount = static_cast<size_t>(DepKind::kSync) + 1;
inline constexpr size_t kCollectiveTypeCount = static_cast<size_t>(CollectiveType::kBarrier) + 1;

// Returns the bytes of one element; nullopt for kUnknown.
std::optional<int64_t> ElementBytes(DType dtype);
// Returns true for whole numbers, but not for bool, kUnknown and quantised types.
bool IsInteger(DType dtype);
// Returns true for floating-point types, including 8-bit ones, but not for complex types.
bool IsFloating(DType dtype);
// Returns the type that PyTorch writes as "float", "long int", "c10::BFloat16" …, also inside
// "Tensor(…)" and as Kineto and NCCL metadata spell it ("Float", "BFloat16"); kUnknown for other
// text.
DType DTypeFromText(std::string_view text);
// Returns the type as PyTorch's observer writes it: "c10::BFloat16"; "" for kUnknown.
std::string_view TypeText(DType dtype);
// Returns PyTorch's number of a scalar type (c10::ScalarType), as in `dtype` arguments of
// operators; -1 for kUnknown.
int ScalarTypeNumber(DType dtype);
DType DTypeFromScalarType(int64_t number);

// Returns the collective in a name ("allreduce_", "nccl:all_reduce", "ncclDevKernel_AllGather…",
// "c10d::_allgather_base_"), by the one table of names; nullopt if there is none. For names of
// communication nodes only: "aten::scatter" matches just as "c10d::scatter_" does.
std::optional<CollectiveType> CollectiveFromName(std::string_view name);
// Returns kSend or kRecv for point-to-point names ("nccl:send", "recv_", "isend"), else nullopt.
std::optional<NodeKind> PointToPointFromName(std::string_view name);

// Returns true for collectives with a root, which provides or receives the data.
bool HasRoot(CollectiveType type);
// Returns true if the root provides the data.
bool IsFromRoot(CollectiveType type);

}  // namespace etude
