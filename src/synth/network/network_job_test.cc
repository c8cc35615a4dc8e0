#include "src/synth/network/network_job.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/synth/job/sound_job.h"
#include "src/synth/network/network_builder.h"
#include "src/synth/network/network_file.h"
#include "src/synth/network/network_presets.h"
#include "src/synth/network/network_testing.h"

namespace etude {
namespace {

using testing_network::SmallNetwork;
using testing_sound::ExpectSound;

std::vector<std::string> NamesOf(const std::vector<StepWork>& works) {
  std::vector<std::string> names;
  for (const StepWork& work : works) names.push_back(work.name);
  return names;
}

TEST(NetworkJob, OrderOfAStep) {
  const auto job = MakeNetworkJob(SmallNetwork(), {});
  ASSERT_TRUE(job) << job.error().message;
  const std::vector<std::string> expected = {"a.conv #0",
                                             "b.norm #0",
                                             "b.relu #0",
                                             "b.add #0",
                                             "c.pool #0",
                                             "c.linear #0",
                                             "c.loss #0",
                                             "c.loss backward #0",
                                             "c.linear input gradient #0",
                                             "c.linear weight gradient #0",
                                             "c.pool backward #0",
                                             "b.relu backward #0",
                                             "b.norm backward #0",
                                             "a.conv gradient sum #0",
                                             "a.conv weight gradient #0",
                                             "optimizer"};
  EXPECT_EQ(NamesOf(job->program(0)), expected);
}

// Replicas move 2 Ψ elements per step with stages 0 to 2 of ZeRO, 3 Ψ with stage 3: Rajbhandari et
// al. 2020, section 7; gradients of stages 2 and 3 for each micro-batch. Ψ = 330 is padded to
// shares: as one bucket to 332, by units to 224, 16 and 92.
TEST(NetworkJob, VolumesOfZeroStages) {
  const Network network = SmallNetwork();
  ASSERT_EQ(network.parameters(), 330);
  for (int64_t zero = 0; zero <= 3; ++zero) {
    const auto job = MakeNetworkJob(network, {.data = 4, .micro_batches = 3, .zero_stage = zero});
    ASSERT_TRUE(job) << job.error().message;
    int64_t reduced = 0;
    int64_t scattered = 0;
    int64_t gathered = 0;
    for (const StepWork& work : job->program(0)) {
      if (work.collective == CollectiveType::kAllReduce) reduced += work.bytes.count;
      if (work.collective == CollectiveType::kReduceScatter) scattered += work.bytes.count;
      if (work.collective == CollectiveType::kAllGather) gathered += work.bytes.count;
    }
    EXPECT_EQ(reduced, zero == 0 ? 330 * 4 : 0);
    EXPECT_EQ(scattered, (zero == 0 ? 0 : zero == 1 ? 332 : 3 * 332) * 4);
    EXPECT_EQ(4 * gathered, (zero == 0 ? 0 : zero == 3 ? 3 * 2 * 332 : 332) * 4);
  }
}

// A second micro-batch reads the first one's gradients: of 224 weights, 16 scales and offsets, 90
// weights. If several replicas share gradients, none remain.
TEST(NetworkJob, LaterMicroBatchesAddToGradients) {
  const Network network = SmallNetwork();
  for (int64_t zero = 0; zero <= 3; ++zero) {
    for (const int64_t data : {1, 4}) {
      const auto job =
          MakeNetworkJob(network, {.data = data, .micro_batches = 3, .zero_stage = zero});
      ASSERT_TRUE(job) << job.error().message;
      std::map<std::string, int64_t> memory;
      for (const StepWork& work : job->program(0)) memory[work.name] = work.memory.count;
      const int64_t left = zero < 2 || data == 1 ? 4 : 0;
      for (const auto& [what, gradients] :
           {std::pair("a.conv weight gradient", 224), std::pair("b.norm backward", 16),
            std::pair("c.linear weight gradient", 90), std::pair("c.linear input gradient", 0)}) {
        const std::string of = what;
        ASSERT_TRUE(memory.contains(of + " #0")) << of;
        EXPECT_EQ(memory[of + " #1"] - memory[of + " #0"], left * gradients) << of << ", " << zero;
        EXPECT_EQ(memory[of + " #2"], memory[of + " #1"]) << of << ", " << zero;
      }
    }
  }
}

// A byte fills a bucket: one for each weight, in the order of their gradients.
TEST(NetworkJob, WeightsFillBuckets) {
  const auto job = MakeNetworkJob(SmallNetwork(), {.data = 2, .bucket = Bytes{1}});
  ASSERT_TRUE(job) << job.error().message;
  std::vector<std::pair<std::string, int64_t>> reduced;  // preceding work, bytes
  for (const StepWork& work : job->program(0)) {
    if (!work.communicates()) continue;
    ASSERT_EQ(work.data.size(), 1u);
    reduced.emplace_back(job->program(0)[work.data[0]].name, work.bytes.count);
  }
  const std::vector<std::pair<std::string, int64_t>> expected = {
      {"c.linear weight gradient #0", 10 * 4},
      {"c.linear weight gradient #0", 80 * 4},
      {"b.norm backward #0", 16 * 4},
      {"a.conv weight gradient #0", 8 * 4},
      {"a.conv weight gradient #0", 216 * 4}};
  EXPECT_EQ(reduced, expected);
}

// Noise, its loss, and an average of the weights; sampling removes noise step by step.
TEST(NetworkJob, Diffusion) {
  const NetworkPreset* preset = FindPreset(DiffusionPresets(), "ddpm-cifar10");
  const auto network = MakeNetwork(preset->model());
  ASSERT_TRUE(network);
  const auto training = MakeNetworkJob(*network, {.optimizer = OptimizerKind::kAdam});
  ASSERT_TRUE(training) << training.error().message;
  const std::vector<StepWork>& step = training->program(0);
  EXPECT_EQ(step[0].name, "noise #0");
  EXPECT_EQ(step[1].flops, 3 * 3 * 32 * 32);
  EXPECT_EQ(step.back().name, "average of weights");
  EXPECT_EQ(step.back().flops, 3 * 35'746'307);
  const auto sampling = MakeNetworkJob(*network, {.phase = NetworkPhase::kInference, .steps = 3});
  ASSERT_TRUE(sampling) << sampling.error().message;
  const std::vector<StepWork>& steps = sampling->program(0);
  EXPECT_EQ(steps.size() % 3, 0u);
  EXPECT_EQ(steps.back().name, "denoise #2");
  // A pass begins with the previous pass's sample.
  size_t later = 0;
  for (const StepWork& work : steps) {
    for (const size_t dep : work.data) later += steps[dep].name == "denoise #0" ? 1 : 0;
  }
  EXPECT_EQ(later, 1u);
}

// A network of random layers; each plan of it is valid, and all communications match.
TEST(NetworkJob, RandomPlansAreSound) {
  std::mt19937 random(13);
  const auto one_of = [&](std::vector<int64_t> values) { return values[random() % values.size()]; };
  for (int made = 0; made < 30; ++made) {
    NetworkBuilder b;
    size_t x = b.Conv("conv", b.Input("image", {3, 8, 8}), 8, {});
    std::vector<size_t> same = {x};  // of one shape
    const int64_t layers = one_of({1, 4, 12});
    for (int64_t i = 0; i < layers; ++i) {
      const std::string name = std::to_string(i);
      if (random() % 2 == 0) b.Unit("unit " + name);
      const size_t other = same[random() % same.size()];
      switch (random() % 8) {
        case 0: x = b.Conv("conv" + name, x, 8, {.groups = one_of({1, 8})}); break;
        case 1: x = b.Plain("norm" + name, {x}, LayerKind::kBatchNorm); break;
        case 2: x = b.Plain("silu" + name, {x}, LayerKind::kSilu); break;
        case 3: x = b.Plain("add" + name, {x, other}, LayerKind::kAdd); break;
        case 4: x = b.Plain("multiply" + name, {x, other}, LayerKind::kMultiply); break;
        case 5:
          x = b.Linear("wide" + name, x, 24);
          x = b.Add("attention" + name, {x}, {.kind = LayerKind::kAttention, .heads = 2});
          break;
        case 6:
          x = b.Plain("concat" + name, {x, other}, LayerKind::kConcat);
          x = b.Slice("slice" + name, x, 8, 4);
          break;
        default:
          x = b.Plain("scaled" + name, {x, b.Plain("mean" + name, {other}, LayerKind::kGlobalPool)},
                      LayerKind::kMultiply);
      }
      same.push_back(x);
    }
    const bool denoises = random() % 2 == 0;
    x = b.Conv("out", x, 3, {});
    b.Plain("loss", {x}, LayerKind::kSquaredError);
    b.model().denoises = denoises;
    const auto network = MakeNetwork(std::move(b.model()));
    ASSERT_TRUE(network) << network.error().message;
    NetworkPlan plan{.data = one_of({1, 2, 3}),
                     .images = one_of({1, 2}),
                     .micro_batches = one_of({1, 3}),
                     .zero_stage = one_of({0, 1, 2, 3}),
                     .bucket = Bytes{one_of({1, 2'000, 1 << 20})}};
    if (random() % 4 == 0) {
      plan.phase = NetworkPhase::kInference;
      plan.steps = denoises ? 2 : 1;
    }
    const std::string what = "network " + std::to_string(made);
    const auto job = MakeNetworkJob(*network, plan);
    ASSERT_TRUE(job) << what << ": " << job.error().message;
    ExpectSound(*job, what);
    int64_t updated = 0;
    for (const StepWork& work : job->program(0)) {
      if (work.name == "optimizer") updated += work.flops / 6;
    }
    if (plan.phase == NetworkPhase::kInference) {
      EXPECT_EQ(updated, 0);
    } else if (plan.zero_stage == 0) {
      EXPECT_EQ(updated, network->parameters()) << what;
    } else {
      EXPECT_GE(updated * plan.data, network->parameters()) << what;
    }
    if (HasFatalFailure()) return;
  }
}

TEST(NetworkJob, PlansThatDoNotFit) {
  Network network = SmallNetwork();
  const auto error = [&](const NetworkPlan& plan) {
    const auto job = MakeNetworkJob(network, plan);
    return job ? "" : job.error().message;
  };
  EXPECT_EQ(error({.zero_stage = 4}), "ZeRO stage: found 4, expected 0 to 3");
  EXPECT_EQ(error({.images = 0}), "images of a micro-batch: found 0, expected 1 to 16777216");
  EXPECT_FALSE(error({.data = 0}).empty());
  EXPECT_FALSE(error({.micro_batches = 1 << 24}).empty());
  EXPECT_FALSE(error({.phase = NetworkPhase::kInference, .steps = 2}).empty());
  network.model.denoises = true;
  EXPECT_EQ(error({}),
            "loss: found cross_entropy of 10 × 1 × 1, expected squared_error of the noise, which "
            "has the image's shape: 3 × 4 × 4");
}

std::string ErrorOf(const std::string& text) {
  const auto model = ParseNetwork(text, "net.toml", CnnPresets());
  return model ? "" : model.error().message;
}

constexpr std::string_view kInput =
    "[[layer]]\nname = \"image\"\ntype = \"input\"\nshape = [3, 8, 8]\n";

TEST(NetworkFile, IsTheNetworkItSays) {
  const auto model = ParseNetwork(std::string(kInput) +
                                      "[[layer]]\nname = \"conv\"\ntype = \"conv\"\n"
                                      "channels = 4\nkernel = [3, 1]\npadding = [1, 0]\n"
                                      "[[layer]]\nname = \"pool\"\ntype = \"max_pool\"\n"
                                      "kernel = 2\n"
                                      "[[layer]]\nname = \"flat\"\ntype = \"flatten\"\n"
                                      "[[layer]]\nname = \"fc\"\ntype = \"linear\"\n"
                                      "channels = 5\nbias = false\n"
                                      "[[layer]]\nname = \"loss\"\ntype = \"cross_entropy\"\n"
                                      "[network]\nweights = \"bfloat16\"\n",
                                  "net.toml", CnnPresets());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->weights, DType::kBFloat16);
  const Network network = MakeNetwork(*model).value();
  EXPECT_EQ(network.shapes[1], (Shape{4, 8, 8}));
  EXPECT_EQ(network.shapes[2], (Shape{4, 4, 4})) << "windows side by side unless told otherwise";
  EXPECT_EQ(network.parameters(), 4 * (3 * 3 + 1) + 64 * 5);
  const auto preset = ParseNetwork("preset = \"resnet-18\"\n", "net.toml", CnnPresets());
  ASSERT_TRUE(preset);
  EXPECT_EQ(*preset, FindPreset(CnnPresets(), "resnet-18")->model());
}

TEST(NetworkFile, SaysWhereAndWhatIsWrong) {
  const std::string in(kInput);
  EXPECT_EQ(ErrorOf("preset = \"resnet-5\"\n"),
            "net.toml:1:10: preset: unknown 'resnet-5'; did you mean 'resnet-50'?");
  EXPECT_EQ(ErrorOf(""), "net.toml: found neither 'preset' nor [[layer]], expected one of them");
  EXPECT_EQ(ErrorOf(in + "[[layer]]\nname = \"c\"\ntype = \"conv\"\nkernel = 3\n"),
            "net.toml:5:1: c: missing 'channels', which conv requires");
  EXPECT_EQ(ErrorOf(in + "[[layer]]\nname = \"r\"\ntype = \"relu\"\nheads = 3\n"),
            "net.toml:8:9: r: relu does not support 'heads'");
  EXPECT_EQ(
      ErrorOf(in + "[[layer]]\nname = \"r\"\ntype = \"relu\"\ninputs = [\"imge\"]\n"),
      "net.toml:8:11: inputs: found 'imge', expected a layer above it; did you mean 'image'?");
  EXPECT_EQ(ErrorOf(in + "[[layer]]\nname = \"c\"\ntype = \"conv\"\nkernel = 9\nchannels = 2\n"),
            "net.toml:8:10: c: found an input of 3 × 8 × 8, expected one that the kernel of 9 × 9 "
            "fits into");
  EXPECT_EQ(ErrorOf(in + "[[layer]]\nname = \"image\"\ntype = \"relu\"\n"),
            "net.toml:6:8: name: found 'image' twice, expected unique names");
  EXPECT_FALSE(ErrorOf(in + "[[layer]]\nname = \"r\"\ntype = \"relu\"\nkernal = 1\n").empty());
  EXPECT_FALSE(ErrorOf(in).empty()) << "no loss";
}

}  // namespace
}  // namespace etude
