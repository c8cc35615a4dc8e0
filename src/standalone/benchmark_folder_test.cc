#include "src/standalone/benchmark_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace etude {
namespace {

class BenchmarkFolder : public testing::Test {
 protected:
  BenchmarkFolder() { std::filesystem::create_directories(folder_); }
  ~BenchmarkFolder() override { std::filesystem::remove_all(folder_); }

  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::set<std::string> Steps() const {
    std::set<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      const std::string name = file.path().filename();
      if (name.starts_with("step") || name == "ranks.data") names.insert(name);
    }
    return names;
  }

  // Tests run concurrently, each in its own process.
  const std::string folder_ = testing::TempDir() + "etude_benchmark_folder_" +
                              testing::UnitTest::GetInstance()->current_test_info()->name();
};

StepSource Rank(const std::string& code, const std::string& data,
                std::vector<ProgramGroup> groups) {
  return {.cpp = code + " in C++, long enough to lie in memory of its own\n",
          .python = code + " in Python, long enough to lie in memory of its own\n",
          .data = data + "\n",
          .groups = std::move(groups)};
}

TEST_F(BenchmarkFolder, SaysWhatIsWrongWithTheTraceButNoNameOfAThread) {
  const std::vector<StepSource> step = {Rank("a", "one", {})};
  BenchmarkFacts facts;
  ASSERT_TRUE(WriteBenchmark(step, facts, folder_));
  EXPECT_EQ(Read("README.md").find("is judged"), std::string::npos);
  facts.health.reasons = {
      {Verdict::kDontTrust, "cycles", "2 nodes wait for themselves"},
      {Verdict::kUsable, "graph_time", "the graph alone …; most of the rest: host gap (secret)"}};
  facts.health.graph_time = GraphTime{.recorded = Nanos{200}, .simulated = Nanos{150}};
  ASSERT_TRUE(WriteBenchmark(step, facts, folder_));
  const std::string readme = Read("README.md");
  EXPECT_NE(readme.find(
                "Verdict on the recorded trace: \"don't trust\"\n\n* don't trust: 2 nodes wait for "
                "themselves\n* usable: the time from its dependency graph differs by -25.0 %\n"),
            std::string::npos)
      << readme;
  EXPECT_EQ(readme.find("secret"), std::string::npos);
}

TEST_F(BenchmarkFolder, NamesOnlyOperatorsOfPyTorchAmongThoseThatAreNotRun) {
  std::vector<StepSource> step = {Rank("a", "one", {})};
  BenchmarkFacts facts;
  facts.left_out = {
      {"acme::secret_gate", "argument 'secret' is not recorded", 2},
      {"aten::gelu", "found a recorded value of type 'secret.Config'", 1},
      {"acme::secret_attention", "cannot open /secret/table", 3},
      {"secret_kernel_0", "secret.py: Triton", 4},
      {"c10d::barrier", "the process group 'secret' and 'secret", 1},
  };
  facts.health.reasons = {
      {Verdict::kUsable, "unread_communication", "1 kernel counts as computation: 'SecretReduce'"}};
  ASSERT_TRUE(WriteBenchmark(step, facts, folder_));
  const std::string readme = Read("README.md");
  EXPECT_EQ(readme.find("ecret"), std::string::npos) << readme;
  EXPECT_NE(readme.find("* not run: operators of libraries, 5 ×: use --keep-names for names and "
                        "reasons\n* not run: `aten::gelu`, 1 ×: found a recorded value of type "
                        "'…'\n* not run: no operator, 4 ×: work of compiled code\n* not run: "
                        "`c10d::barrier`, 1 ×: the process group '…' and '…\n"),
            std::string::npos)
      << readme;
  EXPECT_NE(readme.find("* usable: 1 kernel counts as computation: '…'\n"), std::string::npos);
  EXPECT_NE(readme.find("\nThe benchmark does not contain the program's names, data or weights:"),
            std::string::npos);

  facts.keep_names = true;
  step[0].library_operators = {"acme::secret_gate"};
  ASSERT_TRUE(WriteBenchmark(step, facts, folder_));
  const std::string named = Read("README.md");
  EXPECT_NE(named.find("* not run: `acme::secret_attention`, 3 ×: cannot open /secret/table\n"),
            std::string::npos);
  EXPECT_NE(named.find("that the code calls: `acme::secret_gate`.\n\nThe benchmark does not "
                       "contain the program's data"),
            std::string::npos)
      << named;
  EXPECT_EQ(named.find("the program's names, data"), std::string::npos);
}

