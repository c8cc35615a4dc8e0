#include "src/replay/step_mix.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace etude {
namespace {

// Returns a weighted sum of the results of `get`; nullopt if a report lacks one.
template <typename T, typename Get, typename Add>
std::optional<T> Sum(const std::vector<ReplayedKind>& kinds, Get get, Add add) {
  T sum{};
  for (const ReplayedKind& kind : kinds) {
    const std::optional<T>& value = get(kind.report);
    if (!value) return std::nullopt;
    add(sum, *value, kind);
  }
  return sum;
}

class Combiner {
 public:
  explicit Combiner(std::vector<ReplayedKind> kinds) : kinds_(std::move(kinds)) {
    double weight = 0;
    for (const ReplayedKind& kind : kinds_) weight += kind.weight;
    if (weight <= 0) {
      for (ReplayedKind& kind : kinds_) kind.weight = static_cast<double>(kind.steps);
    }
    double recorded = 0;
    bool known = true;
    for (const ReplayedKind& kind : kinds_) {
      weight_ += kind.weight;
      known &= kind.recorded.has_value();
      if (kind.recorded) recorded += TimeOf(kind);
    }
    if (known && recorded > 0) recorded_ = recorded;
    std::ranges::stable_sort(kinds_, std::ranges::greater{}, [&](const ReplayedKind& kind) {
      return recorded_ ? TimeOf(kind) : kind.weight;
    });
  }

  ReplayReport Report() {
    ReplayReport all = kinds_.front().report;
    all.kinds.clear();
    for (const ReplayedKind& kind : kinds_) all.kinds.push_back(Row(kind));
    if (kinds_.size() == 1) return all;
    AddTimes(all);
    AddCounts(all);
    AddSkipped(all);
    AddKernels(all);
    AddOperators(all);
    return all;
  }

 private:
  double Weight(const ReplayedKind& kind) const { return kind.weight / weight_; }
  // Returns the recorded time of the steps of a kind.
  static double TimeOf(const ReplayedKind& kind) {
    return static_cast<double>(kind.recorded->count) / static_cast<double>(kind.steps) *
           kind.weight;
  }
  std::optional<double> TimeShare(const ReplayedKind& kind) const {
    if (!recorded_) return std::nullopt;
    return TimeOf(kind) / *recorded_;
  }
  KindSummary Row(const ReplayedKind& kind) const {
    const ReplayReport& report = kind.report;
    return {.step = kind.step,
            .steps = kind.steps,
            .step_share = Weight(kind),
            .time_share = TimeShare(kind),
            .operators = report.operators,
            .operators_replayed = report.operators_replayed,
            .same_kernels = report.kernels ? report.kernels->by_count : std::nullopt,
            .replay = report.replay};
  }

  template <typename Get>
  std::optional<TimeSummary> Mean(Get get) const {
    return Sum<TimeSummary>(kinds_, get,
                            [&](TimeSummary& sum, const TimeSummary& one, const auto& kind) {
                              const double weight = Weight(kind);
                              sum.median = sum.median + Scaled(one.median, weight);
                              sum.p25 = sum.p25 + Scaled(one.p25, weight);
                              sum.p75 = sum.p75 + Scaled(one.p75, weight);
                              sum.min = sum.min + Scaled(one.min, weight);
                              sum.count += one.count;
                            });
  }
  StepTimes MeanTimes(StepTimes ReplayReport::*times) const {
    return {.wall = Mean([&](const ReplayReport& report) { return (report.*times).wall; }),
            .cpu = Mean([&](const ReplayReport& report) { return (report.*times).cpu; })};
  }
  std::optional<Nanos> MeanTime(std::optional<Nanos> ReplayReport::*time) const {
    return Sum<Nanos>(
        kinds_, [&](const ReplayReport& report) { return report.*time; },
        [&](Nanos& sum, Nanos one, const ReplayedKind& kind) {
          sum = sum + Scaled(one, Weight(kind));
        });
  }
  Nanos MeanTime(Nanos ReplayReport::*time) const {
    Nanos sum;
    for (const ReplayedKind& kind : kinds_) sum = sum + Scaled(kind.report.*time, Weight(kind));
    return sum;
  }
  // Returns a mean weighted by recorded time.
  template <typename Get>
  std::optional<double> ByTime(Get get) const {
    if (!recorded_) return std::nullopt;
    return Sum<double>(kinds_, get, [&](double& sum, double one, const ReplayedKind& kind) {
      sum += one * *TimeShare(kind);
    });
  }

  // Returns the share of all device time; nullopt if it is unknown for a kind.
  std::optional<double> DeviceCoverage() const {
    double total = 0;
    double covered = 0;
    for (const ReplayedKind& kind : kinds_) {
      const ReplayReport& report = kind.report;
      if (!report.device_time || !report.device_coverage) return std::nullopt;
      const double time = static_cast<double>(report.device_time->count) * Weight(kind);
      total += time;
      covered += time * *report.device_coverage;
    }
    return total > 0 ? std::optional(covered / total) : std::nullopt;
  }

  void AddTimes(ReplayReport& all) const {
    all.replay = MeanTimes(&ReplayReport::replay);
    all.with_gaps = MeanTimes(&ReplayReport::with_gaps);
    all.without_gaps = MeanTimes(&ReplayReport::without_gaps);
    all.gaps = MeanTime(&ReplayReport::gaps);
    all.gap_idle = MeanTime(&ReplayReport::gap_idle);
    all.gap_waits = MeanTime(&ReplayReport::gap_waits);
    all.recorded_step = MeanTime(&ReplayReport::recorded_step);
    all.device_time = MeanTime(&ReplayReport::device_time);
    all.device_coverage = DeviceCoverage();
    all.gap_scale = 0;
    for (const ReplayedKind& kind : kinds_) all.gap_scale += kind.report.gap_scale * Weight(kind);
    all.operator_share = ByTime([](const ReplayReport& report) { return report.operator_share; });
    all.time_coverage = ByTime([](const ReplayReport& report) { return report.time_coverage; });
    all.stolen_share = ByTime([](const ReplayReport& report) { return report.stolen_share; });
    all.minor_faults = Sum<double>(
        kinds_, [](const ReplayReport& report) { return report.minor_faults; },
        [&](double& sum, double one, const ReplayedKind& kind) { sum += one * Weight(kind); });
  }

