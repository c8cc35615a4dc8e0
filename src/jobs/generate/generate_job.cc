#include "src/jobs/generate/generate_job.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "src/base/each_rank.h"
#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/job/job_folder.h"
#include "src/formats/read_trace.h"
#include "src/jobs/calibrate/device_fit.h"
#include "src/jobs/generate/model_kind.h"
#include "src/jobs/generate/plan_facts_of.h"
#include "src/jobs/output_files.h"
#include "src/jobs/plan_file.h"
#include "src/report/text/format.h"
#include "src/synth/pattern/astra_edges.h"
#include "src/synth/pattern/microbench.h"
#include "src/synth/text/text_model.h"
#include "src/synth/text/text_workload.h"
#include "src/transform/operators/operator_table.h"

namespace etude {
namespace {

class JobGenerator {
 public:
  explicit JobGenerator(GenerateRequest request) : request_(std::move(request)) {}

  Fits Check(const RunContext& context) {
    if (const Status usage = CheckUsage(); !usage) {
      return tl::unexpected<Misfit>(AsMisfit(usage.error()));
    }
    const ModelKind* kind = FindModelKind(request_.what);
    if (kind == nullptr || kind->check == nullptr) return {};
    return kind->check(request_.model, request_.options, context);
  }

  Result<RequestedPlan> Plan(const RunContext& context) {
    ETUDE_RETURN_IF_ERROR(CheckUsage());
    const ModelKind* kind = FindModelKind(request_.what);
    if (kind == nullptr) return BadInput("generate: expected a model");
    ETUDE_ASSIGN_OR_RETURN(request_, WithFiles(request_, context));
    ETUDE_ASSIGN_OR_RETURN(const GeneratedJob made,
                           kind->make(request_.model, request_.options, context));
    ETUDE_RETURN_IF_ERROR(ReadDevice());
    return RequestedPlan{.facts = PlanFactsOf(made, device_ ? &*device_ : nullptr),
                         .batch = made.batch,
                         .settings = made.settings};
  }

  Result<WrittenJob> Run(const RunContext& context) {
    ETUDE_RETURN_IF_ERROR(CheckUsage());
    if (const ModelKind* kind = FindModelKind(request_.what)) {
      ETUDE_RETURN_IF_ERROR(RunModel(*kind, context));
      return std::move(written_);
    }
    bench_.ranks = request_.ranks.value_or(bench_.ranks);
    if (bench_.ranks > kMostRankFiles) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("--ranks: found {}, expected at most {}, because each rank has a file",
                      bench_.ranks, kMostRankFiles));
    }
    if (request_.what == "text") {
      ETUDE_RETURN_IF_ERROR(RunText(context));
    } else {
      ETUDE_RETURN_IF_ERROR(RunMicrobench(context));
    }
    return std::move(written_);
  }

 private:
  // Groups by id, as in ASTRA-sim's file of groups.
  using Groups = std::map<int64_t, std::vector<int64_t>>;

