#include "src/cli/record/paced_program.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/text/format_count.h"
#include "src/cli/app/installation.h"
#include "src/cli/record/recording_folder.h"
#include "src/cli/tool/json_fields.h"
#include "src/jobs/output_files.h"

namespace etude {
namespace {

namespace fs = std::filesystem;
using ParsedJson = nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds kProgramGrace{10'000};
constexpr milliseconds kStatusLook{200};

// Returns the process at the other end of a socket; 0 if unknown.
pid_t PeerOf(int socket) {
  ucred who{};
  socklen_t size = sizeof who;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 ? who.pid : 0;
}

tl::unexpected<Error> SystemError(const std::string& what) {
  return Unavailable(what + ": " + std::strerror(errno));
}

}  // namespace

Result<std::unique_ptr<PacedProgram>> PacedProgram::Start(ProcessTree& tree,
                                                          const Options& options) {
  std::unique_ptr<PacedProgram> program(new PacedProgram(tree, options));
  ETUDE_RETURN_IF_ERROR(program->Listen());
  ETUDE_RETURN_IF_ERROR(program->Launch());
  ETUDE_RETURN_IF_ERROR(program->AwaitReady());
  // Processes that show their first step later are not ranks, and run unobserved.
  program->StopListening();
  program->watch_.emplace(std::move(program->counters_), options.gpus, program->level_);
  return program;
}

PacedProgram::~PacedProgram() {
  // Peers that still wait see the closed connection and end.
  peers_.clear();
  StopListening();
}

void PacedProgram::StopListening() {
  if (listener_ >= 0) close(std::exchange(listener_, -1));
  std::error_code error;
  if (!folder_.empty()) fs::remove_all(std::exchange(folder_, {}), error);
}

Status PacedProgram::Listen() {
  ETUDE_ASSIGN_OR_RETURN(folder_, MakeTemporaryFolder("etude-pace"));
  const std::string name = folder_ + "/pace";
  sockaddr_un address{.sun_family = AF_UNIX};
  if (name.size() >= sizeof address.sun_path) {
    return Unavailable(folder_ + ": path too long for a socket; set TMPDIR to a shorter path");
  }
  name.copy(address.sun_path, name.size());
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  constexpr int kWaiting = 64;
  if (listener_ < 0 ||
      bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_, kWaiting) != 0) {
    return SystemError(name);
  }
  return {};
}

Status PacedProgram::Launch() {
  ETUDE_ASSIGN_OR_RETURN(const std::string python, PythonFolder());
  ETUDE_ASSIGN_OR_RETURN(const std::string capture, AbsolutePath(options_.capture));
  const auto started =
      tree_.Start({.command = options_.command,
                   .variables = {{"PYTHONPATH", HookPath(python)},
                                 {"ETUDE_RECORD_DIR", folder_},
                                 {"ETUDE_PACE_CAPTURE", capture},
                                 {"ETUDE_PACE_WARMUP", std::to_string(options_.warmup)}},
                   .output = STDERR_FILENO},
                  [this](pid_t child) { counters_ = CounterSet::Attach(child); });
  if (!started) return tl::unexpected<Error>(started.error());
  process_ = *started;
  return {};
}

Status PacedProgram::AwaitReady() {
  while (!all_ready()) {
    ETUDE_RETURN_IF_ERROR(Poll());
    if (all_ready() || !has_ended()) continue;
    ETUDE_ASSIGN_OR_RETURN(const std::string how, HowItFailed());
    return tl::unexpected<Error>(WhyNotReady(how));
  }
  return {};
}

bool PacedProgram::all_ready() const {
  return static_cast<int64_t>(ranks_.size()) == options_.world_size &&
         std::ranges::all_of(ranks_, [](const auto& row) { return row.second->ready; });
}

bool PacedProgram::has_ended() const {
  const bool talks =
      std::ranges::any_of(peers_, [](const auto& peer) { return peer->channel.open(); });
  if (!ranks_.empty() && !talks) return true;
  return tree_.ended(process_) && !talks;
}

// Waits briefly for new processes of the program and their messages.
Status PacedProgram::Poll() {
  // Negative descriptors are ignored.
  std::vector<pollfd> descriptors = {{.fd = listener_, .events = POLLIN, .revents = 0}};
  std::vector<Peer*> asked;
  for (const auto& peer : peers_) {
    if (!peer->channel.open()) continue;
    descriptors.push_back({.fd = peer->channel.descriptor(), .events = POLLIN, .revents = 0});
    asked.push_back(peer.get());
  }
  ETUDE_RETURN_IF_ERROR(tree_.Await(descriptors, kStatusLook));
  for (size_t i = 0; i < asked.size(); ++i) {
    if (descriptors[i + 1].revents == 0) continue;
    asked[i]->channel.Receive();
    ETUDE_RETURN_IF_ERROR(Hear(*asked[i]));
  }
  if (descriptors[0].revents != 0) Accept();
  return {};
}

void PacedProgram::Accept() {
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket >= 0) peers_.push_back(std::make_unique<Peer>(socket, PeerOf(socket)));
}

// Handles messages of `peer` outside of steps.
Status PacedProgram::Hear(Peer& peer) {
  while (const auto line = peer.channel.NextLine()) ETUDE_RETURN_IF_ERROR(Greet(peer, *line));
  return {};
}

