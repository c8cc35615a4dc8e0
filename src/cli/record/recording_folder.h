#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"

namespace etude {

// Status that a process of the recorded program left about its recording.
struct RecordingStatus {
  int64_t steps_seen = 0;
  bool complete = false;
  std::string phase;  // "warmup", "timing", "recording", "timing-more", "done"; "" if unknown
  // Code and reason are "" if the process was killed or ended by os._exit.
  std::string code;    // "no-step", "busy", "ended-early", "rank-taken", "disk-full", "internal"
  std::string reason;  // readable text
  std::optional<int64_t> rank;
  std::optional<int64_t> fitting_warmup;  // counts that would have fitted
  std::optional<int64_t> fitting_steps;
};

// Reason for a missing capture, and its remedy.
struct NoCapture {
  std::string code;  // as in RecordingStatus, or "no-hook", "no-torch", "killed"
  std::string reason;
  std::string remedy;  // "" if unknown
};

// A capture folder with a hidden staging folder, which the program records into. Earlier content
// stays until a new capture replaces it. The destructor removes the staging folder, and the folder
// itself if it is empty.
class RecordingFolder {
 public:
  // Creates `path`, or opens an empty folder, or with `force` one that contains a capture.
  // kBadInput for a capture without `force`, a folder with other content, or one that another
  // process records into.
  static Result<RecordingFolder> Open(const std::string& path, bool force);

  RecordingFolder(RecordingFolder&& other) noexcept;
  RecordingFolder& operator=(RecordingFolder&&) = delete;
  ~RecordingFolder();

  const std::string& path() const { return path_; }
  // Returns the folder that the program records into.
  std::string staging() const;
  // Returns whether the folder contains a capture of an earlier run.
  bool has_earlier() const { return has_earlier_; }
  // Stores the program's command line in the staging folder, for job.json; an environment variable
  // is limited to 128 KiB. kIo on failure.
  Status LeaveCommand(const std::vector<std::string>& command) const;
  // Returns whether a recording exists.
  bool has_new() const;
  // Replaces the earlier capture by the new recording; other files are kept. kIo on failure.
  Status Publish();

 private:
  RecordingFolder(std::string path, int lock, bool has_earlier, bool is_ours)
      : path_(std::move(path)), lock_(lock), has_earlier_(has_earlier), is_ours_(is_ours) {}

  std::string path_;  // "" after a move
  int lock_ = -1;     // descriptor of the folder, locked during the recording; -1 after a move
  bool has_earlier_ = false;
  bool is_ours_ = false;  // created for this recording; removed on failure
  bool keep_staging_ = false;
};

// Returns the statuses in the folder, by steps seen, descending.
std::vector<RecordingStatus> ReadStatuses(const std::string& path);

// Explains why the folder contains no capture. `statuses`: from ReadStatuses. `killed`: the program
// was ended by a signal.
NoCapture ExplainNoCapture(const std::string& path, const std::vector<RecordingStatus>& statuses,
                           bool killed);

}  // namespace etude
