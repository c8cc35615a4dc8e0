#include "src/jobs/edits/pipeline_edit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "src/transform/layers/training_step_testing.h"
#include "src/transform/to_chakra.h"

namespace etude {
namespace {

using testing_layers::MakeTrainingStep;
using testing_layers::TrainingStep;
using testing_layers::TrainingStepForm;

constexpr int64_t kOfLayer = TrainingStep::kForward + TrainingStep::kBackward;

std::vector<RunnableRank> Edit(const TrainingStepForm& form, const PipelineOptions& options,
                               int64_t replicas = 1, std::optional<int64_t> layers = {}) {
  const Trace trace = MakeTrainingStep(form);
  PipelineEdit edit = PipelineEdit::Make(options).value();
  const Status divided = edit.Divide(trace, layers, replicas, {});
  EXPECT_TRUE(divided) << divided.error().message;
  RunnableRank rank = MakeRunnableRank(ToChakra(trace, {}).value().trace, {}).value();
  EXPECT_TRUE(edit.EditRank(trace, rank));
  EXPECT_EQ(rank.world_size, *options.stages * replicas);
  return edit.TakeRanks();
}

// Returns the end of each rank if messages take no time; empty if they wait for each other.
std::vector<int64_t> EndsOf(const std::vector<RunnableRank>& ranks) {
  using Key = std::tuple<int64_t, int64_t, int64_t>;  // from, to, tag
  std::map<Key, int64_t> sent;
  std::vector<size_t> done(ranks.size());
  std::vector<std::vector<int64_t>> ends(ranks.size());
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (size_t i = 0; i < ranks.size(); ++i) {
      const RunnableRank& rank = ranks[i];
      for (; done[i] < rank.nodes.size(); ++done[i]) {
        const RunnableNode& node = rank.nodes[done[i]];
        int64_t begin = 0;
        for (const uint32_t dep : rank.DepsOf(static_cast<uint32_t>(done[i]))) {
          begin = std::max(begin, ends[i][dep]);
        }
        const Key key(node.peer.value_or(0), *rank.rank, node.tag.value_or(0));
        if (node.kind == NodeKind::kRecv) {
          if (!sent.contains(key)) break;
          begin = std::max(begin, sent[key]);
        }
        ends[i].push_back(begin + node.duration.value_or(Nanos{}).count);
        if (node.kind == NodeKind::kSend) {
          sent[{*rank.rank, *node.peer, *node.tag}] = ends[i].back();
        }
        goes_on = true;
      }
    }
  }
  std::vector<int64_t> last;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (done[i] < ranks[i].nodes.size()) return {};
    last.push_back(*std::ranges::max_element(ends[i]));
  }
  return last;
}

int64_t ComputeOf(const RunnableRank& rank) {
  int64_t time = 0;
  for (const RunnableNode& node : rank.nodes) time += node.duration.value_or(Nanos{}).count;
  return time;
}

uint64_t CountOf(const RunnableRank& rank, NodeKind kind) {
  return static_cast<uint64_t>(std::ranges::count(rank.nodes, kind, &RunnableNode::kind));
}

// With p stages of equal time and m micro-batches, a stage waits for p - 1 micro-batches.
void ExpectClosedForm(const PipelineOptions& options, bool on_device) {
  const int64_t stages = *options.stages;
  const auto ranks = Edit({.layers = 8, .on_device = on_device}, options);
  ASSERT_EQ(std::ssize(ranks), stages);
  const std::vector<int64_t> ends = EndsOf(ranks);
  ASSERT_FALSE(ends.empty()) << "deadlock";
  // On a device, the time in which gradients are added is that of the host alone.
  const int64_t of_layer = kOfLayer - (on_device ? TrainingStep::kGradient : 0);
  const int64_t of_micro_batch = 8 / stages * of_layer;
  const int64_t update = TrainingStep::kUpdate / stages;
  EXPECT_EQ(*std::ranges::max_element(ends),
            (*options.micro_batches + stages - 1) * of_micro_batch + update)
      << options.schedule << " " << stages << " " << *options.micro_batches << " " << on_device;
  for (const RunnableRank& rank : ranks) {
    EXPECT_EQ(rank.on_device, on_device);
    EXPECT_EQ(ComputeOf(rank), *options.micro_batches * of_micro_batch + update);
  }
}

TEST(PipelineEdit, BubbleIsTheClosedForm) {
  for (const std::string schedule : {"gpipe", "1f1b"}) {
    for (const int64_t stages : {1, 2, 4}) {
      for (const int64_t micro_batches : {1, 3, 8}) {
        for (const bool on_device : {false, true}) {
          ExpectClosedForm({stages, micro_batches, schedule}, on_device);
        }
      }
    }
  }
}

