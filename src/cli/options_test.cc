#include "src/cli/options.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(Options, NamesTheNearestOption) {
  bool json = false;
  Options options("info", "says what a file is");
  options.Flag("--json", &json, "JSON");
  const Options::Parsed parsed = options.Parse({"--jsn"});
  EXPECT_EQ(parsed.outcome, Options::Outcome::kError);
  EXPECT_EQ(parsed.text, "unknown option '--jsn'; did you mean '--json'?");
}

TEST(Options, RestIsLeftUntouched) {
  int64_t steps = 20;
  std::string out;
  std::vector<std::string> command;
  Options options("record", "records");
  options.Value("--steps", &steps, "N", "steps");
  options.Value("-o,--output", &out, "DIR", "where to");
  options.Rest("command", &command, "the program");
  const Options::Parsed parsed =
      options.Parse({"-o", "dir", "--steps=3", "--", "python", "t.py", "--steps", "9", "-o", "x"});
  ASSERT_EQ(parsed.outcome, Options::Outcome::kRun) << parsed.text;
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(out, "dir");
  EXPECT_EQ(command, (std::vector<std::string>{"python", "t.py", "--steps", "9", "-o", "x"}));
}

TEST(Options, RestNeedsNoDashes) {
  std::vector<std::string> command;
  Options options("record", "records");
  options.Rest("command", &command, "the program");
  ASSERT_EQ(options.Parse({"python", "--version"}).outcome, Options::Outcome::kRun);
  EXPECT_EQ(command, (std::vector<std::string>{"python", "--version"}));
}

TEST(Options, TheLastOfRepeatedValuesCounts) {
  int64_t steps = 20;
  std::vector<std::string> skip;
  std::string file;
  Options options("replay", "replays");
  options.Value("--steps", &steps, "N", "steps");
  options.Values("--skip", &skip, "OP", "operators");
  options.Positional("file", &file, "a file");
  const Options::Parsed parsed =
      options.Parse({"--steps", "3", "x", "--steps", "4", "--skip", "a", "--skip", "b"});
  ASSERT_EQ(parsed.outcome, Options::Outcome::kRun) << parsed.text;
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(skip, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.Parse({"x", "y"}).outcome, Options::Outcome::kError);
}

TEST(Nearest, OnlyOffersWhatIsNear) {
  EXPECT_EQ(Nearest("valdate", {"info", "validate", "link"}), "validate");
  EXPECT_EQ(Nearest("frobnicate", {"info", "validate", "link"}), "");
}

}  // namespace
}  // namespace etude
