// Runs a Chakra trace as the quickest simulator would: up to FLIGHT nodes are in flight, and the
// oldest finishes first. bench/feeder makes the trace and compares.
//
//   chakra_feeder_bench FILE [WINDOW [FLIGHT]]     0: no bound

#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include "src/formats/chakra_feeder.h"

namespace {

using etude::chakra::Feeder;

double CpuSeconds(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
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
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  auto feeder = Feeder::Open(argv[1], options, {});
  if (!feeder) return Fail(feeder.error());
  std::deque<uint64_t> in_flight;
  uint64_t checksum = 0;
  size_t most_bytes = 0;
  while (true) {
    bool waits = false;
    while (in_flight.size() < flight && !waits) {
      const auto node = feeder->Next();
      if (!node) return Fail(node.error());
      waits = !node->has_value();
      if (waits) break;
      checksum = checksum * 31 + (*node)->id();
      in_flight.push_back((*node)->id());
    }
    if (in_flight.empty()) break;
    if ((checksum & 0xFFF) == 0 || in_flight.size() > 2) {
      most_bytes = std::max(most_bytes, feeder->memory_bytes());
    }
    if (const auto status = feeder->Finish(in_flight.front()); !status) {
      return Fail(status.error());
    }
    in_flight.pop_front();
  }
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  const auto counts = feeder->counts();
  std::printf("nodes %llu cpu_s %.4f rss_kib %ld most_held %llu held_bytes %zu order %016llx %s\n",
              static_cast<unsigned long long>(counts.finished),
              CpuSeconds(after) - CpuSeconds(before), after.ru_maxrss - before.ru_maxrss,
              static_cast<unsigned long long>(counts.most_held), most_bytes,
              static_cast<unsigned long long>(checksum), feeder->done() ? "done" : "NOT DONE");
  return feeder->done() ? 0 : 1;
}
