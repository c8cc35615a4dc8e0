#include "src/sim/nccl/nccl_times.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/sim/nccl/nccl_choice.h"
#include "src/sim/nccl/nccl_file.h"

namespace etude {
namespace {

NcclMachine Preset(std::string_view name) {
  for (const NcclPreset& preset : NcclPresets()) {
    if (preset.name == name) return preset.machine;
  }
  ADD_FAILURE() << name;
  return {};
}

NcclChoice Choose(const NcclMachine& machine, const NcclCollective& collective) {
  const Result<NcclChoice> choice = ChooseNccl(machine, collective);
  EXPECT_TRUE(choice) << choice.error().message;
  return choice.value_or(NcclChoice{});
}

float Candidate(const NcclChoice& choice, NcclAlgorithm algorithm, NcclProtocol protocol) {
  const auto& row = choice.candidates[static_cast<size_t>(algorithm)];
  return row[static_cast<size_t>(protocol)].value_or(-1);
}

Result<NcclMachine> Parse(std::string_view text) {
  return ParseToml<NcclMachine>(text, "machine.toml", [](const toml::table& root) {
    return ParseNcclMachine(*root.get("nccl")->as_table(), "machine.toml");
  });
}

std::string ParseError(std::string_view text) {
  const Result<NcclMachine> machine = Parse(text);
  return machine ? "no error" : machine.error().message;
}

// Two nodes of eight GPUs, each with its network device of 50 GB/s.
NcclMachine TwoNodes() {
  NcclMachine machine = Preset("dgx-h100");
  const NcclGraph ring = {.channels = 8, .intra_speed = 48, .inter_speed = 48};
  machine.graphs.push_back({.several_nodes = true, .ring = ring, .tree = ring});
  return machine;
}

TEST(NcclChoice, AllReduceInANodeByHand) {
  const NcclChoice choice =
      Choose(Preset("dgx-h100"),
             {.type = CollectiveType::kAllReduce, .ranks = 8, .nodes = 1, .bytes = 1 << 30});
  constexpr double kGiB = 1 << 30;
  // 12 channels of 30 GB/s, and 8/14 of the bytes on each link: 205.7 GB/s. 8.4 + 14 · 3.4 µs.
  EXPECT_NEAR(Candidate(choice, NcclAlgorithm::kRing, NcclProtocol::kSimple),
              56.0 + kGiB / (1000 * 360 * 8.0 / 14), 0.5);
  // LL: the smaller of 141 and 360 / 2 GB/s. 6.6 + 14 · 0.6 µs.
  EXPECT_NEAR(Candidate(choice, NcclAlgorithm::kRing, NcclProtocol::kLl),
              15.0 + kGiB / (1000 * 141 * 8.0 / 14), 1);
  // NVLS: 8 channels of 40 · 0.85 · 7/8 · 2 = 59.5 GB/s. 25 µs.
  EXPECT_NEAR(Candidate(choice, NcclAlgorithm::kNvls, NcclProtocol::kSimple),
              25.0 + kGiB / (1000 * 8 * 59.5 * 8 / 14), 0.5);
  // A tree of 0.92 · 360 / 2 GB/s, without a correction above 512 MiB. 8.4 + 2 · 7 · 4 µs.
  EXPECT_NEAR(Candidate(choice, NcclAlgorithm::kTree, NcclProtocol::kSimple),
              64.4 + kGiB / (1000 * 331.2 / 2), 1);
  EXPECT_EQ(Candidate(choice, NcclAlgorithm::kNvlsTree, NcclProtocol::kSimple), -1);
  EXPECT_EQ(Candidate(choice, NcclAlgorithm::kPat, NcclProtocol::kSimple), -1);
  EXPECT_EQ(choice.algorithm, NcclAlgorithm::kNvls);
  EXPECT_EQ(choice.protocol, NcclProtocol::kSimple);
  NcclMachine without = Preset("dgx-h100");
  without.nvls = false;
  EXPECT_EQ(Choose(without,
                   {.type = CollectiveType::kAllReduce, .ranks = 8, .nodes = 1, .bytes = 1 << 30})
                .algorithm,
            NcclAlgorithm::kRing);
}

TEST(NcclChoice, SmallAllReduceIsLl) {
  const NcclChoice choice =
      Choose(Preset("dgx-a100"),
             {.type = CollectiveType::kAllReduce, .ranks = 8, .nodes = 1, .bytes = 1024});
  EXPECT_EQ(choice.protocol, NcclProtocol::kLl);
  // 6.6 + 14 · 0.6 µs, and 1,024 bytes at the cap of 87.7 · 8/14 GB/s.
  EXPECT_NEAR(Candidate(choice, NcclAlgorithm::kRing, NcclProtocol::kLl), 15.0 + 0.0204, 1e-3);
  // 6.8 + 14 · 0.6 µs; 0.92 · 240 / 3.8 / 2 GB/s, of which 90 % at 1 KiB.
  EXPECT_NEAR(Candidate(choice, NcclAlgorithm::kTree, NcclProtocol::kLl),
              15.2 + 1.024 / (220.8 / 7.6 * 0.9), 1e-3);
}

TEST(NcclChoice, RingOverNodesByHand) {
  const NcclMachine machine = TwoNodes();
  const NcclCollective collective = {
      .type = CollectiveType::kAllReduce, .ranks = 16, .nodes = 2, .bytes = 1 << 28};
  const NcclChoice choice = Choose(machine, collective);
  // 30 steps, 2 of them between nodes: 8.4 + 28 · 3.4 + 2 · 14 µs, and 1.4 times that above
  // 64 bytes for each of 16 ranks and 16 channels. 8 channels of 48 GB/s, 16/30.
  EXPECT_NEAR(Candidate(choice, NcclAlgorithm::kRing, NcclProtocol::kSimple),
              1.4 * 131.6 + (1 << 28) / (1000 * 384 * 16.0 / 30), 0.1);
  // LL: 39 GB/s with Intel's processors. 6.6 + 28 · 1 (the overhead of the network) + 2 · 2.7 µs.
  EXPECT_NEAR(Candidate(choice, NcclAlgorithm::kRing, NcclProtocol::kLl),
              40.0 + (1 << 28) / (1000 * 39 * 16.0 / 30), 1);
}

TEST(NcclChoice, GathersCountAllBytes) {
  const NcclMachine machine = Preset("dgx-a100");
  const auto ring = [&](CollectiveType type, int64_t bytes) {
    const NcclChoice choice =
        Choose(machine, {.type = type, .ranks = 8, .nodes = 1, .bytes = bytes});
    return Candidate(choice, NcclAlgorithm::kRing, NcclProtocol::kSimple);
  };
  // 8.4 + 7 · 3.4 µs, and 8 MiB at 240 · 8/7 GB/s.
  const double expected = 32.2 + (8 << 20) / (1000 * 240 * 8.0 / 7);
  EXPECT_NEAR(ring(CollectiveType::kAllGather, 1 << 20), expected, 1e-3);
  EXPECT_NEAR(ring(CollectiveType::kReduceScatter, 8 << 20), expected, 1e-3);
  // One step of latency, as all channels are equal: 8.4 + 3.4 µs.
  EXPECT_NEAR(ring(CollectiveType::kBroadcast, 8 << 20), 11.8 + (8 << 20) / (1000 * 240.0), 1e-3);
}

TEST(NcclTimes, PlacesRanksInBlocks) {
  const Result<NcclTimes> times = NcclTimes::Create(TwoNodes());
  ASSERT_TRUE(times);
  const std::vector<int64_t> node = {8, 9, 10, 11, 12, 13, 14, 15};
  const Result<CommunicationTime> inside = times->TimeOf(CollectiveType::kAllReduce, node, 1 << 30);
  ASSERT_TRUE(inside);
  EXPECT_NEAR(static_cast<double>(inside->nanos), 3972.6e3, 1e2);
  const std::vector<int64_t> rail = {0, 8};
  EXPECT_TRUE(times->TimeOf(CollectiveType::kAllGather, rail, 1 << 20));
  const std::vector<int64_t> pair = {0, 1};
  const Result<CommunicationTime> unknown =
      times->TimeOf(CollectiveType::kAllReduce, pair, 1 << 20);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "unknown time of all_reduce by nccl-2.30: missing graphs for groups of 2 GPUs of one "
            "node; known: 8 GPUs of one node, any GPUs of each of several nodes");
  const std::vector<int64_t> uneven = {0, 1, 8};
  EXPECT_FALSE(times->TimeOf(CollectiveType::kAllReduce, uneven, 1 << 20));
  EXPECT_FALSE(times->TimeOf(CollectiveType::kAllReduce, {}, 1 << 20));
  EXPECT_FALSE(times->TimeOf(CollectiveType::kAllReduce, node, -1));
  EXPECT_FALSE(times->TimeOf(CollectiveType::kAllGather, node, int64_t{1} << 62));
  NcclMachine slow = Preset("dgx-a100");
  slow.graphs[0].ring.intra_speed = slow.graphs[0].tree.intra_speed = 1e-30;
  EXPECT_FALSE(NcclTimes::Create(slow)->TimeOf(CollectiveType::kAllReduce, node, 1 << 20));
}

TEST(NcclTimes, TypesWithoutTimes) {
  const Result<NcclTimes> times = NcclTimes::Create(Preset("h20-8"));
  ASSERT_TRUE(times);
  const std::vector<int64_t> node = {0, 1, 2, 3, 4, 5, 6, 7};
  const Result<CommunicationTime> unknown = times->TimeOf(CollectiveType::kAllToAll, node, 1 << 20);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(unknown.error().message.substr(0, 40), "unknown time by nccl-2.30: all_to_all of");
  EXPECT_FALSE(times->TimeOfMessage(0, 1, 1 << 20));
  EXPECT_TRUE(times->TimeOf(CollectiveType::kBarrier, node, 0));
  EXPECT_EQ(times->TimeOf(CollectiveType::kAllReduce, node, 0)->nanos, 0);
  EXPECT_EQ(times->TimeOf(CollectiveType::kAllReduce, std::span(node).first(1), 8)->nanos, 0);
  EXPECT_FALSE(NcclTimes::Create({}));
}

TEST(NcclFile, PresetAndRows) {
  const Result<NcclMachine> machine = Parse(R"([nccl]
preset = "dgx-h100"
cpu = "amd"
nvls = false
[[nccl.graphs]]
nodes = "several"
gpus = 8
ring = {channels = 8, speeds = [48, 48.0], paths = "NVL/PIX", same_channels = false}
tree = {channels = 8, speeds = [45, 45], paths = "NVL/PXN", pattern = 3}
nvls = {channels = 8, speeds = [40, 48], paths = "NVL/PIX", latency = 1.5}
)");
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->architecture, NcclArchitecture::kHopper);
  EXPECT_EQ(machine->cpu, NcclCpu::kAmd);
  EXPECT_FALSE(machine->nvls);
  ASSERT_EQ(machine->graphs.size(), 2U);
  const NcclGraphs* several = machine->GraphsOf(8, true);
  ASSERT_NE(several, nullptr);
  EXPECT_FALSE(several->ring.same_channels);
  EXPECT_EQ(several->tree.inter_path, NcclPath::kPxn);
  EXPECT_TRUE(several->plain_tree);
  EXPECT_EQ(several->nvls->inter_latency, 1.5);
  EXPECT_EQ(machine->GraphsOf(8, false)->ring.channels, 12);
  EXPECT_EQ(machine->GraphsOf(4, false), nullptr);
}

