#include "src/cli/compat/compat_stage.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "src/base/each_rank.h"
#include "src/cli/tool/tool_arguments.h"
#include "src/compat/stage/stage_differences_text.h"
#include "src/compat/stage/stage_file.h"
#include "src/formats/io/atomic_file.h"
#include "src/jobs/output_files.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

// STAGE draws its first tag at random; this is its value after random.seed(0).
constexpr int64_t kFirstTag = 885440;
constexpr int64_t kMostTag = 1 << 30;
constexpr std::string_view kRankPlace = "%d";
constexpr std::string_view kDifferences = "--differences";

Status ChooseModel(const std::string& name, stage::StageOptions& options, const Console& console) {
  using stage::Model;
  if (name == "gpt") {
    options.model = Model::kGpt;
  } else if (name == "llama" || name == "dense") {
    options.model = options.mixed_precision ? Model::kLlama : Model::kGpt;
    if (!options.mixed_precision) {
      console.context().Warn(fmt::format(
          "--model_type {}: the graph of 'gpt', as STAGE has it without --mixed_precision true",
          name));
    }
  } else if (name == "moe") {
    options.model = Model::kMoe;
  } else if (name == "debug") {
    options.model = Model::kDebug;
  } else {
    return BadInput(
        fmt::format("--model_type: found '{}', expected gpt, llama, dense, moe or debug", name));
  }
  return {};
}

std::string WithoutAll(std::string text, std::string_view part, std::string_view instead) {
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + instead.size())) {
    text.replace(at, part.size(), instead);
  }
  return text;
}

// File names of a job.
struct OutputNames {
  std::string before;  // the rank's number
  std::string after;
  std::string groups;

  static Result<OutputNames> Make(const std::string& folder, std::string name) {
    if (name.find(kRankPlace) == std::string::npos) name += ".%d.et";
    // STAGE would overwrite the groups by a rank's file, or stop at another '%'.
    const size_t at = name.find(".%d");
    if (at == std::string::npos || name.find('%', at + 2) != std::string::npos ||
        name.find('%') != at + 1 || name.find(".et") == std::string::npos) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("compat stage: --output_name: found '{}', expected NAME.%d.et", name));
    }
    const std::filesystem::path path(folder);
    const std::string groups = WithoutAll(WithoutAll(name, ".%d", ""), ".et", ".json");
    return OutputNames{.before = (path / name.substr(0, at + 1)).string(),
                       .after = name.substr(at + 1 + kRankPlace.size()),
                       .groups = (path / groups).string()};
  }
};

Result<bool> WriteRank(const stage::StageJob& job, const OutputNames& names, int64_t rank) {
  std::string bytes;
  job.RankBytes(rank, bytes);
  ETUDE_RETURN_IF_ERROR(WriteFile(fmt::format("{}{}{}", names.before, rank, names.after), bytes));
  return true;
}

}  // namespace

Status RunStage(std::vector<std::string> args, const Console& console) {
  stage::StageOptions options;
  std::string folder;
  std::string name;
  std::string model = "dense";
  std::string version;  // STAGE ignores this and the next
  bool recompute = false;
  bool print_memory = false;
  int64_t micro_batch = -1;
  int64_t first_tag = kFirstTag;
  bool differences = false;
  bool json = false;
  const bool writes = std::ranges::find(args, kDifferences) == args.end();
  ToolArguments parser("stage");
  parser.Text("--output_dir", &folder, writes);
  parser.Text("--output_name", &name, writes);
  parser.Whole("--dp", &options.dp, false);
  parser.Whole("--tp", &options.tp, false);
  parser.Whole("--sp", &options.cp, false);
  parser.Whole("--ep", &options.ep, false);
  parser.Whole("--pp", &options.pp, false);
  parser.Truth("--weight_sharded", &options.weight_sharded);
  parser.Truth("--activation_recompute", &recompute);
  parser.Truth("--tpsp", &options.tpsp);
  parser.Whole("--dvocal", &options.vocabulary, false);
  parser.Whole("--dmodel", &options.dmodel, false);
  parser.Whole("--dff", &options.dff, false);
  parser.Whole("--batch", &options.batch, false);
  parser.Whole("--micro_batch", &micro_batch, false);
  parser.Whole("--seq", &options.sequence, false);
  parser.Whole("--head", &options.heads, false);
  parser.Whole("--kvhead", &options.kv_heads, false);
  parser.Whole("--num_stacks", &options.layers, false);
  parser.Whole("--experts", &options.experts, false);
  parser.Whole("--kexperts", &options.top_experts, false);
  parser.Text("--chakra_schema_version", &version, false);
  parser.Text("--model_type", &model, false);
  parser.Truth("--mixed_precision", &options.mixed_precision);
  parser.Truth("--print_gpu_vram", &print_memory);  // its output is not reproduced
  parser.Whole("--first_tag", &first_tag, false);   // additional options, from here on
  parser.Flag(kDifferences, &differences);
  parser.Flag("--json", &json);
  ETUDE_RETURN_IF_ERROR(parser.Parse(args));
  if (json && !differences) return parser.Usage("--json requires --differences");
  OutputNames names;
  if (!differences) {
    ETUDE_ASSIGN_OR_RETURN(names, OutputNames::Make(folder, name));
  }
  options.micro_batch = micro_batch == -1 ? options.batch : micro_batch;
  if (first_tag < 0 || first_tag > kMostTag) {
    return parser.Usage(fmt::format("--first_tag {}: expected 0 to {}", first_tag, kMostTag));
  }
  ETUDE_RETURN_IF_ERROR(ChooseModel(model, options, console));
  if (recompute) {
    console.context().Warn("--activation_recompute: nothing is computed again, as STAGE has it");
  }
  if (differences) {
    ETUDE_ASSIGN_OR_RETURN(const stage::StageDifferences found,
                           stage::FindStageDifferences(options));
    console.Print(json ? JsonText(ToJson(found)) : ToText(found));
    return {};
  }
  ETUDE_ASSIGN_OR_RETURN(const stage::StageJob job, stage::StageJob::Make(options, first_tag));
  if (job.ranks() > kMostRankFiles) {
    return BadInput(fmt::format("found {} files, one for each rank, expected up to {}",
                                FormatCount(static_cast<uint64_t>(job.ranks())),
                                FormatCount(kMostRankFiles)));
  }
  if (const auto other = RankFileBeyond(names.before, names.after, job.ranks())) {
    return OtherJob(*other, job.ranks());
  }
  for (const std::string& remark : job.remarks()) console.context().Warn(remark);
  for (const std::string& path : {names.before, names.groups}) {
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    if (!parent.empty()) ETUDE_RETURN_IF_ERROR(MakeFolder(parent.string()));
  }
  ETUDE_RETURN_IF_ERROR(WriteFile(names.groups, job.GroupsJson()));
  ETUDE_RETURN_IF_ERROR(ForEachRank<bool>(
      static_cast<size_t>(job.ranks()), 0, console.context(), [&](size_t rank, const RunContext&) {
        return WriteRank(job, names, static_cast<int64_t>(rank));
      }));
  return {};
}

}  // namespace etude
