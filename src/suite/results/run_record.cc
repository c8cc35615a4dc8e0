#include "src/suite/results/run_record.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "src/base/statistics/median.h"
#include "src/formats/io/byte_source.h"
#include "src/formats/json/json_document.h"
#include "src/report/text/json_output.h"
#include "src/suite/results/hyperparameters.h"

namespace etude::suite {
namespace {

using Json = nlohmann::ordered_json;

constexpr DocumentKind kDocument{.name = "a run of the suite", .format = "etude-suite-run"};

std::vector<double> Numbers(const JsonMembers& members, const char* key) {
  std::vector<double> numbers;
  for (const nlohmann::json& number : members.List(key)) {
    if (number.is_number()) {
      numbers.push_back(number.get<double>());
    } else {
      members.Refuse(key, "numbers");
    }
  }
  return numbers;
}

RunRecord Parse(const JsonMembers& run) {
  RunRecord record;
  const auto text = [&](const char* key) { return run.Text(key).value_or(""); };
  const auto whole = [&](const char* key) { return run.Whole(key, 0).value_or(0); };
  const auto number = [&](const char* key) { return run.Number(key).value_or(0); };
  record.task = text("id");
  record.aibench = text("aibench");
  record.scale = text("scale");
  record.mode = text("mode");
  record.seed = whole("seed");
  record.device = text("device");
  record.precision = text("precision");
  record.ranks = whole("ranks");
  record.threads = whole("threads");
  record.batch = whole("batch");
  record.samples = whole("samples");
  record.evaluate_every = run.Whole("evaluate_every", 1);
  record.parameters = whole("parameters");
  record.optimizer = text("optimizer");
  const JsonMembers settings = run.Object("settings");
  if (!settings.json().is_null()) record.settings = ParseNamedTexts(settings);
  record.data_set = text("data_set");
  record.metric = text("metric");
  record.higher_is_better = run.Truth("higher_is_better").value_or(true);
  record.target = run.Number("target");
  record.target_origin = text("target_origin");
  record.baseline = run.Number("baseline");
  record.complete = run.Truth("complete").value_or(false);
  record.reached = run.Truth("reached").value_or(false);
  record.quality = run.Number("quality");
  for (const auto& [name, value] : run.Object("figures").json().items()) {
    if (value.is_number()) record.figures.push_back({name, value.get<double>()});
    if (value.is_string()) {
      record.figures.push_back({.name = name, .text = value.get<std::string>()});
    }
  }
  record.steps = whole("steps");
  record.started = number("started");
  record.seconds = number("seconds");
  record.evaluation_seconds = number("evaluation_seconds");
  record.setup_seconds = number("setup_seconds");
  record.energy_j = run.Number("energy_j");
  record.why_no_energy = text("why_no_energy");
  record.skipped_steps = whole("skipped_steps");
  record.loss_scale = run.Number("loss_scale");
  record.underflow = run.Number("underflow_share");
  record.peak_bytes = run.Whole("peak_bytes", 0);
  for (const JsonMembers& point : run.Objects("curve")) {
    record.curve.push_back({.step = point.Whole("step", 0).value_or(0),
                            .seconds = point.Number("seconds").value_or(0),
                            .evaluation_seconds = point.Number("evaluation_seconds").value_or(0),
                            .quality = point.Number("quality").value_or(std::nan("")),
                            .loss = point.Number("loss")});
  }
  record.step_seconds = Numbers(run, "step_seconds");
  if (const JsonMembers counters = run.Object("counters"); !counters.json().is_null()) {
    record.counters = StepCounters{.instructions = counters.Number("instructions"),
                                   .cycles = counters.Number("cycles"),
                                   .cache_misses = counters.Number("cache_misses"),
                                   .branch_misses = counters.Number("branch_misses")};
  }
  record.why_no_counters = text("why_no_counters");
  record.noise = run.Number("noise");
  record.others_cores = run.Number("others_cores");
  record.machine = ParseMachineFacts(run.Object("machine"));
  record.torch = text("torch");
  return record;
}

Json CountersJson(const RunRecord& run) {
  if (!run.counters) return nullptr;
  return {{"instructions", OrNull(run.counters->instructions)},
          {"cycles", OrNull(run.counters->cycles)},
          {"cache_misses", OrNull(run.counters->cache_misses)},
          {"branch_misses", OrNull(run.counters->branch_misses)}};
}

}  // namespace

double RunRecord::epochs() const {
  if (samples == 0) return 0;
  return static_cast<double>(steps) * static_cast<double>(batch) / static_cast<double>(samples);
}

std::optional<double> RunRecord::samples_per_second() const {
  // Timed steps only, without warm-up.
  if (mode == "steps") {
    const double median = Median(step_seconds);
    return median > 0 ? std::optional(static_cast<double>(batch) / median) : std::nullopt;
  }
  const double training = seconds - setup_seconds - evaluation_seconds;
  if (steps == 0 || training <= 0) return std::nullopt;
  return static_cast<double>(steps) * static_cast<double>(batch) / training;
}

std::vector<std::string> CommandOf(const RunRecord& run) {
  std::vector<std::string> words = {"etude",   "suite",   "run",    run.task,
                                    "--scale", run.scale, "--seed", std::to_string(run.seed)};
  if (run.device != "cpu") words.insert(words.end(), {"--device", run.device});
  if (run.precision != Name(Precision::kFp32)) {
    words.insert(words.end(), {"--precision", run.precision});
  }
  if (run.ranks > 1) words.insert(words.end(), {"--ranks", std::to_string(run.ranks)});
  for (const auto& [name, value] : run.settings.value_or(NamedTexts())) {
    words.push_back("--" + name);
    if (value != kSettingIsFlag) words.push_back(value);
  }
  return words;
}

std::string TaskText(const RunRecord& run) {
  return run.data_set.empty() ? run.task : run.task + " on " + run.data_set;
}

std::string ToText(const RunRecord& run) {
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.4g}", *value) : std::string("–");
  };
  const std::string what = TaskText(run);
  if (run.mode == "steps") {
    const double median = Median(run.step_seconds);
    return fmt::format("{}, seed {}: {:.2f} ms per step (median of {}), {:.1f} samples/s", what,
                       run.seed, median * 1e3, run.step_seconds.size(),
                       static_cast<double>(run.batch) / median);
  }
  std::string text = fmt::format(
      "{}, seed {}: {}, {} {} (target {}, baseline {}), {:.1f} s, {:.1f} epochs", what, run.seed,
      run.reached  ? "reached the target"
      : run.target ? "missed the target"
                   : "ended without a target",
      run.metric, number(run.quality), number(run.target), number(run.baseline), run.seconds,
      run.epochs());
  for (const Figure& figure : run.figures) {
    text += fmt::format(", {} {}", figure.name,
                        figure.text.empty() ? fmt::format("{:.4g}", figure.value) : figure.text);
  }
  return text;
}