  Status RunModel(const ModelKind& kind, const RunContext& context) {
    ETUDE_ASSIGN_OR_RETURN(request_, WithFiles(request_, context));
    ETUDE_ASSIGN_OR_RETURN(GeneratedJob made, kind.make(request_.model, request_.options, context));
    const int64_t ranks = made.job.ranks();
    if (request_.ranks && *request_.ranks != ranks) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("--ranks: found {}, expected {}, the product of the parallelism options",
                      *request_.ranks, ranks));
    }
    ETUDE_RETURN_IF_ERROR(TimeModel(made, context));
    TellMemory(made);
    WarnOf(FindAstraEdges(made.job), context);
    written_.text = made.text;
    written_.facts = made.facts;
    written_.settings = made.settings;
    written_.plan = PlanFactsOf(made, device_ ? &*device_ : nullptr);
    if (request_.to == "classes") return WriteClasses(made.job, context);
    if (ranks > kMostRankFiles) {
      return BadInput(
          fmt::format("found {} files, one per rank, expected at most {}; --to classes writes one "
                      "file per class of identical ranks",
                      FormatCount(static_cast<uint64_t>(ranks)), FormatCount(kMostRankFiles)));
    }
    ETUDE_RETURN_IF_ERROR(WriteRanks(
        ranks, made.job.Groups(), [&](int64_t rank) { return made.job.TraceOf(rank); }, context));
    uint64_t nodes = 0;
    for (const RankFile& file : written_.files) nodes += file.nodes;
    return WritePlanOfRanks(PlanOfJob(nodes), request_.output, written_.groups, context.limits);
  }

  JobPlan PlanOfJob(uint64_t nodes) const {
    return {.facts = *written_.plan, .nodes = nodes, .request = request_};
  }

  Status RunText(const RunContext& context) {
    ETUDE_ASSIGN_OR_RETURN(const TextWorkload workload, ReadWorkload(context));
    ETUDE_RETURN_IF_ERROR(PrepareFolder(bench_.ranks, /*has_groups=*/false));
    const auto write = [&](int64_t rank) { return WriteTrace(workload.trace, rank); };
    ETUDE_RETURN_IF_ERROR(WriteEach(bench_.ranks, write, context));
    WarnOf(FindAstraEdges(workload.trace, bench_.ranks), context);
    return {};
  }

  Status RunMicrobench(const RunContext& context) {
    ETUDE_RETURN_IF_ERROR(TakeOptions());
    WarnOfIdleOptions(context);
    return WriteRanks(
        bench_.ranks, MicrobenchGroups(bench_),
        [&](int64_t rank) { return MakeMicrobench(bench_, rank); }, context);
  }

  Status CheckUsage() const {
    const auto wrong = [](const std::string& message) {
      return MakeError(ErrorCode::kUsage, "generate: " + message);
    };
    const ModelKind* kind = FindModelKind(request_.what);
    if (const Status known = CheckGenerateWhat(request_.what); !known)
      return wrong(known.error().message);
    if (request_.model.empty()) {
      if (kind != nullptr) return wrong("missing argument: the model; --help lists the models");
      return wrong(request_.what == "text"
                       ? "missing argument: the file with the model"
                       : "missing argument: the pattern; --help lists the patterns");
    }
    if (const Status known = CheckGenerateModel(request_.what, request_.model); !known) {
      return wrong(known.error().message);
    }
    const std::string prefix = std::filesystem::path(request_.output).filename().string();
    // "." and ".." are valid folders for classes, but as prefixes of files they would give hidden
    // files.
    const bool is_folder = request_.to == "et" && (prefix == "." || prefix == "..");
    if (request_.output == "-" || prefix.empty() || is_folder) {
      return wrong(fmt::format("-o {}: expected a prefix of file names", request_.output));
    }
    if (request_.what != "microbench" &&
        (request_.size || request_.duration || request_.group_size != 0 || request_.native)) {
      return wrong("--size, --duration, --group-size and --native require microbench");
    }
    if (kind == nullptr && (request_.device || request_.measured || request_.memory)) {
      return wrong("--device, --measured and --memory require a model");
    }
    if (request_.to != "et" && request_.to != "classes") {
      return wrong(fmt::format("--to: found '{}', expected one of et, classes", request_.to));
    }
    if (kind == nullptr && request_.to != "et") return wrong("--to classes requires a model");
    if (kind != nullptr && request_.count != 1) {
      return wrong(
          fmt::format("--count does not apply to {}, which generates one step", request_.what));
    }
    for (const std::string_view option : request_.options.Given()) {
      if (kind != nullptr && std::ranges::find(kind->options, option) != kind->options.end()) {
        continue;
      }
      std::vector<std::string_view> takers;
      for (const ModelKind& other : ModelKinds()) {
        if (std::ranges::find(other.options, option) != other.options.end()) {
          takers.push_back(other.name);
        }
      }
      return wrong(fmt::format("{} requires {}", option, fmt::join(takers, ", ")));
    }
    return CheckBounds();
  }

  // Checks bounds again, which the command line has checked already.
  Status CheckBounds() const {
    GenerateRequest request = request_;
    for (const GenerateOption& option : OptionsOf(request)) {
      std::optional<int64_t> number;
      if (auto* const* given = std::get_if<int64_t*>(&option.target)) number = **given;
      if (auto* const* given = std::get_if<std::optional<int64_t>*>(&option.target)) {
        number = **given;
      }
      if (!number) continue;
      const auto fits = ParseWithin(std::to_string(*number), option.bounds);
      if (!fits) {
        return MakeError(ErrorCode::kUsage,
                         fmt::format("{}: {}", option.name, fits.error().message));
      }
    }
    return {};
  }

  Status TakeOptions() {
    bench_.pattern = std::ranges::find(Patterns(), request_.model, &PatternInfo::name)->pattern;
    bench_.count = request_.count;
    bench_.group_size = request_.group_size;
    bench_.native = request_.native;
    if (request_.size) {
      const auto size = ParseBytes(*request_.size);
      if (!size) return Unfit("--size", *request_.size, "bytes, as in 64MiB");
      bench_.size = *size;
    }
    if (request_.duration) {
      const auto duration = ParseTime(*request_.duration);
      if (!duration) return Unfit("--duration", *request_.duration, "a time, as in 100us");
      bench_.duration = *duration;
    }
    return CheckMicrobench(bench_);
  }

  // Warns of options of microbench that this pattern does not use.
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
      context.Warn(fmt::format("{} has no effect: {} {}", option, request_.model, why));
    };
    if (request_.size && !sized) idle("--size", "has no size");
    if (request_.duration && !computes) idle("--duration", "computes nothing");
    if (bench_.native && !one_node && CheckMicrobench(for_astra)) {
      idle("--native", "is written the same way for ASTRA-sim");
    }
  }

  static Status Unfit(std::string_view option, std::string_view found, std::string_view expected) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{}: found '{}', expected {}", option, found, expected));
  }

  Status ReadDevice() {
    if (!request_.device) return {};
    if (request_.device_text) {
      ETUDE_ASSIGN_OR_RETURN(device_,
                             ParseDeviceOrMachine(*request_.device_text, *request_.device));
      return {};
    }
    if (const Status known = CheckGenerateDevice(*request_.device); !known) {
      return MakeError(ErrorCode::kUsage, "generate: " + known.error().message);
    }
    device_ = FindDevice(*request_.device);
    return {};
  }

  Status TimeModel(GeneratedJob& made, const RunContext& context) {
    if (!request_.device && !request_.measured) return {};
    ETUDE_RETURN_IF_ERROR(ReadDevice());
    TimeSources sources{.device = device_};
    if (request_.measured) {
      ETUDE_ASSIGN_OR_RETURN(sources.measured,
                             MeasuredProducts::Parse(*request_.measured_text, *request_.measured));
    }
    ETUDE_ASSIGN_OR_RETURN(written_.durations, TimeWorks(sources, made.job));
    if (request_.measured && written_.durations->measured == 0) {
      context.Warn(fmt::format(
          "--measured has no effect: {} contains no matrix product with the sizes and type of this "
          "job",
          *request_.measured));
    }
    made.text += "\ndurations:";
    const auto add = [&](int64_t count, std::string_view from, bool told) {
      if (!told) return;
      made.text += fmt::format("{} {} {}", made.text.ends_with(':') ? "" : ",",
                               FormatCount(static_cast<uint64_t>(count)), from);
    };
    add(written_.durations->measured, "measured", request_.measured.has_value());
    if (request_.device)
      add(written_.durations->modelled, "from the roofline of " + sources.device->name, true);
    add(written_.durations->unknown, "unknown", written_.durations->unknown != 0);
    return {};
  }

  void TellMemory(GeneratedJob& made) {
    if (!request_.memory) return;
    made.job.TellMemory();
    for (int64_t place = 0; place < made.job.places(); ++place) {
      const std::vector<Bytes> memory = made.job.MemoryOf(place);
      written_.memory.push_back({.states = made.job.states()[static_cast<size_t>(place)],
                                 .peak = memory.empty() ? Bytes{} : std::ranges::max(memory)});
    }
    const auto [least, most] = std::ranges::minmax_element(written_.memory, {}, &PlaceMemory::peak);
    const StepStates& states = most->states;
    made.text += fmt::format("\npeak memory of a rank: {}{}, including weights {}",
                             least->peak == most->peak ? "" : FormatBytes(least->peak) + " to ",
                             FormatBytes(most->peak), FormatBytes(states.weights));
    for (const auto& [what, bytes] :
         {std::pair("gradients", states.gradients), std::pair("optimizer", states.optimizer),
          std::pair("initial cache", states.cache)}) {
      if (bytes.count != 0) made.text += fmt::format(", {} {}", what, FormatBytes(bytes));
    }
    if (!device_ || device_->capacity.count == 0) return;
    made.text += fmt::format("; {} {} ({})", most->peak <= device_->capacity ? "fits" : "exceeds",
                             device_->name, FormatBytes(device_->capacity));
  }

  // Reads the model's trace, which is the same on all ranks.
  Result<TextWorkload> ReadWorkload(const RunContext& context) const {
    const Limits& limits = context.limits;
    ETUDE_ASSIGN_OR_RETURN(
        std::string text,
        ReadWholeFile(request_.model, limits, limits.element_bytes, " (limit 'element_bytes')"));
    text = WithPlainLines(text);
    const auto model = ParseTextModel(text);
    if (!model) {
      return BadInput(fmt::format(
          "{}: found {}, expected a model: parallelism, number of layers, then one layer per line",
          request_.model, model.error().message));
    }
    Result<TextWorkload> workload =
        MakeTextWorkload(*model, {.ranks = bench_.ranks, .passes = request_.count});
    if (!workload) return BadInput(request_.model + ": " + workload.error().message);
    if (workload->ignored != 0) {
      context.Warn(fmt::format("{}: skipped {} that its parallelism does not support",
                               request_.model, FormatCount(workload->ignored, "communication")));
    }
    return workload;
  }

  static void WarnOf(const AstraEdges& edges, const RunContext& context) {
    const auto warn = [&](std::string_view what, uint64_t count) {
      if (count == 0) return;
      context.Warn(fmt::format("{}: {}; `etude convert --for astra-sim` fixes this", what,
                               FormatCount(count)));
    };
    warn("all-gathers of less than 1,024 bytes, which never end in ASTRA-sim", edges.small_gathers);
    warn("first computations of less than 65,536 bytes, which may take no time and abort ASTRA-sim",
         edges.small_firsts);
    warn("collectives of one rank, which hang in ASTRA-sim", edges.alone);
  }

  Status WriteClasses(const StepJob& made, const RunContext& context) {
    ETUDE_ASSIGN_OR_RETURN(const Job job, made.AsJob());
    ETUDE_RETURN_IF_ERROR(CheckNoTraces(request_.output, context));
    ETUDE_RETURN_IF_ERROR(WriteJobFolder(job, request_.output, context));
    written_.classes = CountsOf(job);
    return WritePlanFile(PlanOfJob(written_.classes->nodes), request_.output, context.limits);
  }

  // Writes the trace that `make` returns for each rank, and the groups.
  template <typename Make>
  Status WriteRanks(int64_t ranks, const Groups& groups, const Make& make,
                    const RunContext& context) {
    ETUDE_RETURN_IF_ERROR(PrepareFolder(ranks, !groups.empty()));
    const auto write = [&](int64_t rank) -> Result<RankFile> {
      ETUDE_ASSIGN_OR_RETURN(const Trace trace, make(rank));
      return WriteTrace(trace, rank);
    };
    ETUDE_RETURN_IF_ERROR(WriteEach(ranks, write, context));
    if (groups.empty()) return {};
    written_.groups = GroupsFileName(request_.output);
    return WriteGroupsFile(groups, written_.groups);
  }

  Status PrepareFolder(int64_t ranks, bool has_groups) const {
    ETUDE_RETURN_IF_ERROR(CheckNoOtherJob(request_.output, ranks, has_groups));
    const std::filesystem::path folder = std::filesystem::path(request_.output).parent_path();
    if (!folder.empty()) ETUDE_RETURN_IF_ERROR(MakeFolder(folder.string()));
    return {};
  }

  template <typename Write>
  Status WriteEach(int64_t ranks, const Write& write, const RunContext& context) {
    const auto write_unless_stopped = [&](size_t rank, const RunContext&) -> Result<RankFile> {
      if (context.stopped()) return MakeError(ErrorCode::kInterrupted, "interrupted");
      return write(static_cast<int64_t>(rank));
    };
    ETUDE_ASSIGN_OR_RETURN(written_.files, ForEachRank<RankFile>(static_cast<size_t>(ranks), 0,
                                                                 context, write_unless_stopped));
    return {};
  }

  Result<RankFile> WriteTrace(const Trace& trace, int64_t rank) const {
    const std::string path = fmt::format("{}.{}.et", request_.output, rank);
    ETUDE_ASSIGN_OR_RETURN(const ChakraWriteReport report, WriteChakraFile(trace, path));
    return RankFile{.path = path, .nodes = report.nodes, .bytes = report.bytes};
  }

  GenerateRequest request_;
  MicrobenchOptions bench_;
  std::optional<DeviceModel> device_;
  WrittenJob written_;
};

}  // namespace

