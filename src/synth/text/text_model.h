#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

// The models that ASTRA-sim 1 describes as text: the parallelism, the number of layers, then a
// layer on a line.
namespace etude {

enum class TextParallelism : uint8_t { kMicro, kData, kModel, kDataModel, kModelData, kDlrm };

// Computation and communication of a layer in one of the three phases.
struct TextPhase {
  int64_t time = 0;
  std::string_view comm;  // "ALLREDUCE", "NONE", … as written
  int64_t size = 0;       // of the communication
};

struct TextLayer {
  std::string_view name;
  TextPhase forward;
  TextPhase input_grad;
  TextPhase weight_grad;
};

struct TextModel {
  TextParallelism parallelism = TextParallelism::kMicro;
  int64_t layer_count = 0;  // as stated in the text
  int64_t last_bottom = 0;  // kDlrm: last layer of the bottom
  std::vector<TextLayer> layers;
};

// Parses a model. Views point into `text`, whose lines must end with
//  (WithPlainLines). kBadInput with the text found.
Result<TextModel> ParseTextModel(std::string_view text);

// Returns `text` with line ends converted as by Python's text files.
std::string WithPlainLines(std::string_view text);

}  // namespace etude