double Median(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  return MedianInPlace(values);
}

Json ToJson(const RunRecord& run) {
  Json curve = Json::array();
  for (const QualityPoint& point : run.curve) {
    curve.push_back({{"step", point.step},
                     {"seconds", point.seconds},
                     {"evaluation_seconds", point.evaluation_seconds},
                     {"quality", point.quality},
                     {"loss", OrNull(point.loss)}});
  }
  Json figures = Json::object();
  for (const Figure& figure : run.figures) {
    figures[figure.name] = figure.text.empty() ? Json(figure.value) : Json(figure.text);
  }
  return {{"format", kDocument.format},
          {"version", kDocument.version},
          {"id", run.task},
          {"aibench", run.aibench},
          {"scale", run.scale},
          {"mode", run.mode},
          {"seed", run.seed},
          {"device", run.device},
          {"precision", run.precision},
          {"ranks", run.ranks},
          {"threads", run.threads},
          {"batch", run.batch},
          {"samples", run.samples},
          {"evaluate_every", OrNull(run.evaluate_every)},
          {"parameters", run.parameters},
          {"optimizer", run.optimizer},
          {"settings", OrNull(run.settings)},
          {"data_set", run.data_set.empty() ? Json() : Json(run.data_set)},
          {"metric", run.metric},
          {"higher_is_better", run.higher_is_better},
          {"target", OrNull(run.target)},
          {"target_origin", run.target_origin},
          {"baseline", OrNull(run.baseline)},
          {"complete", run.complete},
          {"reached", run.reached},
          {"quality", OrNull(run.quality)},
          {"figures", std::move(figures)},
          {"steps", run.steps},
          {"epochs", run.epochs()},
          {"started", run.started},
          {"seconds", run.seconds},
          {"evaluation_seconds", run.evaluation_seconds},
          {"setup_seconds", run.setup_seconds},
          {"samples_per_second", OrNull(run.samples_per_second())},
          {"energy_j", OrNull(run.energy_j)},
          {"why_no_energy", run.why_no_energy},
          {"skipped_steps", run.skipped_steps},
          {"loss_scale", OrNull(run.loss_scale)},
          {"underflow_share", OrNull(run.underflow)},
          {"peak_bytes", OrNull(run.peak_bytes)},
          {"curve", std::move(curve)},
          {"step_seconds", run.step_seconds},
          {"counters", CountersJson(run)},
          {"why_no_counters", run.why_no_counters},
          {"noise", OrNull(run.noise)},
          {"others_cores", OrNull(run.others_cores)},
          {"machine", etude::ToJson(run.machine)},
          {"torch", run.torch}};
}

Result<RunRecord> ParseRunRecord(const std::string& path, std::string_view text,
                                 const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json document,
                         ParseDocument(path, text, kDocument, context));
  Status status;
  RunRecord record = Parse(JsonMembers(path, document, status));
  ETUDE_RETURN_IF_ERROR(status);
  return record;
}

Result<RunRecord> ReadRunRecord(const std::string& path, const RunContext& context) {
  ETUDE_RETURN_IF_ERROR(CheckRegular(path));
  ETUDE_ASSIGN_OR_RETURN(const nlohmann::json document, ReadDocument(path, kDocument, context));
  Status status;
  RunRecord record = Parse(JsonMembers(path, document, status));
  ETUDE_RETURN_IF_ERROR(status);
  return record;
}

}  // namespace etude::suite
