#pragma once

#include <cstdint>

#include "src/report/certificate/certificate.h"

// For tests only.
namespace etude {

// Makes a certificate of `pairs` pairs with constant CPU time on each side, in ns, and page faults
// on one side.
inline Certificate PlantedCertificate(double original, double replay, int pairs = 12) {
  using enum StepMetric;
  RunComparison run{.command = {"python", "train.py"}, .threads = 2, .pairs_wanted = pairs};
  run.starts = 2;
  run.gaps = "recorded";
  run.measured = "2026-11-22T12:00:00Z";
  run.machine = {.cpu = "processor", .architecture = "x86_64", .cores = 8, .usable_cores = 4};
  run.versions = {{"torch", "2.9"}};
  run.environment = NamedTexts{{"OMP_NUM_THREADS", "2"}};
  run.replay = {.torch = "2.9",
                .device = "cpu",
                .trace = "good",
                .operators = 10,
                .operators_replayed = 9,
                .same_kernels = 0.9,
                .skipped = {{.op = "my::op", .reason = "no kernel", .count = 1}},
                .kinds = {{.step = 1, .steps = 3, .time_share = 0.75, .replayed = true},
                          {.step = 2, .steps = 1, .time_share = 0.25}}};
  for (int i = 0; i < pairs; ++i) {
    StepPair pair{.start = static_cast<size_t>(i % 2), .original_first = i % 2 == 0};
    pair.original[kCpuTime] = original;
    pair.replay[kCpuTime] = replay;
    pair.original[kPageFaults] = 0;
    pair.replay[kPageFaults] = 0;
    run.pairs.push_back(pair);
  }
  std::array<std::string, kStepMetricCount> reasons;
  reasons.fill("nobody told");
  JudgeRun(run, DefaultBars(), reasons);
  return {.benchmark = "job",
          .recording = "18c0-4f2a",
          .step = "SGD; Linear f32[5,16]",
          .steps_seen = 20,
          .steps_alike = 15,
          .again = "etude compare job --run",
          .run = run};
}

}  // namespace etude
