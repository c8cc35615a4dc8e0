#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/synth/transformer/transformer_layer.h"

namespace etude::testing_layer {

// Returns a model with GQA, SwiGLU and RMSNorm.
inline TransformerModel SmallLlama() {
  return {.layers = 4,
          .hidden = 256,
          .heads = 8,
          .kv_heads = 4,
          .head_size = 32,
          .ffn = 768,
          .vocabulary = 1000,
          .sequence = 64};
}

// Returns a model with as many key and value heads as query heads.
inline TransformerModel TinyModel(int64_t layers) {
  return {.layers = layers,
          .hidden = 64,
          .heads = 4,
          .kv_heads = 4,
          .head_size = 16,
          .ffn = 256,
          .vocabulary = 1000,
          .sequence = 32};
}

// Returns the work of this name, which must exist.
inline const LayerWork& WorkOf(const std::vector<LayerWork>& works, std::string_view name) {
  static const LayerWork kNothing;
  const auto found = std::ranges::find(works, name, &LayerWork::name);
  EXPECT_NE(found, works.end()) << name;
  return found == works.end() ? kNothing : *found;
}

}  // namespace etude::testing_layer
