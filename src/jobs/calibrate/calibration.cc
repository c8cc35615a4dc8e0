#include "src/jobs/calibrate/calibration.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "src/base/statistics/median.h"
#include "src/base/text/format_count.h"
#include "src/base/text/nearest.h"
#include "src/base/text/quantity.h"
#include "src/sim/machine/measured_times.h"

namespace etude {
namespace {

constexpr int64_t kElementBytes = 4;  // float32
constexpr int64_t kMostRankCount = 1024;
constexpr int64_t kMostCalibratedBytes = int64_t{1} << 34;

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const size_t comma = text.find(',');
    words.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return words;
    text.remove_prefix(comma + 1);
  }
}

tl::unexpected<Error> Usage(std::string message) {
  return MakeError(ErrorCode::kUsage, std::move(message));
}

Result<int64_t> ParseSize(std::string_view text) {
  const std::optional<Bytes> size = ParseBytes(text);
  if (size && size->count >= 1 && size->count <= kMostCalibratedBytes) return size->count;
  return Usage(fmt::format("--sizes: found '{}', expected 1 byte to 16 GiB, such as 64KiB", text));
}

Result<std::vector<int64_t>> ParseSizeRange(std::string_view least, std::string_view most) {
  ETUDE_ASSIGN_OR_RETURN(const int64_t first, ParseSize(least));
  ETUDE_ASSIGN_OR_RETURN(const int64_t last, ParseSize(most));
  if (first > last) {
    return Usage(fmt::format("--sizes: found {}-{}, expected the smaller size first", least, most));
  }
  if (first < last && last <= kElementBytes) {
    return Usage(
        fmt::format("--sizes: found {}-{}, which are all rounded up to {} bytes, expected "
                    "a larger range or a list",
                    least, most, kElementBytes));
  }
  std::vector<int64_t> sizes;
  int64_t power = 1;
  while (power <= first) power *= 2;
  sizes.push_back(first);
  for (; power < last; power *= 2) sizes.push_back(power);
  if (last > first) sizes.push_back(last);
  return sizes;
}

// Returns the number of parts that a rank's input has, one for each rank.
int64_t PartsOf(const MeasuredKind& kind, int64_t ranks) {
  const bool has_parts = kind == CollectiveType::kReduceScatter ||
                         kind == CollectiveType::kAllToAll || kind == CollectiveType::kScatter;
  return has_parts ? ranks : 1;
}

void SortOnce(std::vector<int64_t>& numbers) {
  std::ranges::sort(numbers);
  const auto repeated = std::ranges::unique(numbers);
  numbers.erase(repeated.begin(), repeated.end());
}

int64_t RoundedUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

// Returns the sizes rounded up to multiples of `unit`, ascending and distinct.
std::vector<int64_t> RoundedSizes(const std::vector<int64_t>& sizes, int64_t unit) {
  std::vector<int64_t> rounded;
  for (const int64_t size : sizes) rounded.push_back(RoundedUp(size, unit));
  SortOnce(rounded);
  return rounded;
}

// Adds the time of round `round` to the mean, and its spread.
template <typename Point>
void AddTime(const Point& other, int64_t round, Point& all) {
  const auto before = static_cast<double>(round);
  all.time_ns += (other.time_ns - all.time_ns) / (round + 1);
  all.spread = std::hypot(all.spread * before, other.spread) / (before + 1);
}

std::vector<int64_t> SizesOf(const MeasuredSeries& series) {
  std::vector<int64_t> sizes;
  for (const MeasuredSeries::Point& point : series.points) sizes.push_back(point.bytes);
  return sizes;
}

}  // namespace

const std::vector<MeasuredKind>& CalibratedKinds() {
  static const std::vector<MeasuredKind> kinds = {
      CollectiveType::kAllReduce,     CollectiveType::kAllGather,
      CollectiveType::kReduceScatter, CollectiveType::kAllToAll,
      CollectiveType::kBroadcast,     CollectiveType::kReduce,
      CollectiveType::kGather,        CollectiveType::kScatter,
      CollectiveType::kBarrier,       kMessageKind};
  return kinds;
}

Result<CalibratedTypes> ParseTypes(std::string_view text) {
  if (text.empty()) {
    return CalibratedTypes{CalibratedKinds(), {kComputationTypes.begin(), kComputationTypes.end()}};
  }
  std::vector<std::string> names;
  for (const MeasuredKind& kind : CalibratedKinds()) names.emplace_back(NameOfKind(kind));
  for (const ComputationType type : kComputationTypes) names.emplace_back(NameOfComputation(type));
  CalibratedTypes types;
  const auto add = [](const auto& one, auto& all) {
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  };
  for (const std::string& word : Words(text)) {
    const auto found = std::ranges::find(names, word);
    if (found == names.end()) {
      return Usage(fmt::format("--types: unknown '{}'{}", word, MeantOrAll(word, names)));
    }
    const auto index = static_cast<size_t>(found - names.begin());
    const size_t kinds = CalibratedKinds().size();
    if (index < kinds) {
      add(CalibratedKinds()[index], types.kinds);
    } else {
      add(kComputationTypes[index - kinds], types.computations);
    }
  }
  return types;
}

