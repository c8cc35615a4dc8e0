#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace etude {

// Differences between a runnable job and its traces, and their reasons.
enum class RunnableNote : uint8_t {
  // Left out. Nodes that waited for each other through it still do.
  kHostWork,
  kIdleHost,
  kNoWork,
  kMemory,
  kOneRank,
  kNoSize,
  kNoPeer,
  kUnmatched,
  // Communication that is not simulated, but takes the recorded time.
  kReplayed,  // of a type that the simulator lacks
  kUnknownType,
  kUnknownGroup,
  kInconsistent,
  kCircular,  // where a rank communicates once at a time
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

struct RunnableNoteRow {
  RunnableNote note;
  std::string_view key;   // in JSON
  std::string_view text;  // for messages
};
inline constexpr auto kRunnableNotes = std::to_array<RunnableNoteRow>({
    {RunnableNote::kHostWork, "left_out_host_work",
     "left out: host nodes, because the trace has device work"},
    {RunnableNote::kIdleHost, "left_out_no_own_time", "left out: host nodes without self time"},
    {RunnableNote::kNoWork, "left_out_no_work", "left out: marks, waits, metadata, unknown nodes"},
    {RunnableNote::kMemory, "left_out_memory", "left out: loads and stores of remote memory"},
    {RunnableNote::kOneRank, "left_out_one_rank", "left out: communication in groups of one rank"},
    {RunnableNote::kNoSize, "left_out_no_size", "left out: communication of no or unknown size"},
    {RunnableNote::kNoPeer, "left_out_no_peer",
     "left out: sends and receives without a known peer"},
    {RunnableNote::kUnmatched, "left_out_unmatched",
     "left out: sends and receives without a match on the peer"},
    {RunnableNote::kReplayed, "replayed_type",
     "replayed for their recorded time: broadcasts, reduces, gathers and scatters"},
    {RunnableNote::kUnknownType, "replayed_unknown_type",
     "replayed for their recorded time: collectives of unknown type"},
    {RunnableNote::kUnknownGroup, "replayed_unknown_group",
     "replayed for their recorded time: collectives of groups whose ranks are unknown"},
    {RunnableNote::kInconsistent, "replayed_inconsistent",
     "replayed for their recorded time: collectives that differ between the ranks of a group"},
    {RunnableNote::kCircular, "replayed_circular",
     "replayed for their recorded time, or left out: communication in a cycle of waits across "
     "ranks"},
    {RunnableNote::kBarrier, "barriers", "barriers, written as all-reduces of 4 bytes"},
    {RunnableNote::kUnknownRoot, "unknown_roots",
     "collectives with unknown root: the first rank of the group is used"},
    {RunnableNote::kSizeRaised, "sizes_raised", "sizes raised to the largest on any rank"},
    {RunnableNote::kSmallGather, "small_gathers_raised", "all-gathers raised to 1,024 bytes"},
    {RunnableNote::kRenamedGroup, "renamed_groups", "process groups renamed to numbers"},
    {RunnableNote::kEmptyRank, "empty_ranks", "ranks without nodes, written as one node of 1 ns"},
    {RunnableNote::kUnknownTime, "unknown_durations", "nodes of unknown duration, which take 1 ns"},
    {RunnableNote::kNoShapes, "without_shapes",
     "compute nodes without shapes: 1 operation, 1 byte, and their recorded time"},
    {RunnableNote::kNoOps, "without_operations",
     "compute nodes that compute nothing themselves: 1 operation, 1 byte"},
    {RunnableNote::kFirstRaised, "first_nodes_raised", "first nodes raised to 65,536 bytes"},
});
inline constexpr size_t kRunnableNoteCount = kRunnableNotes.size();

class RunnableNotes {
 public:
  void Count(RunnableNote note, uint64_t count = 1) { counts_[static_cast<size_t>(note)] += count; }
  uint64_t operator[](RunnableNote note) const { return counts_[static_cast<size_t>(note)]; }
  void Add(const RunnableNotes& other) {
    for (size_t i = 0; i < kRunnableNoteCount; ++i) counts_[i] += other.counts_[i];
  }

 private:
  std::array<uint64_t, kRunnableNoteCount> counts_{};
};

}  // namespace etude
