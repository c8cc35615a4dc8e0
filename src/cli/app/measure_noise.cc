#include "src/cli/app/measure_noise.h"

#include <sched.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

namespace etude {
namespace {

constexpr Nanos kAll{1'000'000'000};
constexpr Nanos kOne{5'000'000};  // approximate time of a repetition

Nanos ReadClock(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return Nanos{now.tv_sec * 1'000'000'000 + now.tv_nsec};
}

// Runs a chain of dependent steps that compilers cannot shorten.
uint64_t Work(uint64_t steps, uint64_t value) {
  for (uint64_t i = 0; i < steps; ++i) {
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
  }
  return value;
}

// Returns the number of steps that take about kOne.
uint64_t Calibrate(uint64_t& value) {
  for (uint64_t steps = 1 << 16;; steps *= 2) {
    const Nanos begin = ReadClock(CLOCK_THREAD_CPUTIME_ID);
    value = Work(steps, value);
    if (ReadClock(CLOCK_THREAD_CPUTIME_ID) - begin >= kOne) return steps;
  }
}

int UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 0;
}

}  // namespace

MachineNoise MeasureNoise() {
  MachineNoise noise{.cores = UsableCores()};
  double load = 0;
  if (getloadavg(&load, 1) == 1) noise.load = load;
  uint64_t value = 88172645463325252;
  const uint64_t steps = Calibrate(value);
  std::vector<Nanos> wall, cpu;
  const Nanos first = ReadClock(CLOCK_MONOTONIC);
  for (Nanos now = first; now - first < kAll;) {
    const Nanos cpu_begin = ReadClock(CLOCK_THREAD_CPUTIME_ID);
    value = Work(steps, value);
    const Nanos end = ReadClock(CLOCK_MONOTONIC);
    cpu.push_back(ReadClock(CLOCK_THREAD_CPUTIME_ID) - cpu_begin);
    wall.push_back(end - now);
    now = end;
  }
  // Uses the result, so that the computation is not removed.
  [[maybe_unused]] volatile uint64_t result = value;
  noise.repeats = wall.size();
  noise.wall = SpreadOf(std::move(wall));
  noise.cpu = SpreadOf(std::move(cpu));
  return noise;
}

}  // namespace etude
