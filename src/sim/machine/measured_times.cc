#include "src/sim/machine/measured_times.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace etude {
namespace {

using Point = MeasuredSeries::Point;

CommunicationTime At(const Point& point) { return {point.time_ns, point.cores}; }

// Returns the time on the line through two points.
double OnLine(const Point& a, const Point& b, int64_t bytes) {
  const double slope =
      static_cast<double>(b.time_ns - a.time_ns) / static_cast<double>(b.bytes - a.bytes);
  return static_cast<double>(a.time_ns) + slope * static_cast<double>(bytes - a.bytes);
}

int64_t ToNanos(double nanos) {
  constexpr double kMost = 9e18;
  return std::llround(std::min(nanos, kMost));
}

tl::unexpected<Error> TooLarge(const MeasuredSeries& series, int64_t bytes, int64_t most) {
  return BadInput(
      fmt::format("found {} of {} ranks and {} bytes, expected at most {} bytes: "
                  "the largest measured size is {} bytes",
                  NameOfKind(series.kind), series.ranks, bytes, most, series.points.back().bytes));
}

// Returns the time above the last point.
Result<CommunicationTime> Beyond(const MeasuredSeries& series, int64_t bytes) {
  const Point& last = series.points.back();
  if (series.points.size() == 1) return TooLarge(series, bytes, last.bytes);
  if (bytes > last.bytes * kMostGrowth) return TooLarge(series, bytes, last.bytes * kMostGrowth);
  const double time = OnLine(series.points[series.points.size() - 2], last, bytes);
  return CommunicationTime{std::max(last.time_ns, ToNanos(time)), last.cores};
}

// Describes what is measured: "all_reduce of 2, 4 ranks; message".
std::string Contents(const MachineFile& file) {
  std::vector<std::string> kinds;
  for (size_t i = 0; i <= kCollectiveTypeCount; ++i) {
    const MeasuredKind kind =
        i < kCollectiveTypeCount ? MeasuredKind(static_cast<CollectiveType>(i)) : kMessageKind;
    std::vector<int64_t> ranks;
    for (const MeasuredSeries& series : file.series) {
      if (series.kind == kind) ranks.push_back(series.ranks);
    }
    if (ranks.empty()) continue;
    std::ranges::sort(ranks);
    kinds.push_back(kind == kMessageKind
                        ? std::string(NameOfKind(kind))
                        : fmt::format("{} of {} ranks", NameOfKind(kind), fmt::join(ranks, ", ")));
  }
  return kinds.empty() ? "nothing" : fmt::format("{}", fmt::join(kinds, "; "));
}

}  // namespace

Result<CommunicationTime> Interpolate(const MeasuredSeries& series, int64_t bytes) {
  const std::vector<Point>& points = series.points;
  if (bytes < 0) return BadInput(fmt::format("found {} bytes, expected at least 0", bytes));
  if (series.kind == CollectiveType::kBarrier) return At(points.front());
  const auto above = std::ranges::lower_bound(points, bytes, {}, &Point::bytes);
  if (above == points.end()) return Beyond(series, bytes);
  if (above == points.begin() || above->bytes == bytes) return At(*above);
  const Point& below = *std::prev(above);
  const double share =
      static_cast<double>(bytes - below.bytes) / static_cast<double>(above->bytes - below.bytes);
  return CommunicationTime{ToNanos(OnLine(below, *above, bytes)),
                           below.cores + share * (above->cores - below.cores)};
}

MeasuredTimes::MeasuredTimes(MachineFile file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {}

Result<MeasuredTimes> MeasuredTimes::Parse(std::string_view text, const std::string& path) {
  ETUDE_ASSIGN_OR_RETURN(MachineFile file, ParseMachineFile(text, path));
  return MeasuredTimes(std::move(file), path);
}

Result<CommunicationTime> MeasuredTimes::TimeOf(CollectiveType type, std::span<const int64_t> ranks,
                                                int64_t bytes) const {
  return Find(type, static_cast<int64_t>(ranks.size()), bytes);
}

Result<CommunicationTime> MeasuredTimes::TimeOfMessage(int64_t /*from*/, int64_t /*to*/,
                                                       int64_t bytes) const {
  return Find(kMessageKind, 2, bytes);
}

Result<CommunicationTime> MeasuredTimes::Find(const MeasuredKind& kind, int64_t ranks,
                                              int64_t bytes) const {
  const MeasuredSeries* series = file_.Find(kind, ranks);
  if (series == nullptr) {
    return BadInput(fmt::format("{}: missing {} of {} ranks; measured: {}", path_, NameOfKind(kind),
                                ranks, Contents(file_)));
  }
  auto time = Interpolate(*series, bytes);
  if (!time) return BadInput(path_ + ": " + time.error().message);
  const bool is_beyond = kind != CollectiveType::kBarrier && bytes > series->points.back().bytes;
  time->doubtful = series->noisy || is_beyond;
  time->how = is_beyond ? "extrapolated" : series->noisy ? "measured, noisy" : "measured";
  return time;
}

}  // namespace etude
