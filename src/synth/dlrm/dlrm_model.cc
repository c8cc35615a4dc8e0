#include "src/synth/dlrm/dlrm_model.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>

#include <fmt/format.h>

namespace etude {
namespace {

constexpr int64_t kMostUnits = int64_t{1} << 20;
constexpr int64_t kMostRows = int64_t{1} << 40;
constexpr int64_t kMostLookups = int64_t{1} << 20;
constexpr size_t kMostTables = 1 << 14;
constexpr size_t kMostMlpLayers = 1 << 10;

std::vector<EmbeddingTable> TablesOf(std::initializer_list<int64_t> rows, int64_t dimension,
                                     std::initializer_list<int64_t> lookups = {}) {
  std::vector<EmbeddingTable> tables;
  for (const int64_t count : rows) tables.push_back({.rows = count, .dimension = dimension});
  for (size_t i = 0; i < lookups.size(); ++i) tables[i].lookups = lookups.begin()[i];
  return tables;
}

DlrmModel CriteoKaggle() {
  return {.dense = 13,
          .bottom = {512, 256, 64, 16},
          .tables = TablesOf({1460,  583,  10131227, 2202608, 305, 24,     12517,   633,   3,
                              93145, 5683, 8351593,  3194,    27,  14992,  5461306, 10,    5652,
                              2173,  4,    7046547,  18,      15,  286181, 105,     142572},
                             16),
          .top = {512, 256, 1}};
}

DlrmModel CriteoTerabyte() {
  return {.dense = 13,
          .bottom = {512, 256, 64},
          .tables = TablesOf({9980333, 36084,   17217,   7378,    20134,  3,     7112, 1442, 61,
                              9758201, 1333352, 313829,  10,      2208,   11156, 122,  4,    970,
                              14,      9994222, 7267859, 9946608, 415421, 12420, 101,  36},
                             64),
          .top = {512, 512, 256, 1}};
}

DlrmModel MlperfDlrm() {
  return {
      .dense = 13,
      .bottom = {512, 256, 128},
      .tables = TablesOf({39884406, 39043,    17289,    7420,     20263,  3,     7120, 1543, 63,
                          38532951, 2953546,  403346,   10,       2208,   11938, 155,  4,    976,
                          14,       39979771, 25641295, 39664984, 585935, 12972, 108,  36},
                         128),
      .top = {1024, 1024, 512, 256, 1}};
}

DlrmModel MlperfDcnV2() {
  return {
      .dense = 13,
      .bottom = {512, 256, 128},
      .tables = TablesOf(
          {40000000, 39060,    17295,    7424,     20265,  3,     7122, 1543, 63,
           40000000, 3067956,  405282,   10,       2209,   11938, 155,  4,    976,
           14,       40000000, 40000000, 40000000, 590152, 12973, 108,  36},
          128, {3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1}),
      .interaction = Interaction::kCross,
      .cross_layers = 3,
      .cross_rank = 512,
      .top = {1024, 1024, 512, 256, 1}};
}

DlrmModel Rm(int64_t dense, std::vector<int64_t> bottom, size_t tables, EmbeddingTable table,
             std::vector<int64_t> top) {
  return {.dense = dense,
          .bottom = std::move(bottom),
          .tables = std::vector<EmbeddingTable>(tables, table),
          .interaction = Interaction::kConcat,
          .top = std::move(top)};
}

// Returns the number of weights and biases.
int64_t MlpParameters(int64_t input, const std::vector<int64_t>& units) {
  int64_t sum = 0;
  for (const int64_t count : units) {
    sum += (input + 1) * count;
    input = count;
  }
  return sum;
}

// `key`: of the file, "dlrm.dense".
Fits CheckCount(const std::string& key, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  const std::string_view name = std::string_view(key).substr(key.rfind('.') + 1);
  return MakeMisfit({key},
                    fmt::format("{}: found {}, expected {} to {}", name, value, least, most));
}

Fits CheckMlp(std::string_view name, const std::vector<int64_t>& units) {
  const std::string key = fmt::format("dlrm.{}", name);
  if (units.empty() || units.size() > kMostMlpLayers) {
    return MakeMisfit({key}, fmt::format("{}: found {} layers, expected 1 to {}", name,
                                         units.size(), kMostMlpLayers));
  }
  for (const int64_t count : units) ETUDE_RETURN_IF_MISFIT(CheckCount(key, count, 1, kMostUnits));
  return {};
}

Fits CheckTables(const DlrmModel& model) {
  if (model.tables.empty() || model.tables.size() > kMostTables) {
    return MakeMisfit({"tables"}, fmt::format("tables: found {}, expected 1 to {}",
                                              model.tables.size(), kMostTables));
  }
  double elements = 0;
  for (size_t i = 0; i < model.tables.size(); ++i) {
    const EmbeddingTable& table = model.tables[i];
    const std::string key = fmt::format("tables.{}.", i);
    ETUDE_RETURN_IF_MISFIT(CheckCount(key + "rows", table.rows, 1, kMostRows));
    ETUDE_RETURN_IF_MISFIT(CheckCount(key + "dimension", table.dimension, 1, kMostUnits));
    ETUDE_RETURN_IF_MISFIT(CheckCount(key + "lookups", table.lookups, 1, kMostLookups));
    elements += static_cast<double>(table.rows) * static_cast<double>(table.dimension);
    if (model.interaction == Interaction::kDot && table.dimension != model.bottom.back()) {
      return MakeMisfit(
          {key + "dimension", "dlrm.bottom"},
          fmt::format("dimension: found {}, expected {}, the output width of the bottom MLP",
                      table.dimension, model.bottom.back()));
    }
  }
  if (elements > std::ldexp(1, 55)) {
    return MakeMisfit(
        {"tables"}, fmt::format("found about {:.1e} elements of tables, expected fewer than {:.1e}",
                                elements, std::ldexp(1, 55)));
  }
  return {};
}

}  // namespace

int64_t DlrmModel::feature_elements() const {
  int64_t sum = bottom.back();
  for (const EmbeddingTable& table : tables) sum += table.dimension;
  return sum;
}

int64_t DlrmModel::top_input() const {
  if (interaction != Interaction::kDot) return feature_elements();
  return bottom.back() + features() * (features() - 1) / 2;
}

Fits CheckDlrm(const DlrmModel& model) {
  ETUDE_RETURN_IF_MISFIT(CheckCount("dlrm.dense", model.dense, 1, kMostUnits));
  ETUDE_RETURN_IF_MISFIT(CheckMlp("bottom", model.bottom));
  ETUDE_RETURN_IF_MISFIT(CheckMlp("top", model.top));
  if (model.top.back() != 1) {
    return MakeMisfit({"dlrm.top"},
                      fmt::format("top: found {} outputs, expected 1", model.top.back()));
  }
  ETUDE_RETURN_IF_MISFIT(CheckTables(model));
  const bool crosses = model.interaction == Interaction::kCross;
  ETUDE_RETURN_IF_MISFIT(CheckCount("dlrm.cross_layers", model.cross_layers, crosses ? 1 : 0,
                                    crosses ? int64_t{kMostMlpLayers} : 0));
  ETUDE_RETURN_IF_MISFIT(
      CheckCount("dlrm.cross_rank", model.cross_rank, crosses ? 1 : 0, crosses ? kMostUnits : 0));
  const auto features = static_cast<double>(model.feature_elements());
  const double widest = features * std::max(static_cast<double>(model.cross_layers) *
                                                static_cast<double>(2 * model.cross_rank + 1),
                                            static_cast<double>(model.top.front()));
  if (widest > std::ldexp(1, 55)) {
    return MakeMisfit(
        {"dlrm.top", "dlrm.cross_rank", "dlrm"},
        fmt::format("found about {:.1e} weights after the {} features, expected fewer than {:.1e}",
                    widest, model.feature_elements(), std::ldexp(1, 55)));
  }
  if (!ElementBytes(model.type)) {
    return MakeMisfit(
        {"dlrm.type"},
        fmt::format("type: found '{}', expected an element type of known size", Name(model.type)));
  }
  return {};
}

int64_t DenseParameters(const DlrmModel& model) {
  const int64_t features = model.feature_elements();
  return MlpParameters(model.dense, model.bottom) + MlpParameters(model.top_input(), model.top) +
         model.cross_layers * (2 * model.cross_rank + 1) * features;
}

int64_t TableParameters(const DlrmModel& model) {
  int64_t sum = 0;
  for (const EmbeddingTable& table : model.tables) sum += table.elements();
  return sum;
}

std::span<const DlrmPreset> DlrmPresets() {
  static const std::vector<DlrmPreset> presets = {
      {"criteo-kaggle",
       "Naumov et al. 2019, arXiv 1906.00091, and its repository: dlrm_s_criteo_kaggle.sh",
       CriteoKaggle()},
      {"criteo-terabyte",
       "the same repository: dlrm_s_criteo_terabyte.sh, rows of up to 10 million each",
       CriteoTerabyte()},
      {"mlperf-dlrm", "MLPerf training 0.7 to 2.1: run_and_time.sh, rows of up to 40 million each",
       MlperfDlrm()},
      {"mlperf-dlrm-dcnv2", "MLPerf training 3.0: DLRM with DCN v2 and several lookups a table",
       MlperfDcnV2()},
      {"rm1", "Gupta et al. 2020, arXiv 2001.02772, and its repository: dlrm_rm1.json",
       Rm(128, {64, 32}, 8, {.rows = 4000000, .dimension = 32, .lookups = 80}, {256, 64, 1})},
      {"rm2", "the same: dlrm_rm2.json",
       Rm(256, {128, 64}, 32, {.rows = 500000, .dimension = 64, .lookups = 120}, {128, 64, 1})},
      {"rm3", "the same: dlrm_rm3.json",
       Rm(2560, {1024, 256, 32}, 10, {.rows = 2000000, .dimension = 32, .lookups = 20},
          {512, 256, 1})},
  };
  return presets;
}

}  // namespace etude
