#include "src/jobs/plan_file.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/container/hash.h"
#include "src/base/sha256.h"
#include "src/base/text/bounded_json.h"
#include "src/base/text/folder_names.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/job/job_folder.h"
#include "src/formats/job/rank_name.h"
#include "src/jobs/generate/request_json.h"
#include "src/jobs/output_files.h"
#include "src/report/text/json_output.h"
#include "src/sim/program/workload.h"

namespace etude {
namespace {

namespace fs = std::filesystem;
using PlanFileJson = nlohmann::ordered_json;

constexpr uint64_t kMaxPlanFileBytes = uint64_t{64} << 20;
constexpr std::string_view kPlanOfRanks = ".plan.json";

Result<std::string> ClassesHash(const std::string& folder, const Limits& limits) {
  ETUDE_ASSIGN_OR_RETURN(const std::string text,
                         ReadWholeFile(fmt::format("{}/{}", folder, kClassesFile), limits));
  return Sha256(text);
}

Result<std::string> FileHash(const std::string& path, const Limits& limits) {
  ETUDE_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path, limits, limits.total_bytes));
  return fmt::format("{:016x}", HashBytes(bytes));
}

PlanFileJson Document(const JobPlan& plan, PlanFileJson of) {
  PlanFileJson json = {{"format", "etude-plan"}, {"version", 1}};
  json.update(of);
  json["nodes"] = plan.nodes;
  json["plan"] = ToJson(plan.facts);
  if (plan.request) json["generate"] = ToJson(*plan.request);
  return json;
}

// Reads the file; null unless it contains a plan.
Result<PlanFileJson> ReadDocumentOfPlan(const std::string& path, const Limits& limits) {
  ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, limits, kMaxPlanFileBytes));
  auto json = ParseBounded<PlanFileJson>(text);
  if (!json.is_object() || json.value("format", PlanFileJson()) != "etude-plan" ||
      json.value("version", PlanFileJson()) != 1 || !json.contains("plan")) {
    return PlanFileJson();
  }
  return json;
}

// Places of a job's plan and of its traces.
struct PlanPlace {
  std::string path;    // of the plan's file
  std::string folder;  // of classes; "": PREFIX.0.et …
  std::string prefix;
};

PlanPlace OfClasses(const std::string& folder) {
  return {.path = fmt::format("{}/{}", folder, kPlanFile), .folder = folder, .prefix = ""};
}
PlanPlace OfPrefix(const std::string& prefix) {
  return {.path = prefix + std::string(kPlanOfRanks), .folder = "", .prefix = prefix};
}

// Returns PREFIX of PREFIX.3.et.
std::optional<std::string> PrefixOfTrace(const std::string& path) {
  const fs::path parts(path);
  if (parts.extension() != ".et" || !RankFromName(parts.filename().string())) return std::nullopt;
  return (parts.parent_path() / parts.stem().stem()).string();
}

// Returns the only plan of PREFIX.0.et … in a folder.
Result<std::optional<PlanPlace>> OnlyPlanIn(const std::string& folder) {
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  std::optional<PlanPlace> found;
  for (const std::string& name : names) {
    if (!name.ends_with(kPlanOfRanks) || name.size() == kPlanOfRanks.size()) continue;
    if (found) return std::optional<PlanPlace>();
    found =
        OfPrefix(fmt::format("{}/{}", folder, name.substr(0, name.size() - kPlanOfRanks.size())));
  }
  return found;
}

Result<std::optional<PlanPlace>> PlaceOfPlan(std::span<const std::string> paths) {
  const std::string& first = paths.front();
  std::optional<PlanPlace> place;
  if (paths.size() == 1 && IsJobFolder(first)) {
    place = OfClasses(first);
  } else if (paths.size() == 1 && IsFolder(first)) {
    ETUDE_ASSIGN_OR_RETURN(place, OnlyPlanIn(first));
  } else if (const auto rank = JobRankOfPath(first)) {
    place = OfClasses(rank->folder);
  } else {
    const std::string prefix = PrefixOfTrace(first).value_or(first);
    const bool is_one_job = std::ranges::all_of(paths, [&](const std::string& path) {
      return PrefixOfTrace(path).value_or(path) == prefix;
    });
    if (is_one_job) place = OfPrefix(prefix);
  }
  if (place && !IsThere(place->path)) place.reset();
  return place;
}

// Returns the first difference of a job in classes; "": none.
Result<std::string> MismatchOfClasses(const std::string& folder, const PlanFileJson& json,
                                      bool whole, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::string hash, ClassesHash(folder, context.limits));
  if (json.value("classes", PlanFileJson()) != hash) {
    return fmt::format("{}/{} has changed", folder, kClassesFile);
  }
  if (!whole) return std::string();
  // The classes file contains hashes of the other files, which are checked by its reader.
  const auto job = ReadJobFolder(folder, context);
  if (!job) return job.error().message;
  return std::string();
}

