#include "src/jobs/what_if.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/quantity.h"
#include "src/formats/io/atomic_file.h"
#include "src/jobs/edits/layer_memory.h"
#include "src/jobs/output_files.h"
#include "src/report/text/format.h"
#include "src/report/text/json_output.h"
#include "src/transform/layers/layer_count.h"
#include "src/transform/operators/operator_class.h"
#include "src/transform/runnable/gradient_communication.h"
#include "src/transform/runnable/runnable_job.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;

constexpr DocumentKind kDocument{.name = "a list of edits", .format = "etude-whatif"};
constexpr int64_t kMostRanks = int64_t{1} << 20;
constexpr int64_t kMostLayers = 100'000;
constexpr uint64_t kMostNodes = 30'000'000;  // of all ranks: about 10 GB

Result<Bytes> ParseBucket(std::string_view option, const std::string& text) {
  const std::optional<Bytes> bytes = ParseBytesWithUnit(text);
  if (bytes && bytes->count > 0) return *bytes;
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("{}: found '{}', expected a size with a unit, such as 25MiB", option, text));
}

Result<SizePoints> ParsePoints(const std::string& text) {
  std::vector<double> values;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const auto value = ParseDecimal(word);
    if (!value || *value <= 0) break;
    values.push_back(*value);
  }
  if (values.size() == 3 && values[0] != values[1] && rest.empty()) {
    return SizePoints{.first = values[0], .second = values[1], .wanted = values[2]};
  }
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--sizes: found '{}', expected a size in the job, another one in "
                               "--second, and the wanted one, such as 8,16,64",
                               text));
}

bool Communicates(const Trace& trace) {
  bool found = false;
  ForEachNode(trace, [&](NodeId node) { found = found || IsCommunication(trace.kind(node)); });
  return found;
}

// Returns the options for buckets as given.
std::string BucketEdit(const WhatIfOptions& options) {
  std::string text = options.bucket.empty() ? "" : "--bucket " + options.bucket;
  if (options.first_bucket.empty()) return text;
  return text + (text.empty() ? "" : " ") + "--first-bucket " + options.first_bucket;
}

Json MemoryJson(const EditedMemory& memory) {
  Json rows = Json::array();
  for (const auto& [device, before] : memory.before) {
    Json& row = rows.emplace_back();
    row = {{"device", device}, {"before_bytes", before.count}, {"after_bytes", nullptr}};
    const auto after = memory.after.find(device);
    if (after != memory.after.end()) row["after_bytes"] = after->second.count;
  }
  return rows;
}

// Returns the refusal of `option`, whose buckets an element type would change.
tl::unexpected<Error> BucketsOfType(std::string_view option) {
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{} cannot be combined with --dtype: gradients are divided into "
                               "buckets by their recorded bytes; record the job with that type",
                               option));
}

// Returns kUsage for edits of recorded communication, or of sizes of tensors that stages send.
Status CheckWithPipeline(const WhatIfOptions& options) {
  const auto refuse = [](std::string_view option, std::string_view reason) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{} cannot be combined with --pp: {}", option, reason));
  };
  constexpr std::string_view kRecorded = "it edits recorded communication of gradients";
  if (!options.communication.overlap.empty()) return refuse("--overlap", kRecorded);
  if (!options.communication.compress.empty()) return refuse("--compress", kRecorded);
  if (options.device.dtype.empty()) return {};
  return refuse("--dtype",
                "stages send tensors of their recorded bytes; record the job with that type");
}

// Returns kUsage for edits that tensor parallelism does not combine with.
Status CheckWithTensors(const WhatIfOptions& options) {
  const auto refuse = [](std::string_view option, std::string_view reason) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{} cannot be combined with --tp: {}", option, reason));
  };
  constexpr std::string_view kRecorded = "it edits recorded communication of gradients";
  if (!options.pipeline.empty()) return refuse("--pp", "stages are those of a rank without it");
  if (!options.communication.overlap.empty()) return refuse("--overlap", kRecorded);
  if (!options.communication.compress.empty()) return refuse("--compress", kRecorded);
  const bool has_times = options.measure || !options.operators.empty();
  constexpr std::string_view kOneEdit = "operators are measured for one of these edits";
  if (has_times && !options.sizes.empty()) return refuse("--sizes", kOneEdit);
  if (has_times && !options.dimensions.empty()) return refuse(TextOf(options.dimensions), kOneEdit);
  return {};
}

