#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/synth/device/misfit.h"
#include "src/synth/preset.h"
#include "src/trace/words/enums.h"

// Recommendation models by their shapes. docs/models/dlrm.md has the formulas and where they are
// from.
namespace etude {

struct EmbeddingTable {
  int64_t rows = 0;
  int64_t dimension = 0;
  int64_t lookups = 1;  // rows of a sample, which are summed

  int64_t elements() const { return rows * dimension; }

  friend bool operator==(const EmbeddingTable&, const EmbeddingTable&) = default;
};

// What becomes of the features: the bottom's output and a vector of each table.
enum class Interaction : uint8_t {
  kDot,     // products of each with each other, behind the bottom's output
  kConcat,  // one behind the other
  kCross,   // one behind the other, through low-rank cross layers: DCN v2
};

struct DlrmModel {
  int64_t dense = 0;            // features that are numbers
  std::vector<int64_t> bottom;  // units of each layer, input left out
  std::vector<EmbeddingTable> tables;
  Interaction interaction = Interaction::kDot;
  int64_t cross_layers = 0;
  int64_t cross_rank = 0;
  std::vector<int64_t> top;  // the last one is of one unit
  DType type = DType::kFloat32;

  // Vectors that interact, and their elements together.
  int64_t features() const { return static_cast<int64_t>(tables.size()) + 1; }
  int64_t feature_elements() const;
  int64_t top_input() const;

  friend bool operator==(const DlrmModel&, const DlrmModel&) = default;
};

// kBadInput, with what was expected, unless the shapes fit together and the numbers of a step fit
// into 64 bits.
Fits CheckDlrm(const DlrmModel& model);

// Of both stacks of layers and the cross layers; of the tables.
int64_t DenseParameters(const DlrmModel& model);
int64_t TableParameters(const DlrmModel& model);

using DlrmPreset = Preset<DlrmModel>;
std::span<const DlrmPreset> DlrmPresets();

}  // namespace etude
