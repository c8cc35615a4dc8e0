#include "src/cli/record/paced_replay.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/cli/app/installation.h"

namespace etude {
namespace {

using ParsedJson = nlohmann::json;

constexpr std::chrono::milliseconds kReplayGrace{10'000};
// Set-up, and a first use of the wheel, which builds, have no practical limit.
constexpr std::chrono::hours kSetUp{24};

// Options of `etude replay` that a benchmark lacks.
std::vector<std::string> ReplayWords(const PacedReplay::Options& options) {
  std::vector<std::string> words = {ProgramPath(), "replay", options.capture, "--rank",
                                    std::to_string(options.rank)};
  if (options.world_size > 1) words.insert(words.end(), {"--ranks", "all"});
  if (options.world_size > 1 && options.pin) words.emplace_back("--pin");
  if (options.experimental) words.emplace_back("--experimental");
  if (options.quiet) words.emplace_back("--quiet");
  return words;
}

// Returns the command that starts the benchmark: Python for its Python program, torchrun for
// several ranks.
std::vector<std::string> BenchmarkWords(const PacedReplay::Options& options) {
  const bool is_python = options.benchmark.ends_with(".py");
  std::vector<std::string> words;
  if (is_python || options.world_size > 1) words.push_back(options.python);
  if (options.world_size > 1) {
    words.insert(words.end(), {"-m", "torch.distributed.run", "--standalone",
                               fmt::format("--nproc-per-node={}", options.world_size)});
    if (!is_python) words.emplace_back("--no-python");
  }
  words.push_back(options.benchmark);
  return words;
}

std::vector<std::string> CommandOf(const PacedReplay::Options& options) {
  std::vector<std::string> words =
      options.benchmark.empty() ? ReplayWords(options) : BenchmarkWords(options);
  words.insert(words.end(), {"--paced", "--gaps", options.gaps ? "recorded" : "none"});
  if (options.threads) words.insert(words.end(), {"--threads", std::to_string(*options.threads)});
  if (!options.device.empty()) words.insert(words.end(), {"--device", options.device});
  for (const std::string& library : options.libraries) {
    words.insert(words.end(), {"--library", library});
  }
  return words;
}

int64_t Count(const ParsedJson& json, const char* pointer) {
  const auto path = ParsedJson::json_pointer(pointer);
  const bool there = json.contains(path) && json.at(path).is_number_integer();
  return there ? json.at(path).get<int64_t>() : 0;
}

std::optional<double> Number(const ParsedJson& json, const char* pointer) {
  const auto path = ParsedJson::json_pointer(pointer);
  const bool there = json.contains(path) && json.at(path).is_number();
  return there ? std::optional(json.at(path).get<double>()) : std::nullopt;
}

ParsedJson MemberOf(const ParsedJson& json, const char* pointer) {
  const auto path = ParsedJson::json_pointer(pointer);
  return json.contains(path) ? json.at(path) : ParsedJson();
}

// Reads facts from the replay's initial report.
ReplayFacts FactsIn(const ParsedJson& report) {
  const ParsedJson facts = {{"torch", MemberOf(report, "/torch")},
                            {"device", MemberOf(report, "/device")},
                            {"trace", MemberOf(report, "/health/verdict")},
                            {"operators", MemberOf(report, "/operators/total")},
                            {"operators_replayed", MemberOf(report, "/operators/replayed")},
                            {"time_coverage", MemberOf(report, "/coverage/time")},
                            {"skipped", MemberOf(report, "/skipped")},
                            {"step_kinds", MemberOf(report, "/step_kinds")}};
  Status odd;  // ignored: invalid facts are unknown
  return ParseReplayFacts(JsonMembers("the replay", facts, odd));
}

// Returns the memory in use before the first step, plus later copies, which are not part of a
// step's memory.
std::optional<int64_t> LevelOf(const ParsedJson& json) {
  const ParsedJson memory = json.value("memory", ParsedJson());
  if (!memory.is_object()) return std::nullopt;
  const auto before = memory.find("resident_before_steps_bytes");
  if (before == memory.end() || !before->is_number_integer()) return std::nullopt;
  return before->get<int64_t>() + Count(json, "/memory/copied_bytes");
}

}  // namespace

Result<PacedReplay> PacedReplay::Start(ProcessTree& tree, const Options& options) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Unavailable(std::string("socket: ") + std::strerror(errno));
  }
  LineChannel channel(ends[0]);
  CounterSet counters;
  const auto process = tree.Start(
      {.command = CommandOf(options), .variables = {}, .input = ends[1], .output = ends[1]},
      [&](pid_t child) { counters = CounterSet::Attach(child); });
  close(ends[1]);
  if (!process) return tl::unexpected<Error>(process.error());
  const std::string name = options.benchmark.empty() ? "replay" : "benchmark";
  ETUDE_ASSIGN_OR_RETURN(const auto line, AwaitLine(tree, channel, kSetUp, "the " + name, {}));
  const ParsedJson ready =
      ParsedJson::parse(line.value_or(""), nullptr, /*allow_exceptions=*/false);
  if (!ready.is_object()) {
    ETUDE_RETURN_IF_ERROR(tree.AwaitEnd(*process, kReplayGrace));
    const auto end = tree.ended(*process);
    return MakeError(
        end ? end->error_code() : ErrorCode::kInternal,
        fmt::format("setting up the {} failed (exit code {})", name, end ? end->exit_code() : 0));
  }
  PacedReplay replay(tree, *process, std::move(channel),
                     StepWatch(std::move(counters), options.gpus, LevelOf(ready)));
  replay.name_ = name;
  replay.timeout_ = options.timeout;
  replay.facts_ = FactsIn(ready);
  replay.flop_ = Number(ready, "/work/flop");
  replay.bytes_ = Number(ready, "/work/bytes");
  return replay;
}