// Returns the key of the operator that takes longest; one without a name if no key is known.
OperatorKey LongestOperator(const std::vector<Trace>& traces) {
  OperatorKey longest;
  Nanos time;
  for (const Trace& trace : traces) {
    ForEachNode(trace, [&](NodeId node) {
      const Nanos taken = trace.duration(node).value_or(Nanos{});
      if (taken <= time && !longest.name.empty()) return;
      std::optional<OperatorKey> key = KeyOf(trace, node);
      if (!key) return;
      longest = *std::move(key);
      time = taken;
    });
  }
  return longest;
}

// Returns whether a collective's bytes of a rank do not depend on the number of ranks.
bool IsIndependentOfRanks(CollectiveType type) {
  return type == CollectiveType::kAllReduce || type == CollectiveType::kBroadcast ||
         type == CollectiveType::kBarrier;
}

}  // namespace

Json ToJson(const Changes& changes) {
  Json edits = Json::array();
  for (const AppliedEdit& edit : changes.edits) {
    Json& row = edits.emplace_back();
    row = {{"edit", edit.edit},
           {"certainty", Name(edit.certainty)},
           {"nodes", edit.nodes},
           {"text", edit.text}};
    if (!edit.details.is_null()) row.update(edit.details);
  }
  Json json = {{"format", kDocument.format},           {"version", kDocument.version},
               {"sources", changes.sources},           {"ranks", changes.ranks},
               {"times_known", changes.times_known},   {"edits", std::move(edits)},
               {"memory", MemoryJson(changes.memory)}, {"notes", changes.notes}};
  const auto step = [&](const char* key, std::optional<Nanos> time) {
    if (time) json[key] = time->count;
  };
  step("recorded_step_ns", changes.recorded_step);
  step("program_step_ns", changes.program_step);
  if (changes.core_share < 1) json["core_share"] = changes.core_share;
  if (changes.capacity) {
    const std::optional<bool> fits = TensorsFit(changes.memory, changes.capacity->bytes);
    json["capacity"] = {{"device", changes.capacity->device},
                        {"bytes", changes.capacity->bytes.count},
                        {"tensors_fit", fits ? Json(*fits) : Json(nullptr)}};
  }
  return json;
}

Status WriteChanges(const Changes& changes, const std::string& folder) {
  return ReplaceFile(fmt::format("{}/{}", folder, kChangesFile), JsonText(ToJson(changes)));
}

ComparedStep BeforeEdit(const EditedFrom& from) {
  const auto step = from.program_step ? from.program_step : from.recorded_step;
  return {.job = "before the edit",
          .measured = step ? std::optional(step->count) : std::nullopt,
          .simulated = std::nullopt,
          .mean = {},
          .is_compared = false};
}

std::vector<EditLine> ReadEditLines(const JsonMembers& document) {
  std::vector<EditLine> edits;
  for (const JsonMembers& one : document.Objects("edits")) {
    edits.push_back({.edit = one.Text("edit").value_or(""),
                     .certainty = one.Text("certainty").value_or(""),
                     .text = one.Text("text").value_or("")});
  }
  return edits;
}

Result<std::optional<EditedFrom>> ReadEditedFrom(const std::string& folder,
                                                 const RunContext& context) {
  const std::string path = fmt::format("{}/{}", folder, kChangesFile);
  if (!IsThere(path)) return std::nullopt;
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json document, ReadDocument(path, kDocument, context));
  Status status;
  const JsonMembers members(path, document, status);
  EditedFrom from{.times_known = members.Truth("times_known").value_or(false)};
  const auto step = [&](const char* key) -> std::optional<Nanos> {
    const auto time = members.Whole(key, 0);
    return time ? std::optional(Nanos{*time}) : std::nullopt;
  };
  from.recorded_step = step("recorded_step_ns");
  from.program_step = step("program_step_ns");
  from.core_share = members.Number("core_share").value_or(1);
  if (!(from.core_share > 0 && from.core_share <= 1)) {
    return BadInput(fmt::format("{}: core_share: found {}, expected above 0 and at most 1", path,
                                from.core_share));
  }
  from.edits = ReadEditLines(members);
  for (const JsonMembers& row : members.Objects("memory")) {
    const std::string device = row.Text("device").value_or("");
    const auto peak = [&](const char* key, TensorPeaks& peaks) {
      if (const auto bytes = row.Whole(key, 0)) peaks[device] = Bytes{*bytes};
    };
    peak("before_bytes", from.memory.before);
    peak("after_bytes", from.memory.after);
  }
  ETUDE_RETURN_IF_ERROR(status);
  return from;
}

