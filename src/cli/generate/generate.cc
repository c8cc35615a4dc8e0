#include "src/cli/generate/generate.h"
#include "src/cli/app/commands.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/each_rank.h"
#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"
#include "src/cli/generate/model_kind.h"
#include "src/cli/generate/plan_facts_of.h"
#include "src/compat/chakra/text_model.h"
#include "src/compat/chakra/text_workload.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/job/job_folder.h"
#include "src/formats/read_trace.h"
#include "src/jobs/job_classes.h"
#include "src/jobs/output_files.h"
#include "src/jobs/plan_file.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/synth/device/device_file.h"
#include "src/synth/job/work_times.h"
#include "src/synth/pattern/astra_edges.h"
#include "src/synth/pattern/microbench.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

struct Written {
  std::string path;
  uint64_t nodes = 0;
  uint64_t bytes = 0;
};

std::string WhatText() {
  std::string text = "microbench, text";
  const std::span<const ModelKind> kinds = ModelKinds();
  for (const ModelKind& kind : kinds) {
    text += fmt::format("{}{}", &kind == &kinds.back() ? " or " : ", ", kind.name);
  }
  return text;
}

class GenerateCommand : public Command {
 public:
  std::string_view name() const override { return "generate"; }
  std::string_view summary() const override {
    return "make Chakra traces of a pattern, or of a model's training or inference, for any number "
           "of ranks";
  }

  void Declare(Options& options) override {
    options.Positional("what", &what_, WhatText());
    options.Positional("pattern", &pattern_,
                       "microbench: what the ranks do, see below; text: file with a model; others: "
                       "a model of the lists below, or a file that ends in .toml",
                       /*required=*/false);
    options.Output("-o,--output", &output_, "PREFIX", "writes PREFIX.RANK.et for each rank", {});
    options.Required("--output");
    options.Value("--ranks", &ranks_, "N",
                  "ranks of the job (default: 2, of models as their options say)",
                  {.least = 1, .most = 1 << 20});
    options.Value("--count", &bench_.count, "N",
                  "microbench, text: repetitions, one after the other",
                  {.least = 1, .most = 100'000'000});
    options.Flag("--json", &json_, "print what was written as JSON");
    options.Group("Patterns (microbench)");
    options.Value("--size", &size_, "BYTES",
                  "that a rank puts in, sends or moves: 64MiB (default: 1MiB)");
    options.Value("--duration", &duration_, "TIME", "of each computation: 50us (default: 100us)");
    options.Value("--group-size", &bench_.group_size, "N",
                  "collectives in groups of N neighbours (default: all ranks)", {.least = 0});
    options.Flag("--native", &bench_.native,
                 "one node for collectives that ASTRA-sim refuses, instead of sends and receives");
    options.Group(kAllModels);
    options.Value("--device", &device_, "NAME",
                  "durations of computations by the roofline of a device of the list below, or of "
                  "a file that ends in .toml");
    options.Value("--measured", &measured_, "FILE",
                  "durations of matrix products from a recorded trace, or a table that ends in "
                  ".csv, before --device");
    options.Flag("--memory", &memory_,
                 "say what ranks hold, and in the traces what is in use over time");
    options.Choice("--to", &to_, {"et", "classes"},
                   "a file for each rank, or -o as a folder with one for all ranks that do the "
                   "same");
    model_options_.Declare(options);
    std::string footer = "Patterns:\n";
    for (const PatternInfo& info : Patterns()) {
      footer += fmt::format("  {:<15} {}\n", info.name, info.help);
    }
    for (const ModelKind& kind : ModelKinds()) {
      footer += fmt::format("Models of {} ({}):\n", kind.name, kind.family);
      for (const auto& [name, source] : kind.presets) {
        footer += fmt::format("  {:<16} {}\n", name, source);
      }
    }
    footer += "Devices:\n";
    for (const DevicePreset& device : DevicePresets()) {
      footer += fmt::format("  {:<15} {}\n", device.name, device.source);
    }
    options.Footer(footer);
  }

