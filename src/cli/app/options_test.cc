#include "src/cli/app/options.h"

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

TEST(Options, StandardInputIsGivenOnce) {
  std::string first;
  std::vector<std::string> others;
  Options options("stats", "counts");
  options.Positional("first", &first, "a trace");
  options.Positionals("others", &others, "more");
  EXPECT_EQ(options.Parse({"a", "-", "b"}).outcome, Options::Outcome::kRun);
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"-", "-"}, {"a", "-", "-"}}) {
    const Options::Parsed parsed = options.Parse(args);
    EXPECT_EQ(parsed.outcome, Options::Outcome::kError);
    EXPECT_EQ(parsed.text, "'-' (standard input) was given more than once");
  }
}

TEST(Options, RestNeedsNoDashes) {
  std::vector<std::string> command;
  Options options("record", "records");
  options.Rest("command", &command, "the program");
  ASSERT_EQ(options.Parse({"python", "--version"}).outcome, Options::Outcome::kRun);
  EXPECT_EQ(command, (std::vector<std::string>{"python", "--version"}));
}

TEST(Options, WhatFollowsTheDashesIsLeftUntouched) {
  std::string folder;
  bool run = false;
  std::vector<std::string> command;
  Options options("compare", "compares");
  options.Positional("dir", &folder, "a folder");
  options.Flag("--run", &run, "run");
  options.After("COMMAND ...", &command, "the program");
  ASSERT_EQ(options.Parse({"dir", "--run", "--", "t.py", "--run", "--", "x"}).outcome,
            Options::Outcome::kRun);
  EXPECT_EQ(folder, "dir");
  EXPECT_TRUE(run);
  EXPECT_EQ(command, (std::vector<std::string>{"t.py", "--run", "--", "x"}));
  ASSERT_EQ(options.Parse({"dir", "--"}).outcome, Options::Outcome::kRun);
  EXPECT_TRUE(command.empty());
  EXPECT_EQ(options.Parse({"dir", "t.py"}).outcome, Options::Outcome::kError);
}

TEST(Options, NumbersAreChecked) {
  std::optional<double> rate;
  std::optional<double> target;
  Options options("train", "trains");
  options.Value("--rate", &rate, "RATE", "how fast", /*above=*/0);
  options.Value("--target", &target, "QUALITY", "how good");
  ASSERT_EQ(options.Parse({"--target=-0.5"}).outcome, Options::Outcome::kRun);
  EXPECT_EQ(target, -0.5);
  EXPECT_FALSE(rate.has_value());
  ASSERT_EQ(options.Parse({"--rate", "1e-3"}).outcome, Options::Outcome::kRun);
  EXPECT_EQ(rate, 1e-3);
  for (const char* wrong : {"0", "-1", "inf", "nan", "1x", ""}) {
    const Options::Parsed parsed = options.Parse({"--rate", wrong});
    EXPECT_EQ(parsed.outcome, Options::Outcome::kError) << wrong;
    EXPECT_NE(parsed.text.find("expected a number above 0"), std::string::npos) << parsed.text;
  }
  EXPECT_NE(options.Parse({"--target", "much"}).text.find("'much', expected a number"),
            std::string::npos);
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

TEST(Options, NumbersAreDecimalWholeAndInBounds) {
  const auto parse = [](const std::string& text) {
    std::optional<int64_t> rank;
    int64_t top = 8;
    Options options("info", "informs");
    options.Value("--rank", &rank, "N", "rank", {.least = 0});
    options.Value("-t,--top", &top, "N", "how many", {.least = 1, .most = 10});
    const Options::Parsed parsed = options.Parse({"--rank", text, "-t", "3"});
    EXPECT_EQ(top, parsed.outcome == Options::Outcome::kRun ? 3 : 8);
    return parsed.outcome == Options::Outcome::kRun ? std::to_string(rank.value_or(-1))
                                                    : parsed.text;
  };
  EXPECT_EQ(parse("0"), "0");
  EXPECT_EQ(parse("9223372036854775807"), "9223372036854775807");
  for (const std::string wrong : {"-1", "9223372036854775808", "0x10", "1.5", "1 ", ""}) {
    const bool is_large = wrong == "9223372036854775808";
    EXPECT_EQ(parse(wrong), "--rank: found '" + wrong + "', expected " +
                                (is_large ? "at most 9223372036854775807" : "0 or more"));
  }
}

TEST(Options, EmptyTextIsAValue) {
  std::optional<std::string> tolerance;
  Options options("compare", "compares");
  options.Value("--tolerance", &tolerance, "SHARE", "how near");
  ASSERT_EQ(options.Parse({}).outcome, Options::Outcome::kRun);
  EXPECT_FALSE(tolerance.has_value());
  ASSERT_EQ(options.Parse({"--tolerance", ""}).outcome, Options::Outcome::kRun);
  EXPECT_EQ(tolerance, "");
}

TEST(Options, EmptyTextIsNoValueWhereItMeansThatNoneWasGiven) {
  std::string device;
  Options options("replay", "replays");
  options.Value("--device", &device, "DEVICE", "where");
  const auto outcome = options.Parse({"--device", ""});
  EXPECT_EQ(outcome.outcome, Options::Outcome::kError);
  EXPECT_EQ(outcome.text, "--device: found '', expected DEVICE");
}

TEST(Options, OutputsAreNamedAsWhatIsWritten) {
  std::string output;
  const auto told = [&](const std::string& name, std::vector<std::string_view> endings) {
    Options options("write", "writes");
    options.Output("-o,--output", &output, "FILE", "where to", std::move(endings));
    return options.Parse({"-o", name}).text;
  };
  for (const char* name : {"a.json", "a.json.gz", "a.JSON", "a", "a.v1", "-", "b.et/a"}) {
    EXPECT_EQ(told(name, {".json"}), "") << name;
  }
  EXPECT_EQ(told("a.et.zst", {".json", ".html"}),
            "--output: found 'a.et.zst', the file name of a Chakra trace (`etude convert` writes "
            "one), expected a name that ends in .json or .html");
  EXPECT_EQ(told("a.dot", {}),
            "--output: found 'a.dot', the file name of a graph (`etude graph` writes one), "
            "expected a folder");
}

}  // namespace
}  // namespace etude
