#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"

namespace etude {

// What a process of the recorded program has left about its recording.
struct RecordingStatus {
  int64_t steps_seen = 0;
  bool complete = false;
  std::string phase;  // "warmup", "timing", "recording", "timing-more", "done"; "" if unknown
  // "" if the process was killed or left by os._exit.
  std::string code;    // "no-step", "busy", "ended-early", "rank-taken", "disk-full", "internal"
  std::string reason;  // in words
  std::optional<int64_t> rank;
  std::optional<int64_t> fitting_warmup;  // counts that would have fitted
  std::optional<int64_t> fitting_steps;
};

// Why there is no capture, and what to do about it.
struct NoCapture {
  std::string code;  // as in RecordingStatus, or "no-hook", "no-torch", "killed"
  std::string reason;
  std::string remedy;  // "" if none is known
};

// The folder of a capture and, hidden in it, one that the program records into: what the folder
// held before stays until a new capture takes its place. Removes the hidden folder when it goes,
// and the folder as well if that leaves it empty.
class RecordingFolder {
 public:
  // Creates `path`, or takes an empty folder, or one with a capture if `force`. Refuses a capture
  // otherwise (kBadInput), a folder with anything else in it, and one that another process records
  // into.
  static Result<RecordingFolder> Open(const std::string& path, bool force);

  RecordingFolder(RecordingFolder&& other) noexcept;
  RecordingFolder& operator=(RecordingFolder&&) = delete;
  ~RecordingFolder();

  const std::string& path() const { return path_; }
  // Where the program records.
  std::string staging() const;
  // Whether the folder holds a capture of an earlier run.
  bool has_earlier() const { return has_earlier_; }
  // Leaves the program's command line there, for job.json: a variable of the environment holds no
  // more than 128 KiB. kIo.
  Status LeaveCommand(const std::vector<std::string>& command) const;
  // Whether something was recorded.
  bool has_new() const;
  // Puts what was recorded in the place of the earlier capture; other files stay. kIo.
  Status Publish();

 private:
  RecordingFolder(std::string path, int lock, bool has_earlier, bool is_ours)
      : path_(std::move(path)), lock_(lock), has_earlier_(has_earlier), is_ours_(is_ours) {}

  std::string path_;  // "" once moved from
  int lock_ = -1;     // the folder, locked while this process records into it; -1: moved from
  bool has_earlier_ = false;
  bool is_ours_ = false;  // made for this recording: goes with it if it fails
  bool keep_staging_ = false;
};

// The statuses in the folder, those that saw the most steps first.
std::vector<RecordingStatus> ReadStatuses(const std::string& path);

// Why the folder holds no capture. `statuses` are those of ReadStatuses, `killed` is whether a
// signal ended the program.
NoCapture ExplainNoCapture(const std::string& path, const std::vector<RecordingStatus>& statuses,
                           bool killed);

}  // namespace etude
