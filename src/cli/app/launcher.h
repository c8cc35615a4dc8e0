#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace etude {

// What the launcher of a parallel job says to one of its processes.
struct Launch {
  std::string launcher;  // "torchrun"
  int64_t rank = 0;
  int64_t size = 1;
  int64_t local_rank = 0;    // of those on this machine; 0 where the launcher does not say
  bool one_machine = false;  // all processes run on this one
  std::string host;          // where rank 0 is met
  uint16_t port = 0;
  bool store_is_there = false;  // the launcher keeps a TCPStore at that port: no rank has to
  std::string interface;        // GLOO_SOCKET_IFNAME
  std::string run;              // keeps runs apart that share the store: which restart this is
};

// Reads an environment variable; nullopt if it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// The value of a variable of this process; nullopt where it is empty, too.
std::optional<std::string> FromEnvironment(const char* name);

// What torchrun, Open MPI, MPICH and Intel MPI (Hydra), or Slurm's srun say, in this order: the
// innermost first. nullopt if no launcher started more than one process. MASTER_ADDR and
// MASTER_PORT go before what is derived. kUsage if a variable is wrong or it cannot be told where
// rank 0 is.
Result<std::optional<Launch>> FindLaunch(const Environment& get);

// The first host of a list as Slurm writes it: "gpu[03-07,9],cpu1" begins with "gpu03".
std::string FirstHost(std::string_view list);

}  // namespace etude
