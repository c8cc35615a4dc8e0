#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace etude {

// Omissions and changes of a job for ASTRA-sim relative to the traces.
enum class AstraNote : uint8_t {
  // Left out; the order of the remaining nodes is kept.
  kHostWork,
  kIdleHost,
  kNoWork,
  kMemory,
  kOneRank,
  kNoSize,
  kNoPeer,
  kUnmatched,
  // Communication that is not simulated, but takes its recorded time.
  kReplayed,
  kUnknownType,
  kUnknownGroup,
  kInconsistent,
  kCircular,
  // Changed.
  kBarrier,
  kUnknownRoot,
  kSizeRaised,
  kSmallGather,
  kRenamedGroup,
  kEmptyRank,
  // Durations and costs.
  kUnknownTime,
  kNoShapes,
  kNoOps,
  kFirstRaised,
};

struct AstraNoteRow {
  AstraNote note;
  std::string_view key;     // key in JSON
  std::string_view text;    // text for users
  std::string_view reason;  // ASTRA-sim property that requires it, appended to the text; may be ""
};
inline constexpr auto kAstraNotes = std::to_array<AstraNoteRow>({
    {AstraNote::kHostWork, "left_out_host_work", "left out: host nodes beside device work", ""},
    {AstraNote::kIdleHost, "left_out_no_own_time", "left out: host nodes without time of their own",
     ""},
    {AstraNote::kNoWork, "left_out_no_work", "left out: marks, waits, metadata, unknown nodes", ""},
    {AstraNote::kMemory, "left_out_memory", "left out: loads and stores of remote memory",
     ", for which ASTRA-sim prints no statistics"},
    {AstraNote::kOneRank, "left_out_one_rank", "left out: communication in groups of one rank",
     ", in which ASTRA-sim hangs"},
    {AstraNote::kNoSize, "left_out_no_size", "left out: communication of no or unknown size",
     ", for which ASTRA-sim makes one up"},
    {AstraNote::kNoPeer, "left_out_no_peer", "left out: sends and receives without a known peer",
     ""},
    {AstraNote::kUnmatched, "left_out_unmatched",
     "left out: sends and receives whose peer has no such receive or send", ""},
    {AstraNote::kReplayed, "replayed_type",
     "replayed for their recorded time: broadcasts, reduces, gathers and scatters",
     ", which ASTRA-sim does not simulate"},
    {AstraNote::kUnknownType, "replayed_unknown_type",
     "replayed for their recorded time: collectives of unknown type", ""},
    {AstraNote::kUnknownGroup, "replayed_unknown_group",
     "replayed for their recorded time: collectives of groups whose ranks are unknown", ""},
    {AstraNote::kInconsistent, "replayed_inconsistent",
     "replayed for their recorded time: collectives that the ranks of their group do not agree on",
     ""},
    {AstraNote::kCircular, "replayed_circular",
     "replayed for their recorded time, or left out: communication that waits for itself through "
     "other ranks",
     ""},
    {AstraNote::kBarrier, "barriers", "barriers, now all-reduces of 4 bytes", ""},
    {AstraNote::kUnknownRoot, "unknown_roots",
     "collectives whose root is unknown: the first rank of the group", ""},
    {AstraNote::kSizeRaised, "sizes_raised", "sizes raised to that of the rank that moves most",
     ": all sides must say the same"},
    {AstraNote::kSmallGather, "small_gathers_raised", "all-gathers raised to 1,024 bytes",
     ": with fewer than chunks ASTRA-sim never ends"},
    {AstraNote::kRenamedGroup, "renamed_groups", "process groups with a number for a name",
     ": ASTRA-sim knows no other"},
    {AstraNote::kEmptyRank, "empty_ranks", "ranks with nothing to do, now a node of 1 ns",
     ": ASTRA-sim aborts without one"},
    {AstraNote::kUnknownTime, "unknown_durations", "nodes of unknown duration, which take 1 ns",
     ""},
    {AstraNote::kNoShapes, "without_shapes",
     "compute nodes without shapes: 1 operation, 1 byte, and their recorded time", ""},
    {AstraNote::kNoOps, "without_operations",
     "compute nodes that compute nothing themselves: 1 operation, 1 byte", ""},
    {AstraNote::kFirstRaised, "first_nodes_raised", "first nodes raised to 65,536 bytes",
     ": ASTRA-sim aborts if one takes no time"},
});
inline constexpr size_t kAstraNoteCount = kAstraNotes.size();

class AstraNotes {
 public:
  void Count(AstraNote note, uint64_t count = 1) { counts_[static_cast<size_t>(note)] += count; }
  uint64_t operator[](AstraNote note) const { return counts_[static_cast<size_t>(note)]; }
  void Add(const AstraNotes& other) {
    for (size_t i = 0; i < kAstraNoteCount; ++i) counts_[i] += other.counts_[i];
  }

 private:
  std::array<uint64_t, kAstraNoteCount> counts_{};
};

}  // namespace etude
