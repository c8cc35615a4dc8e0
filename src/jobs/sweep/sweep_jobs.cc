#include "src/jobs/sweep/sweep_jobs.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/container/guarded.h"
#include "src/base/sha256.h"
#include "src/base/text/folder_names.h"
#include "src/base/version.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/job/job_folder.h"
#include "src/jobs/generate/generate_job.h"
#include "src/jobs/group_ranks.h"
#include "src/jobs/output_files.h"
#include "src/jobs/plan_file.h"
#include "src/jobs/sweep/generate_call.h"
#include "src/jobs/sweep/job_in_making.h"
#include "src/sim/program/workload.h"
#include "src/transform/read_job.h"

namespace etude {
namespace {

namespace fs = std::filesystem;

// Patterns and models in text have no classes, so they are files with this prefix.
constexpr const char* kGeneratedPrefix = "job";
bool HasClasses(const std::string& what) { return what != "microbench" && what != "text"; }

Status AddFile(const std::string& name, const std::string& path, const Limits& limits,
               std::string& listing) {
  ETUDE_RETURN_IF_ERROR(CheckRegular(path));
  ETUDE_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path, limits, limits.total_bytes));
  listing += fmt::format("{} {}\n", Sha256(bytes), name);
  return {};
}

// Returns the edits of a point, whose forms the spec's parser has checked.
WhatIfOptions EditsOf(const SweepJobSource& source) {
  WhatIfOptions options;
  const auto text = [&](const char* key) {
    const auto found = source.what_if.find(key);
    return found == source.what_if.end() ? std::string() : found->second.get<std::string>();
  };
  const auto count = [&](const char* key) -> std::optional<int64_t> {
    const auto found = source.what_if.find(key);
    if (found == source.what_if.end()) return std::nullopt;
    return found->second.get<int64_t>();
  };
  options.second = text("second");
  options.sizes = text("sizes");
  options.dimensions = {.batch = count("batch"),
                        .sequence = count("sequence"),
                        .hidden = count("hidden"),
                        .heads = count("heads"),
                        .ffn = count("ffn"),
                        .vocabulary = count("vocab")};
  options.layers = count("layers");
  options.pipeline = {
      .stages = count("pp"), .micro_batches = count("micro_batches"), .schedule = text("schedule")};
  options.data_parallel = count("dp");
  options.tensor_parallel = count("tp");
  options.bucket = text("bucket");
  options.first_bucket = text("first_bucket");
  options.communication.overlap = text("overlap");
  options.communication.compress = text("compress");
  options.communication.rank_order = text("rank_order");
  options.communication.all_reduce = text("all_reduce");
  options.device.dtype = text("dtype");
  std::istringstream fused(text("fuse"));
  for (std::string chain; fused >> chain;) options.device.fuse.push_back(chain);
  const auto no_gaps = source.what_if.find("no_gaps");
  options.device.no_gaps = no_gaps != source.what_if.end() && no_gaps->second.get<bool>();
  options.device.launch_cost = text("launch_cost");
  options.scale = text("scale");
  std::istringstream dropped(text("drop"));
  for (std::string name; dropped >> name;) options.drop.push_back(name);
  options.operators = text("operators");
  options.recorded_operators = text("recorded_operators");
  return options;
}

// File in the folder of a generated job that identifies the job.
constexpr std::string_view kCheckFile = "check";

// Returns the error of a sweep for an error of GenerateJob. An invalid request refuses a point.
ErrorCode ErrorOfGenerate(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
    case ErrorCode::kBadInput: return ErrorCode::kBadInput;
    case ErrorCode::kIo: return ErrorCode::kIo;
    case ErrorCode::kUnavailable:
    case ErrorCode::kInterrupted:
    case ErrorCode::kInternal: break;
  }
  return ErrorCode::kUnavailable;
}

}  // namespace

Result<std::string> HashOfPrefix(const std::string& prefix, int64_t ranks, const Limits& limits) {
  std::string listing;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    ETUDE_RETURN_IF_ERROR(AddFile("rank", RankFileOf(prefix, rank), limits, listing));
  }
  return Sha256(listing);
}

Result<std::string> HashOfFile(const std::string& path, const Limits& limits) {
  std::string listing;
  ETUDE_RETURN_IF_ERROR(AddFile("file", path, limits, listing));
  return Sha256(listing);
}

void SweepJobs::RemoveAbandoned() const { JobInMaking::RemoveAbandoned(jobs_folder()); }

Status SweepJobs::Add(const std::string& name, const std::string& file, const RunContext& context,
                      std::string& listing) {
  files_.insert(file);
  return AddFile(name, file, context.limits, listing);
}

