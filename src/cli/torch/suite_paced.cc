#include "src/cli/torch/suite_paced.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <nlohmann/json.hpp>

#include "src/base/machine/process_usage.h"
#include "src/base/text/quantity.h"
#include "src/base/version.h"
#include "src/cli/app/line_channel.h"
#include "src/formats/job/capture_folder.h"
#include "src/suite/task_recording.h"

namespace etude {
namespace {

using Json = nlohmann::json;

Result<int> ConnectTo(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX};
  if (path.size() >= sizeof address.sun_path) return Unavailable(path + ": path too long");
  path.copy(address.sun_path, path.size());
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0 ||
      connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const std::string reason = std::strerror(errno);
    if (connection >= 0) close(connection);
    return Unavailable(path + ": " + reason);
  }
  return connection;
}

// Returns the description of the rank's recorded step; nullopt if the capture has no such rank.
Result<std::optional<std::string>> DescriptionOfRecorded(const std::string& capture, int64_t rank,
                                                         const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const CaptureFolder folder, ListCaptureFolder(capture, context));
  for (const CaptureRank& row : folder.ranks) {
    const JobRank* job = row.number() == rank ? folder.job_rank(row) : nullptr;
    if (job == nullptr) continue;
    for (const StepSignature& signature : job->signatures) {
      if (signature.id == job->recorded_signature) return std::optional(signature.description);
    }
  }
  return std::optional<std::string>();
}

Json Ready(const suite::RunRecord& record, int64_t steps, const std::optional<Bytes>& level) {
  Json ready{{"event", "ready"},
             {"steps_seen", steps},
             {"threads", record.threads},
             {"machine", Json(ToJson(record.machine))},
             {"versions", {{"etude", kVersion}, {"torch", record.torch}}}};
  if (level) ready["resident_before_steps_bytes"] = level->count;
  return ready;
}

// Runs a step and returns the message about it.
Result<Json> StepMessage(const suite::TimedStep& step) {
  PeakResident peak;
  peak.Begin();
  const ProcessCounts before = ProcessCounts::Now();
  ETUDE_ASSIGN_OR_RETURN(const StepTime time, step());
  const ProcessCounts counts = ProcessCounts::Now() - before;
  Json message{{"event", "step"},
               {"wall_ns", time.wall.count},
               {"cpu_ns", time.cpu.count},
               {"minor_faults", counts.minor_faults},
               {"voluntary_switches", counts.voluntary_switches},
               {"involuntary_switches", counts.involuntary_switches}};
  if (const auto bytes = peak.bytes()) message["peak_resident_bytes"] = bytes->count;
  return message;
}

// Returns heap memory left over from set-up to the system, as benchmarks do. It would otherwise
// count as in use before the steps that fill it again.
void GiveBackFree() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

// Returns the next request; "" if the other end has gone.
std::string NextRequest(LineChannel& channel) {
  while (true) {
    if (auto line = channel.NextLine()) return *std::move(line);
    if (!channel.open()) return "";
    channel.Receive();
  }
}

}  // namespace

std::optional<PaceRequest> FindPaceRequest() {
  const char* folder = std::getenv("ETUDE_RECORD_DIR");
  const char* capture = std::getenv("ETUDE_PACE_CAPTURE");
  if (folder == nullptr || capture == nullptr) return std::nullopt;
  const char* warmup = std::getenv("ETUDE_PACE_WARMUP");
  const auto steps = ParseDecimal(warmup == nullptr ? "" : warmup);
  return PaceRequest{.socket = std::string(folder) + "/pace",
                     .capture = capture,
                     .warmup = std::max<int64_t>(1, static_cast<int64_t>(steps.value_or(1)))};
}

Status ServePace(const PaceRequest& request, int64_t rank, const suite::RunRecord& record,
                 const suite::TimedStep& step, const RunContext& context) {
  GiveBackFree();
  const std::optional<Bytes> level = ResidentBytes();
  ETUDE_ASSIGN_OR_RETURN(const auto recorded,
                         DescriptionOfRecorded(request.capture, rank, context));
  const std::string own = suite::StepDescription(record);
  ETUDE_ASSIGN_OR_RETURN(const int connection, ConnectTo(request.socket));
  LineChannel channel(connection);
  const auto send = [&](const Json& message) { return channel.Send(message.dump()); };
  send(Json{{"event", "hello"},
            {"rank", rank},
            {"world_size", record.ranks},
            {"has_recorded_step", recorded.has_value()},
            {"all_steps", own}});
  if (recorded && *recorded != own) return {};  // `etude compare` reports it
  for (int64_t i = 0; i < request.warmup; ++i) {
    const auto ran = step();
    if (!ran) return tl::unexpected<Error>(ran.error());
  }
  send(Ready(record, request.warmup, level));
  while (NextRequest(channel) == "step") {
    ETUDE_ASSIGN_OR_RETURN(const Json message, StepMessage(step));
    if (!send(message)) break;
  }
  return {};
}

}  // namespace etude