Result<WhatIf> WhatIf::Make(const WhatIfOptions& options) {
  WhatIf made;
  made.options_ = options;
  if (options.second.empty() != options.sizes.empty()) {
    return MakeError(ErrorCode::kUsage, "--second and --sizes require each other");
  }
  if (!options.sizes.empty()) {
    ETUDE_ASSIGN_OR_RETURN(made.points_, ParsePoints(options.sizes));
  }
  if (options.layers) {
    ETUDE_RETURN_IF_ERROR(CheckNumber("--layers", *options.layers, kMostLayers));
  }
  if (options.data_parallel) {
    ETUDE_RETURN_IF_ERROR(CheckNumber("--dp", *options.data_parallel, kMostRanks));
  }
  if (!options.bucket.empty()) {
    ETUDE_ASSIGN_OR_RETURN(made.buckets_.other, ParseBucket("--bucket", options.bucket));
    made.buckets_.first = made.buckets_.other;  // the first one is smaller by default only
  }
  if (!options.first_bucket.empty()) {
    ETUDE_ASSIGN_OR_RETURN(made.buckets_.first,
                           ParseBucket("--first-bucket", options.first_bucket));
  }
  if (!options.device.dtype.empty()) {
    if (!options.bucket.empty()) return BucketsOfType("--bucket");
    if (!options.first_bucket.empty()) return BucketsOfType("--first-bucket");
  }
  if (!options.recorded_operators.empty() && options.operators.empty()) {
    return MakeError(ErrorCode::kUsage, "--recorded-operators requires --operators");
  }
  if (!options.dimensions.empty() && !options.sizes.empty()) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{} cannot be combined with --sizes: either one or two recordings "
                                 "determine the sizes",
                                 TextOf(options.dimensions)));
  }
  if (options.measure && !options.resizes()) {
    return MakeError(
        ErrorCode::kUsage,
        "--measure requires other sizes (--sizes, --batch, …) or --tp, whose operators "
        "it measures");
  }
  ETUDE_ASSIGN_OR_RETURN(made.pipeline_, PipelineEdit::Make(options.pipeline));
  if (made.pipeline_) ETUDE_RETURN_IF_ERROR(CheckWithPipeline(options));
  ETUDE_ASSIGN_OR_RETURN(made.tensor_, TensorEdit::Make(options.tensor_parallel));
  if (made.tensor_) ETUDE_RETURN_IF_ERROR(CheckWithTensors(options));
  ETUDE_ASSIGN_OR_RETURN(made.communication_, CommEdits::Make(options.communication));
  ETUDE_ASSIGN_OR_RETURN(made.device_, DeviceEdits::Make(options.device));
  Result<TimeScale> scale = TimeScale::Parse(options.scale);
  if (!scale) return MakeError(ErrorCode::kUsage, "--scale: " + scale.error().message);
  made.scale_ = *std::move(scale);
  if (made.scale_.OfCommunication() != 1) {
    return MakeError(ErrorCode::kUsage,
                     "--scale: found comm, whose time follows from the network; use "
                     "`etude simulate --network`");
  }
  made.scaled_ = {.edit = "--scale " + options.scale, .certainty = Certainty::kModelled};
  for (const std::string& name : options.drop) {
    made.dropped_.push_back({.edit = "--drop " + name,
                             .certainty = Certainty::kModelled,
                             .text = "own time 0; the operators that it calls stay"});
  }
  return made;
}