Result<PacedStep> PacedReplay::Step() {
  watch_.Begin(stepping_);
  if (!channel_.Send("step")) return HasEnded();
  ETUDE_ASSIGN_OR_RETURN(const auto line,
                         AwaitLine(tree_, channel_, timeout_,
                                   "the " + name_ + " did not finish its step within --timeout",
                                   [this] { watch_.Look(); }));
  if (!line) return HasEnded();
  ETUDE_ASSIGN_OR_RETURN(PacedStep step, watch_.End(*line));
  stepping_ = static_cast<pid_t>(
      Count(ParsedJson::parse(*line, nullptr, /*allow_exceptions=*/false), "/pid"));
  return step;
}

Status PacedReplay::FindKernels() {
  constexpr int kSteps = 5;  // as many as it records, plus the time to compare them
  if (!channel_.Send("kernels")) return HasEnded();
  ETUDE_ASSIGN_OR_RETURN(const auto line,
                         AwaitLine(tree_, channel_, kSteps * timeout_,
                                   "the replay did not record its steps within --timeout", {}));
  if (!line) return HasEnded();
  const ParsedJson json = ParsedJson::parse(*line, nullptr, /*allow_exceptions=*/false);
  facts_.same_kernels = Number(json, "/same_kernels");
  facts_.same_kernels_by_time = Number(json, "/same_kernels_by_time");
  return {};
}

tl::unexpected<Error> PacedReplay::HasEnded() {
  const Result<std::string> how = tree_.HowItFailed(process_);
  if (!how) return tl::unexpected<Error>(how.error());
  return MakeError(ErrorCode::kInternal,
                   "the " + name_ + " has ended" + (how->empty() ? "" : " (" + *how + ")"));
}

Status PacedReplay::End() {
  channel_.EndSending();
  const auto ended = tree_.AwaitEnd(process_, kReplayGrace);
  return ended ? Status() : tl::unexpected<Error>(ended.error());
}

}  // namespace etude
