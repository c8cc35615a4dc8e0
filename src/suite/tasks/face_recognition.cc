#include "src/suite/tasks/face_recognition.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/container/hash.h"
#include "src/base/random_stream.h"
#include "src/suite/data/digits.h"
#include "src/suite/data/faces/head_scans.h"
#include "src/suite/data/faces/pgm.h"
#include "src/suite/data/image_folder.h"
#include "src/suite/data/jpeg.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/layers.h"
#include "src/suite/nn/resnet.h"

namespace etude::suite {
namespace {

constexpr int64_t kColours = 3;
constexpr int64_t kScanChannels = 4;  // including depth
constexpr int64_t kScansAtOnce = 100;
// Shares of the training scans without colour, and without depth.
constexpr double kWithoutColour = 0.15;
constexpr double kWithoutDepth = 0.15;

// The part of a scan that is passed to the network. The rest is 0, the mean.
enum class Given : uint8_t { kAll, kColour, kDepth };

// The common part of both scales. Scans are [N, 4, H, W]: red, green, blue, depth, each with a mean
// of about 0.
class FaceRecognition : public Task {
 public:
  FaceRecognition(const TaskOptions& options, const ResNetShape& shape, int64_t people,
                  Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        trunk_(root(), shape),
        people_(root()["fc"], trunk_.out(), people) {}

  // Some scans lack colour or depth, so that one network can be tested with either.
  Result<at::Tensor> Loss(const Batch& batch) override {
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor scans, Learned(batch.samples));
    std::vector<int64_t> people;
    for (const int64_t sample : batch.samples) people.push_back(PersonLearned(sample));
    const int64_t count = std::ssize(people);
    const at::Tensor draw = Uniform({count, 1, 1, 1}, 0, 1);
    const at::Tensor colour = draw.ge(kWithoutColour).to(at::kFloat);
    const at::Tensor depth = draw.lt(1 - kWithoutDepth).to(at::kFloat);
    const at::Tensor given =
        Cat({colour.expand({count, kColours, 1, 1}), depth.expand({count, 1, 1, 1})}, 1);
    const at::Tensor logits = Logits(scans * given);
    return CrossEntropy(logits, FromValues(people, {count}).to(logits.device()));
  }

  Result<double> Evaluate() override { return Accuracy(Given::kAll); }

  Result<std::vector<Figure>> Figures() override {
    ETUDE_ASSIGN_OR_RETURN(const double colour, Accuracy(Given::kColour));
    ETUDE_ASSIGN_OR_RETURN(const double depth, Accuracy(Given::kDepth));
    return std::vector<Figure>{{"with colour alone", colour}, {"with depth alone", depth}};
  }

  Result<double> Baseline() override {
    std::vector<int64_t> people;
    for (int64_t i = 0; i < held_out(); ++i) people.push_back(PersonHeldOut(i));
    return MajorityShare(FromValues(people, {std::ssize(people)}));
  }

 private:
  // Return scans on the CPU. Training scans are changed at random.
  virtual Result<at::Tensor> Learned(std::span<const int64_t> samples) = 0;
  virtual int64_t PersonLearned(int64_t sample) const = 0;
  virtual int64_t held_out() const = 0;
  virtual Result<at::Tensor> HeldOut(int64_t begin, int64_t end) = 0;
  virtual int64_t PersonHeldOut(int64_t number) const = 0;

  at::Tensor Logits(const at::Tensor& scans) {
    return people_(GlobalAveragePool(trunk_(scans.to(weights().device()))));
  }

  Result<double> Accuracy(Given given) {
    int64_t right = 0;
    for (int64_t begin = 0; begin < held_out(); begin += kScansAtOnce) {
      const int64_t end = std::min(held_out(), begin + kScansAtOnce);
      ETUDE_ASSIGN_OR_RETURN(at::Tensor scans, HeldOut(begin, end));
      if (given != Given::kAll) {
        scans = scans.clone();
        const bool colour = given == Given::kColour;
        scans.slice(1, colour ? kColours : 0, colour ? kScanChannels : kColours).zero_();
      }
      const at::Tensor answers = Logits(scans).argmax(1).cpu();
      const auto* answer = answers.const_data_ptr<int64_t>();
      for (int64_t i = begin; i < end; ++i) right += *answer++ == PersonHeldOut(i) ? 1 : 0;
    }
    return static_cast<double>(right) / static_cast<double>(held_out());
  }

  ResNet trunk_;
  Linear people_;
};

// Smoke scale: rendered heads.
constexpr int64_t kScansOfEach = 60;
constexpr int64_t kHeldOutScansOfEach = 20;
constexpr uint64_t kTrainScansSeed = 81;
constexpr uint64_t kTestScansSeed = 82;

class HeadRecognition : public FaceRecognition {
 public:
  HeadRecognition(const TaskOptions& options, Hyperparameters hyperparameters)
      : FaceRecognition(options,
                        {.channels = kScanChannels,
                         .width = 8,
                         .blocks = {1, 1, 1},
                         .bottlenecks = false,
                         .large_images = false},
                        HeadScans::kPeople, std::move(hyperparameters)),
        learned_(RenderHeadScans(kScansOfEach, kTrainScansSeed)),
        held_out_(RenderHeadScans(kHeldOutScansOfEach, kTestScansSeed)) {
    const at::Tensor mean = learned_.pictures.mean({0, 2, 3}, /*keepdim=*/true);
    const at::Tensor deviation =
        learned_.pictures.std({0, 2, 3}, /*unbiased=*/true, /*keepdim=*/true);
    for (HeadScans* scans : {&learned_, &held_out_}) {
      scans->pictures = (scans->pictures - mean) / deviation;
    }
    if (options.shuffled_labels) learned_.people = Shuffled(learned_.people, options.seed);
  }

