#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/base/units.h"
#include "src/sim/sweep/plan_rule.h"

// TOML specification of `etude sweep`: docs/formats/sweep.md.
namespace etude {

// A setting of a point: {"network", "bandwidth"} and its value, as written.
struct SweepSetting {
  std::vector<std::string> path;
  nlohmann::json value;
  std::string place;  // "sweep.toml:3:7"
};

// A value of an axis, or a [[point]].
struct SweepChoice {
  std::string label;  // for people
  std::vector<SweepSetting> settings;
};

// A [grid] setting with its values, or all of [[point]].
struct SweepAxis {
  std::string name;  // "network.bandwidth"; "name" for [[point]]
  std::vector<SweepChoice> choices;
};

// Prices of a machine, in any currency.
struct SweepPrices {
  double npu = 0;                 // all prices are >= 0
  std::vector<double> bandwidth;  // per GB/s of a link: by dimension, or one for all
};

enum class SweepMeasure : uint8_t {
  kStep,
  kExposed,
  kCost,
  kBandwidth,
  kNpus,
  kThroughput,  // more is better; for all others less is better
  kMemory,
  kRankSeconds,  // time of a step times its ranks
  kEnergy,       // of a step
};
std::string_view Name(SweepMeasure measure);

// Keys of edits that recorded jobs support.
inline constexpr auto kRecordedEditKeys = std::to_array<std::string_view>(
    {"second",   "sizes",    "layers",        "batch",
     "sequence", "hidden",   "heads",         "ffn",
     "vocab",    "pp",       "micro_batches", "schedule",
     "tp",       "dp",       "bucket",        "first_bucket",
     "overlap",  "compress", "rank_order",    "all_reduce",
     "dtype",    "fuse",     "no_gaps",       "launch_cost",
     "scale",    "drop",     "operators",     "recorded_operators"});
// Those whose values are paths: a job, and tables of measured operators.
inline constexpr auto kRecordedEditPaths =
    std::to_array<std::string_view>({"second", "operators", "recorded_operators"});

// Conditions of points. Points that are known to violate one are excluded.
struct SweepConstraints {
  std::vector<int64_t> ranks;   // of the job; empty: any number
  std::optional<Bytes> memory;  // maximum of a rank
  bool fits = false;            // whether each rank must fit into the memory of a device
};

struct SweepSpec {
  std::vector<SweepSetting> base;
  std::vector<SweepAxis> axes;  // in the order of the document; the last one varies fastest
  std::optional<SweepPrices> prices;
  std::vector<SweepMeasure> pareto;  // at least two; empty: not specified
  std::optional<SweepConstraints> constraints;
  std::optional<PlanList> plans;  // from [[plans]], which is an axis called "plan"

  // Returns the number of combinations of choices.
  size_t point_count() const;
  // Returns the index of the choice of each axis for a point.
  std::vector<size_t> ChoicesOf(size_t point) const;
  // Returns the point for a choice of each axis. Inverse of ChoicesOf.
  size_t PointOf(const std::vector<size_t>& choices) const;
};

// Name of the axis for [[plans]].
inline constexpr std::string_view kPlanAxis = "plan";

// Maximum of points per sweep.
inline constexpr size_t kMostSweepPoints = 100'000;

// Keys of 'generate', spelled with '_'.
struct SweepGenerateKeys {
  std::vector<std::string> known;  // empty: any
  std::vector<std::string> own;    // keys that the sweep sets itself
  std::vector<std::string> edits;  // keys that edit the plan of a generated job
};

// Parses a specification. `path` is its name in messages.
// kBadInput with file, line and column for invalid TOML, unknown keys (with the nearest known key),
// and invalid values.
Result<SweepSpec> ParseSweep(std::string_view text, const std::string& path,
                             const SweepGenerateKeys& generate_keys = {});

}  // namespace etude
