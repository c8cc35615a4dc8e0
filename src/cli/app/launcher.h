#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace etude {

// Settings from the launcher of a parallel job for one of its processes.
struct Launch {
  std::string launcher;  // "torchrun"
  int64_t rank = 0;
  int64_t size = 1;
  int64_t local_rank = 0;    // rank on this machine; 0 if unknown
  bool one_machine = false;  // all processes run on this machine
  std::string host;          // host of rank 0
  uint16_t port = 0;
  bool store_is_there = false;  // the launcher hosts a TCPStore at that port
  std::string interface;        // GLOO_SOCKET_IFNAME
  std::string run;              // distinguishes runs and restarts that share the store
};

// Reads an environment variable; nullopt if it is unset.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// Returns a variable of this process; nullopt if it is unset or empty.
std::optional<std::string> FromEnvironment(const char* name);

// Reads the variables of torchrun, Open MPI, MPICH and Intel MPI (Hydra), or Slurm's srun, in this
// order: innermost launcher first. nullopt if no launcher started more than one process.
// MASTER_ADDR and MASTER_PORT take precedence over derived values. kUsage for an invalid variable
// or an unknown host of rank 0.
Result<std::optional<Launch>> FindLaunch(const Environment& get);

// Returns the first host of a Slurm list: "gpu03" for "gpu[03-07,9],cpu1".
std::string FirstHost(std::string_view list);

}  // namespace etude
