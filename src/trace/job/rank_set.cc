#include "src/trace/job/rank_set.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace etude {
namespace {

using Block = RankSet::Block;

int64_t SizeOf(const Block& block) {
  int64_t size = 1;
  for (const RankSet::Dim& dim : block.dims) size *= dim.count;
  return size;
}

// Returns the distance from the first rank of the block to its last one.
int64_t SpanOf(const Block& block) {
  int64_t span = 0;
  for (const RankSet::Dim& dim : block.dims) span += (dim.count - 1) * dim.stride;
  return span;
}

// Merges evenly spaced, equal neighbours; returns false if there are none.
bool Fold(std::vector<Block>& blocks) {
  std::vector<Block> folded;
  for (size_t i = 0; i < blocks.size();) {
    const auto step = [&](size_t at) { return blocks[at + 1].first - blocks[at].first; };
    size_t end = i + 1;
    while (end < blocks.size() && blocks[end].dims == blocks[i].dims && step(end - 1) == step(i)) {
      ++end;
    }
    Block block = blocks[i];
    if (end > i + 1) {
      block.dims.push_back({.count = static_cast<int64_t>(end - i), .stride = step(i)});
    }
    folded.push_back(std::move(block));
    i = end;
  }
  const bool any = folded.size() < blocks.size();
  blocks = std::move(folded);
  return any;
}

// Returns "" if the block's ranks are ascending, distinct and below the limit, else the error.
std::string FaultOf(const Block& block) {
  if (block.first < 0 || block.first >= kMostRanksOfJob) {
    return fmt::format("found rank {}, expected 0 to {}", block.first, kMostRanksOfJob - 1);
  }
  int64_t span = 0;
  for (const RankSet::Dim& dim : block.dims) {
    if (dim.count < 1 || dim.stride < 1) {
      return fmt::format("found {} ranks {} apart, expected 1 or more of both", dim.count,
                         dim.stride);
    }
    if (dim.count > 1 && dim.stride <= span) {
      return fmt::format("found steps of {} over {} ranks, expected ranks that ascend", dim.stride,
                         span + 1);
    }
    int64_t width = 0;
    if (__builtin_mul_overflow(dim.count - 1, dim.stride, &width) ||
        width >= kMostRanksOfJob - block.first - span) {
      return fmt::format("found ranks beyond {}", kMostRanksOfJob - 1);
    }
    span += width;
  }
  return {};
}

}  // namespace

RankSet::RankSet(std::vector<Block> blocks) : blocks_(std::move(blocks)) {
  int64_t size = 0;
  for (const Block& block : blocks_) begins_.push_back(size += SizeOf(block));
}

RankSet RankSet::Of(std::span<const int64_t> ranks) {
  std::vector<Block> blocks;
  for (const int64_t rank : ranks) blocks.push_back({.first = rank, .dims = {}});
  while (Fold(blocks)) {
  }
  return RankSet(std::move(blocks));
}

RankSet RankSet::Below(int64_t count) {
  if (count <= 0) return {};
  Block block;
  if (count > 1) block.dims.push_back({.count = count, .stride = 1});
  return RankSet({std::move(block)});
}

Result<RankSet> RankSet::OfBlocks(std::vector<Block> blocks, const std::string& where) {
  int64_t next = 0;
  for (Block& block : blocks) {
    if (const std::string fault = FaultOf(block); !fault.empty()) {
      return BadInput(where + ": " + fault);
    }
    if (block.first < next) {
      return BadInput(fmt::format("{}: found rank {} after {}, expected ranks that ascend", where,
                                  block.first, next - 1));
    }
    std::erase_if(block.dims, [](const Dim& dim) { return dim.count == 1; });
    next = block.first + SpanOf(block) + 1;
  }
  return RankSet(std::move(blocks));
}

int64_t RankSet::At(int64_t index) const {
  const auto above = std::ranges::upper_bound(begins_, index);
  const auto at = static_cast<size_t>(above - begins_.begin());
  if (at > 0) index -= begins_[at - 1];
  int64_t rank = blocks_[at].first;
  for (const Dim& dim : blocks_[at].dims) {
    rank += index % dim.count * dim.stride;
    index /= dim.count;
  }
  return rank;
}

std::optional<int64_t> RankSet::IndexOf(int64_t rank) const {
  const auto above = std::ranges::upper_bound(blocks_, rank, {}, &Block::first);
  if (above == blocks_.begin()) return std::nullopt;
  const auto at = static_cast<size_t>(above - blocks_.begin()) - 1;
  const Block& block = blocks_[at];
  int64_t rest = rank - block.first;
  int64_t index = 0;
  for (auto dim = block.dims.rbegin(); dim != block.dims.rend(); ++dim) {
    const int64_t step = rest / dim->stride;
    if (step >= dim->count) return std::nullopt;
    rest -= step * dim->stride;
    index = index * dim->count + step;
  }
  if (rest != 0) return std::nullopt;
  return index + (at > 0 ? begins_[at - 1] : 0);
}

std::vector<int64_t> RankSet::Ranks() const {
  std::vector<int64_t> ranks;
  ranks.reserve(static_cast<size_t>(size()));
  for (int64_t i = 0; i < size(); ++i) ranks.push_back(At(i));
  return ranks;
}

std::string RankListText(std::span<const int64_t> ranks, size_t most) {
  if (ranks.empty()) return "none";
  std::string text;
  size_t parts = 0;
  for (size_t i = 0; i < ranks.size();) {
    if (parts++ == most) return text + ", …";
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(ranks[i]);
    if (last != i) text += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace etude