TEST(NcclFile, Errors) {
  EXPECT_EQ(ParseError("[nccl]\npreset = \"dgx-h10\"\n"),
            "machine.toml:2:10: preset: unknown 'dgx-h10'; did you mean 'dgx-h100'?");
  EXPECT_EQ(ParseError("[nccl]\npreset = \"dgx-h100\"\ncpus = 1\n").substr(0, 48),
            "machine.toml:3:1: unknown key 'cpus' of [nccl]; ");
  EXPECT_EQ(ParseError("[nccl]\ncpu = \"amd\"\n"),
            "machine.toml:1:1: [nccl]: missing 'architecture' (or 'preset')");
  constexpr std::string_view kRow = "[nccl]\npreset = \"dgx-a100\"\n[[nccl.graphs]]\n";
  EXPECT_EQ(ParseError(std::string(kRow) + "nodes = \"one\"\n"),
            "machine.toml:3:1: [[nccl.graphs]]: missing 'ring'");
  const std::string ring = "ring = {channels = 1, speeds = [1, 1], paths = \"NVL/PIX\"}\n";
  const std::string node = std::string(kRow) + "nodes = \"one\"\n" + ring;
  EXPECT_EQ(ParseError(node + "tree = {channels = 1, speeds = [1], paths = \"NVL/PIX\"}\n"),
            "machine.toml:6:32: speeds: found a list of 1, expected two numbers: within and "
            "between nodes, "
            "in GB/s");
  EXPECT_EQ(ParseError(node + "tree = {channels = 1, speeds = [1, 1], paths = \"NVL\"}\n"),
            "machine.toml:6:48: paths: found 'NVL', expected two of NCCL's kinds of paths, such as "
            "NVL/PIX");
  EXPECT_EQ(ParseError(node + "tree = {channels = 0, speeds = [1, 1], paths = \"NVL/PIX\"}\n"),
            "machine.toml:6:20: channels: found 0, expected 1 to 64");
  EXPECT_EQ(
      ParseError(node + "tree = {channels = 1, speeds = [1, 1], paths = \"NVL/PIX\"}\n"
                        "collnet_chain = {channels = 1, speeds = [1, 1], paths = \"NVL/PIX\"}\n"),
      "machine.toml:3:1: [[nccl.graphs]]: collnet_direct requires collnet_chain, and reverse");
}

