// Runs a Chakra trace like a simulator of zero cost: up to FLIGHT nodes are in flight, and the
// oldest finishes first. bench/feeder makes the trace and compares.
//
//   chakra_feeder_bench FILE [WINDOW [FLIGHT]]     0: no bound
//
// Prints a name and a figure per line; `order` is a checksum of the ids in order.

#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <string>

#include "src/formats/chakra/chakra_feeder.h"

namespace {

using etude::chakra::Feeder;

// CPU time of the process so far, user and system.
double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Peak resident memory of the process. Unlike ru_maxrss it begins with the program.
size_t PeakKib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  size_t kib = 0;
  while (status >> word) {
    if (word == "VmHWM:") status >> kib;
  }
  return kib;
}

size_t NumberAt(int argc, char** argv, int i, size_t otherwise) {
  const size_t number = argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  return number == 0 ? SIZE_MAX : number;
}

int Fail(const etude::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "chakra_feeder_bench FILE [WINDOW [FLIGHT]]\n");
    return 2;
  }
  etude::chakra::FeederOptions options;
  options.window = NumberAt(argc, argv, 2, options.window);
  const size_t flight = NumberAt(argc, argv, 3, 2);
  const size_t kib_before = PeakKib();
  auto feeder = Feeder::Open(argv[1], options, {});
  if (!feeder) return Fail(feeder.error());
  std::deque<uint64_t> in_flight;
  uint64_t order = 0;
  while (true) {
    while (in_flight.size() < flight) {
      const auto node = feeder->Next();
      if (!node) return Fail(node.error());
      if (!*node) break;
      order = order * 31 + (*node)->id();
      in_flight.push_back((*node)->id());
    }
    if (in_flight.empty()) break;
    if (const auto status = feeder->Finish(in_flight.front()); !status) {
      return Fail(status.error());
    }
    in_flight.pop_front();
  }
  const auto counts = feeder->counts();
  std::printf("nodes %llu\ncpu_s %.4f\npeak_kib %zu\nbase_kib %zu\nmost_held %llu\norder %016llx\n",
              static_cast<unsigned long long>(counts.finished), CpuSeconds(), PeakKib(), kib_before,
              static_cast<unsigned long long>(counts.most_held),
              static_cast<unsigned long long>(order));
  return feeder->done() ? 0 : 1;
}