Result<std::string> SweepJobs::HashOf(const SweepPoint& point, int64_t npus,
                                      const RunContext& context) {
  const SweepJobSource& source = point.job;
  if (source.generate.empty()) {
    std::string& hash = hashes_[{source, npus}];
    if (!hash.empty()) return hash;
    ETUDE_ASSIGN_OR_RETURN(hash, HashFiles(source, npus, context));
    return hash;
  }
  // Compare words, because equal numbers may be written in ways of which not all are valid.
  ETUDE_ASSIGN_OR_RETURN(const GenerateCall call, GenerateCallOf(point));
  std::string& hash = generated_hashes_[{call.words, call.files}];
  if (!hash.empty()) return hash;
  std::string text = "generate\n" + source.misfit;
  for (const auto& [key, content] : call.files) {
    text += fmt::format("{} {}\n", key, Sha256(content));
  }
  for (const std::string& word : call.words) {
    if (!call.places.contains(word)) {
      text += word + "\n";
    } else {
      ETUDE_RETURN_IF_ERROR(Add("", word, context, text));
    }
  }
  hash = Sha256(text);
  return hash;
}

Result<std::string> SweepJobs::HashFiles(const SweepJobSource& source, int64_t npus,
                                         const RunContext& context) {
  const std::string& path = source.path;
  std::string groups = source.groups;
  std::string listing;
  if (IsJobFolder(path)) {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(path));
    for (const std::string& name : names) {
      if (!name.starts_with("class") && name != kPlanFile) continue;
      ETUDE_RETURN_IF_ERROR(Add(name, path + "/" + name, context, listing));
    }
  } else if (IsFolder(path)) {
    ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder, ListCaptureFolder(path, context));
    std::vector<std::string> traces;
    for (const CaptureRank& rank : folder.ranks) {
      traces.push_back(RichestInput(rank).path);
      for (const std::string& file : rank.files()) {
        ETUDE_RETURN_IF_ERROR(Add(fs::path(file).filename().string(), file, context, listing));
      }
    }
    if (groups.empty()) groups = GroupsBeside(traces);
  } else if (IsThere(path)) {
    ETUDE_RETURN_IF_ERROR(Add("trace", path, context, listing));
    if (groups.empty()) groups = GroupsBeside({path});
  } else {
    // Counts the ranks, and checks whether there is one too many.
    const int64_t most = npus == 0 ? INT64_MAX - 1 : npus;
    int64_t ranks = 0;
    while (ranks <= most && IsThere(RankFileOf(path, ranks))) ++ranks;
    const int64_t read = std::clamp<int64_t>(ranks, 1, most);
    ETUDE_ASSIGN_OR_RETURN(listing, HashOfPrefix(path, read, context.limits));
    for (int64_t rank = 0; rank < read; ++rank) files_.insert(RankFileOf(path, rank));
    if (ranks > most) listing += "more\n";
    if (groups.empty()) groups = GroupsBeside({RankFileOf(path, 0)});
  }
  if (!groups.empty()) ETUDE_RETURN_IF_ERROR(Add("groups", groups, context, listing));
  for (const auto& [key, value] : source.what_if) {
    listing += fmt::format("{} {}\n", key, value.dump());
    if (std::ranges::find(kRecordedEditPaths, key) == kRecordedEditPaths.end()) continue;
    const std::string file = value.get<std::string>();
    if (key != "second") {
      ETUDE_RETURN_IF_ERROR(Add(key, file, context, listing));
      continue;
    }
    ETUDE_ASSIGN_OR_RETURN(const std::string hash, HashFiles({.path = file}, npus, context));
    listing += hash + "\n";
  }
  // With `strict` a job may be refused that is otherwise accepted.
  return Sha256(fmt::format("{}{} {}{}", listing, source.compute, source.fill_ranks,
                            strict_ ? " strict" : ""));
}

Result<std::shared_ptr<const SimJob>> SweepJobs::Read(const SweepPoint& point,
                                                      const std::string& hash, int64_t npus,
                                                      const RunContext& context) {
  const SweepJobSource& source = point.job;
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Slot>& found = slots_[fmt::format("{} {}", hash, npus)];
    if (found == nullptr) found = std::make_unique<Slot>();
    slot = found.get();
  }
  const std::lock_guard lock(slot->mutex);
  if (auto job = slot->job.lock()) return job;
  std::string path = source.path;
  if (!source.generate.empty()) {
    ETUDE_ASSIGN_OR_RETURN(path, Generate(point, hash, context));
  }
  SimJobOptions options;
  options.paths = {path};
  options.groups = source.groups;
  options.compute = source.compute;
  options.fill_ranks = source.fill_ranks;
  options.jobs = 1;
  options.what_if = EditsOf(source);
  Result<SimJob> read = ReadSimJob(options, npus, strict_, context);
  if (!read && !source.generate.empty() && !IsWhole(FolderOf(hash), hash, context)) {
    return MakeError(ErrorCode::kIo, FolderOf(hash) + ": changed while it was read");
  }
  if (!read) return tl::unexpected<Error>(read.error());
  auto job = std::make_shared<const SimJob>(*std::move(read));
  slot->job = job;
  return job;
}

