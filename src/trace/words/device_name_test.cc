#include "src/trace/words/device_name.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(DeviceName, OfPyTorchsNumbers) {
  EXPECT_EQ(DeviceName(0, 0), "cpu");
  EXPECT_EQ(DeviceName(1, 2), "cuda:2");
  EXPECT_EQ(DeviceName(9, 0), "xla:0");
  EXPECT_EQ(DeviceName(13, 0), "mps:0");
  EXPECT_EQ(DeviceName(15, 1), "hpu:1");
  EXPECT_EQ(DeviceName(19, 0), "mtia:0");
  EXPECT_EQ(DeviceName(20, 0), "privateuseone:0");
  EXPECT_EQ(DeviceName(99, 3), "device type 99:3");
  EXPECT_EQ(DeviceName(-1, 0), "device type -1:0");
}

}  // namespace
}  // namespace etude
