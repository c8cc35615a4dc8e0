#include "src/suite/results/task_simulations.h"

#include <gtest/gtest.h>

namespace etude::suite {
namespace {

// A step of 10 ms on one rank, which takes 12 ms on 8 ranks and 20 ms on 64.
TaskSimulation Made(std::string task) {
  TaskSimulation made{.task = std::move(task), .recording = "out/recordings/t", .kept = true};
  made.one.step = made.one.computation = Nanos{10'000'000};
  made.one.program_step = Nanos{9'999'000};
  for (const auto& [ranks, step] : {std::pair(8, 12'000'000), std::pair(64, 20'000'000)}) {
    made.steps.push_back({.ranks = ranks,
                          .step = Nanos{step},
                          .computation = Nanos{10'500'000},
                          .communication = Nanos{9'000'000},
                          .exposed = Nanos{step - 10'000'000},
                          .all_reduces = 2,
                          .gradients = Bytes{4096},
                          .notes = {"of the recording"}});
  }
  return made;
}

TEST(TaskSimulations, TableHasARowPerNumberOfRanks) {
  const Table table = ScalingTable({Made("t")});
  ASSERT_EQ(table.rows.size(), 2U);
  const std::vector<Cell> cells = {
      "t",         int64_t{9'999'000},  int64_t{10'000'000}, int64_t{4096},       int64_t{2},
      int64_t{64}, int64_t{20'000'000}, int64_t{9'000'000},  int64_t{10'000'000}, int64_t{500'000},
      0.5};
  EXPECT_EQ(table.rows[1], cells);
  TaskSimulation empty = Made("t");
  empty.one.program_step.reset();
  empty.steps[0].step = Nanos{};
  const Table unknown = ScalingTable({empty});
  EXPECT_EQ(unknown.rows[0][1], Cell());
  EXPECT_EQ(unknown.rows[0].back(), Cell());
}

TEST(TaskSimulations, EqualNotesAreOneLine) {
  EXPECT_EQ(NotesOf({Made("a"), Made("b")}), std::vector<std::string>{"a, b: of the recording"});
  EXPECT_EQ(NotesOf({Made("a"), Made("b"), Made("c"), Made("d")}),
            std::vector<std::string>{"4 tasks: of the recording"});
}

TEST(TaskSimulations, Json) {
  const auto json = ToJson(Made("t"));
  EXPECT_EQ(json["program_step_ns"], 9'999'000);
  EXPECT_TRUE(json["recorded_step_ns"].is_null());
  EXPECT_EQ(json["steps"][0]["ranks"], 8);
  EXPECT_EQ(json["steps"][1]["efficiency"], 0.5);
}

}  // namespace
}  // namespace etude::suite
