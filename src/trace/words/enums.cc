#include "src/trace/words/enums.h"

#include <algorithm>
#include <array>
#include <string>

#include "src/base/text/ascii.h"

namespace etude {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  char values;  // 'i'ntegers, 'f'loating point, 'c'omplex, '-' for others
  int64_t bytes;
  int scalar_type;  // c10::ScalarType
  // Other spellings: C++ names as written by PyTorch's observer, and names of ScalarType.
  std::array<std::string_view, 4> spellings;
};

constexpr auto kDTypes = [] {
  using enum DType;
  return std::to_array<DTypeRow>({
      {kUInt8, "uint8", 'i', 1, 0, {"unsigned char", "Byte"}},
      {kInt8, "int8", 'i', 1, 1, {"signed char", "Char", "char"}},
      {kInt16, "int16", 'i', 2, 2, {"short", "short int", "Short"}},
      {kInt32, "int32", 'i', 4, 3, {"int", "Int"}},
      {kInt64, "int64", 'i', 8, 4, {"long int", "long", "Long", "long long"}},
      {kFloat16, "float16", 'f', 2, 5, {"c10::Half", "Half", "half"}},
      {kFloat32, "float32", 'f', 4, 6, {"float", "Float"}},
      {kFloat64, "float64", 'f', 8, 7, {"double", "Double"}},
      {kComplex32, "complex32", 'c', 4, 8, {"c10::complex<c10::Half>", "ComplexHalf"}},
      {kComplex64, "complex64", 'c', 8, 9, {"c10::complex<float>", "ComplexFloat"}},
      {kComplex128, "complex128", 'c', 16, 10, {"c10::complex<double>", "ComplexDouble"}},
      {kBool, "bool", '-', 1, 11, {"Bool"}},
      {kQInt8, "qint8", '-', 1, 12, {"c10::qint8", "QInt8"}},
      {kQUInt8, "quint8", '-', 1, 13, {"c10::quint8", "QUInt8"}},
      {kQInt32, "qint32", '-', 4, 14, {"c10::qint32", "QInt32"}},
      {kBFloat16, "bfloat16", 'f', 2, 15, {"c10::BFloat16", "BFloat16"}},
      {kFloat8E5M2, "float8_e5m2", 'f', 1, 23, {"c10::Float8_e5m2", "Float8_e5m2"}},
      {kFloat8E4M3Fn, "float8_e4m3fn", 'f', 1, 24, {"c10::Float8_e4m3fn", "Float8_e4m3fn"}},
      {kFloat8E5M2Fnuz, "float8_e5m2fnuz", 'f', 1, 25, {"c10::Float8_e5m2fnuz", "Float8_e5m2fnuz"}},
      {kFloat8E4M3Fnuz, "float8_e4m3fnuz", 'f', 1, 26, {"c10::Float8_e4m3fnuz", "Float8_e4m3fnuz"}},
      {kUInt16, "uint16", 'i', 2, 27, {"unsigned short", "short unsigned int", "UInt16"}},
      {kUInt32, "uint32", 'i', 4, 28, {"unsigned int", "unsigned", "UInt32"}},
      {kUInt64, "uint64", 'i', 8, 29, {"unsigned long", "long unsigned int", "UInt64"}},
      {kFloat8E8M0Fnu, "float8_e8m0fnu", 'f', 1, 44, {"c10::Float8_e8m0fnu", "Float8_e8m0fnu"}},
  });
}();

const DTypeRow* FindDType(DType dtype) {
  const auto it = std::ranges::find(kDTypes, dtype, &DTypeRow::dtype);
  return it == kDTypes.end() ? nullptr : &*it;
}

// Returns the name in lower case, without '_', '-' and blanks, after the last "::" or ':', without
// C++ parameters.
std::string Normalised(std::string_view name) {
  name = name.substr(0, name.find_first_of("(<"));
  if (const size_t colon = name.rfind(':'); colon != std::string_view::npos) {
    name.remove_prefix(colon + 1);
  }
  std::string out;
  for (const char c : name) {
    if (c == '_' || c == '-' || c == ' ') continue;
    out.push_back(Lower(c));
  }
  return out;
}

struct CollectiveRow {
  std::string_view text;  // normalised prefix of the name
  CollectiveType type;
};

// Longer prefixes precede the shorter ones that they contain.
constexpr auto kCollectives = std::to_array<CollectiveRow>({
    {"allreduce", CollectiveType::kAllReduce},
    {"reducescatter", CollectiveType::kReduceScatter},
    {"reduce", CollectiveType::kReduce},
    {"allgather", CollectiveType::kAllGather},
    {"gather", CollectiveType::kGather},
    {"scatter", CollectiveType::kScatter},
    {"broadcast", CollectiveType::kBroadcast},
    {"alltoall", CollectiveType::kAllToAll},
    {"barrier", CollectiveType::kBarrier},
    {"monitoredbarrier", CollectiveType::kBarrier},
});

// Returns the part of a normalised name after the prefix of NCCL, RCCL or HCCL.
std::string_view AfterKernelPrefix(std::string_view text) {
  for (const std::string_view prefix :
       {"nccldevkernel", "ncclsymdevkernel", "ncclsymkdevkernel", "ncclkernel", "nccl", "hcom"}) {
    if (text.starts_with(prefix)) return text.substr(prefix.size());
  }
  return text;
}

}  // namespace