  int64_t samples() const override { return learned_.people.size(0); }

 private:
  // The whole batch is moved by up to two pixels, with one draw.
  Result<at::Tensor> Learned(std::span<const int64_t> samples) override {
    const at::Tensor draw = Uniform({2}, -2.49, 2.49).round();
    return learned_.pictures.index_select(0, FromValues(samples, {std::ssize(samples)}))
        .roll({draw[0].item<int64_t>(), draw[1].item<int64_t>()}, {2, 3});
  }
  int64_t PersonLearned(int64_t sample) const override {
    return learned_.people.const_data_ptr<int64_t>()[sample];
  }
  int64_t held_out() const override { return held_out_.people.size(0); }
  Result<at::Tensor> HeldOut(int64_t begin, int64_t end) override {
    return held_out_.pictures.slice(0, begin, end);
  }
  int64_t PersonHeldOut(int64_t number) const override {
    return held_out_.people.const_data_ptr<int64_t>()[number];
  }

  HeadScans learned_;
  HeadScans held_out_;
};

// Paper scale: folders of scans.
constexpr int64_t kScanSide = 224;
constexpr int64_t kScannedPeople = 253;  // also if the folders have fewer

class ScanRecognition : public FaceRecognition {
 public:
  ScanRecognition(const TaskOptions& options, ImageFolder train, ImageFolder test,
                  Hyperparameters hyperparameters)
      : FaceRecognition(options, {.channels = kScanChannels, .blocks = {3, 4, 6, 3}},
                        kScannedPeople, std::move(hyperparameters)),
        context_(options.context),
        train_(std::move(train)),
        test_(std::move(test)) {
    if (!options.shuffled_labels) return;
    for (int64_t i = 0; i < train_.size(); ++i) {
      RandomStream random(HashMix(options.seed, static_cast<uint64_t>(i)));
      train_.set_label(i,
                       static_cast<int64_t>(random.Below(static_cast<uint64_t>(train_.classes()))));
    }
  }

  int64_t samples() const override { return train_.size(); }

 private:
  Result<at::Tensor> Learned(std::span<const int64_t> samples) override {
    std::vector<at::Tensor> scans;
    for (const int64_t sample : samples) {
      ETUDE_ASSIGN_OR_RETURN(const at::Tensor scan, ReadScan(train_.PathOf(sample)));
      scans.push_back(RandomPartOf(scan, kScanSide));
    }
    return Stack(scans, 0);
  }
  int64_t PersonLearned(int64_t sample) const override { return train_.LabelOf(sample); }
  int64_t held_out() const override { return test_.size(); }
  Result<at::Tensor> HeldOut(int64_t begin, int64_t end) override {
    std::vector<at::Tensor> scans;
    for (int64_t i = begin; i < end; ++i) {
      ETUDE_ASSIGN_OR_RETURN(const at::Tensor scan, ReadScan(test_.PathOf(i)));
      scans.push_back(MiddleOf(scan, kScanSide));
    }
    return Stack(scans, 0);
  }
  int64_t PersonHeldOut(int64_t number) const override { return test_.LabelOf(number); }

  // Reads the colours from `path`, NAME.jpg, and the depth from NAME_depth.pgm next to it: [4, H,
  // W].
  Result<at::Tensor> ReadScan(const std::string& path) const {
    const std::string depth_path =
        std::filesystem::path(path).replace_extension().string() + "_depth.pgm";
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor colours, ReadJpeg(path, context_));
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor depth, ReadPgm(depth_path, context_));
    if (depth.size(1) != colours.size(1) || depth.size(2) != colours.size(2)) {
      return BadInput(fmt::format("{}: {} × {} pixels, expected {} × {} as {} has", depth_path,
                                  depth.size(2), depth.size(1), colours.size(2), colours.size(1),
                                  path));
    }
    return Cat({ImageNetNormalised(colours), (depth - 0.5) / 0.25}, 0);
  }

  RunContext context_;
  ImageFolder train_;
  ImageFolder test_;
};

}  // namespace

Result<std::unique_ptr<Task>> MakeFaceRecognition(const TaskOptions& options) {
  if (options.scale == Scale::kSmoke) {
    Hyperparameters hyperparameters{
        .batch = 32,
        .optimizers = {{.rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4}},
        .schedule = {.warmup_steps = 20, .cosine = true},
        .evaluate_every = 20,
        .most_steps = 800};
    return std::make_unique<HeadRecognition>(options, std::move(hyperparameters));
  }
  const std::string folder = options.data + "/rgbd-faces";
  ETUDE_ASSIGN_OR_RETURN(ImageFolder train, ImageFolder::Open(folder + "/train"));
  ETUDE_ASSIGN_OR_RETURN(ImageFolder test, ImageFolder::Open(folder + "/test"));
  if (train.class_names() != test.class_names()) {
    return BadInput(folder +
                    ": train and test have other folders, expected those of the same "
                    "people in both");
  }
  if (train.classes() > kScannedPeople) {
    return BadInput(
        fmt::format("{}: {} people, expected {} at most", folder, train.classes(), kScannedPeople));
  }
  const int64_t batch = std::min<int64_t>(16, train.size());
  const int64_t epoch = train.size() / batch;
  Hyperparameters hyperparameters{
      .batch = batch,
      .optimizers = {{.rate = 0.01, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-4}},
      .schedule = {.warmup_steps = epoch, .cosine = true},
      .evaluate_every = epoch,
      .most_steps = 50 * epoch};
  return std::make_unique<ScanRecognition>(options, std::move(train), std::move(test),
                                           std::move(hyperparameters));
}

}  // namespace etude::suite
