#include "src/jobs/plan_file.h"

#include <string_view>

#include <fmt/format.h>

#include "src/base/sha256.h"
#include "src/base/text/bounded_json.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/job/job_folder.h"
#include "src/jobs/output_files.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

using PlanFileJson = nlohmann::ordered_json;

constexpr uint64_t kMaxPlanFileBytes = uint64_t{1} << 20;

Result<std::string> ClassesHash(const std::string& folder, const Limits& limits) {
  ETUDE_ASSIGN_OR_RETURN(const std::string text,
                         ReadWholeFile(fmt::format("{}/{}", folder, kClassesFile), limits));
  return Sha256(text);
}

}  // namespace

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
    return unusable("found the plan of another job, expected the plan of classes.json");
  }
  std::optional<PlanFacts> facts = ReadPlanFacts(json["plan"]);
  if (!facts) return unusable("found a damaged plan");
  return facts;
}

}  // namespace etude
