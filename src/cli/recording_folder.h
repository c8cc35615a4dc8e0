#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"

namespace etude {

// What a process of the recorded program has left about its recording.
struct RecordingStatus {
  int64_t steps_seen = 0;
  bool complete = false;
  std::string phase;   // "warmup", "timing", "recording", "timing-more", "done"; "" if unknown
  std::string code;    // "no-step", "busy", "ended-early", "rank-taken", "internal"; "" if killed
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

// Makes `path` ready for a recording: creates it, or takes an empty folder, or one with leftovers
// of a recording that gave nothing. A capture is removed if `force`, refused otherwise (kBadInput),
// as is a folder with anything else in it.
Status PrepareRecordingFolder(const std::string& path, bool force);

// The statuses in the folder, those that saw the most steps first.
std::vector<RecordingStatus> ReadStatuses(const std::string& path);

// Why the folder holds no capture. `statuses` are those of ReadStatuses.
NoCapture ExplainNoCapture(const std::string& path, const std::vector<RecordingStatus>& statuses);

// Removes what the recording needed only while it ran; the folder as well if that leaves it empty.
void CleanRecordingFolder(const std::string& path);

}  // namespace etude
