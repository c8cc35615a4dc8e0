#include "src/torch/replay_recording.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include "src/formats/read_trace.h"
#include "src/torch/recorder/callback_cost.h"
#include "src/torch/recorder/recorder.h"

namespace etude {
namespace {

// A file that is gone with this.
class TemporaryFile {
 public:
  // Beside `path`, or in the system's folder for such files if that is "".
  static Result<TemporaryFile> Make(const std::string& path) {
    std::string name = path + ".XXXXXX";
    if (path.empty()) {
      std::error_code error;
      const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
      if (error) return MakeError(ErrorCode::kIo, "folder for temporary files: " + error.message());
      name = (folder / "etude-replay.XXXXXX").string();
    }
    const int file = mkstemp(name.data());
    if (file < 0) {
      return MakeError(ErrorCode::kIo,
                       fmt::format("{}: cannot create it: {}", path.empty() ? name : path,
                                   std::strerror(errno)));
    }
    close(file);
    return TemporaryFile(std::move(name));
  }
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  TemporaryFile(TemporaryFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }
  Status Keep(const std::string& path) {
    if (rename(path_.c_str(), path.c_str()) != 0) {
      return MakeError(ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(errno)));
    }
    path_.clear();
    return {};
  }

 private:
  std::string path_;
};

Status StartRecorder(const std::string& path) {
  const std::string facts = fmt::format(R"("pid": {}, "torch": "{}", "callback_ns": {})", getpid(),
                                        TORCH_VERSION, recorder::MeasureCallback());
  std::string error;
  if (recorder::Start(path, recorder::HeaderWithClocks(facts), {}, error)) return {};
  return MakeError(ErrorCode::kIo, error);
}

Status StopRecorder() {
  std::string error;
  return recorder::Stop(error) ? Status() : MakeError(ErrorCode::kIo, error);
}

// Records the steps to `file`. `ran` says how the steps went, the result how the recording did.
Result<Trace> RecordTo(const Result<TemporaryFile>& file, const std::function<Status()>& run_all,
                       Status& ran, const RunContext& context) {
  const Status started =
      file ? StartRecorder(file->path()) : Status(tl::unexpected<Error>(file.error()));
  ran = run_all();
  ETUDE_RETURN_IF_ERROR(started);
  ETUDE_RETURN_IF_ERROR(StopRecorder());
  return ReadTrace(file->path(), {}, context);
}

}  // namespace

StepMark::StepMark(int64_t index)
    : range_(std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE)) {
  if (range_->isActive()) range_->before(fmt::format("ProfilerStep#{}", index));
}
StepMark::~StepMark() = default;

Result<std::optional<Trace>> RecordSteps(int64_t steps,
                                         const std::function<Status(int64_t index)>& run,
                                         const std::string& path, const RunContext& context) {
  const auto run_all = [&]() -> Status {
    for (int64_t i = 0; i < steps; ++i) ETUDE_RETURN_IF_ERROR(run(i));
    return {};
  };
  Result<TemporaryFile> file = TemporaryFile::Make(path);
  if (!path.empty() && !file) return tl::unexpected<Error>(file.error());
  Status ran;
  Result<Trace> trace = RecordTo(file, run_all, ran, context);
  ETUDE_RETURN_IF_ERROR(ran);
  if (trace) {
    if (!path.empty()) ETUDE_RETURN_IF_ERROR(file->Keep(path));
    return std::optional(std::move(*trace));
  }
  if (!path.empty()) return tl::unexpected<Error>(trace.error());
  context.Warn(
      "the replay was not recorded, so that it is not known whether the same kernels ran: " +
      trace.error().message);
  return std::optional<Trace>();
}

}  // namespace etude
