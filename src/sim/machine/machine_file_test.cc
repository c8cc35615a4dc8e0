#include "src/sim/machine/machine_file.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace etude {
namespace {

MachineFile ExampleFile() {
  return {.machine = {.backend = "gloo",
                      .device = "cpu",
                      .cores = 1.5,
                      .cpu = "AMD \"EPYC\" \\",
                      .system = "Linux 6.1.0",
                      .torch = "",
                      .gpu = "NVIDIA H200"},
          .series = {{.kind = CollectiveType::kAllReduce,
                      .ranks = 2,
                      .noisy = true,
                      .points = {{8, 100'000, 0.25, 0.5}, {4096, 120'000, 0, 1.75}}},
                     {.kind = kMessageKind, .ranks = 2, .points = {{8, 40'000, 0.125, 0}}}},
          .checks = {{.kind = CollectiveType::kAllReduce,
                      .ranks = 2,
                      .points = {{64, 101'000, 100'275}}}},
          .network = FittedNetwork{.latency_ns = 40'000,
                                   .handling_ns = 0,
                                   .bytes_per_second = 3'043'497'065.5,
                                   .shared_bytes_per_second = 5e9,
                                   .added_bytes_per_second = {}},
          .computations = {{.type = ComputationType::kCopy, .points = {{8, 500, 0.25}}},
                           {.type = ComputationType::kProduct,
                            .dtype = DType::kBFloat16,
                            .ranks = 2,
                            .noisy = true,
                            .points = {{2048, 9'000, 0}, {8192, 50'000, 0.125}}}}};
}

std::string ParseErrorOf(const std::string& communication) {
  const auto file = ParseMachineFile(
      "[machine]\nbackend = \"gloo\"\ndevice = \"cpu\"\n[[communication]]\n" + communication,
      "m.toml");
  return file ? "" : file.error().message;
}

TEST(MachineFile, RoundTrip) {
  const std::string text = MachineFileText(ExampleFile());
  const auto file = ParseMachineFile(text, "m.toml");
  ASSERT_TRUE(file) << file.error().message << "\n" << text;
  EXPECT_EQ(*file, ExampleFile());
  EXPECT_EQ(MachineFileText(*file), text);
}

TEST(MachineFile, FindsSeries) {
  const MachineFile file = ExampleFile();
  EXPECT_EQ(file.Find(kMessageKind, 2), &file.series[1]);
  EXPECT_EQ(file.Find(kMessageKind, 4), nullptr);
  EXPECT_EQ(file.Find(CollectiveType::kBarrier, 2), nullptr);
  EXPECT_EQ(file.FindCheck(CollectiveType::kAllReduce, 2), file.checks.data());
  EXPECT_EQ(file.FindCheck(kMessageKind, 2), nullptr);
}

TEST(MachineFile, NamesPlaceAndExpectation) {
  const std::string rest = "time_ns = [1]\nspread = [0]\ncores = [0]\n";
  EXPECT_EQ(ParseErrorOf("type = \"all_reduce\"\nranks = 2\nbytes = [8]\n" + rest), "");
  EXPECT_EQ(ParseErrorOf("type = \"allreduce\"\nranks = 2\nbytes = [8]\n" + rest),
            "m.toml:5:8: type: unknown 'allreduce'; did you mean 'all_reduce'?");
  EXPECT_EQ(ParseErrorOf("type = \"all_reduce\"\nranks = 1\nbytes = [8]\n" + rest),
            "m.toml:6:9: ranks: found 1, expected 2 to 1000000");
  EXPECT_EQ(ParseErrorOf("type = \"message\"\nranks = 4\nbytes = [8]\n" + rest),
            "m.toml:6:9: ranks: found 4, expected 2 to 2");
  EXPECT_EQ(ParseErrorOf("type = \"reduce\"\nranks = 2\nbytes = [8, 8]\n" + rest),
            "m.toml:7:13: bytes: found 8 after 8, expected ascending sizes");
  EXPECT_EQ(ParseErrorOf("type = \"reduce\"\nranks = 2\nbytes = [8, 9]\n" + rest),
            "m.toml:8:11: time_ns: found 1 values, expected 2, as in 'bytes'");
  EXPECT_EQ(ParseErrorOf("type = \"reduce\"\nranks = 2\nbyte = [8]\n" + rest),
            "m.toml:7:1: unknown key 'byte' of a communication; did you mean 'bytes'?");
  EXPECT_EQ(ParseErrorOf("type = \"reduce\"\nranks = 2\nbytes = [8]\ntime_ns = [1]\nspread = [-1]\n"
                         "cores = [0]\n"),
            "m.toml:9:11: spread: found -1, expected 0 to 1000000");
  EXPECT_EQ(ParseErrorOf("type = \"reduce\"\nranks = 2\nbytes = [8]\n" + rest +
                         "[[communication]]\ntype = \"reduce\"\nranks = 2\nbytes = [8]\n" + rest),
            "m.toml:11:1: found reduce of 2 ranks twice, expected it once");
}

TEST(MachineFile, NetworkHasAPositiveBandwidth) {
  const auto error = [](const std::string& network) {
    const auto file = ParseMachineFile(
        "[machine]\nbackend = \"gloo\"\ndevice = \"cpu\"\n[network]\n" + network, "m.toml");
    return file ? "" : file.error().message;
  };
  EXPECT_EQ(error("latency_ns = 1\nhandling_ns = 0\nbytes_per_second = 2.5e9\n"), "");
  EXPECT_EQ(error("latency_ns = 1\nhandling_ns = 0\nbytes_per_second = 0\n"),
            "m.toml:7:20: bytes_per_second: found 0, expected 1 to 1000000000000000");
  EXPECT_EQ(error("latency_ns = 1\nhandling_ns = 0\n"), "m.toml:4:1: missing 'bytes_per_second'");
  EXPECT_EQ(error("latency_ns = -1\nhandling_ns = 0\nbytes_per_second = 1\n"),
            "m.toml:5:14: latency_ns: found -1, expected 0 to 1000000000000000");
}

TEST(MachineFile, WorkOfComputations) {
  MeasuredComputation computation{.type = ComputationType::kCopy};
  EXPECT_EQ(computation.WorkOf(4096), 8192);  // read and written
  computation.type = ComputationType::kAddition;
  EXPECT_EQ(computation.WorkOf(4096), 3 * 4096);
  computation.type = ComputationType::kProduct;  // 32 × 32: 32³ multiplications and additions
  EXPECT_EQ(computation.WorkOf(4096), 2 * 32 * 32 * 32);
}

TEST(MachineFile, NeedsMachine) {
  const auto file = ParseMachineFile("version = 1", "m.toml");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(file.error().message, "m.toml: missing [machine]");
}

}  // namespace
}  // namespace etude
