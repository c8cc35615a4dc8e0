#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/formats/json/json_document.h"

// What a comparison was made of: the machine, the software, and what the replay says of itself.
namespace etude {

// The machine that a program ran on, as job.json has it; "" and nullopt: unknown.
struct MachineFacts {
  struct Gpu {
    std::string name;
    std::optional<int64_t> memory_bytes;

    friend bool operator==(const Gpu&, const Gpu&) = default;
  };

  std::string cpu;
  std::string architecture;
  std::optional<int64_t> cores;
  std::optional<int64_t> usable_cores;  // by the process
  std::optional<int64_t> memory_bytes;
  std::string system;     // "Linux 6.1.0"
  std::string governor;   // of the clock rate; several, where cores differ, as "a/b"
  std::vector<Gpu> gpus;  // if the program used one
};

nlohmann::ordered_json ToJson(const MachineFacts& machine);
MachineFacts ParseMachineFacts(const JsonMembers& members);
// "AMD EPYC, 2 of 8 cores, 15.61 GiB, …": without what is unknown but for the governor.
std::string ToText(const MachineFacts& machine);
std::string ToText(const std::vector<MachineFacts::Gpu>& gpus);

// Texts by name: versions ("torch", "python", "cuda", …), variables of the environment.
using NamedTexts = std::map<std::string, std::string>;
NamedTexts ParseNamedTexts(const JsonMembers& members);

// What a replay does of what was recorded.
struct ReplayFacts {
  // Operators of one kind that do not run.
  struct Skipped {
    std::string op;
    std::string reason;
    int64_t count = 0;
  };
  // Recorded steps that did the same; one of them stands for all.
  struct Kind {
    int64_t step = 0;                  // the number of that one
    int64_t steps = 0;                 // for how many it stands
    std::optional<double> time_share;  // of all recorded steps
    bool replayed = false;             // whether it is the one that was compared
  };

  std::string torch;   // its version; "" if unknown
  std::string device;  // the same
  std::string trace;   // its verdict, "good"; "" if unknown
  int64_t operators = 0;
  int64_t operators_replayed = 0;
  std::optional<double> time_coverage;  // the same by recorded time
  std::optional<double> same_kernels;   // of the innermost recorded operators, by count
  std::optional<double> same_kernels_by_time;
  std::vector<Skipped> skipped;
  std::vector<Kind> kinds;
};

nlohmann::ordered_json ToJson(const ReplayFacts& replay);
ReplayFacts ParseReplayFacts(const JsonMembers& members);

}  // namespace etude