Result<std::string> MismatchOfRanks(const std::string& prefix, const PlanFileJson& json,
                                    const Limits& limits) {
  const PlanFileJson hashes = json.value("files", PlanFileJson::array());
  const PlanFileJson groups = json.value("groups", PlanFileJson());
  const auto ranks = static_cast<int64_t>(hashes.size());
  const auto differs = [&](const std::string& path, const PlanFileJson& expected) -> Result<bool> {
    ETUDE_ASSIGN_OR_RETURN(const std::string hash, FileHash(path, limits));
    return expected != hash;
  };
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const std::string path = RankFileOf(prefix, rank);
    if (!IsThere(path)) return path + " is missing";
    ETUDE_ASSIGN_OR_RETURN(const bool changed, differs(path, hashes[static_cast<size_t>(rank)]));
    if (changed) return path + " has changed";
  }
  if (const auto beyond = RankFileBeyond(prefix + ".", ".et", ranks)) {
    return *beyond + " belongs to another job";
  }
  const std::string path = GroupsFileName(prefix);
  if (groups.is_null() != !IsThere(path)) {
    return path + (groups.is_null() ? " belongs to another job" : " is missing");
  }
  if (groups.is_null()) return std::string();
  ETUDE_ASSIGN_OR_RETURN(const bool changed, differs(path, groups));
  return changed ? path + " has changed" : std::string();
}

Result<std::optional<FoundPlan>> FindPlan(std::span<const std::string> paths, bool whole,
                                          const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::optional<PlanPlace> place, PlaceOfPlan(paths));
  if (!place) return std::optional<FoundPlan>();
  ETUDE_ASSIGN_OR_RETURN(const PlanFileJson json, ReadDocumentOfPlan(place->path, context.limits));
  const std::optional<PlanFacts> facts =
      json.is_null() ? std::nullopt : ReadPlanFacts(json["plan"]);
  if (!facts) {
    return BadInput(place->path + ": found no plan, expected format etude-plan, version 1");
  }
  FoundPlan found{.path = place->path,
                  .plan = {.facts = *facts, .nodes = 0, .request = std::nullopt},
                  .mismatch = ""};
  const PlanFileJson nodes = json.value("nodes", PlanFileJson());
  if (nodes.is_number_unsigned()) found.plan.nodes = nodes.get<uint64_t>();
  if (json.contains("generate")) {
    found.plan.request = ReadGenerateRequest(json["generate"]);
    if (!found.plan.request) {
      return BadInput(
          place->path +
          ": 'generate': found no plan of this version of Etude, expected the words and "
          "options of `etude generate`");
    }
  }
  const bool few = whole && place->folder.empty() && paths.size() > 1 &&
                   static_cast<int64_t>(paths.size()) != facts->ranks;
  if (few) return std::optional<FoundPlan>();
  if (!place->folder.empty()) {
    ETUDE_ASSIGN_OR_RETURN(found.mismatch, MismatchOfClasses(place->folder, json, whole, context));
  } else if (whole) {
    ETUDE_ASSIGN_OR_RETURN(found.mismatch, MismatchOfRanks(place->prefix, json, context.limits));
  }
  return found;
}

}  // namespace

Status WritePlanFile(const JobPlan& plan, const std::string& folder, const Limits& limits) {
  ETUDE_ASSIGN_OR_RETURN(const std::string hash, ClassesHash(folder, limits));
  return WriteFile(fmt::format("{}/{}", folder, kPlanFile),
                   JsonText(Document(plan, {{"classes", hash}})));
}

Status WritePlanOfRanks(const JobPlan& plan, const std::string& prefix, const std::string& groups,
                        const Limits& limits) {
  PlanFileJson hashes = PlanFileJson::array();
  for (int64_t rank = 0; rank < plan.facts.ranks; ++rank) {
    ETUDE_ASSIGN_OR_RETURN(std::string hash, FileHash(RankFileOf(prefix, rank), limits));
    hashes.push_back(std::move(hash));
  }
  PlanFileJson of = {{"files", std::move(hashes)}};
  if (!groups.empty()) {
    ETUDE_ASSIGN_OR_RETURN(of["groups"], FileHash(groups, limits));
  }
  return WriteFile(OfPrefix(prefix).path, JsonText(Document(plan, std::move(of))));
}

Result<std::optional<PlanFacts>> ReadPlanFile(const std::string& folder, bool strict,
                                              const RunContext& context) {
  const std::string path = OfClasses(folder).path;
  if (!IsThere(path)) return std::optional<PlanFacts>();
  const auto unusable = [&](std::string_view why) -> Result<std::optional<PlanFacts>> {
    if (strict) return BadInput(fmt::format("{}: {}", path, why));
    context.Warn(fmt::format("{}: {}; ignored", path, why));
    return std::optional<PlanFacts>();
  };
  ETUDE_ASSIGN_OR_RETURN(const PlanFileJson json, ReadDocumentOfPlan(path, context.limits));
  if (json.is_null()) return unusable("found no plan, expected format etude-plan, version 1");
  ETUDE_ASSIGN_OR_RETURN(const std::string hash, ClassesHash(folder, context.limits));
  if (json.value("classes", PlanFileJson()) != hash) {
    return unusable("found the plan of another job, expected the plan of classes.json");
  }
  std::optional<PlanFacts> facts = ReadPlanFacts(json["plan"]);
  if (!facts) return unusable("found a damaged plan");
  return facts;
}

Result<std::optional<FoundPlan>> FindPlanOfJob(std::span<const std::string> paths,
                                               const RunContext& context) {
  return FindPlan(paths, /*whole=*/true, context);
}

Result<std::optional<FoundPlan>> FindPlanBeside(const std::string& path,
                                                const RunContext& context) {
  return FindPlan({&path, 1}, /*whole=*/false, context);
}

}  // namespace etude