Status WhatIf::EditSizes(std::vector<Trace>& traces, const std::vector<Trace>& second,
                         const Limits& limits) {
  const auto [low, high] = std::minmax(points_->first, points_->second);
  const bool is_between = points_->wanted >= low && points_->wanted <= high;
  sizes_ = {.edit = fmt::format("--second {} --sizes {}", options_.second, options_.sizes),
            .certainty = is_between ? Certainty::kInterpolated : Certainty::kModelled};
  if (second.size() != traces.size()) {
    return BadInput(fmt::format("--second: found {}, expected {} as in the job",
                                FormatCount(second.size(), "rank"), FormatCount(traces.size())));
  }
  uint64_t retimed = 0;
  for (size_t i = 0; i < traces.size(); ++i) {
    Result<SizeEdit> edited = AtOtherSize(traces[i], second[i], *points_, limits);
    if (!edited) return MakeError(edited.error().code, "--second: " + edited.error().message);
    sizes_.nodes += edited->resized;
    retimed += edited->retimed;
    ETUDE_ASSIGN_OR_RETURN(std::optional<Trace> timed,
                           TakeTimes(i, traces[i], edited->trace, edited->is_retimed, limits));
    traces[i] = timed ? *std::move(timed) : std::move(edited->trace);
  }
  if (sizes_.nodes == 0) {
    return BadInput("--second: found the same sizes in both recordings, expected others");
  }
  sizes_.details = {{"retimed", retimed}};
  sizes_.text = fmt::format("{} with other sizes, {} with times by their work",
                            FormatCount(sizes_.nodes, "operator"), FormatCount(retimed));
  if (tables_ || measure_) DescribeTimes(sizes_);
  return {};
}

Result<std::optional<Trace>> WhatIf::TakeTimes(size_t rank, const Trace& recorded,
                                               const Trace& edited,
                                               const std::vector<bool>& is_estimated,
                                               const Limits& limits) {
  if (!measure_ && !tables_) return std::nullopt;
  bool has_device = false;
  ForEachNode(recorded, [&](NodeId node) {
    has_device = has_device || recorded.place(node) == Place::kDevice;
  });
  if (has_device) {
    return BadInput(fmt::format(
        "{}: found work on a device, expected a job on CPUs, whose operators can be measured",
        measure_ ? "--measure" : "--operators"));
  }
  if (measure_) {
    ETUDE_ASSIGN_OR_RETURN(tables_,
                           measure_(rank, recorded, edited, ChangedOperators(recorded, edited)));
    failures_.merge(tables_->failures);
  }
  ETUDE_ASSIGN_OR_RETURN(
      OperatorTimesEdit taken,
      WithOperatorTimes(recorded, edited, is_estimated, /*all=*/&recorded == &edited,
                        {.times = tables_->times, .recorded = tables_->recorded}, limits));
  taken_.measured += taken.measured;
  taken_.estimated += taken.estimated;
  taken_.kept += taken.kept;
  taken_.without_ratio += taken.without_ratio;
  taken_.wanted_time = taken_.wanted_time + taken.wanted_time;
  taken_.measured_time = taken_.measured_time + taken.measured_time;
  for (const auto& [name, count] : taken.missing) taken_.missing[name] += count;
  return std::move(taken.trace);
}

void WhatIf::DescribeTimes(AppliedEdit& edit) const {
  const std::string estimate(Name(edit.certainty));
  if (taken_.measured > 0 && taken_.missing.empty()) edit.certainty = Certainty::kMeasured;
  Json missing = Json::array();
  for (const auto& [name, count] : taken_.missing) {
    Json& row = missing.emplace_back();
    row = {{"operator", name}, {"count", count}};
    const auto failure = failures_.find(name);
    if (failure != failures_.end()) row["reason"] = failure->second;
  }
  Json measured_share = nullptr;
  edit.text += fmt::format("; {} measured", FormatCount(taken_.measured, "operator"));
  if (taken_.wanted_time > Nanos{}) {
    const double share = static_cast<double>(taken_.measured_time.count) /
                         static_cast<double>(taken_.wanted_time.count);
    measured_share = share;
    edit.text += fmt::format(" with {:.1f} % of their recorded time", share * 100);
  }
  edit.details["operators"] = {{"measured", taken_.measured},
                               {"without_ratio", taken_.without_ratio},
                               {estimate, taken_.estimated},
                               {"unknown", taken_.kept},
                               {"measured_share", std::move(measured_share)},
                               {"not_measured", std::move(missing)}};
  if (taken_.estimated > 0) {
    edit.text += fmt::format(", {} {}", FormatCount(taken_.estimated), estimate);
  }
  if (taken_.kept > 0) edit.text += fmt::format(", {} as recorded", FormatCount(taken_.kept));
  if (!taken_.missing.empty()) edit.text += ", such as " + taken_.missing.begin()->first;
}

