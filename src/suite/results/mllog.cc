#include "src/suite/results/mllog.h"

#include <cmath>
#include <string_view>

#include <nlohmann/json.hpp>

namespace etude::suite {
namespace {

using Json = nlohmann::ordered_json;

class LogLines {
 public:
  void Point(double seconds, std::string_view key, const Json& value,
             const Json& metadata = Json::object()) {
    Add(seconds, "POINT_IN_TIME", key, value, metadata);
  }
  void Start(double seconds, std::string_view key, const Json& metadata = Json::object()) {
    Add(seconds, "INTERVAL_START", key, nullptr, metadata);
  }
  void Stop(double seconds, std::string_view key, const Json& metadata = Json::object()) {
    Add(seconds, "INTERVAL_END", key, nullptr, metadata);
  }
  std::string text() const { return text_; }

 private:
  void Add(double seconds, std::string_view type, std::string_view key, const Json& value,
           Json metadata) {
    metadata["file"] = "etude";
    metadata["lineno"] = ++line_;
    text_ += ":::MLLOG " +
             Json{{"namespace", ""},    {"time_ms", std::llround(seconds * 1e3)},
                  {"event_type", type}, {"key", key},
                  {"value", value},     {"metadata", std::move(metadata)}}
                 .dump() +
             "\n";
  }

  std::string text_;
  int line_ = 0;
};

}  // namespace

std::string MlLog(const RunRecord& run) {
  LogLines log;
  const double begin = run.started;
  log.Point(begin, "submission_benchmark", run.task);
  log.Point(begin, "submission_org", "etude");
  log.Point(begin, "submission_division", "open");
  log.Point(begin, "submission_status", "research");
  log.Point(begin, "submission_platform", run.machine.cpu);
  log.Point(begin, "cache_clear", true);
  log.Start(begin, "init_start");
  log.Point(begin, "seed", run.seed);
  log.Point(begin, "global_batch_size", run.batch);
  log.Point(begin, "gradient_accumulation_steps", 1);
  log.Point(begin, "train_samples", run.samples);
  log.Point(begin, "opt_name", run.optimizer.substr(0, run.optimizer.find(' ')));
  // Data are accessed while the model is made, so the clock runs from the beginning.
  log.Stop(begin, "init_stop");
  log.Start(begin, "run_start");
  double previous = begin + run.setup_seconds;
  int64_t step = 0;
  for (const QualityPoint& point : run.curve) {
    const double end = begin + point.seconds;
    const double evaluated = end - point.evaluation_seconds;
    Json samples{{"samples_count", point.step * run.batch}};
    if (run.samples != 0) {  // read by MLPerf's check of reference convergence
      samples["epoch_num"] =
          static_cast<double>(point.step * run.batch) / static_cast<double>(run.samples);
    }
    log.Start(previous, "block_start", {{"first_step_num", step}});
    log.Stop(evaluated, "block_stop", {{"first_step_num", step}});
    log.Start(evaluated, "eval_start", samples);
    if (!std::isnan(point.quality)) log.Point(end, "eval_accuracy", point.quality, samples);
    log.Stop(end, "eval_stop", samples);
    previous = end;
    step = point.step;
  }
  log.Stop(begin + run.seconds, "run_stop", {{"status", run.reached ? "success" : "aborted"}});
  return log.text();
}

}  // namespace etude::suite
