#include "src/torch/replay_device.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(ReplayDevice, WhatHasNotBeenTriedIsAskedFor) {
  EXPECT_TRUE(CheckTried("cpu", false));
  EXPECT_TRUE(CheckTried("cpu", true));
  EXPECT_TRUE(CheckTried("cuda:0", false));
  EXPECT_TRUE(CheckTried("xpu:1", true));
  const Status refused = CheckTried("xpu:1", false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_NE(refused.error().message.find("--experimental"), std::string::npos);
  EXPECT_NE(refused.error().message.find("xpu:1"), std::string::npos);
}

TEST(ReplayDevice, OnlyKnownKinds) {
  EXPECT_EQ(ChooseDevice("cpu", true).value_or(""), "cpu");
  EXPECT_EQ(ChooseDevice("", false).value_or(""), "cpu");
  const auto wrong = ChooseDevice("meta", false);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kUsage);
  EXPECT_EQ(ChooseDevice("abacus", false).error().code, ErrorCode::kUsage);
  // The CPU has no number, for any process of the machine.
  EXPECT_EQ(DeviceAt("cpu", {.number = 3}).value_or(""), "cpu");
  // There is exactly one meta device.
  EXPECT_EQ(DeviceAt("meta:0", {.number = 0}).value_or(""), "meta:0");
  EXPECT_EQ(DeviceAt("meta:0", {.number = 1}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(DeviceAt("meta:0", {.number = 1, .is_launched = true}).value_or(""), "meta:0");
  const auto absent = ChooseDevice("cuda:99", false);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kUnavailable);
}

TEST(ReplayDevice, AnyKindIsFoundIfItIsThere) {
  EXPECT_EQ(FindDevice("cpu").value_or(""), "cpu");
  EXPECT_EQ(FindDevice("meta").value_or(""), "meta:0");
  EXPECT_EQ(FindDevice("maia").error().code, ErrorCode::kUnavailable);
  for (const char* wrong : {"abacus", "cuda:x", ""}) {
    EXPECT_EQ(FindDevice(wrong).error().code, ErrorCode::kUsage) << wrong;
  }
}

}  // namespace
}  // namespace etude
