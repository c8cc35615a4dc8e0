#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/sim/machine/machine.h"

namespace etude {

// Members of a group that a member exchanges messages with.
enum class AlgorithmReach : uint8_t {
  kNeighbours,   // the next and the previous member
  kPowersOfTwo,  // those at distance 1, 2, 4, …
  kAll,          // all others
  kByRoot,       // depends on the member's position relative to the root
};

// Properties of a collective algorithm. Its messages are defined by the StreamAlgorithm that
// AlgorithmOf (collective_stream.cc) returns.
struct AlgorithmInfo {
  CollectiveAlgorithm algorithm;
  std::string_view name;  // in ASTRA-sim's system files, and in tables
  bool in_files =
      false;  // selectable in a system file; otherwise its collectives have no other algorithm
  AlgorithmReach reach = AlgorithmReach::kNeighbours;
  bool needs_power_of_two = false;  // number of members must be a power of two
  bool has_window = false;  // the name may end in a number: the maximum of messages in flight
  // Chunks alternate between two trees, and each part of an all-reduce keeps the size of the whole.
  // Ranks of one class then act differently, so each rank is simulated individually.
  bool alternates = false;
  bool only_graph = false;  // requires SimMachine::graph
  // Switches reduce and multicast. Not for all-to-all.
  bool in_network = false;

  // Returns whether ranks with the same program and equivalent partners can be simulated as one.
  constexpr bool class_safe() const { return !alternates && !in_network; }
  // Returns whether ASTRA-sim has the algorithm for this number of members. Graphs have it for any.
  bool Fits(int64_t members) const;
  // Returns whether the algorithm, by name, is one for this type of collective.
  bool IsFor(CollectiveType type) const;
};

inline constexpr size_t kAlgorithmCount =
    static_cast<size_t>(CollectiveAlgorithm::kDissemination) + 1;
// One row per CollectiveAlgorithm, in the order of the enumeration.
const std::array<AlgorithmInfo, kAlgorithmCount>& AlgorithmTable();
inline const AlgorithmInfo& Info(CollectiveAlgorithm algorithm) {
  return AlgorithmTable()[static_cast<size_t>(algorithm)];
}

// Returns the name as written in system files: "ring", "direct4", "oneRing".
std::string AlgorithmName(const AlgorithmChoice& choice);
// Parses an algorithm name from a system file. kBadInput, prefixed with `where`, for unknown names.
Result<AlgorithmChoice> AlgorithmNamed(std::string_view name, std::string_view where);

// Parses the name of an algorithm that is for this type of collective, on a graph. kBadInput with
// those that are.
Result<AlgorithmChoice> AlgorithmOfType(std::string_view name, CollectiveType type);

// Algorithms of a collective by dimension (SystemModel::FindAlgorithms); null: none.
using AlgorithmChoices = const std::vector<AlgorithmChoice>*;
// Returns whether a single ring, tree or exchange spans all dimensions.
inline bool IsWhole(AlgorithmChoices choices) {
  return choices != nullptr && !choices->empty() && choices->front().whole;
}

// Returns the algorithm of a collective along a dimension: that of the list, or the only one of
// the collective (OwnAlgorithm).
AlgorithmChoice ChoiceOf(AlgorithmChoices choices, CollectiveType type, size_t dim);
// Returns the algorithm of a collective in a group smaller than the job: the only one of the list.
// With several, as in ASTRA-sim, a ring; on a graph that of `line`, the only dimension in which the
// members differ, or else their common one, and kBadInput if they differ.
Result<AlgorithmChoice> GroupChoice(const SimMachine& machine, AlgorithmChoices choices,
                                    CollectiveType type, std::optional<size_t> line);
// Checks the algorithms of each collective against the collective and the network. kBadInput if
// they do not fit.
Status CheckAlgorithms(const SimMachine& machine);

}  // namespace etude
