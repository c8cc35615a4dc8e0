// Parts stated in generated programs.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "src/synth/dlrm/dlrm_job.h"
#include "src/synth/layer_testing.h"
#include "src/synth/network/network_builder.h"
#include "src/synth/network/network_job.h"
#include "src/synth/transformer/transformer_job.h"
#include "src/trace/program_parts.h"

namespace etude {
namespace {

using testing_layer::TinyModel;

// Returns "forward 0 #1": phase, step and micro-batch, one after the other.
std::string PartsText(const Trace& trace) {
  const auto spans = StatedParts(trace);
  EXPECT_TRUE(spans) << spans.error().message;
  std::string text;
  uint64_t next = 0;
  for (const ProgramSpan& span : *spans) {
    EXPECT_EQ(span.first, next) << "every node is of a part";
    next = span.last + 1;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Name(span.part.phase), span.part.step);
    if (span.part.micro_batch) text += fmt::format(" #{}", *span.part.micro_batch);
  }
  EXPECT_EQ(next, trace.node_count());
  return text;
}

// 1F1B of two stages: the first is a forward pass ahead.
TEST(ProgramSpans, OfAPipeline) {
  TransformerPlan plan;
  plan.data = 2;
  plan.pipeline = {.stages = 2, .micro_batches = 3};
  const StepJob job = MakeTransformerJob(TinyModel(2), plan).value();
  EXPECT_EQ(PartsText(job.TraceOf(0).value()),
            "forward 0 #0, forward 0 #1, backward 0 #0, forward 0 #2, backward 0 #1, "
            "backward 0 #2, backward 0, optimizer 0");
  EXPECT_EQ(PartsText(job.TraceOf(2).value()),
            "forward 0 #0, backward 0 #0, forward 0 #1, backward 0 #1, forward 0 #2, "
            "backward 0 #2, backward 0, optimizer 0");
  const Job classes = job.AsJob().value();
  EXPECT_EQ(PartsText(TraceOfRank(classes, 2).value()), PartsText(job.TraceOf(2).value()));
}

TEST(ProgramSpans, OfInference) {
  TransformerPlan plan;
  plan.phase = ModelPhase::kDecode;
  plan.tokens = 2;
  plan.pipeline.micro_batches = 2;
  EXPECT_EQ(PartsText(MakeTransformerJob(TinyModel(2), plan).value().TraceOf(0).value()),
            "decode 0 #0, decode 0 #1, decode 1 #0, decode 1 #1");
  plan.phase = ModelPhase::kPrefill;
  EXPECT_EQ(PartsText(MakeTransformerJob(TinyModel(2), plan).value().TraceOf(0).value()),
            "prefill 0 #0, prefill 0 #1");
}

TEST(ProgramSpans, OfNetworks) {
  NetworkBuilder b;
  const size_t image = b.Input("image", {3, 4, 4});
  b.Plain("loss", {b.Conv("conv", image, 3, {})}, LayerKind::kSquaredError);
  b.model().denoises = true;
  const Network network = MakeNetwork(std::move(b.model())).value();
  EXPECT_EQ(
      PartsText(
          MakeNetworkJob(network, {.data = 2, .micro_batches = 2}).value().TraceOf(0).value()),
      "forward 0 #0, backward 0 #0, forward 0 #1, backward 0 #1, backward 0, optimizer 0");
  EXPECT_EQ(PartsText(MakeNetworkJob(network, {.phase = NetworkPhase::kInference, .steps = 2})
                          .value()
                          .TraceOf(0)
                          .value()),
            "forward 0 #0, forward 1 #0");
}

TEST(ProgramSpans, OfRecommendation) {
  const DlrmModel& model = FindPreset(DlrmPresets(), "rm3")->model;
  EXPECT_EQ(PartsText(MakeDlrmJob(model, {.ranks = 2}).value().TraceOf(1).value()),
            "forward 0, backward 0, optimizer 0");
  EXPECT_EQ(
      PartsText(MakeDlrmJob(model, {.ranks = 2, .training = false}).value().TraceOf(1).value()),
      "forward 0");
}

}  // namespace
}  // namespace etude