Status WhatIf::TakeAllTimes(std::vector<Trace>& traces, const Limits& limits) {
  operators_ = {.edit = "--operators " + options_.operators, .certainty = Certainty::kModelled};
  for (size_t i = 0; i < traces.size(); ++i) {
    ETUDE_ASSIGN_OR_RETURN(std::optional<Trace> timed,
                           TakeTimes(i, traces[i], traces[i], {}, limits));
    if (timed) traces[i] = *std::move(timed);
  }
  operators_.nodes = taken_.measured;
  if (taken_.measured == 0) {
    const OperatorKey example = LongestOperator(traces);
    return BadInput(
        example.name.empty()
            ? fmt::format("{}: the job lacks sizes or types of its operators", operators_.edit)
            : fmt::format("{}: found no time of an operator of the job, expected one such as {} "
                          "with the arguments {}",
                          operators_.edit, example.name, example.arguments));
  }
  operators_.text = options_.recorded_operators.empty()
                        ? "times of the table"
                        : fmt::format("recorded times, changed by the ratio of the table to {}",
                                      options_.recorded_operators);
  DescribeTimes(operators_);
  return {};
}

Status WhatIf::EditDimensions(std::vector<Trace>& traces, const Limits& limits) {
  ETUDE_ASSIGN_OR_RETURN(AppliedDimensions made,
                         etude::EditDimensions(traces, options_.dimensions, limits));
  dimensions_ = std::move(made.applied);
  ETUDE_ASSIGN_OR_RETURN(std::optional<Trace> timed, TakeTimes(0, traces.front(), made.edit.trace,
                                                               made.edit.is_retimed, limits));
  traces.front() = timed ? *std::move(timed) : std::move(made.edit.trace);
  if (tables_ || measure_) DescribeTimes(dimensions_);
  return {};
}

Status WhatIf::EditLayers(std::vector<Trace>& traces, const Limits& limits) {
  layers_ = {.edit = fmt::format("--layers {}", *options_.layers), .certainty = Certainty::kExact};
  if (finds_memory_) peaks_.emplace();
  for (Trace& trace : traces) {
    Result<LayerEdit> edited = SetLayerCount(trace, *options_.layers, limits);
    if (!edited) return MakeError(edited.error().code, "--layers: " + edited.error().message);
    if (peaks_) {
      // Memory that is gathered for the next layer lives otherwise in the first and last one.
      const auto peaks = edited->gathers ? std::nullopt
                                         : MemoryOfLayers(trace, edited->stack,
                                                          static_cast<size_t>(*options_.layers));
      if (peaks) TakeMax(*peaks, *peaks_);
      if (!peaks) peaks_.reset();
    }
    trace = std::move(edited->trace);
    if (tensor_.divides()) tensor_.FollowLayers(trace, edited->origins);
    layers_.nodes += edited->nodes;
    const LayerStack& stack = edited->stack;
    Json& repetitions = layers_.details["repetitions"] = Json::array();
    size_t operators = 0;
    for (const LayerRun& run : stack.runs) {
      repetitions.push_back({{"operators", run.operators},
                             {"layers", run.layers.size()},
                             {"backward", run.in_backward}});
      operators += run.operators;
    }
    layers_.details["layers"] = stack.layers;
    layers_.details["list_operators"] = stack.lists.size();
    layers_.details["modules"] = edited->modules;
    layers_.details["others"] = stack.others;
    Json& other_layers = layers_.details["other_layers"] = Json::array();
    for (const OtherLayers& other : stack.other_layers) {
      other_layers.push_back({{"layers", other.layers}, {"first", other.first}});
    }
    const bool may_lack = !stack.others.empty() || !stack.other_layers.empty();
    if (may_lack) layers_.certainty = Certainty::kModelled;
    layers_.text = fmt::format(
        "{} instead of {}{}, each of {} in {}, with the times of the recorded ones",
        FormatCount(static_cast<uint64_t>(*options_.layers), "layer"), FormatCount(stack.layers),
        edited->modules.empty()
            ? std::string()
            : fmt::format(" ({} to {})", edited->modules.front(), edited->modules.back()),
        FormatCount(operators, "operator"), FormatCount(stack.runs.size(), "repetition"));
    if (!stack.lists.empty()) {
      layers_.text += fmt::format("; {} on lists of tensors with times by their bytes",
                                  FormatCount(stack.lists.size(), "operator"));
    }
    for (const OtherLayers& other : stack.other_layers) {
      layers_.text += fmt::format("; {} from {} on stay", FormatCount(other.layers, "other layer"),
                                  other.first);
    }
    if (!stack.others.empty()) {
      layers_.text += fmt::format("; others that repeat as often stay: {}{}", stack.others.front(),
                                  stack.others.size() > 1 ? ", …" : "");
    }
  }
  return {};
}

