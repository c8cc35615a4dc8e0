#include "src/jobs/generate/generate_request.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace etude {
namespace {

using Words = std::vector<std::string>;

std::string ErrorOf(const Words& words) {
  const auto parsed = ParseGenerateWords(words);
  return parsed ? "" : parsed.error().message;
}

TEST(ParseGenerateWords, TakesWhatModelAndOptionsOfAllKinds) {
  const Words words = {"llm",      "llama-3-8b",
                       "--dp",     "2",
                       "--clip",   "--bucket",
                       "1MiB",     "--device",
                       "h100-sxm", "--ranks",
                       "4",        "--imbalance",
                       "0.5",      "--no-sequence-parallel"};
  const auto parsed = ParseGenerateWords(words);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->what, "llm");
  EXPECT_EQ(parsed->model, "llama-3-8b");
  EXPECT_EQ(parsed->ranks, 4);
  EXPECT_EQ(parsed->device, "h100-sxm");
  EXPECT_EQ(parsed->options.plan.data, 2);
  EXPECT_EQ(parsed->options.bucket, "1MiB");
  EXPECT_EQ(parsed->options.imbalance, 0.5);
  EXPECT_EQ(parsed->options.Given(),
            std::vector<std::string_view>(
                {"--dp", "--no-sequence-parallel", "--bucket", "--clip", "--imbalance"}));
  EXPECT_TRUE(parsed->options.Has("--clip"));
  EXPECT_FALSE(parsed->options.Has("--tp"));
}

TEST(ParseGenerateWords, RefusesValuesOutOfBoundsUnknownOptionsAndMissingValues) {
  EXPECT_EQ(ErrorOf({"llm", "m", "--dp", "0"}), "--dp: found '0', expected 1 to 16777216");
  EXPECT_EQ(ErrorOf({"llm", "m", "--zero", "4"}), "--zero: found '4', expected 0 to 3");
  EXPECT_EQ(ErrorOf({"llm", "m", "--dp"}), "--dp: found nothing, expected a value");
  EXPECT_EQ(ErrorOf({"llm", "m", "--ddp", "2"}), "unknown option '--ddp'");
  EXPECT_EQ(ErrorOf({"llm", "m", "--clip", "2"}), "unexpected argument '2'");
  EXPECT_EQ(ErrorOf({"llm", "m", "--imbalance", "x"}), "--imbalance: found 'x', expected a number");
}

}  // namespace
}  // namespace etude