Result<WrittenJob> GenerateJob(const GenerateRequest& request, const RunContext& context) {
  return JobGenerator(request).Run(context);
}

Result<RequestedPlan> PlanOfRequest(const GenerateRequest& request, const RunContext& context) {
  GenerateRequest unwritten = request;
  unwritten.output = "job";
  return JobGenerator(std::move(unwritten)).Plan(context);
}

Result<GenerateRequest> WithFiles(GenerateRequest request, const RunContext& context) {
  if (FindModelKind(request.what) == nullptr) return request;
  std::optional<std::string>& model = request.options.model_text;
  if (!model && request.model.ends_with(".toml")) {
    ETUDE_ASSIGN_OR_RETURN(model, ReadWholeFile(request.model, context.limits));
  }
  if (request.device && !request.device_text && request.device->ends_with(".toml")) {
    ETUDE_ASSIGN_OR_RETURN(request.device_text, ReadWholeFile(*request.device, context.limits));
  }
  if (!request.measured || request.measured_text) return request;
  if (request.measured->ends_with(".csv") || request.measured->ends_with(".CSV")) {
    ETUDE_ASSIGN_OR_RETURN(const std::string text,
                           ReadWholeFile(*request.measured, context.limits));
    request.measured_text = text;
    if (text.starts_with(OperatorTableHeading())) {
      ETUDE_ASSIGN_OR_RETURN(const OperatorTable table,
                             ParseOperatorTable(text, *request.measured));
      ETUDE_ASSIGN_OR_RETURN(const MeasuredProducts products,
                             MeasuredProducts::Of(table, *request.measured));
      request.measured_text = products.ToCsv();
    }
    return request;
  }
  ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadTrace(*request.measured, {}, context));
  ETUDE_ASSIGN_OR_RETURN(const MeasuredProducts products,
                         MeasuredProducts::Of(trace, *request.measured));
  request.measured_text = products.ToCsv();
  return request;
}

