#include "src/suite/subset/task_factors.h"

#include <gtest/gtest.h>

namespace etude::suite {
namespace {

Result<CharacterizedTasks> ParseFile(const std::string& tasks, const std::string& scale = "smoke") {
  return ParseCharacterization(
      "c.json",
      R"({"format": "etude-suite-characterization", "version": 1, "scale": ")" + scale +
          R"(", "tasks": [)" + tasks + "]}",
      {});
}

std::string ErrorOf(const std::string& tasks) { return ParseFile(tasks).error().message; }

TEST(ParseCharacterization, ReadsFactors) {
  const auto found = ParseFile(R"({"id": "spatial-transformer", "parameters": 27360, "batch": 64,
      "samples": 4000, "optimizer": "adam 0.002", "step": {"seconds": 0.5, "flop": 100, "bytes": 20},
      "hot_spots": {"categories": {"GEMM": 0.75, "ReLU": 0.25}}, "parallel": {"efficiency": 0.8},
      "counters": null, "runs": [{"seed": 3, "reached": true, "epochs": 12.5, "steps": 800,
      "evaluate_every": 100}, {"seed": 4, "reached": false, "epochs": 40, "steps": 2500}]})");
  ASSERT_TRUE(found.has_value()) << found.error().message;
  ASSERT_EQ(found->tasks.size(), 1U);
  const TaskFactors& task = found->tasks[0];
  EXPECT_EQ(task.parameters, 27360);
  EXPECT_EQ(task.flop, 100);
  EXPECT_EQ(task.hot_spots->at("GEMM"), 0.75);
  EXPECT_EQ(task.parallel_efficiency, 0.8);
  EXPECT_FALSE(task.cycles.has_value());
  ASSERT_EQ(task.runs.size(), 2U);
  EXPECT_EQ(task.runs[0].epochs, 12.5);
  EXPECT_FALSE(task.runs[1].reached);
}

TEST(ParseCharacterization, MissingMembersAreUnknown) {
  const auto found = ParseFile(R"({"id": "advertising"})");
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->tasks[0].flop.has_value());
  EXPECT_FALSE(found->tasks[0].hot_spots.has_value());
  EXPECT_TRUE(found->tasks[0].runs.empty());
}

TEST(ParseCharacterization, ErrorsNameThePlace) {
  EXPECT_EQ(ErrorOf(R"({"id": "chess"})"),
            "c.json.tasks[0].id: found \"chess\", expected a task of `etude suite list`");
  EXPECT_EQ(ErrorOf(R"({"id": "advertising"}, {"id": "advertising"})"),
            "c.json.tasks[1].id: found \"advertising\", expected each task once");
  EXPECT_EQ(ErrorOf(R"({"id": "advertising", "hot_spots": {"categories": {"GEMM": 1.5}}})"),
            "c.json.tasks[0].hot_spots.categories.GEMM: found 1.5, expected a share from 0 to 1");
  EXPECT_EQ(ErrorOf(R"({"id": "advertising", "step": {"flop": -1}})"),
            "c.json.tasks[0].step.flop: found -1, expected a number from 0");
  EXPECT_NE(ErrorOf(R"({"id": "advertising", "runs": [{"seed": 1, "reached": true}]})")
                .find("expected a number above 0, because the run reached its target"),
            std::string::npos);
  EXPECT_NE(ErrorOf(R"({"id": "advertising", "runs": [{"seed": 1}, {"seed": 1}]})")
                .find("expected a seed that no other run of the task has"),
            std::string::npos);
  EXPECT_EQ(ParseFile("", "tiny").error().message,
            "c.json.scale: found \"tiny\", expected \"smoke\" or \"paper\"");
}

}  // namespace
}  // namespace etude::suite
