#include "src/synth/text/text_workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/trace/program_parts.h"
#include "src/trace/validator.h"

namespace etude {
namespace {

// "name <deps by name": one for each node, in order.
std::vector<std::string> LinesOf(std::string_view text, int64_t passes = 1) {
  const auto model = ParseTextModel(text);
  EXPECT_TRUE(model.has_value());
  const auto workload = MakeTextWorkload(*model, {.ranks = 2, .passes = passes});
  EXPECT_TRUE(workload.has_value()) << workload.error().message;
  EXPECT_TRUE(IsValid(Validate(workload->trace)));
  std::vector<std::string> story;
  const Trace& trace = workload->trace;
  ForEachNode(trace, [&](NodeId node) {
    std::vector<std::string> deps;
    for (const NodeId dep : trace.deps(node)) deps.emplace_back(trace.name(dep));
    std::ranges::sort(deps);
    std::string line(trace.name(node));
    for (const std::string& dep : deps) line += " < " + dep;
    story.push_back(line);
  });
  return story;
}

using Lines = std::vector<std::string>;

TEST(TextWorkload, DataParallelLayersReduceTheirWeights) {
  EXPECT_EQ(LinesOf("DATA\n2\n"
                    "a -1 1 NONE 0 2 NONE 0 3 ALLREDUCE 8 1\n"
                    "b -1 4 NONE 0 5 NONE 0 6 ALLREDUCE 9 1\n"),
            (Lines{"a forward", "b forward < a forward", "b weight gradient < b forward",
                   "b input gradient < b weight gradient",
                   "b weight gradient all_reduce < b weight gradient",
                   "a weight gradient < b input gradient",
                   "a weight gradient all_reduce < a weight gradient"}));
}

TEST(TextWorkload, TheNextPassWaitsForTheWeights) {
  const Lines story = LinesOf("DATA\n1\na -1 1 NONE 0 2 NONE 0 3 ALLREDUCE 8 1\n", 2);
  ASSERT_EQ(story.size(), 6u);
  EXPECT_EQ(story[3], "a forward < a weight gradient all_reduce");
}

TEST(TextWorkload, ModelParallelLayersExchangeWhatTheyPassOn) {
  EXPECT_EQ(
      LinesOf("MODEL\n2\n"
              "a -1 1 ALLGATHER 7 2 ALLREDUCE 8 3 NONE 0 1\n"
              "b -1 4 ALLGATHER 7 5 ALLREDUCE 9 6 NONE 0 1\n"),
      (Lines{"a forward", "a forward all_gather < a forward", "b forward < a forward all_gather",
             "b forward all_gather < b forward", "b input gradient < b forward all_gather",
             "b input gradient all_reduce < b input gradient",
             "b weight gradient < b input gradient",
             "a input gradient < b input gradient all_reduce < b weight gradient",
             "a weight gradient < a input gradient"}));
}

TEST(TextWorkload, NoneIsNoCommunicationAndNoTimeNoComputation) {
  EXPECT_EQ(LinesOf("HYBRID_DATA_MODEL\n1\na -1 0 NONE 100 2 NONE 0 0 ALLREDUCE 0 1\n"),
            (Lines{"a input gradient"}));
  EXPECT_EQ(LinesOf("MICRO\n2\na -1 1 NONE 0 1 NONE 0 1 ALLTOALL 5 1\n"
                    "b -1 1 NONE 0 1 NONE 0 1 REDUCESCATTER 5 1\n"),
            (Lines{"a weight gradient all_to_all",
                   "b weight gradient reduce_scatter < a weight gradient all_to_all"}));
}

TEST(TextWorkload, DlrmsTopWaitsForEmbeddings) {
  const Lines story = LinesOf(
      "HYBRID_DLRM 1\n3\n"
      "emb -1 100 ALLTOALL 1000 50 ALLTOALL 1000 70 NONE 0 10\n"
      "bot -1 20 NONE 0 21 NONE 0 22 ALLREDUCE 333 10\n"
      "top -1 30 NONE 0 31 NONE 0 32 ALLREDUCE 444 10\n");
  EXPECT_EQ(
      story,
      (Lines{"emb forward", "emb forward all_to_all < emb forward", "bot forward < emb forward",
             "top forward < bot forward < emb forward all_to_all",
             "top weight gradient < top forward", "top input gradient < top weight gradient",
             "top weight gradient all_reduce < top weight gradient",
             "emb input gradient all_to_all < top input gradient",
             "bot weight gradient < top input gradient", "bot input gradient < bot weight gradient",
             "bot weight gradient all_reduce < bot weight gradient",
             "emb weight gradient < bot input gradient < emb input gradient all_to_all"}));
}

TEST(TextWorkload, CountsWhatHasNoPlaceAndRefusesTheRest) {
  const auto made = [](std::string_view text) {
    return MakeTextWorkload(*ParseTextModel(text), {});
  };
  EXPECT_EQ(made("DATA\n1\na -1 1 ALLREDUCE 5 2 NONE 0 3 ALLREDUCE 8 1\n")->ignored, 1u);
  for (const std::string_view text : {"DATA\n2\na -1 1 NONE 0 2 NONE 0 3 NONE 0 1\n",
                                      "DATA\n1\na -1 -1 NONE 0 2 NONE 0 3 NONE 0 1\n",
                                      "DATA\n1\na -1 1 ALLREDUCES 4 2 NONE 0 3 NONE 0 1\n",
                                      "HYBRID_DLRM 5\n1\na -1 1 NONE 0 2 NONE 0 3 NONE 0 1\n"}) {
    const auto workload = made(text);
    ASSERT_FALSE(workload.has_value()) << text;
    EXPECT_EQ(workload.error().code, ErrorCode::kBadInput);
  }
}

TEST(TextWorkload, EveryNodeIsOfAPass) {
  const auto model = ParseTextModel("DATA\n1\nfc -1 50 NONE 0 40 NONE 0 30 ALLREDUCE 1024 1\n");
  ASSERT_TRUE(model);
  const auto workload = MakeTextWorkload(*model, {.ranks = 2, .passes = 2});
  const auto spans = StatedParts(workload->trace);
  ASSERT_TRUE(spans) << spans.error().message;
  std::vector<std::string> parts;
  uint64_t next = 0;
  for (const ProgramSpan& span : *spans) {
    EXPECT_EQ(span.first, next) << "every node is of a part";
    next = span.last + 1;
    parts.push_back(std::string(Name(span.part.phase)) + " " + std::to_string(span.part.step));
  }
  EXPECT_EQ(next, workload->trace.node_count());
  EXPECT_EQ(parts, (Lines{"forward 0", "backward 0", "forward 1", "backward 1"}));
}

}  // namespace
}  // namespace etude
