#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace etude {

// A sequence of tokens as a program of motifs: what occurs again and again is written once, and
// motifs are made of motifs. A part below `tokens` is a token, any other one motif `part - tokens`,
// which is made of parts below itself.
struct MotifProgram {
  uint32_t tokens = 0;
  std::vector<std::vector<uint32_t>> motifs;
  std::vector<uint32_t> parts;  // of the whole sequence

  // Parts of the program and of all motifs: what is left to say of the sequence.
  size_t size() const;
  // Whether each motif is made of two parts or more below itself, and the sequence of what is
  // there.
  bool is_sound() const;
  // The sequence, or its beginning if it is longer than `most`; of a sound program.
  std::vector<uint32_t> Expand(size_t most = SIZE_MAX) const;
  // Goes along the sequence of a sound program, into motifs where these are: `on_token(token)` is
  // false where it ends, `on_motif(motif)` where what the motif stands for is passed over.
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
  // By motif of a sound program: how many tokens it stands for.
  std::vector<uint64_t> Lengths() const;
  // By motif of a sound program: where in the sequence it is, ascending, also inside others.
  std::vector<std::vector<size_t>> Places() const;
};

// Finds motifs in `sequence`, of tokens below `tokens`: pairs that occur twice or more become one
// part, the frequent ones first, until there are none (Re-Pair, all pairs of a round at once).
// Pairs that are used in one place only are then written out there. O(n log n) in practice.
// `begins`, ascending: where in the sequence something new begins, which no motif reaches across.
MotifProgram FindMotifs(std::span<const uint32_t> sequence, uint32_t tokens,
                        std::span<const size_t> begins = {});

}  // namespace etude
