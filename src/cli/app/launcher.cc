#include "src/cli/app/launcher.h"

#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "src/base/text/quantity.h"

namespace etude {
namespace {

// Variables of a launcher; null: not available.
struct LauncherInfo {
  const char* name;
  const char* rank;
  const char* size;
  const char* local_rank;  // rank on this machine
  const char* local_size;  // number of ranks on this machine
  const char* machines;    // number of machines
  const char* hosts;       // host names, in the order of ranks
  const char* job;         // identifies a job, equal for all of its processes
};

constexpr std::array kLaunchers = {
    LauncherInfo{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", nullptr,
                 nullptr, nullptr},
    LauncherInfo{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                 "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr, nullptr,
                 "PMIX_NAMESPACE"},
    LauncherInfo{"MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr,
                 nullptr, "PMI_KVSNAME"},
    LauncherInfo{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr,
                 "SLURM_STEP_NUM_NODES", "SLURM_STEP_NODELIST", "SLURM_JOB_ID"},
};

constexpr uint16_t kTorchPort = 29500;  // same as PyTorch's default

std::optional<std::string> Look(const Environment& get, const char* name) {
  return name == nullptr ? std::nullopt : get(name);
}

Result<int64_t> Number(const char* name, const std::string& text, int64_t least, int64_t most) {
  const std::optional<int64_t> number = ParseWhole(text);
  if (number && *number >= least && *number <= most) return *number;
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("environment variable {}: found '{}', expected a number from {} to {}", name,
                  text, least, most));
}

Result<uint16_t> FindPort(const LauncherInfo& info, const Environment& get) {
  if (const auto text = get("MASTER_PORT")) {
    ETUDE_ASSIGN_OR_RETURN(const int64_t port, Number("MASTER_PORT", *text, 1, UINT16_MAX));
    return static_cast<uint16_t>(port);
  }
  const auto job = Look(get, info.job);
  if (!job) return kTorchPort;
  // Jobs that share a machine use different ports, outside of the ephemeral range.
  uint32_t hash = 0;
  for (const char c : *job + "/" + get("SLURM_STEP_ID").value_or("")) {
    hash = hash * 31 + static_cast<unsigned char>(c);
  }
  return static_cast<uint16_t>(15'000 + hash % 15'000);
}

Result<std::string> FindHost(const LauncherInfo& info, const Launch& launch,
                             const Environment& get) {
  if (auto host = get("MASTER_ADDR")) return *std::move(host);
  if (launch.one_machine) return "127.0.0.1";
  if (const auto hosts = Look(get, info.hosts)) return FirstHost(*hosts);
  return MakeError(ErrorCode::kUsage,
                   fmt::format("started by {} on several machines: set MASTER_ADDR in every "
                               "process to the host name of rank 0",
                               info.name));
}

}  // namespace

std::optional<std::string> FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string FirstHost(std::string_view list) {
  const size_t end = list.find_first_of("[,");
  std::string host(list.substr(0, end));
  if (end == std::string_view::npos || list[end] == ',') return host;
  const std::string_view numbers = list.substr(end + 1);
  host += numbers.substr(0, numbers.find_first_of("-,]"));
  const size_t close = numbers.find(']');
  if (close == std::string_view::npos) return host;
  const std::string_view rest = numbers.substr(close + 1);
  return host + std::string(rest.substr(0, rest.find(',')));
}

Result<std::optional<Launch>> FindLaunch(const Environment& get) {
  for (const LauncherInfo& info : kLaunchers) {
    const auto rank = get(info.rank);
    const auto size = get(info.size);
    if (!rank || !size) continue;
    Launch launch{.launcher = info.name, .host = {}, .interface = {}, .run = {}};
    ETUDE_ASSIGN_OR_RETURN(launch.size, Number(info.size, *size, 1, INT32_MAX));
    ETUDE_ASSIGN_OR_RETURN(launch.rank, Number(info.rank, *rank, 0, launch.size - 1));
    if (launch.size == 1) return std::nullopt;
    if (const auto local = get(info.local_rank)) {
      ETUDE_ASSIGN_OR_RETURN(launch.local_rank,
                             Number(info.local_rank, *local, 0, launch.size - 1));
    }
    launch.one_machine = Look(get, info.local_size) == size ||
                         Look(get, info.machines) == std::optional<std::string>("1");
    ETUDE_ASSIGN_OR_RETURN(launch.host, FindHost(info, launch, get));
    ETUDE_ASSIGN_OR_RETURN(launch.port, FindPort(info, get));
    launch.store_is_there =
        get("TORCHELASTIC_USE_AGENT_STORE") == std::optional<std::string>("True");
    launch.interface = get("GLOO_SOCKET_IFNAME").value_or("");
    launch.run = get("TORCHELASTIC_RESTART_COUNT").value_or("");
    return launch;
  }
  return std::nullopt;
}

}  // namespace etude
