#include "src/sim/sweep/sweep_point.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/sim/sweep/sweep_result.h"

namespace etude {
namespace {

namespace fs = std::filesystem;
using PointJson = nlohmann::json;

// A spec in a separate folder.
class SweepPointTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(testing::TempDir()) / ("etude_sweep_point_" + test);
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "machines");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  Result<SweepPoint> PointOf(const std::string& text, size_t index = 0) {
    auto spec = ParseSweep(text, "s.toml");
    if (!spec) return tl::unexpected<Error>(spec.error());
    return SweepPlanner(*spec, (folder_ / "s.toml").string(), {}).PointAt(index);
  }
  std::string ErrorOf(const std::string& text) {
    const auto point = PointOf(text);
    if (!point) return point.error().message.substr(folder_.string().size() + 1);
    const auto machine = MachineOf(*point);
    return machine ? "" : machine.error().message.substr(folder_.string().size() + 1);
  }

  fs::path folder_;
};

constexpr const char* kTwoDims =
    "base.job = 'job'\n"
    "base.network.topology = 'Ring'\n"
    "base.network.npus_count = [4, 2]\n"
    "base.network.bandwidth = ['50GB/s', '25GB/s']\n"
    "base.network.latency = '1us'\n";

constexpr const char* kOfAstra = "base.model = 'astra-sim-2.0'\n";

TEST_F(SweepPointTest, OneValueStandsForAllDimensions) {
  const auto point = PointOf(std::string(kTwoDims) + kOfAstra);
  ASSERT_TRUE(point) << point.error().message;
  const auto made = MachineOf(*point);
  ASSERT_TRUE(made) << made.error().message;
  const SimMachine& machine = made->machine;
  ASSERT_EQ(machine.dims.size(), 2U);
  EXPECT_EQ(machine.dims[1].shape, NetworkShape::kRing);
  EXPECT_EQ(machine.dims[1].latency, 1000);
  EXPECT_EQ(machine.npus(), 8);
  // Default algorithm: rings.
  EXPECT_EQ(machine.system.algorithms.at(CollectiveType::kAllGather).size(), 2U);
  EXPECT_EQ(point->job.path, (folder_ / "job").string());
  // Two rings of four 50 GB/s links, and four pairs of NPUs with one 25 GB/s link.
  EXPECT_NEAR(LinkBandwidthOf(machine), 2 * 4 * 50 + 4 * 25, 1e-9);
  const auto cost = CostOf(machine, {.npu = 10, .bandwidth = {1, 3}});
  ASSERT_TRUE(cost);
  EXPECT_NEAR(*cost, 8 * 10 + 400 * 1 + 100 * 3, 1e-9);
  EXPECT_NEAR(*CostOf(machine, {.npu = 0, .bandwidth = {2}}), 1000, 1e-9);
  EXPECT_FALSE(CostOf(machine, {.npu = 0, .bandwidth = {1, 2, 3}}));
}

TEST_F(SweepPointTest, LinksOfOtherShapes) {
  SimMachine machine;
  constexpr double kGib = 1e9 / 1073741824.0;  // of a GB
  machine.dims = {{.shape = NetworkShape::kFullyConnected, .npus = 4, .bandwidth = 10 * kGib},
                  {.shape = NetworkShape::kSwitch, .npus = 3, .bandwidth = 100 * kGib}};
  // Three times six links of 10, and four times three of 100.
  EXPECT_NEAR(LinkBandwidthOf(machine), 180 + 1200, 1e-9);
}

TEST_F(SweepPointTest, LaterWordsCount) {
  const std::string text = std::string(kTwoDims) +
                           "[grid]\nnetwork.bandwidth.1 = [1, '2GB/s']\n"
                           "algorithm = [['ring', 'direct'], 'halvingDoubling']\n";
  const auto point = PointOf(text, 2);
  ASSERT_TRUE(point) << point.error().message;
  EXPECT_EQ(point->name.substr(folder_.string().size()),
            "/s.toml: point 3 (network.bandwidth.1 2GB/s, algorithm [ring, direct])");
  EXPECT_EQ(point->machine["network"]["bandwidth"], PointJson({"50GB/s", "2GB/s"}));
  EXPECT_EQ(point->machine["system"]["all-to-all-implementation"], PointJson({"ring", "direct"}));
  const auto other = PointOf(text, 1);
  EXPECT_EQ(other->machine["network"]["bandwidth"], PointJson({"50GB/s", 1}));
  EXPECT_EQ(other->machine["system"]["all-reduce-implementation"],
            PointJson({"halvingDoubling", "halvingDoubling"}));
}

