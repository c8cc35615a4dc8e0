#include "src/suite/this_machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace etude::suite {
namespace {

// Returns the text after `key` in the first line of `path` that begins with it.
std::string ValueIn(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t value = line.find_first_not_of(": \t", key.size());
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

std::string FirstLineIn(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

MachineFacts ThisMachine() {
  MachineFacts machine;
  machine.cpu = ValueIn("/proc/cpuinfo", "model name");
  utsname system{};
  if (uname(&system) == 0) {
    machine.architecture = system.machine;
    machine.system = std::string(system.sysname) + " " + system.release;
  }
  if (const long cores = sysconf(_SC_NPROCESSORS_ONLN); cores > 0) machine.cores = cores;
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) == 0) machine.usable_cores = CPU_COUNT(&usable);
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) machine.memory_bytes = int64_t{pages} * page_bytes;
  machine.governor = FirstLineIn("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  return machine;
}

}  // namespace etude::suite
