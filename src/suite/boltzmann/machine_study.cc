#include "src/suite/boltzmann/machine_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "src/base/each_rank.h"
#include "src/suite/results/run_record.h"

namespace etude::suite {
namespace {

constexpr uint64_t kDistributionSeed = 11;

double SecondHalfMean(const std::vector<double>& values) {
  const auto begin = values.begin() + std::ssize(values) / 2;
  return std::accumulate(begin, values.end(), 0.0) / static_cast<double>(values.end() - begin);
}

Result<StudyRow> RunRow(const StudyOptions& options, const PlantedModes& target, ChainSeeds seeds,
                        int64_t k, const RunContext& context) {
  MachineOptions machine = options.machine;
  machine.chains.seeds = seeds;
  machine.chains.k = k;
  ETUDE_ASSIGN_OR_RETURN(const std::vector<MachineRun> runs,
                         ForEachRank<MachineRun>(static_cast<size_t>(options.runs), options.threads,
                                                 context, [&](size_t run, const RunContext& own) {
                                                   MachineOptions seeded = machine;
                                                   seeded.seed = run + 1;
                                                   return TrainMachine(target, seeded, own);
                                                 }));
  StudyRow row;
  row.barrier = target.barrier;
  row.seeds = seeds;
  row.k = k;
  row.sweeps_per_sample =
      static_cast<double>(runs.front().sweeps) /
      static_cast<double>(machine.updates * static_cast<int64_t>(machine.chains.chains));
  std::vector<double> times;
  int64_t bounded = 0;
  for (const MachineRun& run : runs) {
    row.divergences.push_back(run.divergence.back());
    row.gradient_errors.push_back(SecondHalfMean(run.gradient_error));
    times.push_back(run.autocorrelation.time);
    bounded += run.autocorrelation.is_least ? 1 : 0;
  }
  row.autocorrelation.time = Median(std::move(times));
  // Times that are lower bounds exceed the others, whose window fits into the samples.
  row.autocorrelation.is_least = 2 * bounded >= std::ssize(runs);
  return row;
}

// Returns whether a kind of seed learns with k sweeps.
bool IsUseful(ChainSeeds seeds, int64_t k) {
  switch (seeds) {
    case ChainSeeds::kRandom:
    case ChainSeeds::kData:
    case ChainSeeds::kKept: return k > 0;
    case ChainSeeds::kExact:
    case ChainSeeds::kAnnealed:
    case ChainSeeds::kTempered: return true;
  }
  return true;
}

}  // namespace

std::vector<std::pair<ChainSeeds, int64_t>> StudySettings(const StudyOptions& options) {
  std::vector<std::pair<ChainSeeds, int64_t>> settings;
  for (const ChainSeeds seeds : options.seeds) {
    if (seeds == ChainSeeds::kExact) {
      settings.emplace_back(seeds, 0);
      continue;
    }
    for (const int64_t k : options.ks) {
      if (IsUseful(seeds, k)) settings.emplace_back(seeds, k);
    }
  }
  return settings;
}

Result<std::vector<StudyRow>> RunStudy(const StudyOptions& options, const RunContext& context) {
  const std::vector<std::pair<ChainSeeds, int64_t>> settings = StudySettings(options);
  const uint64_t total = settings.size() * options.barriers.size();
  std::vector<StudyRow> rows;
  for (size_t number = 0; number < options.barriers.size(); ++number) {
    const double barrier = options.barriers[number];
    const PlantedModes target =
        PlantModes(static_cast<size_t>(options.spins), barrier, kDistributionSeed);
    if (target.barrier < barrier - 0.5) {
      context.Warn(
          fmt::format("a barrier of {:.3g} kT is the highest below {:.3g} kT with {} spins",
                      target.barrier, barrier, options.spins));
    }
    for (const auto& [seeds, k] : settings) {
      context.Progress("train machines", rows.size(), total);
      ETUDE_ASSIGN_OR_RETURN(StudyRow row, RunRow(options, target, seeds, k, context));
      row.target = number;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<Table> StudyTables(const std::vector<StudyRow>& rows) {
  std::vector<Table> tables;
  for (size_t i = 0; i < rows.size(); ++i) {
    const StudyRow& row = rows[i];
    if (i == 0 || row.target != rows[i - 1].target) {
      tables.push_back({.key = fmt::format("barrier_{}", tables.size() + 1),
                        .title = fmt::format("barrier of {:.2f} kT", row.barrier),
                        .columns = {{"seeds", "chains begin at"},
                                    {"k", "k", Unit::kCount},
                                    {"kl", "KL", Unit::kNumber},
                                    {"kl_min", "min KL", Unit::kNumber},
                                    {"kl_max", "max KL", Unit::kNumber},
                                    {"gradient_error", "gradient error", Unit::kNumber},
                                    {"sweeps", "sweeps a sample", Unit::kNumber},
                                    {"autocorrelation", "autocorrelation", Unit::kNumber},
                                    {"independent", "sweeps × autocorrelation", Unit::kNumber},
                                    {"is_least", "lower bound"}},
                        .rows = {}});
    }
    const auto [least, most] = std::ranges::minmax_element(row.divergences);
    const bool has_chains = row.seeds != ChainSeeds::kExact;
    const auto chains = [&](double value) { return has_chains ? Cell(value) : Cell(); };
    tables.back().rows.push_back(
        {std::string(Name(row.seeds)), has_chains ? Cell(row.k) : Cell(), Median(row.divergences),
         *least, *most, Median(row.gradient_errors), chains(row.sweeps_per_sample),
         chains(row.autocorrelation.time), chains(row.sweeps_per_sample * row.autocorrelation.time),
         row.autocorrelation.is_least ? Cell(std::string("yes")) : Cell()});
  }
  return tables;
}

}  // namespace etude::suite
