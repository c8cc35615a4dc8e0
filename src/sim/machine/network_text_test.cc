#include "src/sim/machine/network_text.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(NetworkText, IsANetworkFile) {
  EXPECT_EQ(NetworkOfDims("Ring(8):50GB/s,500ns  Switch(4):25GB/s,1us").value(),
            "topology: [\"Ring\", \"Switch\"]\nnpus_count: [\"8\", \"4\"]\n"
            "bandwidth: [\"50GB/s\", \"25GB/s\"]\nlatency: [\"500ns\", \"1us\"]\n");
}

TEST(NetworkText, IsNoFilesName) {
  for (const char* dims : {"Ring(4)", " Rung(4):1,1", "Ring(4:1,1", "(4):1,1"}) {
    EXPECT_TRUE(IsNetworkOfDims(dims)) << dims;
  }
  for (const char* file : {"", "Ring", "net.yml", "a/Ring(4):1,1", "./Ring(4)", "net-2(1).yml"}) {
    EXPECT_FALSE(IsNetworkOfDims(file)) << file;
  }
}

TEST(NetworkText, BlanksBeforeUnitsAndAfterCommas) {
  EXPECT_EQ(NetworkOfDims("Ring(8):50 GB/s, 500 ns   Switch(4):25GB/s,1us "),
            "topology: [\"Ring\", \"Switch\"]\nnpus_count: [\"8\", \"4\"]\n"
            "bandwidth: [\"50 GB/s\", \"25GB/s\"]\nlatency: [\"500 ns\", \"1us\"]\n");
}

TEST(NetworkText, SaysWhatIsMissing) {
  const auto missing = [](const char* dims) { return NetworkOfDims(dims).error().message; };
  const auto expect = [&](const char* dims, const char* what) {
    EXPECT_EQ(missing(dims),
              std::string("found '") + dims + "' without " + what +
                  ", expected dimensions such as \"Ring(8):50GB/s,500ns Switch(4):25GB/s,1us\"");
  };
  expect("Ring(4)", "a bandwidth and a latency");
  expect("Ring(4):", "a latency");
  expect("Ring(4):50GB/s", "a latency");
  expect("Ring(4):50GB/s,", "a latency");
  expect("Ring(4:50GB/s,1us", "a closing parenthesis");
  expect("Ring", "ranks in parentheses");
  EXPECT_EQ(missing("Ring(4):50GB/s,1us Switch(2)"),
            "found 'Switch(2)' without a bandwidth and a latency, expected dimensions such as "
            "\"Ring(8):50GB/s,500ns Switch(4):25GB/s,1us\"");
}

}  // namespace
}  // namespace etude