TEST_F(SweepPointTest, AllToAllsAreNotInTheNetwork) {
  const auto point = PointOf(std::string(kTwoDims) + "[grid]\nalgorithm = ['inNetwork']\n", 0);
  ASSERT_TRUE(point) << point.error().message;
  EXPECT_EQ(point->machine["system"]["all-to-all-implementation"], PointJson({"direct", "direct"}));
  EXPECT_EQ(point->machine["system"]["all-gather-implementation"],
            PointJson({"inNetwork", "inNetwork"}));
}

TEST_F(SweepPointTest, FilesOfMachines) {
  Put("machines/net.yml",
      "topology: [ Switch ]\nnpus_count: [ 8 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n");
  Put("machines/system.json",
      R"(/* ours */ {"preferred-dataset-splits": 4, "all-reduce-implementation": ["direct"],)"
      R"( "all-gather-implementation-custom": ["gather"]})");
  Put("machines/gather.0.et", "");
  const auto point = PointOf(
      "base = { job = '/job', network = 'machines/net.yml', system = 'machines/system.json' }\n"
      "[grid]\nnetwork.latency = ['1us']\nsystem.preferred-dataset-splits = [8]\n");
  ASSERT_TRUE(point) << point.error().message;
  EXPECT_EQ(point->job.path, "/job");
  const auto made = MachineOf(*point);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->machine.dims[0].latency, 1000);
  EXPECT_EQ(made->machine.dims[0].bandwidth, 50);
  EXPECT_EQ(made->machine.system.splits, 8);
  EXPECT_EQ(made->machine.system.algorithms.count(CollectiveType::kAllToAll), 0U);
  EXPECT_EQ(made->collectives.at(CollectiveType::kAllGather),
            (folder_ / "machines/gather").string());
}

TEST_F(SweepPointTest, GeneratedJobs) {
  const auto point = PointOf(
      "base.generate = { what = 'llm', model = 'mine.toml', dp = 4, micro_batches = 8, clip = true,"
      " keep_ends = false, device = 'h100-sxm' }\n[grid]\ngenerate.dp = [2]\n");
  ASSERT_TRUE(point) << point.error().message;
  EXPECT_EQ(point->job.generate, (std::map<std::string, PointJson>{{"what", "llm"},
                                                                   {"model", "mine.toml"},
                                                                   {"dp", 2},
                                                                   {"micro_batches", 8},
                                                                   {"clip", true},
                                                                   {"keep_ends", false},
                                                                   {"device", "h100-sxm"}}));
  EXPECT_EQ(point->PathOf("mine.toml"), (folder_ / "mine.toml").string());
  // A later setting of the job's source replaces an earlier one.
  const auto path = PointOf("base.generate = { what = 'llm' }\n[grid]\njob = ['a']\n");
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_TRUE(path->job.generate.empty());
}

// Paths become command words.
TEST_F(SweepPointTest, APathIsNoOption) {
  SweepPoint point;
  EXPECT_EQ(point.PathOf("--output=x.toml"), "./--output=x.toml");
  EXPECT_EQ(point.PathOf("-"), "./-");
  EXPECT_EQ(point.PathOf("a-b"), "a-b");
  point.folder = "specs/";
  EXPECT_EQ(point.PathOf("-"), "specs/-");
}