TEST_F(BenchmarkFolder, WhatWasNotWrittenToItsEndIsReplacedAndWhatIsOfNoneIsNot) {
  const std::vector<StepSource> ranks = {Rank("a", "one", {}), Rank("b", "two", {})};
  ASSERT_TRUE(WriteBenchmark(ranks, {}, folder_));
  for (const char* late : {"README.md", "benchmark.py", "ranks.data"}) {
    std::filesystem::remove(folder_ + "/" + late);
  }
  ASSERT_TRUE(CheckBenchmarkFolder(folder_));
  ASSERT_TRUE(WriteBenchmark(std::span(ranks).first(1), {}, folder_));
  EXPECT_EQ(Steps(), (std::set<std::string>{"step.cc", "step.py", "step.data"}));

  std::filesystem::remove(folder_ + "/benchmark.py");
  std::ofstream(folder_ + "/main.cc") << "int main() {}\n";
  const auto other = CheckBenchmarkFolder(folder_);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("found README.md"), std::string::npos);
  std::filesystem::remove(folder_ + "/README.md");
  EXPECT_NE(CheckBenchmarkFolder(folder_).error().message.find("found main.cc"), std::string::npos);
}

TEST_F(BenchmarkFolder, RanksThatDoTheSameShareTheirCode) {
  const ProgramGroup world{.name = "0", .ranks = {0, 1, 2, 3}};
  const ProgramGroup low{.name = "1", .ranks = {0, 1}};
  const ProgramGroup high{.name = "2", .ranks = {2, 3}};
  const std::vector<StepSource> ranks = {
      Rank("first", "one", {low, world}), Rank("second", "one", {low, world}),
      Rank("first", "two", {high, world}), Rank("second", "one", {high, world})};
  ASSERT_TRUE(WriteBenchmark(ranks, {}, folder_));
  EXPECT_EQ(Read("ranks.data"),
            "ranks 1\ngroups 3\n4 0 1 2 3\n2 0 1\n2 2 3\nmembers 4\n"
            "0 0 2 1 0\n1 0 2 1 0\n0 1 2 2 0\n1 0 2 2 0\n");
  EXPECT_EQ(Steps(), (std::set<std::string>{"ranks.data", "step_0.cc", "step_0.data", "step_0.py",
                                            "step_1.cc", "step_1.data", "step_1.py"}));
  EXPECT_TRUE(Read("step_1.py").starts_with("second in Python"));
  EXPECT_TRUE(Read("step_1.cc").ends_with("const StepCode code(1, Step);\n"));
  EXPECT_EQ(Read("step_1.data"), "two\n");

  // A benchmark of one rank replaces it.
  ASSERT_TRUE(WriteBenchmark(std::vector{Rank("only", "data", {})}, {}, folder_));
  EXPECT_EQ(Steps(), (std::set<std::string>{"step.cc", "step.data", "step.py"}));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/ranks.py"));
}

TEST(StepSource, ComesBackFromItsBytes) {
  StepSource source = Rank("code", "data", {{.name = "a", .ranks = {0, 2}}});
  source.calls = 7;
  source.left_out = 3;
  source.library_operators = {"acme::gate"};
  const auto again = StepSourceOf(ToBytes(source));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->cpp, source.cpp);
  EXPECT_EQ(again->groups, source.groups);
  EXPECT_EQ(again->calls, 7);
  EXPECT_EQ(again->left_out, 3);
  EXPECT_EQ(again->library_operators, source.library_operators);
  EXPECT_FALSE(StepSourceOf("[1, 2]"));
}

}  // namespace
}  // namespace etude
