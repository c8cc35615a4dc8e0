#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "src/base/units.h"

namespace etude {

// How recordings show what a backend of c10d does.
struct CommBackend {
  std::string_view label;  // labels of its communications begin so: "gloo:" in "gloo:all_reduce"
  // It communicates on threads of its own in the process: a label lasts as long as the
  // communication and ends on another thread than it began on, so what the asking thread runs
  // meanwhile is not inside of it. Where false, a label lasts as long as it takes to ask a device.
  bool on_host_threads = false;
  // A thread that has waited for a communication may go on this long before its label ends.
  Nanos wakes_early{};
  // The same after a long wait, where there are fewer processors than threads: this part of it, and
  // at most so long.
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

// The longest of all backends.
inline constexpr Nanos kWakesEarly =
    std::ranges::max_element(kCommBackends, {}, &CommBackend::wakes_early)->wakes_early;
inline constexpr Nanos kMostWakesEarly =
    std::ranges::max_element(kCommBackends, {}, &CommBackend::most_wakes_early)->most_wakes_early;

// The backend whose label has this name; nullptr if it is no such label.
constexpr const CommBackend* BackendOfLabel(std::string_view name) {
  for (const CommBackend& backend : kCommBackends) {
    if (name.starts_with(backend.label)) return &backend;
  }
  return nullptr;
}

// Whether a label of this name stands for communication on a thread of the backend's own.
constexpr bool IsHostThreadLabel(std::string_view name) {
  return std::ranges::any_of(kCommBackends, [name](const CommBackend& backend) {
    return backend.on_host_threads && name.starts_with(backend.label);
  });
}

}  // namespace etude
