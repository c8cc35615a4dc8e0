#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "src/base/units.h"
#include "src/synth/transformer/transformer_program.h"
#include "src/trace/words/enums.h"

namespace etude {

// Settings of a TransformerPlan, by options of `etude generate`, or by [plan] in a model's file.
struct PlanSettings {
  std::optional<int64_t> data;
  std::optional<int64_t> tensor;
  std::optional<int64_t> stages;
  std::optional<int64_t> context;
  std::optional<int64_t> expert;
  std::optional<bool> sequence_parallel;
  std::optional<int64_t> zero;
  std::optional<int64_t> sequences;
  std::optional<int64_t> micro_batches;
  std::optional<PipelineSchedule> schedule;
  std::optional<int64_t> chunks;
  std::optional<Bytes> bucket;
  std::optional<Bytes> first_bucket;
  std::optional<bool> keep_ends;
  std::optional<bool> clip;
  std::optional<Recompute> recompute;
  std::optional<AttentionKind> attention;
  std::optional<ContextKind> context_kind;
  std::optional<ModelPhase> phase;
  std::optional<int64_t> cached;
  std::optional<int64_t> tokens;
  std::optional<DType> cache_type;

  // Sets missing settings to those of `other`.
  void Complete(const PlanSettings& other);
  // Makes the plan; missing settings have the defaults of TransformerPlan. Without `cached`, the
  // sequences of decode end with the length of `model`'s: a misfit if `tokens` exceeds it.
  tl::expected<TransformerPlan, Misfit> PlanFor(const TransformerModel& model) const;
};

// A numeric setting with its name in files.
struct PlanNumber {
  std::string_view name;
  std::optional<int64_t> PlanSettings::*value;
  int64_t least = 1;
  int64_t most = int64_t{1} << 24;
};
std::span<const PlanNumber> PlanNumbers();

// Words with their values.
template <typename T>
using PlanWords = std::span<const std::pair<std::string_view, T>>;
PlanWords<PipelineSchedule> ScheduleWords();
PlanWords<Recompute> RecomputeWords();
PlanWords<AttentionKind> AttentionWords();
PlanWords<ContextKind> ContextWords();
PlanWords<ModelPhase> PhaseWords();

// Returns the first setting that does not apply to the phase: its name in files, and the phases it
// applies to.
std::optional<std::pair<std::string_view, std::string_view>> SettingOfOtherPhase(
    const PlanSettings& settings);

}  // namespace etude
