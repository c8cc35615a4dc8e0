#include "src/trace/reference_forecast.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace etude {
namespace {

// The motif 0 1 three times, around a 2. Node 1 and its repeats refer one node back, inside the
// motif, and three nodes back, out of it.
TEST(ReferenceForecast, ExpectsWhatIsInsideAMotifOnly) {
  const MotifProgram program = {.tokens = 3, .motifs = {{0, 1}}, .parts = {3, 2, 3, 3}};
  ReferenceForecast forecast(program);
  std::vector<std::optional<uint64_t>> expected;
  for (int node = 0; node < 7; ++node) {
    forecast.BeginNode();
    const bool refers = node == 1 || node == 4 || node == 6;
    for (const uint64_t distance : refers ? std::vector<uint64_t>{1, 3} : std::vector<uint64_t>{}) {
      expected.push_back(forecast.Expected());
      forecast.Add(distance);
    }
  }
  const std::optional<uint64_t> none;
  EXPECT_EQ(expected, (std::vector<std::optional<uint64_t>>{none, none, 1, none, 1, none}));
}

}  // namespace
}  // namespace etude
