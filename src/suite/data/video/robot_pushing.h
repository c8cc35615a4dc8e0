#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/data/records/tf_records.h"
#include "src/suite/data/video/push_sequences.h"

namespace etude::suite {

// Videos of a robot arm that pushes objects (Finn et al., 1605.07157) in their published form: a
// folder of TFRecord files with a sequence in each record. Sequences are decoded when they are
// needed. The last twentieth of the files is held out, as in the authors' program.
class RobotPushing {
 public:
  static constexpr int64_t kFrames = 10;  // of a sequence, the first ones of its record
  static constexpr int64_t kSide = 64;
  static constexpr int64_t kActions = 5;  // commanded position, pitch and yaw
  static constexpr int64_t kStates = 5;   // position, pitch and yaw

  // Opens all files of `folder`, by name. kUnavailable if it is missing, kBadInput for fewer than
  // two files and as TfRecords::Open.
  static Result<RobotPushing> Open(const std::string& folder, const RunContext& context);

  // Return the numbers of sequences to learn from and of those held out.
  int64_t learned() const { return learned_; }
  int64_t held_out() const { return std::ssize(places_) - learned_; }
  // Returns sequences by number; those held out come last. kBadInput for a record that lacks a
  // feature or contains no JPEG image.
  Result<PushSequences> Read(std::span<const int64_t> numbers) const;

 private:
  struct Place {
    size_t file = 0;
    int64_t record = 0;
  };

  std::vector<TfRecords> files_;
  std::vector<Place> places_;  // of the sequences
  int64_t learned_ = 0;
};

}  // namespace etude::suite
