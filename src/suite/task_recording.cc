#include "src/suite/task_recording.h"

#include <unistd.h>

#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/version.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/job_json.h"
#include "src/report/text/json_output.h"
#include "src/torch/replay_device.h"
#include "src/torch/replay_recording.h"

namespace etude::suite {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSignature = "a";  // all steps of a task are equal

int64_t MonotonicNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Json ToJson(int64_t index, const StepTime& time) {
  Json json{{"signature", kSignature},
            {"index", index},
            {"wall_ns", time.wall.count},
            {"cpu_ns", time.cpu.count}};
  if (time.minor_faults) json["minor_faults"] = *time.minor_faults;
  if (time.stolen) json["stolen_ns"] = time.stolen->count;
  if (time.voluntary_switches) json["voluntary_switches"] = *time.voluntary_switches;
  return json;
}

std::string CaptureName(int64_t rank) { return fmt::format("capture.{}.etude", rank); }

}  // namespace

std::string StepDescription(const RunRecord& run) {
  const bool is_float = run.precision == Name(Precision::kFp32);
  return fmt::format("{}, {} scale, batch {}{}", run.task, run.scale, run.batch,
                     is_float ? "" : ", " + run.precision);
}

StepStopwatch::StepStopwatch(const std::string& device) : device_(device) {
  Synchronize(device_);
  counts_ = ProcessCounts::Now();
  stolen_ = StolenTime();
  cpu_ = CpuTime();
  begin_ns_ = MonotonicNs();
}

StepTime StepStopwatch::Read() const {
  Synchronize(device_);
  const int64_t end_ns = MonotonicNs();
  const Nanos cpu = CpuTime();
  const ProcessCounts counts = ProcessCounts::Now() - counts_;
  const std::optional<Nanos> stolen = StolenTime();
  return {.signature = kSignature,
          .wall = Nanos{end_ns - begin_ns_},
          .cpu = cpu - cpu_,
          .minor_faults = counts.minor_faults,
          .voluntary_switches = counts.voluntary_switches,
          .stolen = stolen && stolen_ ? std::optional(*stolen - *stolen_) : std::nullopt};
}

void TaskRecording::AddTimed(int64_t index, StepTime time) {
  timed_.push_back({index, std::move(time)});
}

Status TaskRecording::Record(int64_t index, const std::function<Result<StepTime>()>& step,
                             const RunContext& context) {
  recorded_index_ = index;
  const auto run = [&](int64_t) -> Status {
    const StepMark mark(index);
    ETUDE_ASSIGN_OR_RETURN(recorded_, step());
    return {};
  };
  const std::string path = folder_ + "/" + CaptureName(rank_);
  const auto recorded = RecordSteps(1, run, path, context);
  return recorded ? Status() : Status(tl::unexpected<Error>(recorded.error()));
}

std::string TaskRecording::Entry(const RunRecord& run) const {
  Json timed = Json::array();
  int64_t wall = 0;
  int64_t cpu = 0;
  for (const Timed& step : timed_) {
    timed.push_back(ToJson(step.index, step.time));
    wall += step.time.wall.count;
    cpu += step.time.cpu.count;
  }
  Json recorded = ToJson(recorded_index_, recorded_);
  recorded["steps"] = 1;
  const Json entry{{"pid", getpid()},
                   {"native", CaptureName(rank_)},
                   {"step_kind", "explicit"},
                   {"steps_seen", recorded_index_ + 1},
                   {"signatures",
                    {{{"id", kSignature},
                      {"description", StepDescription(run)},
                      {"seen", recorded_index_ + 1},
                      {"timed", timed_.size()},
                      {"recorded", true}}}},
                   {"timed_steps", std::move(timed)},
                   {"timed_block", {{"steps", timed_.size()}, {"wall_ns", wall}, {"cpu_ns", cpu}}},
                   {"recorded_step", std::move(recorded)},
                   {"threads", {{"intra_op", run.threads}}},
                   {"notes", Json::array()}};
  return entry.dump();
}

Status TaskRecording::WriteJob(const RunRecord& run,
                               const std::vector<std::string>& entries) const {
  Json ranks = Json::object();
  for (size_t rank = 0; rank < entries.size(); ++rank) {
    ranks[std::to_string(rank)] = Json::parse(entries[rank], nullptr, /*allow_exceptions=*/false);
  }
  const Json job{{"format", kJobFormat},
                 {"version", 1},
                 {"job", fmt::format("suite-{}-{:x}-{}", run.task, MonotonicNs(), getpid())},
                 {"command", CommandOf(run)},
                 {"world_size", entries.size()},
                 {"versions", {{"etude", kVersion}, {"torch", run.torch}}},
                 {"machine", etude::ToJson(run.machine)},
                 {"threads", {{"intra_op", run.threads}}},
                 {"ranks", std::move(ranks)}};
  return ReplaceFile(folder_ + "/job.json", JsonText(job, 1));
}

}  // namespace etude::suite
