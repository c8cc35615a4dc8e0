#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "src/base/units.h"

namespace etude {

// Properties of a c10d backend in recordings.
struct CommBackend {
  std::string_view label;  // prefix of its communications' labels: "gloo:" in "gloo:all_reduce"
  // True if it communicates on its own threads in the process. A label then lasts as long as the
  // communication and ends on another thread than it began on, so work of the calling thread in
  // that time is not inside it. Otherwise a label lasts as long as the request to the device.
  bool on_host_threads = false;
  // Max time by which a waiting thread may continue before the communication's label ends.
  Nanos wakes_early{};
  // After a long wait with fewer processors than threads, the time is this fraction of the wait,
  // capped at most_wakes_early.
  int64_t wakes_early_part = 0;
  Nanos most_wakes_early{};

  constexpr Nanos WakesEarlyAfter(Nanos waited) const {
    if (wakes_early_part == 0) return wakes_early;
    return std::max(Nanos{waited.count / wakes_early_part}, wakes_early);
  }
};

inline constexpr auto kCommBackends = std::to_array<CommBackend>({
    {"nccl:"},
    {.label = "gloo:",
     .on_host_threads = true,
     .wakes_early = Nanos{100'000},
     .wakes_early_part = 8,
     .most_wakes_early = Nanos{3'000'000}},
    {"mpi:"},
    {"ucc:"},
    {"xccl:"},
    {"hccl:"},
});

// Max over all backends.
inline constexpr Nanos kWakesEarly =
    std::ranges::max_element(kCommBackends, {}, &CommBackend::wakes_early)->wakes_early;
inline constexpr Nanos kMostWakesEarly =
    std::ranges::max_element(kCommBackends, {}, &CommBackend::most_wakes_early)->most_wakes_early;

// Returns the backend whose label has this name; nullptr if there is none.
constexpr const CommBackend* BackendOfLabel(std::string_view name) {
  for (const CommBackend& backend : kCommBackends) {
    if (name.starts_with(backend.label)) return &backend;
  }
  return nullptr;
}

// Returns true if a label of this name stands for communication on a backend's own thread.
constexpr bool IsHostThreadLabel(std::string_view name) {
  return std::ranges::any_of(kCommBackends, [name](const CommBackend& backend) {
    return backend.on_host_threads && name.starts_with(backend.label);
  });
}

}  // namespace etude
