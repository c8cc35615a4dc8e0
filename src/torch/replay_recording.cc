#include "src/torch/replay_recording.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

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
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
    std::string name = (path.empty() ? (folder / "etude-replay").string() : path) + ".XXXXXX";
    const int file = mkstemp(name.data());
    if (file < 0) {
      return MakeError(ErrorCode::kIo, fmt::format("{}: {}", name, std::strerror(errno)));
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

Status Record(int64_t steps, const std::function<Status(int64_t index)>& run,
              const std::string& path) {
  const std::string facts = fmt::format(R"("pid": {}, "torch": "{}", "callback_ns": {})", getpid(),
                                        TORCH_VERSION, recorder::MeasureCallback());
  std::string error;
  if (!recorder::Start(path, recorder::HeaderWithClocks(facts), {}, error)) {
    return MakeError(ErrorCode::kIo, error);
  }
  Status status;
  for (int64_t i = 0; i < steps && status; ++i) status = run(i);
  if (!recorder::Stop(error) && status) return MakeError(ErrorCode::kIo, error);
  return status;
}

}  // namespace

std::string RecordedStepMark(int64_t index) { return fmt::format("ProfilerStep#{}", index); }

Result<Trace> RecordSteps(int64_t steps, const std::function<Status(int64_t index)>& run,
                          const std::string& path, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(TemporaryFile file, TemporaryFile::Make(path));
  ETUDE_RETURN_IF_ERROR(Record(steps, run, file.path()));
  ETUDE_ASSIGN_OR_RETURN(Trace trace, ReadTrace(file.path(), {}, context));
  if (!path.empty()) ETUDE_RETURN_IF_ERROR(file.Keep(path));
  return trace;
}

}  // namespace etude