  void AddCounts(ReplayReport& all) const {
    const auto total = [&](int64_t ReplayReport::*count) {
      int64_t sum = 0;
      for (const ReplayedKind& kind : kinds_) sum += kind.report.*count * kind.steps;
      return sum;
    };
    for (const auto count :
         {&ReplayReport::operators, &ReplayReport::operators_replayed, &ReplayReport::calls,
          &ReplayReport::coerced, &ReplayReport::assumed_values, &ReplayReport::emulated}) {
      all.*count = total(count);
    }
    const auto most = [&](int64_t ReplayReport::*count) {
      for (const ReplayedKind& kind : kinds_) all.*count = std::max(all.*count, kind.report.*count);
    };
    for (const auto count :
         {&ReplayReport::outside_bytes, &ReplayReport::peak_bytes, &ReplayReport::copied_bytes,
          &ReplayReport::non_finite, &ReplayReport::denormal}) {
      most(count);
    }
    for (const auto time : {&ReplayReport::setup, &ReplayReport::trial, &ReplayReport::fill,
                            &ReplayReport::first_step}) {
      all.*time = Nanos{};
      for (const ReplayedKind& kind : kinds_) all.*time = all.*time + kind.report.*time;
    }
    for (const auto list : {&ReplayReport::replaced_by_parts, &ReplayReport::untimed}) {
      std::map<std::string, int64_t> counts;
      for (const ReplayedKind& kind : kinds_) {
        for (const NamedCount& row : kind.report.*list) counts[row.name] += row.count * kind.steps;
      }
      (all.*list).clear();
      for (const auto& [name, count] : counts) (all.*list).push_back({name, count});
    }
  }

  void AddSkipped(ReplayReport& all) const {
    std::map<std::pair<std::string, std::string>, SkippedOperators> rows;
    for (const ReplayedKind& kind : kinds_) {
      for (const SkippedOperators& skipped : kind.report.skipped) {
        SkippedOperators& row = rows[SkippedKey(skipped.op, skipped.reason)];
        row.op = skipped.op;
        row.schema = skipped.schema;
        if (row.reason.empty()) row.reason = skipped.reason;
        row.count += skipped.count * kind.steps;
        if (recorded_ && skipped.time_share) {
          row.time_share = row.time_share.value_or(0) + *skipped.time_share * *TimeShare(kind);
        }
      }
    }
    all.skipped.clear();
    for (auto& [key, row] : rows) all.skipped.push_back(std::move(row));
  }

  // Returns whether the replays of all kinds were recorded.
  bool all_recorded() const {
    return std::ranges::all_of(
        kinds_, [](const ReplayedKind& kind) { return kind.report.kernels.has_value(); });
  }

  void AddKernels(ReplayReport& all) const {
    all.kernels.reset();
    if (!all_recorded()) return;
    KernelMatch& sum = all.kernels.emplace();
    double same = 0;
    for (const ReplayedKind& kind : kinds_) {
      const KernelMatch& one = *kind.report.kernels;
      const int64_t recorded = one.recorded * kind.steps;
      sum.recorded += recorded;
      same += static_cast<double>(recorded) * one.by_count.value_or(0);
    }
    if (sum.recorded > 0) sum.by_count = same / static_cast<double>(sum.recorded);
    sum.by_time = ByTime([](const ReplayReport& report) { return report.kernels->by_time; });
    sum.missing = MergedKernels(&KernelMatch::missing);
    sum.extra = MergedKernels(&KernelMatch::extra);
  }
  std::vector<KernelCount> MergedKernels(std::vector<KernelCount> KernelMatch::*list) const {
    std::map<std::pair<std::string, std::string>, int64_t> counts;
    for (const ReplayedKind& kind : kinds_) {
      for (const KernelCount& row : (*kind.report.kernels).*list) {
        counts[{row.op, row.inputs}] += row.count * kind.steps;
      }
    }
    std::vector<KernelCount> rows;
    for (const auto& [key, count] : counts) rows.push_back({key.first, key.second, count});
    std::ranges::stable_sort(rows, std::ranges::greater{}, &KernelCount::count);
    return rows;
  }

  void AddOperators(ReplayReport& all) const {
    all.operator_times.clear();
    if (!all_recorded()) return;
    OperatorTimeSum sum;
    for (const ReplayedKind& kind : kinds_) {
      const auto of_all = [&](std::optional<Nanos> time) {
        return time ? std::optional(Scaled(*time, static_cast<double>(kind.steps))) : std::nullopt;
      };
      for (const OperatorTime& row : kind.report.operator_times) {
        sum.Add(row.phase, row.op, row.count * kind.steps, of_all(row.recorded),
                of_all(row.replayed));
      }
    }
    all.operator_times = sum.Rows();
  }

  std::vector<ReplayedKind> kinds_;  // by time, descending
  double weight_ = 0;
  std::optional<double> recorded_;  // total of TimeOf
};

}  // namespace

ReplayReport CombineKinds(std::vector<ReplayedKind> kinds) {
  return Combiner(std::move(kinds)).Report();
}

}  // namespace etude
