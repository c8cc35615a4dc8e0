#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace etude {

// A token sequence as a program of motifs, which are repeated subsequences written once and may
// contain other motifs. A part below `tokens` is a token; any other part is motif `part - tokens`,
// made of parts below itself.
struct MotifProgram {
  uint32_t tokens = 0;
  std::vector<std::vector<uint32_t>> motifs;
  std::vector<uint32_t> parts;  // of the whole sequence

  // Returns the number of parts of the program and of all motifs: the size of the compressed
  // sequence.
  size_t size() const;
  // Returns true if each motif consists of two or more parts below itself, and `parts` contains
  // only existing parts.
  bool is_sound() const;
  // Returns the sequence, or its first `most` tokens. Requires a sound program.
  std::vector<uint32_t> Expand(size_t most = SIZE_MAX) const;
  // Walks the sequence of a sound program and descends into motifs. `on_token(token)` returns false
  // to stop; `on_motif(motif)` returns false to skip the motif.
  template <typename OnToken, typename OnMotif>
  void Walk(OnToken on_token, OnMotif on_motif) const {
    std::vector<std::pair<const std::vector<uint32_t>*, size_t>> open = {{&parts, 0}};
    while (!open.empty()) {
      auto& [in, at] = open.back();
      if (at == in->size()) {
        open.pop_back();
        continue;
      }
      const uint32_t part = (*in)[at++];
      if (part < tokens) {
        if (!on_token(part)) return;
      } else if (on_motif(part - tokens)) {
        open.emplace_back(&motifs[part - tokens], 0);
      }
    }
  }
  // Returns the number of tokens of each motif. Requires a sound program.
  std::vector<uint64_t> Lengths() const;
  // Returns the ascending positions of each motif in the sequence, including those inside other
  // motifs. Requires a sound program.
  std::vector<std::vector<size_t>> Places() const;
};

// Finds motifs in `sequence`, of tokens below `tokens`. Pairs that occur at least twice become one
// part, the most frequent first, until none is left (Re-Pair, all pairs of a round at once). Motifs
// that are used only once are then expanded. O(n log n) in practice. `begins`, ascending: positions
// that no motif may reach across.
MotifProgram FindMotifs(std::span<const uint32_t> sequence, uint32_t tokens,
                        std::span<const size_t> begins = {});

}  // namespace etude
