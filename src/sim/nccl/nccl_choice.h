#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "src/base/result.h"
#include "src/sim/nccl/nccl_machine.h"
#include "src/trace/words/enums.h"

namespace etude {

// Algorithms and protocols in NCCL's order: of equal times, the first wins.
enum class NcclAlgorithm : uint8_t {
  kTree,
  kRing,
  kCollNetDirect,
  kCollNetChain,
  kNvls,
  kNvlsTree,
  kPat,
};
enum class NcclProtocol : uint8_t { kLl, kLl128, kSimple };
constexpr size_t kNcclAlgorithms = 7;
constexpr size_t kNcclProtocols = 3;

std::string_view NameOf(NcclAlgorithm algorithm);
std::string_view NameOf(NcclProtocol protocol);

// A collective of `ranks`, spread equally over `nodes`.
struct NcclCollective {
  CollectiveType type = CollectiveType::kAllReduce;
  int64_t ranks = 0;
  int64_t nodes = 0;
  int64_t bytes = 0;  // input of each rank; of the root for a broadcast
};

struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::kRing;
  NcclProtocol protocol = NcclProtocol::kSimple;
  float micros = 0;
  // Times by algorithm and protocol, in µs; nullopt if NCCL does not use this pair here.
  std::array<std::array<std::optional<float>, kNcclProtocols>, kNcclAlgorithms> candidates = {};
};

// Returns NCCL 2.30's choice by its cost model (docs/models/nccl.md). Rounds like NCCL, to floats.
// kBadInput for types that NCCL has no times of, and for groups without graphs.
Result<NcclChoice> ChooseNccl(const NcclMachine& machine, const NcclCollective& collective);

}  // namespace etude