TEST_F(SweepPointTest, TheModelDependsOnTheSettings) {
  const auto model_of = [&](const std::string& more) -> std::string {
    const auto point = PointOf(kTwoDims + more);
    if (!point) return point.error().message;
    const auto made = MachineOf(*point);
    return made ? made->machine.ModelName() : made.error().message;
  };
  Put("system.json", "{\"all-reduce-implementation\": [\"ring\", \"ring\"]}");
  Put("network.yml", "topology: [Ring]\nnpus_count: [8]\nbandwidth: [50]\nlatency: [500]\n");
  Put("links.txt", "0 a 50GB/s 1us\n1 a 50GB/s 1us\n");
  EXPECT_EQ(model_of(""), "etude-1");
  EXPECT_EQ(model_of("base.system.preferred-dataset-splits = 4\n"), "etude-1");
  EXPECT_EQ(model_of("base.system = 'system.json'\n"), "astra-sim-2.0");
  EXPECT_EQ(model_of("base.system = 'system.json'\nbase.model = 'etude-1'\n"), "etude-1");
  EXPECT_EQ(model_of("base.congestion = 'unaware'\n"), "astra-sim-2.0");
  EXPECT_EQ(model_of("[[point]]\nnetwork = 'network.yml'\n"), "astra-sim-2.0");
  EXPECT_EQ(model_of("[[point]]\nnetwork = 'FatTree(4):50GB/s,1us'\ncongestion = 'unaware'\n"),
            "etude-1");
  EXPECT_EQ(model_of("[[point]]\nnetwork = 'links.txt'\n"), "etude-1");
  EXPECT_NE(model_of("[[point]]\nnetwork = 'links.txt'\nmodel = 'astra-sim-2.0'\n")
                .find("links.txt, which requires model = \"etude-1\""),
            std::string::npos);
  EXPECT_NE(model_of("[[point]]\nnetwork = 'links.txt'\n[grid]\nnetwork.bandwidth = ['1GB/s']\n")
                .find("network.bandwidth: expected a network of dimensions, found"),
            std::string::npos);
  // All-reduces by bandwidth, unless the system says otherwise.
  EXPECT_TRUE(MachineOf(*PointOf(kTwoDims))->machine.system.bandwidth_aware);
  EXPECT_FALSE(MachineOf(*PointOf(std::string(kTwoDims) +
                                  "base.system.collective-optimization = 'baseline'\n"))
                   ->machine.system.bandwidth_aware);
}

TEST_F(SweepPointTest, MachineFilesHaveTimesOrANetwork) {
  Put("m.toml",
      "[machine]\nbackend = 'gloo'\ndevice = 'cpu'\n[network]\nlatency_ns = 1000\n"
      "handling_ns = 10\nbytes_per_second = 1e9\n");
  Put("old.toml", "[machine]\nbackend = 'gloo'\ndevice = 'cpu'\n");
  const auto model_of = [&](const std::string& text) -> std::string {
    const auto point = PointOf(kTwoDims + text);
    if (!point) return point.error().message;
    const auto made = MachineOf(*point, /*ranks=*/6);
    if (!made) return made.error().message;
    return fmt::format("{} of {}", made->machine.ModelName(), made->machine.npus());
  };
  EXPECT_EQ(model_of("[[point]]\nmachine = 'm.toml'\n"), "measured-1 of 6");
  EXPECT_EQ(model_of("[[point]]\nmachine = 'm.toml'\nmodel = 'etude-1'\n"), "etude-1 of 6");
  EXPECT_EQ(model_of("base.model = 'etude-1'\n[[point]]\nmachine = 'm.toml'\n"), "etude-1 of 6");
  EXPECT_EQ(model_of(std::string(kOfAstra) + "[[point]]\nmachine = 'm.toml'\n"), "measured-1 of 6");
  EXPECT_NE(model_of("[[point]]\nmachine = 'm.toml'\nmodel = 'astra-sim-2.0'\n")
                .find("expected 'etude-1' beside 'machine'"),
            std::string::npos);
  EXPECT_NE(model_of("[[point]]\nmachine = 'old.toml'\nmodel = 'etude-1'\n")
                .find("old.toml: missing [network]"),
            std::string::npos);
}

TEST_F(SweepPointTest, FaultsOfMachines) {
  const auto point = PointOf(std::string(kTwoDims) + kOfAstra +
                             "[grid]\nstraggler = ['3:1.5 4:2']\nslow_link = ['0-1:0.5+2us']\n");
  ASSERT_TRUE(point) << point.error().message;
  const auto made = MachineOf(*point);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->machine.stragglers, (std::map<int64_t, double>{{3, 1.5}, {4, 2}}));
  ASSERT_EQ(made->machine.slow_links.size(), 1U);
  EXPECT_EQ(made->machine.slow_links[0].other, 1);
  EXPECT_EQ(made->machine.slow_links[0].latency, 2000);
  // "none" is the same as no setting.
  EXPECT_EQ(SweepIdentity(*PointOf(kTwoDims), "", ""),
            SweepIdentity(*PointOf(std::string(kTwoDims) + "base.straggler = 'none'\n"), "", ""));
  EXPECT_NE(ErrorOf(std::string(kTwoDims) + "grid.straggler = ['8']\n")
                .find("s.toml: point 1 (straggler 8): straggler: "),
            std::string::npos);
}