Fits CheckGenerate(const GenerateRequest& request, const RunContext& context) {
  GenerateRequest unwritten = request;
  unwritten.output = "job";
  return JobGenerator(std::move(unwritten)).Check(context);
}

Status CheckGenerateWhat(std::string_view what) {
  if (what == "microbench" || what == "text" || FindModelKind(what) != nullptr) return {};
  return MakeError(ErrorCode::kUsage,
                   fmt::format("found '{}', expected {}", what, GenerateWhatText()));
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
                  hint.empty() ? fmt::format("; expected {}", fmt::join(names, ", ")) : hint));
}

Status CheckGenerateDevice(const std::string& device) {
  if (device.ends_with(".toml") || FindDevice(device)) return {};
  std::vector<std::string> names;
  for (const DevicePreset& preset : DevicePresets()) names.emplace_back(preset.name);
  const std::string hint = DidYouMean(device, names);
  return MakeError(ErrorCode::kUsage,
                   fmt::format("unknown device '{}'{}", device,
                               hint.empty() ? fmt::format("; expected {}, or a .toml file",
                                                          fmt::join(names, ", "))
                                            : hint));
}

std::string GenerateWhatText() {
  std::string text = "microbench, text";
  const std::span<const ModelKind> kinds = ModelKinds();
  for (const ModelKind& kind : kinds) {
    text += fmt::format("{}{}", &kind == &kinds.back() ? " or " : ", ", kind.name);
  }
  return text;
}

}  // namespace etude
