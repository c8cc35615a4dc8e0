#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/sim/sweep/plan_rule.h"

// What `etude sweep` simulates, as its TOML says it: docs/formats/sweep.md.
namespace etude {

// One thing that is said of a point: {"network", "bandwidth"} and its value, as written.
struct SweepSetting {
  std::vector<std::string> path;
  nlohmann::json value;
  std::string place;  // "sweep.toml:3:7"
};

// One of an axis's values, or a [[point]].
struct SweepChoice {
  std::string label;  // for people
  std::vector<SweepSetting> settings;
};

// A setting of [grid] with its values, or all of [[point]].
struct SweepAxis {
  std::string name;  // "network.bandwidth"; of [[point]] "name"
  std::vector<SweepChoice> choices;
};

// What a machine costs, in any currency.
struct SweepPrices {
  double npu = 0;                 // 0 and more, as all
  std::vector<double> bandwidth;  // of a GB/s of a link: by dimension, or one for all
};

enum class SweepMeasure : uint8_t {
  kStep,
  kExposed,
  kCost,
  kBandwidth,
  kNpus,
  kThroughput,  // more is better; of all others less
  kMemory,
};
std::string_view Name(SweepMeasure measure);

struct SweepSpec {
  std::vector<SweepSetting> base;
  std::vector<SweepAxis> axes;  // in the order of the document; the last one changes fastest
  std::optional<SweepPrices> prices;
  std::vector<SweepMeasure> pareto;  // at least two; empty: not said
  std::optional<PlanList> plans;     // of [[plans]], an axis that is called "plan"

  // Each choice of an axis with each of all others.
  size_t point_count() const;
  // Which choice of each axis makes a point.
  std::vector<size_t> ChoicesOf(size_t point) const;
  // The point that a choice of each axis makes.
  size_t PointOf(const std::vector<size_t>& choices) const;
};

// The axis of [[plans]].
inline constexpr std::string_view kPlanAxis = "plan";

// Most points of a sweep.
inline constexpr size_t kMostSweepPoints = 100'000;

// Keys of 'generate', with '_'.
struct SweepGenerateKeys {
  std::vector<std::string> known;  // empty: any
  std::vector<std::string> own;    // that the sweep gives itself
};

// `path` is what messages call it.
// kBadInput with file, line and column for what is no TOML, unknown keys (with the nearest one that
// is known), and values of another form.
Result<SweepSpec> ParseSweep(std::string_view text, const std::string& path,
                             const SweepGenerateKeys& generate_keys = {});

}  // namespace etude