// 5 µs and 200 GB/s within a node of two, 20 µs and 25 GB/s between.
TEST(NcclTimes, MessagesHaveTheTimesOfTheFile) {
  const std::string text =
      "[nccl]\npreset = 'dgx-h100'\ngpus_per_node = 2\n[nccl.messages]\n"
      "within = {latency = 5, bandwidth = 200}\nbetween = {latency = 20, bandwidth = 25}\n";
  const NcclTimes times = NcclTimes::Create(Parse(text).value()).value();
  const auto message = [&](int64_t from, int64_t to) {
    return times.TimeOfMessage(from, to, 1'000'000)->nanos;
  };
  EXPECT_EQ(message(0, 1), 5'000 + 5'000);
  EXPECT_EQ(message(1, 2), 20'000 + 40'000);
  const std::vector<int64_t> four = {0, 1, 2, 3};
  const auto time = [&](CollectiveType type, std::span<const int64_t> ranks) {
    return times.TimeOf(type, ranks, 1'000'000)->nanos;
  };
  // A quarter of the bytes to each: half to the other node, beside a quarter within.
  EXPECT_EQ(time(CollectiveType::kAllToAll, four), 20'000 + 20'000);
  EXPECT_EQ(time(CollectiveType::kScatter, four), 20'000 + 20'000);
  EXPECT_EQ(time(CollectiveType::kGather, four), 20'000 + 80'000);
  EXPECT_EQ(time(CollectiveType::kAllToAll, std::span(four).first(2)), 5'000 + 2'500);
  EXPECT_EQ(times.TimeOf(CollectiveType::kAllToAll, four, 1'000'000)->how, "messages");

  const NcclTimes without = NcclTimes::Create(Preset("dgx-h100")).value();
  EXPECT_EQ(without.TimeOfMessage(0, 1, 8).error().message,
            "unknown time by nccl-2.30: a message of 8 bytes from rank 0 to 1; NCCL has no times "
            "of messages, expected [nccl.messages] in the machine file");
  EXPECT_NE(ParseError(text.substr(0, text.find("within")) + "within = {latency = 5}\n")
                .find("within: missing 'bandwidth'"),
            std::string::npos);
}

}  // namespace
}  // namespace etude