Result<std::vector<int64_t>> ParseRankCounts(std::string_view text) {
  std::vector<int64_t> counts;
  for (const std::string& word : Words(text)) {
    const std::optional<int64_t> count = ParseWhole(word);
    if (!count || *count < 2 || *count > kMostRankCount) {
      return Usage(fmt::format("--ranks: found '{}', expected 2 to {}", word, kMostRankCount));
    }
    counts.push_back(*count);
  }
  SortOnce(counts);
  return counts;
}

Result<std::vector<int64_t>> ParseSizes(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    return ParseSizeRange(text.substr(0, dash), text.substr(dash + 1));
  }
  std::vector<int64_t> sizes;
  for (const std::string& word : Words(text)) {
    ETUDE_ASSIGN_OR_RETURN(sizes.emplace_back(), ParseSize(word));
  }
  return sizes;
}

SizePlan PlanSizes(const MeasuredKind& kind, int64_t ranks, const std::vector<int64_t>& sizes) {
  if (kind == CollectiveType::kBarrier) return {.sizes = {0}, .checks = {}};
  const int64_t unit = kElementBytes * PartsOf(kind, ranks);
  SizePlan plan{.sizes = RoundedSizes(sizes, unit), .checks = {}};
  for (size_t i = 0; i + 1 < plan.sizes.size(); i += 2) {
    const int64_t middle = RoundedUp(plan.sizes[i] + (plan.sizes[i + 1] - plan.sizes[i]) / 2, unit);
    if (middle < plan.sizes[i + 1]) plan.checks.push_back(middle);
  }
  return plan;
}

std::vector<int64_t> SizesOfComputation(ComputationType type, DType dtype, bool on_cpu,
                                        const std::vector<int64_t>& sizes) {
  const int64_t unit = ElementBytes(dtype).value_or(1);
  if (type != ComputationType::kProduct) return RoundedSizes(sizes, unit);
  const auto [least, most] = std::ranges::minmax(sizes);
  std::vector<int64_t> found;
  for (int64_t power = 1; power <= MostRows(on_cpu); power *= 2) {
    for (const int64_t rows : {power, power * 3}) {
      const int64_t bytes = rows * rows * unit;
      if (rows <= MostRows(on_cpu) && bytes >= least && bytes <= most) found.push_back(bytes);
    }
  }
  SortOnce(found);
  return found;
}

std::vector<DType> TypesOfComputation(ComputationType type, bool on_cpu) {
  if (type != ComputationType::kProduct) return {DType::kFloat32};
  if (on_cpu) return {DType::kFloat32, DType::kBFloat16};
  return {DType::kFloat32, DType::kBFloat16, DType::kFloat16};
}

void AddRound(const MeasuredComputation::Point& other, int64_t round,
              MeasuredComputation::Point& all) {
  if (round == 0) {
    all = other;
    return;
  }
  AddTime(other, round, all);
}

void AddRound(const MeasuredSeries::Point& other, int64_t round, MeasuredSeries::Point& all) {
  if (round == 0) {
    all = other;
    return;
  }
  const auto before = static_cast<double>(round);
  const auto busy = [](const MeasuredSeries::Point& point) {
    return point.cores * static_cast<double>(point.time_ns);
  };
  const double all_busy = (busy(all) * before + busy(other)) / (before + 1);
  AddTime(other, round, all);
  all.cores = all.time_ns == 0 ? 0 : all_busy / static_cast<double>(all.time_ns);
}

std::optional<CheckErrors> ErrorsOf(const MeasuredCheck& check) {
  std::vector<double> errors;
  std::vector<double> absolute;
  CheckErrors found;
  for (const MeasuredCheck::Point& point : check.points) {
    if (point.time_ns == 0) continue;
    const double error =
        static_cast<double>(point.predicted_ns) / static_cast<double>(point.time_ns) - 1;
    errors.push_back(error);
    absolute.push_back(std::abs(error));
    if (std::abs(error) > std::abs(found.worst)) found.worst = error;
  }
  if (errors.empty()) return std::nullopt;
  found.median = MedianInPlace(errors);
  found.median_absolute = MedianInPlace(absolute);
  return found;
}

SeriesSpread SpreadOf(const MeasuredSeries& series) {
  std::vector<double> large;
  std::vector<double> small;
  for (const MeasuredSeries::Point& point : series.points) {
    (point.bytes >= kLargeBytes ? large : small).push_back(point.spread);
  }
  SeriesSpread spread;
  if (!large.empty()) spread.large = MedianInPlace(large);
  if (!small.empty()) spread.small = MedianInPlace(small);
  return spread;
}

