#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/synth/device/misfit.h"
#include "src/synth/preset.h"
#include "src/trace/words/enums.h"

// Recommendation models by their shapes. docs/models/dlrm.md has the formulas and their sources.
namespace etude {

struct EmbeddingTable {
  int64_t rows = 0;
  int64_t dimension = 0;
  int64_t lookups = 1;  // rows per sample, which are summed

  int64_t elements() const { return rows * dimension; }

  friend bool operator==(const EmbeddingTable&, const EmbeddingTable&) = default;
};

// Combination of the features: the bottom's output and a vector of each table.
enum class Interaction : uint8_t {
  kDot,     // pairwise dot products, after the bottom's output
  kConcat,  // concatenation
  kCross,   // concatenation, then low-rank cross layers: DCN v2
};

struct DlrmModel {
  int64_t dense = 0;            // number of numeric features
  std::vector<int64_t> bottom;  // units of each layer, without the input
  std::vector<EmbeddingTable> tables;
  Interaction interaction = Interaction::kDot;
  int64_t cross_layers = 0;
  int64_t cross_rank = 0;
  std::vector<int64_t> top;  // the last one has one unit
  DType type = DType::kFloat32;

  // Return the number of interacting vectors, and the total number of their elements.
  int64_t features() const { return static_cast<int64_t>(tables.size()) + 1; }
  int64_t feature_elements() const;
  int64_t top_input() const;

  friend bool operator==(const DlrmModel&, const DlrmModel&) = default;
};

// Returns kBadInput, with the expected values, unless the shapes fit together and the numbers of a
// step fit into 64 bits.
Fits CheckDlrm(const DlrmModel& model);

// Return the parameters of both stacks of layers and the cross layers, and those of the tables.
int64_t DenseParameters(const DlrmModel& model);
int64_t TableParameters(const DlrmModel& model);

using DlrmPreset = Preset<DlrmModel>;
std::span<const DlrmPreset> DlrmPresets();

}  // namespace etude