  // Of options that are parsed.
  Fits Check(const RunContext& context) const {
    if (const Status usage = CheckUsage(); !usage) {
      return tl::unexpected<Misfit>(AsMisfit(usage.error()));
    }
    const ModelKind* kind = FindModelKind(what_);
    if (kind == nullptr || kind->check == nullptr) return {};
    return kind->check(pattern_, model_options_, context);
  }

  Result<ExitCode> Run(const Console& console) override {
    ETUDE_RETURN_IF_ERROR(CheckUsage());
    bench_.ranks = ranks_.value_or(bench_.ranks);
    std::optional<TextWorkload> workload;
    std::optional<GeneratedJob> model;
    if (const ModelKind* kind = FindModelKind(what_)) {
      ETUDE_ASSIGN_OR_RETURN(model, kind->make(pattern_, model_options_, console.context()));
      bench_.ranks = model->job.ranks();
      if (ranks_ && *ranks_ != bench_.ranks) {
        return MakeError(ErrorCode::kUsage,
                         fmt::format("--ranks: found {}, expected {} as the other options say",
                                     *ranks_, bench_.ranks));
      }
      ETUDE_RETURN_IF_ERROR(TimeModel(console.context(), *model));
      TellMemory(*model);
      WarnOf(FindAstraEdges(model->job), console);
      if (to_ == "classes") return WriteClasses(console, *model);
      if (bench_.ranks > kMostRankFiles) {
        return BadInput(fmt::format(
            "found {} files, one for each rank, expected up to {}; --to classes has one for all "
            "ranks that do the same",
            FormatCount(static_cast<uint64_t>(bench_.ranks)), FormatCount(kMostRankFiles)));
      }
    } else if (bench_.ranks > kMostRankFiles) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--ranks: found {}, expected up to {}, a file for each",
                                   bench_.ranks, kMostRankFiles));
    } else if (what_ == "text") {
      ETUDE_ASSIGN_OR_RETURN(workload, ReadWorkload(console));
    } else {
      ETUDE_RETURN_IF_ERROR(TakeOptions());
      WarnOfIdleOptions(console.context());
    }
    using Groups = std::map<int64_t, std::vector<int64_t>>;
    Groups groups;
    if (model) {
      groups = model->job.Groups();
    } else if (!workload) {
      groups = MicrobenchGroups(bench_);
    }
    ETUDE_RETURN_IF_ERROR(CheckNoOtherJob(output_, bench_.ranks, !groups.empty()));
    const std::filesystem::path folder = std::filesystem::path(output_).parent_path();
    if (!folder.empty()) ETUDE_RETURN_IF_ERROR(MakeFolder(folder.string()));
    ETUDE_ASSIGN_OR_RETURN(
        const std::vector<Written> files,
        ForEachRank<Written>(static_cast<size_t>(bench_.ranks), 0, console.context(),
                             [&](size_t i, const RunContext&) {
                               const auto rank = static_cast<int64_t>(i);
                               return model ? WriteRank(rank, model->job)
                                            : WriteRank(rank, workload);
                             }));
    if (workload) WarnOf(FindAstraEdges(workload->trace, bench_.ranks), console);
    std::string groups_path;
    if (!groups.empty()) {
      groups_path = GroupsFileName(output_);
      ETUDE_RETURN_IF_ERROR(WriteGroupsFile(groups, groups_path));
    }
    Report(console, files, groups_path, model ? &*model : nullptr);
    return ExitCode::kOk;
  }

 private:
  Status CheckUsage() const {
    const auto wrong = [](const std::string& message) {
      return MakeError(ErrorCode::kUsage, "generate: " + message);
    };
    const ModelKind* kind = FindModelKind(what_);
    if (const Status known = CheckGenerateWhat(what_); !known) return wrong(known.error().message);
    if (pattern_.empty()) {
      if (kind != nullptr) return wrong("missing argument: the model; --help lists those known");
      return wrong(what_ == "text" ? "missing argument: the file with the model"
                                   : "missing argument: the pattern; --help lists them");
    }
    if (const Status known = CheckGenerateModel(what_, pattern_); !known) {
      return wrong(known.error().message);
    }
    const std::string prefix = std::filesystem::path(output_).filename().string();
    // "." and ".." are folders, into which classes go; of files they would be hidden ones' names.
    const bool is_folder = to_ == "et" && (prefix == "." || prefix == "..");
    if (output_ == "-" || prefix.empty() || is_folder) {
      return wrong(fmt::format("-o {}: expected what the names of the files begin with", output_));
    }
    if (what_ != "microbench" && (size_ || duration_ || bench_.group_size != 0 || bench_.native)) {
      return wrong(
          "--size, --duration, --group-size and --native are for microbench: "
          "a model has its own sizes and times");
    }
    if (kind == nullptr && (device_ || measured_ || memory_)) {
      return wrong("--device, --measured and --memory are for models");
    }
    if (kind == nullptr && to_ != "et") return wrong("--to classes is for models");
    if (kind != nullptr && bench_.count != 1) {
      return wrong(fmt::format("--count is not for {}: it is one step", what_));
    }
    for (const std::string_view option : model_options_.Given()) {
      if (kind != nullptr && std::ranges::find(kind->options, option) != kind->options.end()) {
        continue;
      }
      std::vector<std::string_view> takers;
      for (const ModelKind& other : ModelKinds()) {
        if (std::ranges::find(other.options, option) != other.options.end()) {
          takers.push_back(other.name);
        }
      }
      return wrong(fmt::format("{} is for {}", option, fmt::join(takers, ", ")));
    }
    return {};
  }

  Status TakeOptions() {
    bench_.pattern = std::ranges::find(Patterns(), pattern_, &PatternInfo::name)->pattern;
    if (size_) {
      const auto size = ParseBytes(*size_);
      if (!size) return Unfit("--size", *size_, "bytes, as in 64MiB");
      bench_.size = *size;
    }
    if (duration_) {
      const auto duration = ParseTime(*duration_);
      if (!duration) return Unfit("--duration", *duration_, "a time, as in 100us");
      bench_.duration = *duration;
    }
    return CheckMicrobench(bench_);
  }

  // Options of microbench that this pattern has no use for.
  void WarnOfIdleOptions(const RunContext& context) const {
    const Pattern pattern = bench_.pattern;
    const bool computes = pattern == Pattern::kCompute || pattern == Pattern::kOverlap;
    const bool sized = pattern != Pattern::kCompute && pattern != Pattern::kBarrier;
    const bool one_node = pattern == Pattern::kBroadcast || pattern == Pattern::kReduce ||
                          pattern == Pattern::kGather || pattern == Pattern::kScatter ||
                          pattern == Pattern::kBarrier;
    MicrobenchOptions for_astra = bench_;
    for_astra.native = false;
    const auto idle = [&](std::string_view option, std::string_view why) {
      context.Warn(fmt::format("{}: does nothing, {} {}", option, pattern_, why));
    };
    if (size_ && !sized) idle("--size", "has no size");
    if (duration_ && !computes) idle("--duration", "computes nothing");
    if (bench_.native && !one_node && CheckMicrobench(for_astra)) {
      idle("--native", "is the same for ASTRA-sim");
    }
  }

  static Status Unfit(std::string_view option, std::string_view found, std::string_view expected) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{}: found '{}', expected {}", option, found, expected));
  }

  static bool IsTable(std::string_view path) {
    return path.ends_with(".csv") || path.ends_with(".CSV");
  }

  Status TimeModel(const RunContext& context, GeneratedJob& made) {
    if (!device_ && !measured_) return {};
    TimeSources sources;
    if (device_ && device_->ends_with(".toml")) {
      ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(*device_, context.limits));
      ETUDE_ASSIGN_OR_RETURN(sources.device, ParseDevice(text, *device_));
    } else if (device_) {
      if (const Status known = CheckGenerateDevice(*device_); !known) {
        return MakeError(ErrorCode::kUsage, "generate: " + known.error().message);
      }
      sources.device = FindDevice(*device_);
    }
    if (measured_ && !IsTable(*measured_)) {
      ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadTrace(*measured_, {}, context));
      ETUDE_ASSIGN_OR_RETURN(sources.measured, MeasuredProducts::Of(trace, *measured_));
    } else if (measured_) {
      ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(*measured_, context.limits));
      ETUDE_ASSIGN_OR_RETURN(sources.measured, MeasuredProducts::Parse(text, *measured_));
    }
    ETUDE_ASSIGN_OR_RETURN(timed_, TimeWorks(sources, made.job));
    device_model_ = sources.device;
    made.text += "\ndurations:";
    const auto add = [&](int64_t count, std::string_view from, bool told) {
      if (!told) return;
      made.text += fmt::format("{} {} {}", made.text.ends_with(':') ? "" : ",",
                               FormatCount(static_cast<uint64_t>(count)), from);
    };
    add(timed_->measured, "measured", measured_.has_value());
    if (device_) add(timed_->modelled, "by the roofline of " + sources.device->name, true);
    add(timed_->unknown, "unknown", timed_->unknown != 0);
    return {};
  }

  void TellMemory(GeneratedJob& made) {
    if (!memory_) return;
    made.job.TellMemory();
    for (int64_t place = 0; place < made.job.places(); ++place) {
      const std::vector<Bytes> memory = made.job.MemoryOf(place);
      peaks_.push_back(memory.empty() ? Bytes{} : std::ranges::max(memory));
    }
    const auto [least, most] = std::ranges::minmax_element(peaks_);
    const auto index = static_cast<size_t>(most - peaks_.begin());
    states_ = made.job.states();
    const StepStates& states = states_[index];
    made.text += fmt::format("\nmemory of a rank at its peak: {}{}, of it weights {}",
                             *least == *most ? "" : FormatBytes(*least) + " to ",
                             FormatBytes(*most), FormatBytes(states.weights));
    for (const auto& [what, bytes] :
         {std::pair("gradients", states.gradients), std::pair("optimizer", states.optimizer),
          std::pair("cache before", states.cache)}) {
      if (bytes.count != 0) made.text += fmt::format(", {} {}", what, FormatBytes(bytes));
    }
    if (!device_model_ || device_model_->capacity.count == 0) return;
    made.text += fmt::format("; {} {} ({})", *most <= device_model_->capacity ? "fits" : "exceeds",
                             device_model_->name, FormatBytes(device_model_->capacity));
  }

  PlanFacts Plan(const GeneratedJob& made) const {
    return PlanFactsOf(made, device_model_ ? &*device_model_ : nullptr);
  }

  // By place on the last axis of the job's mesh: pipeline stage, or rank.
  void AddMemory(Json& json) const {
    if (!memory_) return;
    Json places = Json::array();
    for (size_t i = 0; i < peaks_.size(); ++i) {
      places.push_back({{"weights_bytes", states_[i].weights.count},
                        {"gradients_bytes", states_[i].gradients.count},
                        {"optimizer_bytes", states_[i].optimizer.count},
                        {"cache_before_bytes", states_[i].cache.count},
                        {"peak_bytes", peaks_[i].count}});
    }
    json["memory"] = std::move(places);
  }

  // Of the programs' computations.
  void AddDurations(Json& json) const {
    if (!timed_) return;
    Json durations = {{"measured", timed_->measured},
                      {"modelled", timed_->modelled},
                      {"unknown", timed_->unknown}};
    if (device_) durations["device"] = *device_;
    json["durations"] = std::move(durations);
  }

  // The model's trace, the same on all ranks.
  Result<TextWorkload> ReadWorkload(const Console& console) const {
    const Limits& limits = console.context().limits;
    ETUDE_ASSIGN_OR_RETURN(std::string text, ReadWholeFile(pattern_, limits, limits.element_bytes,
                                                           " (limit 'element_bytes')"));
    text = compat::WithPlainLines(text);
    const auto model = compat::ParseTextModel(text);
    if (!model) {
      return BadInput(
          fmt::format("{}: found {}, expected a model: parallelism, number of layers, "
                      "a layer on a line",
                      pattern_, model.error().message));
    }
    Result<TextWorkload> workload =
        MakeTextWorkload(*model, {.ranks = bench_.ranks, .passes = bench_.count});
    if (!workload) return BadInput(pattern_ + ": " + workload.error().message);
    if (workload->ignored != 0) {
      console.context().Warn(fmt::format("{}: left out {} for which its parallelism has no place",
                                         pattern_,
                                         FormatCount(workload->ignored, "communication")));
    }
    return workload;
  }

  static void WarnOf(const AstraEdges& edges, const Console& console) {
    const auto warn = [&](std::string_view what, uint64_t count) {
      if (count == 0) return;
      console.context().Warn(fmt::format("{}: {}; `etude convert --for astra-sim` mends it", what,
                                         FormatCount(count)));
    };
    warn("all-gathers of less than 1,024 bytes, which in ASTRA-sim never end", edges.small_gathers);
    warn("first computations of less than 65,536 bytes, which may take no time and abort ASTRA-sim",
         edges.small_firsts);
    warn("collectives of one rank, which in ASTRA-sim hang", edges.alone);
  }

  Result<ExitCode> WriteClasses(const Console& console, const GeneratedJob& made) const {
    ETUDE_ASSIGN_OR_RETURN(const Job job, made.job.AsJob());
    ETUDE_RETURN_IF_ERROR(CheckNoTraces(output_, console.context()));
    ETUDE_RETURN_IF_ERROR(WriteJobFolder(job, output_, console.context()));
    const PlanFacts plan = Plan(made);
    ETUDE_RETURN_IF_ERROR(WritePlanFile(plan, output_, console.context().limits));
    const JobCounts counts = CountsOf(job);
    if (json_) {
      Json json = {{"format", "etude-generate"},
                   {"version", 1},
                   {"what", what_},
                   {"pattern", pattern_},
                   {"output", output_},
                   {"ranks", counts.ranks},
                   {"classes", counts.classes},
                   {"communications", counts.communications},
                   {"nodes", counts.nodes},
                   {"nodes_kept", counts.nodes_kept},
                   {"model", made.facts},
                   {"plan", ToJson(plan)}};
      AddDurations(json);
      AddMemory(json);
      console.Print(JsonText(json));
      return ExitCode::kOk;
    }
    console.Print(fmt::format("{}\nwrote {}: {}, {}\n", made.text, output_, ClassesText(counts),
                              NodesText(counts)));
    return ExitCode::kOk;
  }

  Result<Written> WriteRank(int64_t rank, const std::optional<TextWorkload>& workload) const {
    if (workload) return WriteTrace(workload->trace, rank);
    ETUDE_ASSIGN_OR_RETURN(const Trace trace, MakeMicrobench(bench_, rank));
    return WriteTrace(trace, rank);
  }

  Result<Written> WriteRank(int64_t rank, const StepJob& job) const {
    ETUDE_ASSIGN_OR_RETURN(const Trace trace, job.TraceOf(rank));
    return WriteTrace(trace, rank);
  }

  Result<Written> WriteTrace(const Trace& trace, int64_t rank) const {
    const std::string path = fmt::format("{}.{}.et", output_, rank);
    ETUDE_ASSIGN_OR_RETURN(const ChakraWriteReport report, WriteChakraFile(trace, path));
    return Written{.path = path, .nodes = report.nodes, .bytes = report.bytes};
  }

  void Report(const Console& console, const std::vector<Written>& files, const std::string& groups,
              const GeneratedJob* model) const {
    uint64_t nodes = 0;
    uint64_t bytes = 0;
    for (const Written& file : files) {
      nodes += file.nodes;
      bytes += file.bytes;
    }
    if (json_) {
      Json json = {{"format", "etude-generate"},
                   {"version", 1},
                   {"what", what_},
                   {"pattern", pattern_},
                   {"prefix", output_},
                   {"groups", groups.empty() ? Json(nullptr) : Json(groups)},
                   {"ranks", files.size()},
                   {"nodes", nodes},
                   {"bytes", bytes}};
      if (model != nullptr) {
        json["model"] = model->facts;
        json["plan"] = ToJson(Plan(*model));
      }
      AddDurations(json);
      AddMemory(json);
      console.Print(JsonText(json));
      return;
    }
    std::string text = model == nullptr ? "" : model->text + "\n";
    text += fmt::format("wrote {}", files.front().path);
    if (files.size() > 1) text += fmt::format(" … {}", files.back().path);
    text += fmt::format(": {}, {}\n", FormatCount(nodes, "node"),
                        FormatBytes(Bytes{static_cast<int64_t>(bytes)}));
    text += "  --workload-configuration=" + output_;
    if (!groups.empty()) text += " --comm-group-configuration=" + groups;
    console.Print(text + "\n");
  }

  std::string what_;
  std::string pattern_;
  std::string output_;
  std::optional<int64_t> ranks_;
  std::optional<std::string> size_;
  std::optional<std::string> duration_;
  MicrobenchOptions bench_;
  ModelOptions model_options_;
  std::optional<std::string> device_;
  std::optional<std::string> measured_;
  std::optional<TimedWorks> timed_;
  std::optional<DeviceModel> device_model_;  // of device_
  bool memory_ = false;
  std::vector<StepStates> states_;  // by place
  std::vector<Bytes> peaks_;        // by place
  std::string to_ = "et";
  bool json_ = false;
};

}  // namespace

