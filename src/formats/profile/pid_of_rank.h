#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace etude {

// A process id that tools make of one when they merge the profiles of several ranks.
struct PidOfRank {
  std::string owner;     // what stands for the rank: "[TP00]", "rank0", "rank 3"
  std::string_view pid;  // of the rank's own profile; "" if it is lost
};

// "[TP00-EP01] 100" (SGLang), "[TP00 100]", "[rank0] 100" (LMDeploy), "rank0_100", "Rank 0",
// "100_3" (process 100 of rank 3). nullopt for any other.
std::optional<PidOfRank> ReadPidOfRank(std::string_view pid);

}  // namespace etude
