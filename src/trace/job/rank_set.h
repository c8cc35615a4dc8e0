#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"

namespace etude {

// Upper bound (exclusive) of the ranks of a job.
inline constexpr int64_t kMostRanksOfJob = int64_t{1} << 31;
// Max number of individually listed ranks.
inline constexpr int64_t kMostListedRanks = int64_t{1} << 20;

// Set of ranks in a compact form: every second rank of every fourth node is one block, whatever
// their number. Immutable; const methods are thread-safe.
class RankSet {
 public:
  // `count` repetitions of the inner pattern, `stride` ranks apart.
  struct Dim {
    int64_t count = 1;
    int64_t stride = 1;

    friend bool operator==(const Dim&, const Dim&) = default;
  };
  // A regular pattern of ranks: `first`, repeated along all `dims`, the first of which is the
  // innermost.
  struct Block {
    int64_t first = 0;
    std::vector<Dim> dims;

    friend bool operator==(const Block&, const Block&) = default;
  };

  RankSet() = default;
  // Makes a set of `ranks`, which must be ascending and distinct.
  static RankSet Of(std::span<const int64_t> ranks);
  // Makes a set of all ranks below `count`.
  static RankSet Below(int64_t count);
  // Makes a set of blocks. kBadInput, prefixed with `where`, unless their ranks are ascending,
  // distinct and below kMostRanksOfJob.
  static Result<RankSet> OfBlocks(std::vector<Block> blocks, const std::string& where);

  std::span<const Block> blocks() const { return blocks_; }
  int64_t size() const { return begins_.empty() ? 0 : begins_.back(); }
  // Returns the rank with this index in the set, which must be below size().
  int64_t At(int64_t index) const;
  // Returns the index of `rank` in the set; nullopt if it is not in the set.
  std::optional<int64_t> IndexOf(int64_t rank) const;
  bool Contains(int64_t rank) const { return IndexOf(rank).has_value(); }
  // Returns all ranks, ascending.
  std::vector<int64_t> Ranks() const;

  friend bool operator==(const RankSet& a, const RankSet& b) { return a.blocks_ == b.blocks_; }

 private:
  explicit RankSet(std::vector<Block> blocks);

  std::vector<Block> blocks_;    // ascending
  std::vector<int64_t> begins_;  // by block: number of ranks up to its end
};

// Returns "4-7, 9", or "none". Parts past `most` are replaced by "…".
std::string RankListText(std::span<const int64_t> ranks, size_t most = SIZE_MAX);

}  // namespace etude