Status CheckGenerateWhat(std::string_view what) {
  if (what == "microbench" || what == "text" || FindModelKind(what) != nullptr) return {};
  return MakeError(ErrorCode::kUsage, fmt::format("found '{}', expected {}", what, WhatText()));
}

Status CheckGenerateModel(std::string_view what, const std::string& model) {
  if (const ModelKind* kind = FindModelKind(what)) {
    const bool is_known =
        std::ranges::any_of(kind->presets,
                            [&](const auto& preset) { return preset.first == model; }) ||
        std::ranges::find(kind->others, model) != kind->others.end();
    if (is_known || model.ends_with(".toml")) return {};
    return tl::unexpected(UnknownModel(*kind, model));
  }
  if (what == "text") return {};
  std::vector<std::string> names;
  for (const PatternInfo& info : Patterns()) names.emplace_back(info.name);
  if (std::ranges::find(names, model) != names.end()) return {};
  const std::string hint = DidYouMean(model, names);
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("unknown pattern '{}'{}", model,
                  hint.empty() ? fmt::format("; there are {}", fmt::join(names, ", ")) : hint));
}

Status CheckGenerateDevice(const std::string& device) {
  if (device.ends_with(".toml") || FindDevice(device)) return {};
  std::vector<std::string> names;
  for (const DevicePreset& preset : DevicePresets()) names.emplace_back(preset.name);
  const std::string hint = DidYouMean(device, names);
  return MakeError(ErrorCode::kUsage,
                   fmt::format("unknown device '{}'{}", device,
                               hint.empty() ? fmt::format("; there are {}, and files that end in "
                                                          ".toml",
                                                          fmt::join(names, ", "))
                                            : hint));
}

Fits CheckGenerateWords(std::vector<std::string> words, const RunContext& context) {
  GenerateCommand command;
  Options options(command.name(), command.summary());
  command.Declare(options);
  words.insert(words.end(), {"-o", "job"});
  const Options::Parsed parsed = options.Parse(words);
  if (parsed.outcome == Options::Outcome::kError) {
    return tl::unexpected<Misfit>(Misfit({}, parsed.text));
  }
  return command.Check(context);
}

std::unique_ptr<Command> MakeGenerateCommand() { return std::make_unique<GenerateCommand>(); }

}  // namespace etude