TEST(PipelineEdit, ComputesAllMicroBatches) {
  const TrainingStepForm form = {.layers = 5, .has_ends = true};
  const RunnableRank alone = Edit(form, {1, 1, ""}).front();
  const int64_t once = TrainingStep::kUpdate + TrainingStep::kRelease + TrainingStep::kMark;
  for (const int64_t micro_batches : {1, 4}) {
    int64_t compute = 0;
    for (const RunnableRank& rank : Edit(form, {3, micro_batches, "1f1b"})) {
      compute += ComputeOf(rank);
    }
    const int64_t masks = 2 * 100;  // of the other stages
    const int64_t marks = 2 * TrainingStep::kMark;
    EXPECT_EQ(compute, micro_batches * (ComputeOf(alone) - once + masks) + once + marks);
  }
}

// A step with added layers is the step of a recording with as many, of which the optimizer takes
// time by bytes.
TEST(PipelineEdit, AddedLayersAreThoseOfTheOtherModel) {
  const int64_t update = TrainingStep::kUpdate;
  for (const int64_t stages : {1, 2, 3}) {
    for (const int64_t layers : {3, 4, 7, 12}) {
      const PipelineOptions options{stages, 4, "1f1b"};
      const auto edited = Edit({.layers = 4}, options, 1, layers);
      const auto recorded = Edit({.layers = static_cast<int>(layers)}, options);
      const std::vector<int64_t> ends = EndsOf(edited);
      ASSERT_EQ(std::ssize(ends), stages) << "deadlock";
      int64_t of_edited = 0;
      int64_t of_recorded = 0;
      for (size_t i = 0; i < edited.size(); ++i) {
        of_edited += ComputeOf(edited[i]);
        of_recorded += ComputeOf(recorded[i]);
        EXPECT_EQ(edited[i].nodes.size(), recorded[i].nodes.size()) << layers << " on " << stages;
        EXPECT_EQ(CountOf(edited[i], NodeKind::kSend), CountOf(recorded[i], NodeKind::kSend));
      }
      // Shares of the optimizer are rounded.
      const int64_t added = update * layers / 4 - update;
      EXPECT_LE(std::abs(of_edited - added - of_recorded), stages) << layers << " on " << stages;
    }
  }
}

TEST(PipelineEdit, StagesExchangeTheTensorsBetweenLayers) {
  const auto ranks = Edit({.layers = 4}, {2, 3, "gpipe"}, 2);
  ASSERT_EQ(ranks.size(), 4u);
  for (const RunnableRank& rank : ranks) {
    EXPECT_EQ(CountOf(rank, NodeKind::kSend), 3u);
    EXPECT_EQ(CountOf(rank, NodeKind::kRecv), 3u);
    EXPECT_EQ(CountOf(rank, NodeKind::kCollective), 1u);
    // Replicas of a stage are next to each other.
    const int64_t first = *rank.rank / 2 * 2;
    EXPECT_EQ(*rank.groups.front().ranks, (std::vector<int64_t>{first, first + 1}));
    for (const RunnableNode& node : rank.nodes) {
      if (node.peer) {
        EXPECT_EQ(*node.peer, (*rank.rank + 2) % 4);
        EXPECT_EQ(*node.bytes_in, TrainingStep::kActivation);
      }
      if (node.kind == NodeKind::kCollective) {
        EXPECT_EQ(*node.bytes_in, 2 * TrainingStep::kWeight);
        EXPECT_EQ(node.group_size, 2);
      }
    }
  }
  EXPECT_FALSE(EndsOf(ranks).empty());
}

TEST(PipelineEdit, RefusesOptionsWithoutMeaning) {
  const auto expect = [](const PipelineOptions& options, std::string_view told) {
    const Result<PipelineEdit> edit = PipelineEdit::Make(options);
    ASSERT_FALSE(edit);
    EXPECT_EQ(edit.error().code, ErrorCode::kUsage);
    EXPECT_NE(edit.error().message.find(told), std::string::npos) << edit.error().message;
  };
  expect({std::nullopt, 4, ""}, "--micro-batches: requires --pp");
  expect({std::nullopt, std::nullopt, "gpipe"}, "--schedule: requires --pp");
  expect({0, 4, ""}, "--pp: found 0, expected 1 to 65,536");
  expect({2, 0, ""}, "--micro-batches: found 0");
  expect({2, 4, "interleaved"}, "--schedule: found 'interleaved', expected gpipe or 1f1b");
}

}  // namespace
}  // namespace etude
