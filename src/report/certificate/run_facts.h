#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/formats/json/json_document.h"

// Environment of a comparison: machine, software, and properties of the replay.
namespace etude {

// Machine of a program, as in job.json; "" and nullopt: unknown.
struct MachineFacts {
  struct Gpu {
    std::string name;
    std::optional<int64_t> memory_bytes;

    friend bool operator==(const Gpu&, const Gpu&) = default;
  };

  std::string cpu;
  std::string architecture;
  std::optional<int64_t> cores;
  std::optional<int64_t> usable_cores;  // usable by the process
  std::optional<int64_t> memory_bytes;
  std::string system;     // "Linux 6.1.0"
  std::string governor;   // CPU frequency governor; several, if cores differ: "a/b"
  std::vector<Gpu> gpus;  // if the program used any
};

nlohmann::ordered_json ToJson(const MachineFacts& machine);
MachineFacts ParseMachineFacts(const JsonMembers& members);
// Returns "AMD EPYC, 2 of 8 cores, 15.61 GiB, …" without unknown parts; the governor is listed even
// if it is unknown.
std::string ToText(const MachineFacts& machine);
std::string ToText(const std::vector<MachineFacts::Gpu>& gpus);

// Texts by name: versions ("torch", "python", "cuda", …) or environment variables.
using NamedTexts = std::map<std::string, std::string>;
NamedTexts ParseNamedTexts(const JsonMembers& members);

// Coverage of a recording by a replay.
struct ReplayFacts {
  // Skipped operators of one kind.
  struct Skipped {
    std::string op;
    std::string reason;
    int64_t count = 0;
  };
  // Recorded steps of one kind, represented by one of them.
  struct Kind {
    int64_t step = 0;                  // number of the representative
    int64_t steps = 0;                 // number of steps of this kind
    std::optional<double> time_share;  // of all recorded steps
    bool replayed = false;             // whether this kind was compared
  };

  std::string torch;   // version; "" if unknown
  std::string device;  // "" if unknown
  std::string trace;   // verdict on the trace: "good"; "" if unknown
  int64_t operators = 0;
  int64_t operators_replayed = 0;
  std::optional<double> time_coverage;  // share of the recorded time
  std::optional<double> same_kernels;   // share of the innermost recorded operators, by count
  std::optional<double> same_kernels_by_time;
  std::vector<Skipped> skipped;
  std::vector<Kind> kinds;
};

nlohmann::ordered_json ToJson(const ReplayFacts& replay);
ReplayFacts ParseReplayFacts(const JsonMembers& members);

}  // namespace etude
