#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/sim/machine/machine.h"

namespace etude {

// Which other members of a group a member has messages from or to.
enum class AlgorithmReach : uint8_t {
  kNeighbours,   // the next and the last one
  kPowersOfTwo,  // those 1, 2, 4 … away
  kAll,          // all
  kByRoot,       // as the place beside the root says
};

// All that is to be known of a collective algorithm besides what its messages are
// (StreamAlgorithm), which AlgorithmOf in collective_stream.cc gives.
struct AlgorithmInfo {
  CollectiveAlgorithm algorithm;
  std::string_view name;  // in ASTRA-sim's system files, and in tables
  bool in_files = false;  // a system file may choose it; else it is the only one of its collectives
  AlgorithmReach reach = AlgorithmReach::kNeighbours;
  bool needs_power_of_two = false;  // of members
  bool has_window = false;          // a number behind the name: messages on their way at a time
  // Chunks take turns between two of it, and each part of an all-reduce keeps the size of the
  // whole: ranks of a class do not do the same, so each rank is simulated by itself.
  bool alternates = false;

  // Whether ranks that do the same and have partners alike can be simulated as one.
  constexpr bool class_safe() const { return !alternates; }
  bool Fits(int64_t members) const;
};

inline constexpr size_t kAlgorithmCount =
    static_cast<size_t>(CollectiveAlgorithm::kDissemination) + 1;
// One row per CollectiveAlgorithm, in the order of the enumeration.
const std::array<AlgorithmInfo, kAlgorithmCount>& AlgorithmTable();
inline const AlgorithmInfo& Info(CollectiveAlgorithm algorithm) {
  return AlgorithmTable()[static_cast<size_t>(algorithm)];
}

// "ring", "direct4", "oneRing": as a system file names it.
std::string AlgorithmName(const AlgorithmChoice& choice);
// kBadInput, which begins with `where`, for a name that no system file may have.
Result<AlgorithmChoice> AlgorithmNamed(std::string_view name, std::string_view where);

}  // namespace etude
