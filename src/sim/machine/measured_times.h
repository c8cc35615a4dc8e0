#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/sim/machine/collective_times.h"
#include "src/sim/machine/machine_file.h"

namespace etude {

// Returns the time and cores of a communication by the points of a series: linear between two
// points, and constant below the first. Above the last point, time continues with the slope of the
// last two, up to kMostGrowth times its bytes; cores are constant. A barrier has one time.
// kBadInput beyond; the message says what is measured.
Result<CommunicationTime> Interpolate(const MeasuredSeries& series, int64_t bytes);
inline constexpr int64_t kMostGrowth = 4;

// Measured times of communications, the model measured-1 of docs/models/measured.md: depends on the
// kind, the number of ranks and the bytes, not on which ranks. Immutable.
class MeasuredTimes : public CollectiveTimes {
 public:
  // `path` is the file's name in messages.
  MeasuredTimes(MachineFile file, std::string path);
  // Parses a machine file; errors of ParseMachineFile.
  static Result<MeasuredTimes> Parse(std::string_view text, const std::string& path);

  std::string_view name() const override { return "measured-1"; }
  Result<CommunicationTime> TimeOf(CollectiveType type, std::span<const int64_t> ranks,
                                   int64_t bytes) const override;
  Result<CommunicationTime> TimeOfMessage(int64_t from, int64_t to, int64_t bytes) const override;

  const MeasuredMachine& machine() const { return file_.machine; }
  // Returns the cores that the ranks may use; nullopt if unknown.
  std::optional<double> cores() const { return file_.machine.cores; }

 private:
  Result<CommunicationTime> Find(const MeasuredKind& kind, int64_t ranks, int64_t bytes) const;

  MachineFile file_;
  std::string path_;
};

}  // namespace etude
