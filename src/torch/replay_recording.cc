#include "src/torch/replay_recording.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include "src/base/open_file.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/read_trace.h"
#include "src/torch/recorder/callback_cost.h"
#include "src/torch/recorder/recorder.h"

namespace etude {
namespace {

// A file without a name, which disappears with the process in any case.
class NamelessFile {
 public:
  // Makes it in the folder of `path`, or in the system's temporary folder if `path` is "".
  static Result<NamelessFile> Make(const std::string& path) {
    std::string name = path + ".XXXXXX";
    if (path.empty()) {
      std::error_code error;
      const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
      if (error) return MakeError(ErrorCode::kIo, "folder for temporary files: " + error.message());
      name = (folder / "etude-replay.XXXXXX").string();
    }
    const int file = mkostemp(name.data(), O_CLOEXEC);
    if (file < 0) {
      return MakeError(ErrorCode::kIo,
                       fmt::format("{}: cannot create it: {}", path.empty() ? name : path,
                                   std::strerror(errno)));
    }
    unlink(name.c_str());
    return NamelessFile(file);
  }
  NamelessFile(NamelessFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  NamelessFile& operator=(NamelessFile&&) = delete;
  ~NamelessFile() {
    if (file_ >= 0) close(file_);
  }

  // Returns a path that is valid during its lifetime.
  std::string path() const { return PathOfOpen(file_); }
  // Copies its content to `path`.
  Status CopyTo(const std::string& path) const {
    ETUDE_ASSIGN_OR_RETURN(AtomicFile copy, AtomicFile::Create(path));
    std::array<char, 1 << 16> buffer;
    for (off_t at = 0;;) {
      const ssize_t count = pread(file_, buffer.data(), buffer.size(), at);
      if (count < 0)
        return MakeError(ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(errno)));
      if (count == 0) return copy.Commit();
      ETUDE_RETURN_IF_ERROR(copy.Write({buffer.data(), static_cast<size_t>(count)}));
      at += count;
    }
  }

 private:
  explicit NamelessFile(int file) : file_(file) {}

  int file_;
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

// Records the steps to `file`. `ran`: status of the steps; the result is that of the recording.
Result<Trace> RecordTo(const Result<NamelessFile>& file, const std::function<Status()>& run_all,
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
  const Result<NamelessFile> file = NamelessFile::Make(path);
  if (!path.empty() && !file) return tl::unexpected<Error>(file.error());
  Status ran;
  Result<Trace> trace = RecordTo(file, run_all, ran, context);
  ETUDE_RETURN_IF_ERROR(ran);
  if (trace) {
    if (!path.empty()) ETUDE_RETURN_IF_ERROR(file->CopyTo(path));
    return std::optional(std::move(*trace));
  }
  if (!path.empty()) return tl::unexpected<Error>(trace.error());
  context.Warn("the replay was not recorded, so the share of same kernels is unknown: " +
               trace.error().message);
  return std::optional<Trace>();
}

}  // namespace etude