std::string WhyNoisy(const MeasuredSeries& series, const MeasuredCheck* check) {
  const std::string what = fmt::format("{} of {} ranks", NameOfKind(series.kind), series.ranks);
  const auto [large, small] = SpreadOf(series);
  for (const bool is_large : {true, false}) {
    const std::optional<double> spread = is_large ? large : small;
    if (!spread || *spread <= kMostSpread) continue;
    return fmt::format(
        "{}: the median spread of sizes {} 64 KiB is {:.1f} %, expected at most {:.0f} %", what,
        is_large ? "from" : "below", *spread * 100, kMostSpread * 100);
  }
  const auto errors = check == nullptr ? std::nullopt : ErrorsOf(*check);
  if (errors && errors->median_absolute > kMostCheckError) {
    return fmt::format(
        "{}: the median error at sizes between those of the file is {:.1f} %, "
        "expected at most {:.0f} %",
        what, errors->median_absolute * 100, kMostCheckError * 100);
  }
  return "";
}

std::string WhyNoisy(const MeasuredComputation& computation) {
  std::vector<double> spreads;
  for (const auto& point : computation.points) spreads.push_back(point.spread);
  const double spread = MedianInPlace(spreads);
  if (spread <= kMostSpread) return "";
  return fmt::format("{} of {} on {}: the median spread is {:.1f} %, expected at most {:.0f} %",
                     NameOfComputation(computation.type), Name(computation.dtype),
                     FormatCount(static_cast<uint64_t>(computation.ranks), "rank"), spread * 100,
                     kMostSpread * 100);
}

Status Predict(const MeasuredSeries& series, MeasuredCheck& check) {
  for (MeasuredCheck::Point& point : check.points) {
    ETUDE_ASSIGN_OR_RETURN(const CommunicationTime time, Interpolate(series, point.bytes));
    point.predicted_ns = time.nanos;
  }
  return {};
}

void Put(const MeasuredSeries& series, const MeasuredCheck& check, MachineFile& file) {
  const auto is_same = [&](const auto& one) {
    return one.kind == series.kind && one.ranks == series.ranks;
  };
  file.network.reset();  // which was fitted to the earlier ones
  std::erase_if(file.series, is_same);
  std::erase_if(file.checks, is_same);
  file.series.push_back(series);
  if (!check.points.empty()) file.checks.push_back(check);
}

void Put(const MeasuredComputation& computation, MachineFile& file) {
  std::erase_if(file.computations, [&](const MeasuredComputation& one) {
    return one.type == computation.type && one.dtype == computation.dtype &&
           one.ranks == computation.ranks;
  });
  file.computations.push_back(computation);
}

bool Has(const MachineFile& file, const MeasuredKind& kind, int64_t ranks, const SizePlan& plan) {
  const MeasuredSeries* series = file.Find(kind, ranks);
  return series != nullptr && SizesOf(*series) == plan.sizes;
}

Table CalibrationTable(const std::vector<CalibratedSeries>& all) {
  Table table{.key = "communication",
              .title = "communications, by the last rank's call and the end on all ranks",
              .columns = {{"type", "type"},
                          {"ranks", "ranks", Unit::kCount},
                          {"bytes", "smallest", Unit::kBytes},
                          {"time_ns", "time", Unit::kTime},
                          {"largest_bytes", "largest", Unit::kBytes},
                          {"largest_time_ns", "time", Unit::kTime},
                          {"bytes_per_second", "bandwidth", Unit::kRate},
                          {"cores", "cores", Unit::kNumber},
                          {"spread", "spread", Unit::kShare},
                          {"error", "error", Unit::kChange},
                          {"worst_error", "worst", Unit::kChange},
                          {"state", "state"}},
              .rows = {}};
  for (const auto& [series, check, state] : all) {
    const MeasuredSeries::Point& first = series.points.front();
    const MeasuredSeries::Point& last = series.points.back();
    const std::optional<CheckErrors> errors = ErrorsOf(check);
    const auto [large, small] = SpreadOf(series);
    Cell rate;
    if (last.bytes > 0 && last.time_ns > 0) {
      rate = static_cast<double>(last.bytes) / (static_cast<double>(last.time_ns) * 1e-9);
    }
    table.rows.push_back({std::string(NameOfKind(series.kind)), series.ranks, first.bytes,
                          first.time_ns, last.bytes, last.time_ns, rate, last.cores,
                          ToCell(large ? large : small), errors ? Cell(errors->median) : Cell(),
                          errors ? Cell(errors->worst) : Cell(), state});
  }
  return table;
}

}  // namespace etude
