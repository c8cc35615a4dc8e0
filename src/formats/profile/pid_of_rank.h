#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace etude {

// A process id that contains a rank, as tools write it when they merge the profiles of several
// ranks.
struct PidOfRank {
  std::string owner;     // the part that names the rank: "[TP00]", "rank0", "rank 3"
  std::string_view pid;  // as in the rank's own profile; "" if it is lost
};

// Reads "[TP00-EP01] 100" (SGLang), "[TP00 100]", "[rank0] 100" (LMDeploy), "rank0_100", "Rank 0"
// and "100_3" (process 100 of rank 3). Returns nullopt for any other text.
std::optional<PidOfRank> ReadPidOfRank(std::string_view pid);

}  // namespace etude
