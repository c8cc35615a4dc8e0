#include "src/base/machine/core_use.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

bool IsAny(int64_t /*core*/) { return true; }

TEST(BusyTicks, CountsWorkOfTheCoresThatAreAskedFor) {
  constexpr std::string_view kText =
      "cpu  100 0 50 1000 20 0 0 0 0 0\n"
      "cpu0 60 1 30 500 10 2 3 4 9 9\n"
      "cpu1 40 0 20 500 10 0 0 0 0 0\n"
      "intr 12 0 0\n"
      "ctxt 5";
  EXPECT_EQ(BusyTicks(kText, IsAny), 60 + 1 + 30 + 2 + 3 + 4 + 40 + 20);
  EXPECT_EQ(BusyTicks(kText, [](int64_t core) { return core == 1; }), 60);
  EXPECT_EQ(BusyTicks(kText, [](int64_t core) { return core == 2; }), std::nullopt);
}

TEST(BusyTicks, OtherTextSaysNothing) {
  for (const std::string_view text : {"", "\n\n", "cpu0", "cpux 1 2 3 4 5", "cpu0 1 2 3", "no"}) {
    EXPECT_EQ(BusyTicks(text, IsAny), std::nullopt) << text;
  }
  EXPECT_EQ(BusyTicks("cpu0 1 x -3 4 5 99999999999999999999", IsAny), 1);
}

TEST(QuotaCores, IsTheShareOfThePeriod) {
  EXPECT_EQ(QuotaCores("150000 100000\n"), 1.5);
  for (const std::string_view text : {"max 100000\n", "", "1", "0 100000", "1 0", "1 2 3", "a b"}) {
    EXPECT_EQ(QuotaCores(text), std::nullopt) << text;
  }
}

TEST(CoresOfOthers, IsWhatIsNotOfThisProcess) {
  const CoreUse before{.at = Nanos{0}, .busy = Nanos{5000}, .own = Nanos{100}};
  const CoreUse after{.at = Nanos{1000}, .busy = Nanos{6800}, .own = Nanos{700}};
  EXPECT_DOUBLE_EQ(CoresOfOthers(before, after), 1.2);
  EXPECT_EQ(CoresOfOthers(after, before), 0);
  // Ticks are coarse: the busy time may be less than the process's own.
  EXPECT_EQ(CoresOfOthers(before, {.at = Nanos{10}, .busy = Nanos{5000}, .own = Nanos{109}}), 0);
}

TEST(CoreUse, ThisMachineSays) {
  EXPECT_GT(CoreLimit(), 0);
  const auto use = CoreUse::Now();
  if (!use) GTEST_SKIP() << "no /proc/stat";
  EXPECT_GT(use->busy.count, 0);
}

}  // namespace
}  // namespace etude