Status WhatIf::EditTraces(std::vector<Trace>& traces, const std::vector<Trace>& second,
                          const Limits& limits) {
  ETUDE_RETURN_IF_ERROR(EditStep(traces, second, limits));
  // Copies of layers and micro-batches use the tensors of the recorded ones.
  if (finds_memory_ && !options_.layers && !pipeline_) peaks_ = TensorPeaksOf(traces);
  return {};
}

Status WhatIf::EditStep(std::vector<Trace>& traces, const std::vector<Trace>& second,
                        const Limits& limits) {
  recorded_ = traces.size();
  if (points_) {
    ETUDE_RETURN_IF_ERROR(EditSizes(traces, second, limits));
  } else if (!options_.dimensions.empty()) {
    ETUDE_RETURN_IF_ERROR(EditDimensions(traces, limits));
  } else if (tables_ && !options_.resizes()) {
    ETUDE_RETURN_IF_ERROR(TakeAllTimes(traces, limits));
  }
  if (tensor_.divides()) ETUDE_RETURN_IF_ERROR(DivideWeights(traces, limits));
  if (options_.layers && !pipeline_) ETUDE_RETURN_IF_ERROR(EditLayers(traces, limits));
  const bool communicates = traces.size() != 1 || Communicates(traces.front());
  if (!options_.bucket.empty() || !options_.first_bucket.empty()) {
    if (communicates) {
      communication_.SetBuckets(buckets_, BucketEdit(options_));
    } else if (!options_.data_parallel) {
      return BadInput(
          "--bucket: found one rank without communication, expected --dp, too, or a job that "
          "reduces gradients");
    }
  }
  if (pipeline_) return DivideIntoStages(traces);
  if (options_.data_parallel) ETUDE_RETURN_IF_ERROR(AddReplicas(traces, communicates, limits));
  if (!tensor_.divides()) return {};
  ETUDE_ASSIGN_OR_RETURN(traces.front(), tensor_.AddCommunication(traces.front(), limits));
  if (tables_ || measure_) DescribeTimes(tensor_.applied());
  return {};
}

Status WhatIf::DivideWeights(std::vector<Trace>& traces, const Limits& limits) {
  ETUDE_RETURN_IF_ERROR(tensor_.Divide(traces, limits));
  Trace divided = tensor_.TakeTrace();
  ETUDE_ASSIGN_OR_RETURN(std::optional<Trace> timed,
                         TakeTimes(0, traces.front(), divided, tensor_.is_retimed(), limits));
  traces.front() = timed ? *std::move(timed) : std::move(divided);
  return {};
}