Status PacedProgram::Greet(Peer& peer, const std::string& line) {
  const ParsedJson json = ParsedJson::parse(line, nullptr, /*allow_exceptions=*/false);
  const std::string event = json.is_object() ? TextIn(json, "event") : "";
  if (event == "step") return {};  // from a rank that continued after the measured one had ended
  if (event == "hello") {
    const int64_t rank = CountIn(json, "rank").value_or(0);
    const int64_t world = CountIn(json, "world_size").value_or(1);
    if (world != options_.world_size) {
      return BadInput(fmt::format("{}: found a program with {} rank{}, expected {} as recorded",
                                  options_.capture, world, world == 1 ? "" : "s",
                                  options_.world_size));
    }
    if (ranks_.contains(rank)) {
      // The first of two processes with the same rank counts, as in a recording.
      peer.channel.Send("finish");
      return {};
    }
    if (rank == options_.rank && json.value("has_recorded_step", ParsedJson()) != true) {
      return BadInput(
          fmt::format("{}: job.json lacks the signature of the recorded step of rank {}",
                      options_.capture, rank));
    }
    // Programs whose steps are all alike describe them at the beginning.
    const std::string steps = TextIn(json, "all_steps");
    if (!steps.empty() && steps != options_.step) {
      return BadInput(fmt::format(
          "{}: found a program with steps '{}', expected the recorded step '{}'; check that it is "
          "the recorded program",
          options_.capture, steps, options_.step));
    }
    peer.rank = rank;
    ranks_[rank] = &peer;
    return {};
  }
  if (event == "ready") {
    peer.ready = true;
    peer.steps_seen = CountIn(json, "steps_seen").value_or(0);
    if (peer.rank == options_.rank) {
      warmup_steps_ = peer.steps_seen;
      threads_ = CountIn(json, "threads");
      level_ = CountIn(json, "resident_before_steps_bytes");
      Status odd;  // ignored: invalid facts are unknown
      const JsonMembers said("the program", json, odd);
      machine_ = ParseMachineFacts(said.Object("machine"));
      versions_ = ParseNamedTexts(said.Object("versions"));
      environment_ = ParseNamedTexts(said.Object("environment"));
    }
    return {};
  }
  if (event == "end") {
    peer.steps_seen = CountIn(json, "steps_seen").value_or(0);
    most_steps_seen_ = std::max(most_steps_seen_, peer.steps_seen);
    return {};
  }
  const std::string reason = event == "error" ? TextIn(json, "reason") : line.substr(0, 200);
  return MakeError(ErrorCode::kInternal, "pacing the program failed: " + reason);
}

Error PacedProgram::WhyNotReady(const std::string& how) const {
  const std::string with = how.empty() ? "" : " (" + how + ")";
  if (peers_.empty() && !how.empty()) {
    return {ErrorCode::kBadInput, "the program failed" + with + " before its first step"};
  }
  if (peers_.empty()) {
    const NoCapture why = ExplainNoCapture(folder_, ReadStatuses(folder_), /*killed=*/false);
    return {ErrorCode::kBadInput, "found no step of the program: " + why.reason};
  }
  if (static_cast<int64_t>(ranks_.size()) < options_.world_size) {
    return {ErrorCode::kBadInput,
            fmt::format("the program ended when only {} of its {} ranks had completed a step{}",
                        ranks_.size(), options_.world_size, with)};
  }
  return {ErrorCode::kBadInput,
          fmt::format("the program ended after {}{}, before the end of its warm-up of {}; run more "
                      "steps, or reduce --warmup",
                      FormatCount(static_cast<uint64_t>(most_steps_seen_), "step"), with,
                      options_.warmup)};
}

Result<std::optional<PacedStep>> PacedProgram::Step() {
  watch_->Begin(ranks_.at(options_.rank)->process);
  for (const auto& [rank, peer] : ranks_) {
    if (!peer->channel.Send("step")) return std::nullopt;
  }
  ETUDE_ASSIGN_OR_RETURN(const auto answer, AnswerOf(options_.rank));
  if (!answer) return std::nullopt;
  // Waits for the other ranks' part of the step.
  for (const auto& [rank, peer] : ranks_) {
    if (rank == options_.rank) continue;
    ETUDE_ASSIGN_OR_RETURN(const auto other, AnswerOf(rank));
    if (!other) return std::nullopt;
  }
  ETUDE_ASSIGN_OR_RETURN(PacedStep step, watch_->End(*answer));
  return step;
}

// Returns the line with which `rank` reports a step; nullopt: it has ended.
Result<std::optional<std::string>> PacedProgram::AnswerOf(int64_t rank) {
  Peer& peer = *ranks_.at(rank);
  std::string late =
      fmt::format("rank {} of the program did not finish its step within --timeout", rank);
  if (ranks_.size() > 1) {
    late += "; if other ranks did, the ranks' steps do not match and cannot be measured in turn";
  }
  const auto look = [&] {
    if (rank == options_.rank) watch_->Look();
  };
  ETUDE_ASSIGN_OR_RETURN(const auto line,
                         AwaitLine(tree_, peer.channel, options_.timeout, late, look));
  if (!line) return std::nullopt;
  const ParsedJson json = ParsedJson::parse(*line, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && TextIn(json, "event") == "step") return line;
  ETUDE_RETURN_IF_ERROR(Greet(peer, *line));
  return std::nullopt;
}

Status PacedProgram::End(bool finish) {
  for (const auto& [rank, peer] : ranks_) peer->channel.Send(finish ? "finish" : "end");
  if (finish) {
    while (!tree_.ended(process_)) ETUDE_RETURN_IF_ERROR(Poll());
    return {};
  }
  const auto ended = tree_.AwaitEnd(process_, kProgramGrace);
  return ended ? Status() : tl::unexpected<Error>(ended.error());
}

}  // namespace etude
