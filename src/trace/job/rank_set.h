#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"

namespace etude {

// Ranks of a job have numbers below this.
inline constexpr int64_t kMostRanksOfJob = int64_t{1} << 31;
// That are listed one by one.
inline constexpr int64_t kMostListedRanks = int64_t{1} << 20;

// A set of ranks in as few numbers as its regularity allows: every second rank of every fourth node
// is one block, however many there are. Immutable; const methods may be called from several
// threads.
class RankSet {
 public:
  // `count` times what is inside, `stride` ranks apart.
  struct Dim {
    int64_t count = 1;
    int64_t stride = 1;

    friend bool operator==(const Dim&, const Dim&) = default;
  };
  // Consecutive ranks of the set: `first`, and from there along all `dims`, of which the first one
  // is the innermost.
  struct Block {
    int64_t first = 0;
    std::vector<Dim> dims;

    friend bool operator==(const Block&, const Block&) = default;
  };

  RankSet() = default;
  // `ranks` ascend and are distinct.
  static RankSet Of(std::span<const int64_t> ranks);
  // All ranks below `count`.
  static RankSet Below(int64_t count);
  // kBadInput, after `where`, unless the blocks' ranks ascend, are distinct and below
  // kMostRanksOfJob.
  static Result<RankSet> OfBlocks(std::vector<Block> blocks, const std::string& where);

  std::span<const Block> blocks() const { return blocks_; }
  int64_t size() const { return begins_.empty() ? 0 : begins_.back(); }
  // The rank with this number among those of the set, which has more.
  int64_t At(int64_t index) const;
  // Its number among them; nullopt: not in the set.
  std::optional<int64_t> IndexOf(int64_t rank) const;
  bool Contains(int64_t rank) const { return IndexOf(rank).has_value(); }
  // All of them, ascending.
  std::vector<int64_t> Ranks() const;

  friend bool operator==(const RankSet& a, const RankSet& b) { return a.blocks_ == b.blocks_; }

 private:
  explicit RankSet(std::vector<Block> blocks);

  std::vector<Block> blocks_;    // ascending
  std::vector<int64_t> begins_;  // by block: ranks in it and in those before
};

// "4-7, 9" for people; "none". "4-7, 9, …" where there are more than `most` such parts.
std::string RankListText(std::span<const int64_t> ranks, size_t most = SIZE_MAX);

}  // namespace etude
