#include "src/base/machine/gpu_sensors.h"

#include <gtest/gtest.h>

#include <utility>

namespace etude {
namespace {

TEST(GpuSensors, AreNotLookedForUnlessAskedFor) {
  const GpuSensors none;
  EXPECT_EQ(none.why_none(), "");
  EXPECT_FALSE(none.Read().power_w);
}

TEST(GpuSensors, WhyThereAreNoneIsSaid) {
  const GpuSensors none = GpuSensors::Open("libetude-no-such-library.so");
  EXPECT_NE(none.why_none().find("libetude-no-such-library.so"), std::string::npos);
  EXPECT_EQ(none.count(), 0u);
  EXPECT_FALSE(none.Read().energy_j);
}

TEST(GpuSensors, SumOverGpus) {
  GpuSensors opened = GpuSensors::Open(ETUDE_TEST_NVML);
  const GpuSensors sensors = std::move(opened);
  ASSERT_EQ(sensors.why_none(), "");
  EXPECT_EQ(sensors.count(), 2u);
  const GpuSensors::Reading first = sensors.Read();
  const GpuSensors::Reading second = sensors.Read();
  // Each reading of each GPU adds 2 J.
  EXPECT_DOUBLE_EQ(*first.energy_j, 2 + 4);
  EXPECT_DOUBLE_EQ(*second.energy_j, 6 + 8);
  EXPECT_DOUBLE_EQ(*first.power_w, 300);
  EXPECT_DOUBLE_EQ(*first.memory_bytes, 8192);
  EXPECT_DOUBLE_EQ(*first.utilisation, 0.8);
  EXPECT_DOUBLE_EQ(*first.memory_utilisation, 0.35);
}

}  // namespace
}  // namespace etude