Status WhatIf::AddReplicas(std::vector<Trace>& traces, bool communicates, const Limits& limits) {
  parallel_.edit = fmt::format("--dp {}", *options_.data_parallel);
  parallel_.certainty = Certainty::kExact;
  // The ranks of several recorded ones are made one by one before they become classes.
  uint64_t nodes = 0;
  for (const Trace& trace : traces) nodes = std::max<uint64_t>(nodes, trace.node_count());
  const bool is_made_once = traces.size() == 1 && !needs_all_ranks();
  const auto ranks = static_cast<uint64_t>(*options_.data_parallel * tensor_.ranks());
  if (!is_made_once && nodes > kMostNodes / ranks) {
    return BadInput(fmt::format("--dp: found {} of {}, expected at most {} in all",
                                FormatCount(ranks, "rank"), FormatCount(nodes, "node"),
                                FormatCount(kMostNodes, "node")));
  }
  if (communicates) return {};
  if (!options_.device.dtype.empty()) return BucketsOfType("--dp of a job of one rank");
  ETUDE_ASSIGN_OR_RETURN(
      GradientReduction reduced,
      AddGradientReduction(traces.front(), *options_.data_parallel, buckets_, limits));
  traces.front() = std::move(reduced.trace);
  is_reduction_added_ = true;
  int64_t bytes = 0;
  for (const std::vector<GradientBucket>& pass : reduced.passes) {
    parallel_.nodes += pass.size();
    for (const GradientBucket& bucket : pass) bytes += bucket.bytes.count;
  }
  parallel_.nodes += static_cast<uint64_t>(reduced.copies);
  // The program would copy gradients, too.
  if (reduced.copies == 0) parallel_.certainty = Certainty::kModelled;
  parallel_.details = {{"buckets", BucketsJson(reduced.passes)}, {"copies", reduced.copies}};
  parallel_.text = fmt::format(
      "{} of gradients, {} in all, as DistributedDataParallel makes them after its first step; "
      "the batch per rank stays; {}",
      FormatCount(parallel_.nodes - static_cast<uint64_t>(reduced.copies), "all-reduce"),
      FormatBytes(Bytes{bytes}),
      reduced.copies == 0
          ? std::string("copies between gradients and buckets are not added")
          : FormatCount(static_cast<uint64_t>(reduced.copies), "copy", "copies") +
                " between gradients and buckets, with times modelled by the recorded operators");
  return {};
}

Status WhatIf::DivideIntoStages(const std::vector<Trace>& traces) {
  if (traces.size() != 1) {
    return BadInput(fmt::format(
        "--pp: found a job of {}, expected one rank, whose layers are divided into stages; nearest "
        "possible: --dp, which resizes data-parallel ranks",
        FormatCount(traces.size(), "rank")));
  }
  if (finds_memory_) pipeline_.FindMemory();
  return pipeline_.Divide(traces.front(), options_.layers, options_.data_parallel.value_or(1),
                          buckets_);
}

Status WhatIf::EditRank(const Trace& trace, RunnableRank& rank) {
  ETUDE_RETURN_IF_ERROR(communication_.EditBuckets(trace, rank));
  const bool is_resized = options_.data_parallel && !is_reduction_added_ && !pipeline_;
  if (is_resized) ETUDE_RETURN_IF_ERROR(ResizeGroups(trace, rank));
  ETUDE_RETURN_IF_ERROR(device_.EditTypes(trace, rank));
  ETUDE_RETURN_IF_ERROR(communication_.EditRank(trace, rank));
  ETUDE_RETURN_IF_ERROR(device_.EditWork(trace, rank));
  ChangeTimes(rank);
  ETUDE_RETURN_IF_ERROR(device_.EditLaunches(trace, rank));
  return pipeline_ ? pipeline_.EditRank(trace, rank) : Status();
}

Status WhatIf::EditRanks(std::vector<RunnableRank>& ranks, int64_t world_size, bool fills) {
  if (pipeline_) ranks = pipeline_.TakeRanks();
  if (has_replicated_groups()) {
    ranks = tensor_.Replicate(ranks.front(), *options_.data_parallel);
  }
  if (communication_.needs_all_ranks() && fills) {
    ETUDE_RETURN_IF_ERROR(FillRanks(world_size, ranks));
  }
  return communication_.EditRanks(ranks, world_size);
}