Result<std::string> SweepJobs::Generate(const SweepPoint& point, const std::string& hash,
                                        const RunContext& context) {
  if (!point.job.misfit.empty()) return BadInput("etude whatif: " + point.job.misfit);
  ETUDE_ASSIGN_OR_RETURN(const GenerateCall call, GenerateCallOf(point));
  const std::string folder = FolderOf(hash);
  const bool has_classes = HasClasses(call.words.front());
  const std::string path = has_classes ? folder : fmt::format("{}/{}", folder, kGeneratedPrefix);
  if (IsThere(folder)) {
    if (IsWhole(folder, hash, context)) return path;
    context.Warn(fmt::format("{}: damaged; the job is generated again", folder));
  }
  const std::string jobs = jobs_folder();
  ETUDE_RETURN_IF_ERROR(CheckNoLink(jobs));
  ETUDE_RETURN_IF_ERROR(MakeFolder(jobs));
  const auto wrong = [](const Error& error) {
    return MakeError(ErrorOfGenerate(error.code), "etude generate: " + error.message);
  };
  // The folder appears complete or not at all: it is made next to its place, then renamed.
  ETUDE_ASSIGN_OR_RETURN(const JobInMaking making,
                         JobInMaking::Begin(jobs, fs::path(folder).filename().string()));
  const std::string made = making.folder();
  Result<GenerateRequest> request = RequestOf(call);
  if (!request) return wrong({request.error().code, "generate: " + request.error().message});
  request->output = has_classes ? made : fmt::format("{}/{}", made, kGeneratedPrefix);
  if (has_classes) request->to = "classes";
  RunContext noting = context;
  noting.warn = [&](std::string_view text) { PassWarning(text, point.name, context); };
  const auto written = Guarded([&] { return GenerateJob(*request, noting); });
  if (!written && context.stopped()) return MakeError(ErrorCode::kInterrupted, "interrupted");
  if (!written) return wrong(written.error());
  ETUDE_RETURN_IF_ERROR(Place(made, folder, hash, context));
  return path;
}

Result<std::string> SweepJobs::CheckOf(const std::string& folder, const std::string& hash,
                                       const RunContext& context) {
  std::string listing = fmt::format("{} {}\n", kVersion, hash);
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  for (const std::string& name : names) {
    if (name == kCheckFile) continue;
    const std::string path = fmt::format("{}/{}", folder, name);
    ETUDE_RETURN_IF_ERROR(AddFile(name, path, context.limits, listing));
  }
  return Sha256(listing) + "\n";
}

std::string SweepJobs::FolderOf(const std::string& hash) const {
  return fmt::format("{}/{}", jobs_folder(), hash.substr(0, 16));
}

bool SweepJobs::IsWhole(const std::string& folder, const std::string& hash,
                        const RunContext& context) {
  const std::string check = fmt::format("{}/{}", folder, kCheckFile);
  if (!CheckRegular(check)) return false;
  const auto said = ReadWholeFile(check, context.limits);
  const auto is = CheckOf(folder, hash, context);
  return said && is && *said == *is;
}

Status SweepJobs::Place(const std::string& made, const std::string& folder, const std::string& hash,
                        const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const std::string check, CheckOf(made, hash, context));
  ETUDE_RETURN_IF_ERROR(WriteFile(fmt::format("{}/{}", made, kCheckFile), check));
  std::error_code error;
  fs::rename(made, folder, error);
  // Made by another shard, or damaged.
  if (!error || IsWhole(folder, hash, context)) return {};
  fs::remove_all(folder, error);
  fs::rename(made, folder, error);
  if (!error || IsWhole(folder, hash, context)) return {};
  return MakeError(ErrorCode::kIo, fmt::format("{}: {}", folder, error.message()));
}

void SweepJobs::PassWarning(std::string_view text, const std::string& point,
                            const RunContext& context) {
  {
    const std::lock_guard lock(mutex_);
    if (!warned_.emplace(text).second) return;
  }
  context.Warn(fmt::format("{}: {}", point, text));
}

}  // namespace etude
