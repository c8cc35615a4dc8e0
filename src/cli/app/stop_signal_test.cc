#include "src/cli/app/stop_signal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace etude {
namespace {

TEST(StopSignal, ASignalIsNoted) {
  const auto stop = StopSignal::Make().value();
  EXPECT_FALSE(*stop->flag());
  raise(SIGTERM);
  EXPECT_TRUE(*stop->flag());
  EXPECT_FALSE(*StopSignal::Make().value()->flag()) << "a new one begins anew";
}

TEST(StopSignal, ForkedProcessesShareTheFlag) {
  const auto stop = StopSignal::Make().value();
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGINT);
    _exit(*stop->flag() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(*stop->flag());
}

}  // namespace
}  // namespace etude