TEST_F(SweepPointTest, SaysWhatIsWrong) {
  EXPECT_EQ(ErrorOf("grid.queues = [1]"),
            "s.toml: point 1 (queues 1): missing 'job' or 'generate'");
  EXPECT_EQ(ErrorOf("base.generate.what = 'llm'\nbase.job = 'a'"),
            "s.toml: point 1: found both 'job' and 'generate', expected one of them");
  EXPECT_EQ(ErrorOf("base.job = 'a'"),
            "s.toml: point 1: network: expected 'topology', a list with a value for each "
            "dimension");
  EXPECT_EQ(ErrorOf(std::string(kTwoDims) + "grid.network.npus_count.2 = [1]\n"),
            "s.toml: point 1 (network.npus_count.2 1): network.npus_count.2: expected npus_count, "
            "a list with a value for each dimension, and the index of one of them, from 0");
  EXPECT_EQ(ErrorOf(std::string(kTwoDims) + "base.system.actve-chunks-per-dimension = 1\n"),
            "s.toml: point 1: system: unknown key 'actve-chunks-per-dimension'; did you mean "
            "'active-chunks-per-dimension'?");
  EXPECT_EQ(ErrorOf(std::string(kTwoDims) + "grid.network.npus_count = [[4, 4, 4]]\n"),
            "s.toml: point 1 (network.npus_count [4, 4, 4]): network: bandwidth: found 2 values "
            "for 3 topologies, expected one for each");
}

TEST_F(SweepPointTest, KeptOutcomes) {
  const auto point = PointOf(kTwoDims);
  ASSERT_TRUE(point);
  const std::string identity = SweepIdentity(*point, "hash", "");
  const SweepOutcome done{.state = SweepOutcome::State::kDone,
                          .why = "",
                          .times = SweepTimes{.step = 1234,
                                              .compute = 1000,
                                              .exposed_communication = 200,
                                              .exposed_memory = 4,
                                              .idle = 30},
                          .notes = {}};
  const std::string text = SweepFileText(identity, done);
  EXPECT_EQ(ReadSweepFile(text, identity), done);
  const SweepOutcome stuck{.state = SweepOutcome::State::kUnfinished,
                           .why = "rank 3 waits",
                           .times = {},
                           .notes = {"a", "b"}};
  EXPECT_EQ(ReadSweepFile(SweepFileText(identity, stuck), identity), stuck);
  // Another job, another machine, a truncated file.
  EXPECT_NE(SweepFileName(SweepIdentity(*point, "other", "")), SweepFileName(identity));
  EXPECT_EQ(ReadSweepFile(text, SweepIdentity(*point, "other", "")), std::nullopt);
  const auto faster = PointOf(std::string(kTwoDims) + "base.queues = 2\n");
  EXPECT_NE(SweepIdentity(*faster, "hash", ""), identity);
  EXPECT_EQ(ReadSweepFile(text.substr(0, text.size() / 2), identity), std::nullopt);
  EXPECT_EQ(ReadSweepFile("", identity), std::nullopt);
  std::string changed = text;
  const size_t at = changed.find("\"step_ns\": ");
  ASSERT_NE(at, std::string::npos);
  changed[at + 11] = changed[at + 11] == '9' ? '8' : '9';
  EXPECT_EQ(ReadSweepFile(changed, identity), std::nullopt);
}

TEST(SweepFront, OfPointsThatAreDone) {
  using State = SweepOutcome::State;
  std::vector<SweepRow> rows(4);
  const std::vector<std::pair<int64_t, double>> figures = {{10, 5}, {20, 3}, {30, 4}, {1, 1}};
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].bandwidth = figures[i].second;
    rows[i].outcome = SweepOutcome{.state = State::kDone,
                                   .why = "",
                                   .times = SweepTimes{.step = figures[i].first},
                                   .notes = {}};
  }
  rows[3].outcome = SweepOutcome{.state = State::kRefused, .why = "no", .times = {}, .notes = {}};
  const std::vector<SweepMeasure> measures = MeasuresOf({}, rows);
  EXPECT_EQ(measures, (std::vector<SweepMeasure>{SweepMeasure::kStep, SweepMeasure::kBandwidth}));
  MarkFront(measures, rows);
  EXPECT_TRUE(rows[0].is_best);
  EXPECT_TRUE(rows[1].is_best);
  EXPECT_FALSE(rows[2].is_best);
  EXPECT_FALSE(rows[3].is_best);
  for (SweepRow& row : rows) row.bandwidth = 1;
  EXPECT_TRUE(MeasuresOf({}, rows).empty());
}

}  // namespace
}  // namespace etude
