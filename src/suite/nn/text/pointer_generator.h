#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/suite/nn/layers.h"
#include "src/suite/nn/weights.h"

namespace etude::suite {

struct PointerGeneratorShape {
  int64_t words = 0;     // numbers of the vocabulary
  int64_t width = 256;   // of embeddings
  int64_t hidden = 512;  // of the LSTMs; the encoder has two directions
};

// Pointer-generator network with coverage (See et al., 1704.04368) and attention within the decoder
// (Paulus et al., 1705.04304). Writes a summary word by word, from the vocabulary or by copying
// from the text. All texts have the same length, padded with kPaddingToken.
class PointerGenerator {
 public:
  PointerGenerator(const Scope& scope, const PointerGeneratorShape& shape);

  // N encoded texts of S words.
  struct Source {
    at::Tensor states;  // [N, S, 2 × hidden]
    at::Tensor keys;    // [N, S, 2 × hidden], for attention
    at::Tensor mask;    // bool [N, S]: no padding
  };
  // Decoder state after the words written so far.
  struct Written {
    LstmCell::State state;
    at::Tensor context;              // [N, 2 × hidden]: last result of the attention to the text
    at::Tensor coverage;             // [N, S]: sum of the attention so far
    std::vector<at::Tensor> before;  // hidden states of all steps, [N, hidden] each
    std::vector<at::Tensor> keys;    // of `before`, for attention
  };
  // Distribution of the next word.
  struct Step {
    at::Tensor features;   // [N, 4 × hidden], for WordLogits
    at::Tensor share;      // [N]: probability of a word from the vocabulary, not a copy
    at::Tensor attention;  // [N, S]: probability of each word of the text if it is a copy
    at::Tensor covered;    // [N]: attention to words that have been attended to before
  };

  // int64 [...] → [..., width].
  at::Tensor Embed(const at::Tensor& words) const { return words_(words); }
  // text: int64 [N, S].
  std::pair<Source, Written> Encode(const at::Tensor& text) const;
  // Advances `written` by the embedded last word, [N, width].
  Step operator()(const at::Tensor& word, const Source& source, Written& written) const;
  // [..., 4 × hidden] → [..., words].
  at::Tensor WordLogits(const at::Tensor& features) const { return outer_(inner_(features)); }

 private:
  // Returns the attention of the last state to those before it: [N, hidden], 0 for the first state.
  at::Tensor Past(const Written& written) const;

  Embedding words_;
  Recurrent encoder_;
  Linear first_hidden_;
  Linear first_cell_;
  Linear keys_;
  Linear asker_;
  Linear covered_;
  Linear score_;
  Linear past_keys_;
  Linear past_asker_;
  Linear past_score_;
  Linear input_;
  LstmCell decoder_;
  Linear share_;
  Linear inner_;
  Linear outer_;
};

}  // namespace etude::suite
