#include "src/trace/job/motifs.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace etude {
namespace {

using Pairs = std::unordered_map<uint64_t, uint32_t>;

uint64_t PairOf(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

// Counts the occurrences of each pair; a run of one part counts every second pair.
Pairs CountPairs(const std::vector<uint32_t>& parts) {
  Pairs counts;
  uint64_t before = UINT64_MAX;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const uint64_t pair = PairOf(parts[i], parts[i + 1]);
    if (pair == before) {
      before = UINT64_MAX;
      continue;
    }
    ++counts[pair];
    before = pair;
  }
  return counts;
}

// Expands motifs that are used once and renumbers the others.
MotifProgram WithoutSingles(const MotifProgram& from) {
  std::vector<uint32_t> uses(from.motifs.size());
  const auto count = [&](const std::vector<uint32_t>& parts) {
    for (const uint32_t part : parts) {
      if (part >= from.tokens) ++uses[part - from.tokens];
    }
  };
  for (const auto& motif : from.motifs) count(motif);
  count(from.parts);
  MotifProgram to{.tokens = from.tokens, .motifs = {}, .parts = {}};
  std::vector<uint32_t> number(from.motifs.size());
  // Motifs consist of earlier ones, which are already expanded.
  std::vector<std::vector<uint32_t>> whole(from.motifs.size());
  const auto write = [&](const std::vector<uint32_t>& parts) {
    std::vector<uint32_t> out;
    for (const uint32_t part : parts) {
      if (part < from.tokens) {
        out.push_back(part);
      } else if (const uint32_t motif = part - from.tokens; uses[motif] > 1) {
        out.push_back(number[motif]);
      } else {
        out.insert(out.end(), whole[motif].begin(), whole[motif].end());
        whole[motif] = {};
      }
    }
    return out;
  };
  for (size_t i = 0; i < from.motifs.size(); ++i) {
    whole[i] = write(from.motifs[i]);
    if (uses[i] <= 1) continue;
    number[i] = from.tokens + static_cast<uint32_t>(to.motifs.size());
    to.motifs.push_back(std::move(whole[i]));
  }
  to.parts = write(from.parts);
  return to;
}

}  // namespace

size_t MotifProgram::size() const {
  size_t size = parts.size();
  for (const auto& motif : motifs) size += motif.size();
  return size;
}

bool MotifProgram::is_sound() const {
  const auto below = [](const std::vector<uint32_t>& some, size_t end) {
    return std::ranges::all_of(some, [&](uint32_t part) { return part < end; });
  };
  for (size_t i = 0; i < motifs.size(); ++i) {
    if (motifs[i].size() < 2 || !below(motifs[i], tokens + i)) return false;
  }
  return below(parts, tokens + motifs.size());
}

std::vector<uint32_t> MotifProgram::Expand(size_t most) const {
  std::vector<uint32_t> sequence;
  if (most == 0) return sequence;
  Walk(
      [&](uint32_t token) {
        sequence.push_back(token);
        return sequence.size() < most;
      },
      [](uint32_t /*motif*/) { return true; });
  return sequence;
}

std::vector<uint64_t> MotifProgram::Lengths() const {
  std::vector<uint64_t> lengths;
  for (const auto& motif : motifs) {
    uint64_t length = 0;
    for (const uint32_t part : motif) length += part < tokens ? 1 : lengths[part - tokens];
    lengths.push_back(length);
  }
  return lengths;
}

std::vector<std::vector<size_t>> MotifProgram::Places() const {
  std::vector<std::vector<size_t>> places(motifs.size());
  size_t place = 0;
  Walk(
      [&](uint32_t /*token*/) {
        ++place;
        return true;
      },
      [&](uint32_t motif) {
        places[motif].push_back(place);
        return true;
      });
  return places;
}

MotifProgram FindMotifs(std::span<const uint32_t> sequence, uint32_t tokens,
                        std::span<const size_t> begins) {
  MotifProgram found{.tokens = tokens, .motifs = {}, .parts = {}};
  // Separators are unique, so that no pair with one is a motif.
  uint32_t between = UINT32_MAX;
  size_t begin = 0;
  for (size_t i = 0; i < sequence.size(); ++i) {
    while (begin < begins.size() && begins[begin] < i) ++begin;
    if (begin < begins.size() && begins[begin] == i) found.parts.push_back(between--);
    found.parts.push_back(sequence[i]);
  }
  while (true) {
    const Pairs counts = CountPairs(found.parts);
    const auto count_at = [&](size_t i) -> uint32_t {
      if (i + 1 >= found.parts.size()) return 0;
      const auto at = counts.find(PairOf(found.parts[i], found.parts[i + 1]));
      return at == counts.end() ? 0 : at->second;
    };
    // A pair yields to a more frequent one that begins inside it.
    std::vector<size_t> places;
    Pairs chosen;
    for (size_t i = 0; i + 1 < found.parts.size();) {
      const uint32_t count = count_at(i);
      if (count < 2 || count_at(i + 1) > count) {
        ++i;
        continue;
      }
      places.push_back(i);
      ++chosen[PairOf(found.parts[i], found.parts[i + 1])];
      i += 2;
    }
    std::unordered_map<uint64_t, uint32_t> motif_of;
    std::vector<uint32_t> next;
    size_t place = 0;
    for (size_t i = 0; i < found.parts.size();) {
      const bool here = place < places.size() && places[place] == i;
      if (here) ++place;
      const uint64_t pair = here ? PairOf(found.parts[i], found.parts[i + 1]) : 0;
      if (!here || chosen[pair] < 2) {
        next.push_back(found.parts[i++]);
        continue;
      }
      const auto [at, added] =
          motif_of.emplace(pair, tokens + static_cast<uint32_t>(found.motifs.size()));
      if (added) found.motifs.push_back({found.parts[i], found.parts[i + 1]});
      next.push_back(at->second);
      i += 2;
    }
    if (motif_of.empty()) break;
    found.parts = std::move(next);
  }
  std::erase_if(found.parts, [&](uint32_t part) { return part > between; });
  return WithoutSingles(found);
}

}  // namespace etude