Status WhatIf::ResizeGroups(const Trace& trace, RunnableRank& rank) {
  const auto refuse = [&](const std::string& found) {
    return BadInput(fmt::format(
        "--dp: found {}, expected a job whose ranks all do the same and only reduce gradients: "
        "other kinds of parallelism are not resized",
        found));
  };
  if (const auto found = FindActivationReduction(trace, rank)) {
    return refuse(fmt::format("'{}' of gradients of activations, as of tensor parallelism",
                              rank.names[rank.nodes[*found].name]));
  }
  for (RunnableNode& node : rank.nodes) {
    if (!IsCommunication(node.kind)) continue;
    if (node.kind != NodeKind::kCollective) return refuse("a message between two ranks");
    if (!IsIndependentOfRanks(node.type)) {
      return refuse(fmt::format("'{}' of shards", rank.names[node.name]));
    }
    node.group_size = options_.data_parallel;
    ++parallel_.nodes;
  }
  for (RunnableGroup& group : rank.groups) {
    const bool is_all = !group.ranks || group.ranks->empty() || group.ranks->size() == recorded_;
    if (!is_all) return refuse(fmt::format("a group of {} ranks", group.ranks->size()));
    group.ranks.emplace();
    group.size = options_.data_parallel;
  }
  rank.world_size = options_.data_parallel;
  parallel_.text = fmt::format("collectives of {} instead of {}; the batch per rank stays",
                               FormatCount(static_cast<uint64_t>(*options_.data_parallel), "rank"),
                               FormatCount(recorded_));
  return {};
}

TensorPeaks WhatIf::PeaksAfter() const {
  // Other types and fused operators change no tensors here.
  if (!options_.device.dtype.empty() || !options_.device.fuse.empty()) return {};
  return (pipeline_ ? pipeline_.peaks() : peaks_).value_or(TensorPeaks());
}

void WhatIf::ChangeTimes(RunnableRank& rank) {
  if (options_.scale.empty() && dropped_.empty()) return;
  for (RunnableNode& node : rank.nodes) {
    if (IsCommunication(node.kind) || !node.duration) continue;
    const std::string& name = rank.names[node.name];
    const bool is_label = node.kind == NodeKind::kLabel;
    const double factor =
        is_label ? scale_.OfHost(0) : scale_.Of({.name = name, .communicates = false}, 0);
    if (factor != 1) {
      node.duration =
          Nanos{static_cast<int64_t>(static_cast<double>(node.duration->count) * factor + 0.5)};
      ++scaled_.nodes;
    }
    for (size_t i = 0; i < dropped_.size(); ++i) {
      if (is_label || !MeansOperator(options_.drop[i], name, false)) continue;
      node.duration = Nanos{};
      ++dropped_[i].nodes;
    }
  }
}

Result<std::vector<AppliedEdit>> WhatIf::Applied() const {
  std::vector<AppliedEdit> edits;
  const auto add = [&](std::vector<AppliedEdit> more) {
    edits.insert(edits.end(), more.begin(), more.end());
  };
  if (points_) edits.push_back(sizes_);
  if (!options_.dimensions.empty()) edits.push_back(dimensions_);
  if (tables_ && !options_.resizes()) edits.push_back(operators_);
  if (tensor_) edits.push_back(tensor_.applied());
  if (options_.layers) edits.push_back(pipeline_ ? pipeline_.AppliedToLayers() : layers_);
  add(communication_.AppliedToBuckets());
  if (pipeline_) edits.push_back(pipeline_.Applied());
  if (options_.data_parallel) {
    edits.push_back(
        pipeline_ ? pipeline_.AppliedToReplicas(fmt::format("--dp {}", *options_.data_parallel))
                  : parallel_);
  }
  add(device_.AppliedToTypes());
  add(communication_.Applied());
  add(device_.AppliedToWork());
  if (!options_.scale.empty()) {
    if (scaled_.nodes == 0 && !scale_.is_identity()) {
      return BadInput(fmt::format("{}: found no node that this changes", scaled_.edit));
    }
    edits.push_back(scaled_);
    edits.back().text = "times multiplied by the given factors";
  }
  for (const AppliedEdit& edit : dropped_) {
    if (edit.nodes == 0) {
      return BadInput(fmt::format("{}: found no operator of this name", edit.edit));
    }
    edits.push_back(edit);
  }
  add(device_.AppliedToLaunches());
  add(communication_.AppliedToAll());
  return edits;
}

}  // namespace etude
