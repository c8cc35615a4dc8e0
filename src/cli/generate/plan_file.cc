#include "src/cli/generate/plan_file.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "src/base/sha256.h"
#include "src/base/text/bounded_json.h"
#include "src/cli/app/output_files.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/job/job_folder.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

using PlanFileJson = nlohmann::ordered_json;

constexpr uint64_t kMaxPlanFileBytes = uint64_t{1} << 20;

// Operations in matrix products that all ranks do, and their type: nullopt where it is not one.
struct MatrixWork {
  double flops = 0;
  std::optional<DType> type;
};

MatrixWork MatrixWorkOf(const StepJob& job) {
  MatrixWork sum;
  std::set<DType> types;
  const double ranks = static_cast<double>(job.ranks()) / static_cast<double>(job.places());
  for (int64_t place = 0; place < job.places(); ++place) {
    for (const StepWork& work : job.program(place)) {
      if (work.matrix_flops == 0) continue;
      sum.flops += ranks * static_cast<double>(work.matrix_flops);
      types.insert(work.type);
    }
  }
  if (types.size() == 1) sum.type = *types.begin();
  return sum;
}

PlanMemory LargestMemory(const StepJob& job) {
  PlanMemory most;
  for (int64_t place = 0; place < job.places(); ++place) {
    const StepStates states =
        job.states().empty() ? StepStates() : job.states()[static_cast<size_t>(place)];
    const std::vector<Bytes> memory = job.MemoryOf(place);
    const Bytes peak = memory.empty() ? states.total() : std::ranges::max(memory);
    if (peak < most.peak) continue;
    if (peak == most.peak && place > 0) continue;
    most = {.peak = peak,
            .weights = states.weights,
            .gradients = states.gradients,
            .optimizer = states.optimizer,
            .cache = states.cache};
  }
  return most;
}

Result<std::string> ClassesHash(const std::string& folder, const Limits& limits) {
  ETUDE_ASSIGN_OR_RETURN(const std::string text,
                         ReadWholeFile(fmt::format("{}/{}", folder, kClassesFile), limits));
  return Sha256(text);
}

}  // namespace

PlanFacts PlanFactsOf(const GeneratedJob& made, const DeviceModel* device) {
  const MatrixWork work = MatrixWorkOf(made.job);
  PlanFacts facts{.ranks = made.job.ranks(),
                  .item = made.step.item,
                  .items = made.step.items,
                  .flops = made.step.flops.value_or(work.flops),
                  .bubble = made.step.bubble,
                  .memory = LargestMemory(made.job),
                  .device = {},
                  .peak = std::nullopt,
                  .capacity = std::nullopt};
  if (device == nullptr) return facts;
  facts.device = device->name;
  if (work.type) facts.peak = device->NominalMatrixPeak(*work.type);
  if (device->capacity.count != 0) facts.capacity = device->capacity;
  return facts;
}

Status WritePlanFile(const PlanFacts& facts, const std::string& folder, const Limits& limits) {
  ETUDE_ASSIGN_OR_RETURN(const std::string hash, ClassesHash(folder, limits));
  const PlanFileJson json = {
      {"format", "etude-plan"}, {"version", 1}, {"classes", hash}, {"plan", ToJson(facts)}};
  return WriteFile(fmt::format("{}/{}", folder, kPlanFile), JsonText(json));
}

Result<std::optional<PlanFacts>> ReadPlanFile(const std::string& folder, bool strict,
                                              const RunContext& context) {
  const std::string path = fmt::format("{}/{}", folder, kPlanFile);
  if (!IsThere(path)) return std::optional<PlanFacts>();
  const auto unusable = [&](std::string_view why) -> Result<std::optional<PlanFacts>> {
    if (strict) return BadInput(fmt::format("{}: {}", path, why));
    context.Warn(fmt::format("{}: {}; ignored", path, why));
    return std::optional<PlanFacts>();
  };
  ETUDE_ASSIGN_OR_RETURN(const std::string text,
                         ReadWholeFile(path, context.limits, kMaxPlanFileBytes));
  const auto json = ParseBounded<PlanFileJson>(text);
  if (!json.is_object() || json.value("format", PlanFileJson()) != "etude-plan" ||
      json.value("version", PlanFileJson()) != 1 || !json.contains("plan")) {
    return unusable("found no plan, expected format etude-plan, version 1");
  }
  ETUDE_ASSIGN_OR_RETURN(const std::string hash, ClassesHash(folder, context.limits));
  if (json.value("classes", PlanFileJson()) != hash) {
    return unusable("found the plan of another job, expected that of classes.json");
  }
  std::optional<PlanFacts> facts = ReadPlanFacts(json["plan"]);
  if (!facts) return unusable("found a damaged plan");
  return facts;
}

}  // namespace etude