std::string_view Name(NodeKind kind) {
  switch (kind) {
    case NodeKind::kUnknown: return "unknown";
    case NodeKind::kProcess: return "process";
    case NodeKind::kThread: return "thread";
    case NodeKind::kOperator: return "operator";
    case NodeKind::kLabel: return "label";
    case NodeKind::kRuntime: return "runtime";
    case NodeKind::kKernel: return "kernel";
    case NodeKind::kMemcpy: return "memcpy";
    case NodeKind::kMemset: return "memset";
    case NodeKind::kSync: return "sync";
    case NodeKind::kCollective: return "collective";
    case NodeKind::kSend: return "send";
    case NodeKind::kRecv: return "recv";
    case NodeKind::kMemLoad: return "mem_load";
    case NodeKind::kMemStore: return "mem_store";
    case NodeKind::kCompute: return "compute";
    case NodeKind::kMetadata: return "metadata";
  }
  return "unknown";
}

std::string_view Name(Place place) {
  switch (place) {
    case Place::kUnknown: return "unknown";
    case Place::kHost: return "host";
    case Place::kDevice: return "device";
  }
  return "unknown";
}

std::string_view Name(DepKind kind) {
  switch (kind) {
    case DepKind::kControl: return "control";
    case DepKind::kData: return "data";
    case DepKind::kSync: return "sync";
  }
  return "unknown";
}

std::string_view Name(CollectiveType type) {
  switch (type) {
    case CollectiveType::kUnknown: return "unknown";
    case CollectiveType::kAllReduce: return "all_reduce";
    case CollectiveType::kReduce: return "reduce";
    case CollectiveType::kAllGather: return "all_gather";
    case CollectiveType::kGather: return "gather";
    case CollectiveType::kScatter: return "scatter";
    case CollectiveType::kBroadcast: return "broadcast";
    case CollectiveType::kAllToAll: return "all_to_all";
    case CollectiveType::kReduceScatter: return "reduce_scatter";
    case CollectiveType::kReduceScatterBlock: return "reduce_scatter_block";
    case CollectiveType::kBarrier: return "barrier";
  }
  return "unknown";
}

std::string_view Name(DType dtype) {
  const DTypeRow* row = FindDType(dtype);
  return row == nullptr ? "unknown" : row->name;
}

std::optional<CollectiveType> CollectiveFromOwnName(std::string_view name) {
  for (size_t i = 0; i < kCollectiveTypeCount; ++i) {
    const auto type = static_cast<CollectiveType>(i);
    if (Name(type) == name) return type;
  }
  return std::nullopt;
}

std::optional<int64_t> ElementBytes(DType dtype) {
  const DTypeRow* row = FindDType(dtype);
  if (row == nullptr) return std::nullopt;
  return row->bytes;
}

bool IsInteger(DType dtype) {
  const DTypeRow* row = FindDType(dtype);
  return row != nullptr && row->values == 'i';
}

bool IsFloating(DType dtype) {
  const DTypeRow* row = FindDType(dtype);
  return row != nullptr && row->values == 'f';
}

DType DTypeFromText(std::string_view text) {
  if (text.starts_with("Tensor(") && text.ends_with(")")) {
    text = text.substr(7, text.size() - 8);
  }
  if (text.empty()) return DType::kUnknown;
  for (const DTypeRow& row : kDTypes) {
    if (row.name == text) return row.dtype;
    if (std::ranges::find(row.spellings, text) != row.spellings.end()) return row.dtype;
  }
  return DType::kUnknown;
}

std::string_view TypeText(DType dtype) {
  const DTypeRow* row = FindDType(dtype);
  return row == nullptr ? std::string_view() : row->spellings.front();
}

int ScalarTypeNumber(DType dtype) {
  const DTypeRow* row = FindDType(dtype);
  return row == nullptr ? -1 : row->scalar_type;
}

DType DTypeFromScalarType(int64_t number) {
  for (const DTypeRow& row : kDTypes) {
    if (row.scalar_type == number) return row.dtype;
  }
  return DType::kUnknown;
}

std::optional<CollectiveType> CollectiveFromName(std::string_view name) {
  const std::string normalised = Normalised(name);
  const std::string_view text = AfterKernelPrefix(normalised);
  for (const CollectiveRow& row : kCollectives) {
    if (text.starts_with(row.text)) return row.type;
  }
  return std::nullopt;
}

std::optional<NodeKind> PointToPointFromName(std::string_view name) {
  const std::string text = Normalised(name);
  for (const std::string_view send : {"send", "isend"}) {
    if (text == send) return NodeKind::kSend;
  }
  for (const std::string_view recv : {"recv", "irecv", "recvanysource"}) {
    if (text == recv) return NodeKind::kRecv;
  }
  return std::nullopt;
}

bool HasRoot(CollectiveType type) {
  switch (type) {
    case CollectiveType::kReduce:
    case CollectiveType::kGather:
    case CollectiveType::kScatter:
    case CollectiveType::kBroadcast: return true;
    case CollectiveType::kUnknown:
    case CollectiveType::kAllReduce:
    case CollectiveType::kAllGather:
    case CollectiveType::kAllToAll:
    case CollectiveType::kReduceScatter:
    case CollectiveType::kReduceScatterBlock:
    case CollectiveType::kBarrier: return false;
  }
  return false;
}

bool IsFromRoot(CollectiveType type) {
  return type == CollectiveType::kBroadcast || type == CollectiveType::kScatter;
}

}  // namespace etude
