#include "src/jobs/calibrate/device_fit.h"

#include <string>

#include <gtest/gtest.h>

namespace etude {
namespace {

// Copies in 500 ns and 0.125 ns per byte: 16 GB/s are read and written.
MeasuredComputation Copies() {
  MeasuredComputation copies{.type = ComputationType::kCopy, .ranks = 2};
  for (int64_t bytes = 8; bytes <= 1 << 23; bytes *= 2) {
    copies.points.push_back({.bytes = bytes, .time_ns = 500 + bytes / 8, .spread = 0});
  }
  return copies;
}

TEST(DeviceFit, FindsLatencyAndRate) {
  const auto fit = FitComputation(Copies());
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->latency_ns, 501, 0.5);
  EXPECT_NEAR(fit->rate, 16e9, 1e7);
  EXPECT_NEAR(fit->errors->median, 0, 1e-3);
}

TEST(DeviceFit, ErrorsAreOfOtherSizes) {
  // 2 bytes per ns: the middle size took twice as long, and the smallest is not checked.
  const MeasuredComputation copies{
      .type = ComputationType::kCopy,
      .points = {{8, 100, 0}, {500, 9000, 0}, {2000, 4100, 0}, {4000, 4100, 0}}};
  const auto fit = FitComputation(copies);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->latency_ns, 100);
  EXPECT_EQ(fit->rate, 2e9);
  EXPECT_DOUBLE_EQ(fit->errors->median, 2100.0 / 4100 - 1);
  EXPECT_DOUBLE_EQ(fit->errors->worst, 2100.0 / 4100 - 1);
  EXPECT_FALSE(FitComputation({.points = {{8, 4000, 0}, {1000, 3000, 0}}}));
}

TEST(DeviceFit, DeviceOfAMachineFile) {
  MachineFile file{.machine = {.backend = "gloo", .device = "cpu"},
                   .series = {},
                   .checks = {},
                   .network = {},
                   .computations = {Copies()}};
  // 64³ and 128³ products of 2 operations, 10 per ns.
  file.computations.push_back({.type = ComputationType::kProduct,
                               .dtype = DType::kBFloat16,
                               .ranks = 2,
                               .noisy = false,
                               .points = {{8192, 52'429, 0}, {32'768, 419'430, 0}}});
  const auto device = ParseDeviceOrMachine(MachineFileText(file), "m.toml");
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_NEAR(static_cast<double>(device->memory.count), 16e9, 1e7);
  EXPECT_NEAR(static_cast<double>(device->bfloat16), 10e9, 1e7);
  EXPECT_EQ(device->float32, 0);

  file.computations.erase(file.computations.begin());
  const auto without = ParseDeviceOrMachine(MachineFileText(file), "m.toml");
  ASSERT_FALSE(without);
  EXPECT_TRUE(without.error().message.starts_with("m.toml: missing the [[computation]] 'copy'"));

  // A device file is one as before.
  EXPECT_TRUE(ParseDeviceOrMachine("preset = \"a100-sxm-80gb\"\n", "d.toml"));
}

}  // namespace
}  // namespace etude
