#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "src/sim/engine/simulator.h"
#include "src/sim/machine/astra_config.h"
#include "src/sim/program/workload.h"
#include "src/sim/result/roofline_use.h"

namespace etude {

inline std::string TextOfFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Compares finished runs with ASTRA-sim's output, exactly, for all cases of a folder. `simulate`
// takes a machine and a workload.
template <typename SimulateFn>
void ExpectAstraSimsCases(const std::filesystem::path& data, int least_runs,
                          const SimulateFn& simulate) {
  namespace fs = std::filesystem;
  using Json = nlohmann::json;
  int runs = 0;
  for (const auto& entry : fs::directory_iterator(data)) {
    const fs::path& folder = entry.path();
    // Cases with archived workloads belong to a larger test.
    if (!fs::exists(folder / "result.json") || fs::exists(folder / "WORKLOAD")) continue;
    const Json expected = Json::parse(TextOfFile(folder / "result.json"));
    for (const auto& [congestion, run] : expected.at("runs").items()) {
      if (run.at("finished") == 0) continue;
      const std::string what = folder.filename().string() + ", " + congestion;
      SimMachine machine{.congestion = congestion == "aware"};
      ASSERT_TRUE(ParseAstraNetwork(TextOfFile(folder / "network.yml"), "network.yml", machine));
      const auto custom =
          ParseAstraSystem(TextOfFile(folder / "system.json"), "system.json", machine);
      ASSERT_TRUE(custom) << what << ": " << custom.error().message;
      ASSERT_TRUE(ParseAstraMemory(TextOfFile(folder / "memory.json"), "memory.json", machine));
      for (const std::string argument : expected.at("extra_args")) {
        if (argument == "--num-queues-per-dim=4") machine.system.queues = 4;
        if (argument == "--rendezvous-protocol=true") machine.system.rendezvous = true;
      }
      const int64_t ranks = machine.npus();
      for (const auto& [type, prefix] : *custom) {
        const auto programs = ReadSimFiles((folder / prefix).string(), ranks, {}, {});
        ASSERT_TRUE(programs) << what;
        machine.system.programs[type] = programs->ranks;
      }
      const std::string prefix = expected.at("workload_prefix");
      auto workload = ReadSimFiles((folder / prefix).string(), ranks, {}, {});
      ASSERT_TRUE(workload) << what << ": " << workload.error().message;
      if (fs::exists(folder / "comm_group.json")) {
        const auto groups =
            NumberedGroups(Json::parse(TextOfFile(folder / "comm_group.json")), "groups", ranks);
        ASSERT_TRUE(groups) << what;
        workload->groups = *groups;
      }
      const auto result = simulate(machine, *workload);
      ASSERT_TRUE(result) << what << ": " << result.error().message;
      ++runs;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        // In a deadlock only figures of the finished ranks exist.
        if (run.contains("per_npu") && !run.at("per_npu").contains(std::to_string(rank))) {
          EXPECT_FALSE(result->OfRank(rank).finished) << what;
          continue;
        }
        const Json& figures = run.contains("per_npu") ? run.at("per_npu").at(std::to_string(rank))
                                                      : run.at("per_npu_all_equal");
        const SimRankResult& got = result->OfRank(rank);
        EXPECT_TRUE(got.finished) << what;
        EXPECT_EQ(figures.at("cycles"), got.end) << what << ", rank " << rank;
        EXPECT_EQ(figures.at("exposed").get<uint64_t>(),
                  static_cast<uint64_t>(got.end - got.computed))
            << what << ", rank " << rank;
        const std::pair<const char*, int64_t> statistics[] = {
            {"Wall time", got.wall}, {"GPU time", got.device}, {"Comm time", got.comm}};
        const RooflineUse use = RooflineUseOf(machine, *workload, *result, rank);
        const std::pair<const char*, double> averages[] = {
            {"Compute bound percentage", 100 * use.compute_bound},
            {"Average compute utilization", 100 * use.compute},
            {"Average memory utilization", 100 * use.memory},
            {"Average operation intensity", use.intensity}};
        for (const auto& [name, value] : averages) {
          if (!figures.contains(name)) continue;
          EXPECT_NEAR(figures.at(name), value, 0.0005001) << what << ", rank " << rank;
        }
        for (const auto& [name, value] : statistics) {
          if (figures.contains(name)) {
            EXPECT_EQ(figures.at(name), value) << what << ", rank " << rank << ", " << name;
          }
        }
      }
    }
  }
  EXPECT_GE(runs, least_runs);
}

// Runs the cases by hand.
template <typename SimulateFn>
void ExpectFewAstraSimsCases(const SimulateFn& simulate) {
  ExpectAstraSimsCases(std::filesystem::path(ETUDE_TEST_DATA) / "astra_sim", 10, simulate);
}

// Runs all cases that are shipped with the tests.
template <typename SimulateFn>
void ExpectAstraSimsCases(const SimulateFn& simulate) {
  ExpectFewAstraSimsCases(simulate);
  ExpectAstraSimsCases(std::filesystem::path(ETUDE_UNPACKED_DATA) / "astra-sim", 170, simulate);
}

}  // namespace etude
