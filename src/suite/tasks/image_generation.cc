#include "src/suite/tasks/image_generation.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>

#include "src/suite/data/digits.h"
#include "src/suite/data/image_folder.h"
#include "src/suite/data/jpeg.h"
#include "src/suite/nn/adversarial/dcgan.h"
#include "src/suite/nn/adversarial/sliced_wasserstein.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

// Groups of parameters.
constexpr int kGenerator = 0;
constexpr int kCritic = 1;

constexpr int64_t kCriticUpdates = 5;  // before each update of the generator
constexpr double kLargestWeight = 0.01;

constexpr int64_t kMostCompared = 1000;  // pictures on each side of a distance
constexpr int64_t kGeneratedAtOnce = 250;
constexpr int64_t kDirections = 128;
constexpr uint64_t kDirectionsSeed = 2;
constexpr uint64_t kNoiseSeed = 3;
constexpr uint64_t kPixelsSeed = 4;

// Returns the samples of an update of the critic: a fifth of the step's, at least one.
std::span<const int64_t> PartOf(std::span<const int64_t> samples, int64_t update) {
  const int64_t all = std::ssize(samples);
  const int64_t begin = update * all / kCriticUpdates;
  const int64_t end = std::max(begin + 1, (update + 1) * all / kCriticUpdates);
  return samples.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

// Draws an order of the pictures for each pixel by itself. Each pixel keeps its values; what the
// pixels of a picture have to do with each other is lost.
at::Tensor PixelsShuffled(const at::Tensor& pictures) {
  return pictures.gather(0, Uniform(pictures.sizes(), 0, 1).argsort(int64_t{0}));
}

// What both scales have in common. Pictures are [N, C, H, W], from -1 to 1.
class ImageGeneration : public Task {
 public:
  ImageGeneration(const TaskOptions& options, const DcganShape& shape,
                  Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        noise_(shape.noise),
        shuffled_(options.shuffled_labels),
        generator_(root(kGenerator)["generator"], shape),
        critic_(root(kCritic)["critic"], shape),
        sliced_({.channels = shape.channels,
                 .side = shape.side,
                 .directions = kDirections,
                 .seed = kDirectionsSeed}) {}

  int64_t updates_per_step() const override { return kCriticUpdates + 1; }
  int GroupOf(int64_t update) const override {
    return update < kCriticUpdates ? kCritic : kGenerator;
  }

  Result<at::Tensor> Loss(const Batch& batch) override {
    const bool generator_learns = GroupOf(batch.update) == kGenerator;
    for (const Weights::Entry& entry : weights().entries()) {
      if (entry.is_parameter && entry.group == kCritic) {
        entry.value.set_requires_grad(!generator_learns);
      }
    }
    if (generator_learns) return -critic_(Generated(std::ssize(PartOf(batch.samples, 0)))).mean();
    const std::span<const int64_t> part = PartOf(batch.samples, batch.update);
    ETUDE_ASSIGN_OR_RETURN(at::Tensor real, Learned(part));
    if (shuffled_) real = PixelsShuffled(real);
    const at::Tensor generated = [&] {
      const at::NoGradGuard no_gradients;
      return Generated(std::ssize(part));
    }();
    return critic_(generated).mean() - critic_(real.to(weights().device())).mean();
  }

  void Updated(const Batch& batch) override {
    if (GroupOf(batch.update) != kCritic) return;
    const at::NoGradGuard no_gradients;
    for (const Weights::Entry& entry : weights().entries()) {
      if (entry.is_parameter && entry.group == kCritic) {
        entry.value.clamp_(-kLargestWeight, kLargestWeight);
      }
    }
  }

  // The noise is the same in each evaluation, and in all runs.
  Result<double> Evaluate() override {
    ETUDE_RETURN_IF_ERROR(ProjectHeldOut());
    SeedTorch(kNoiseSeed);
    std::vector<at::Tensor> parts;
    for (int64_t begin = 0; begin < compared(); begin += kGeneratedAtOnce) {
      parts.push_back(Generated(std::min(kGeneratedAtOnce, compared() - begin)).cpu());
    }
    return DistanceOf(Cat(parts, 0));
  }

  Result<std::vector<Figure>> Figures() override {
    ETUDE_RETURN_IF_ERROR(ProjectHeldOut());
    std::vector<int64_t> spread;
    for (int64_t i = 0; i < compared(); ++i) spread.push_back(i * samples() / compared());
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor real, Learned(spread));
    SeedTorch(kPixelsSeed);
    return std::vector<Figure>{{"of training images", DistanceOf(real)},
                               {"of independent pixels", DistanceOf(PixelsShuffled(real))}};
  }

  // Before the first step, so the generator has not learned.
  Result<double> Baseline() override {
    weights().set_training(false);
    return Evaluate();
  }

 private:
  // On the CPU.
  virtual Result<at::Tensor> Learned(std::span<const int64_t> samples) = 0;
  virtual int64_t held_out() const = 0;
  virtual Result<at::Tensor> HeldOut(std::span<const int64_t> numbers) = 0;

  int64_t compared() const { return std::min(kMostCompared, held_out()); }

  at::Tensor Generated(int64_t count) {
    return generator_(Normal({count, noise_}, 0, 1).to(weights().device()));
  }

  Status ProjectHeldOut() {
    if (!held_out_projections_.empty()) return {};
    std::vector<int64_t> spread;
    for (int64_t i = 0; i < compared(); ++i) spread.push_back(i * held_out() / compared());
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor pictures, HeldOut(spread));
    held_out_projections_ = sliced_.Project(pictures);
    return {};
  }

  double DistanceOf(const at::Tensor& pictures) const {
    return SlicedWasserstein::Distance(sliced_.Project(pictures), held_out_projections_);
  }

  int64_t noise_;
  bool shuffled_;
  DcganGenerator generator_;
  DcganCritic critic_;
  SlicedWasserstein sliced_;
  SlicedWasserstein::Projections held_out_projections_;
};

// Smoke scale: digits.
constexpr DcganShape kSmokeDcgan{.side = 16, .channels = 1, .noise = 32, .width = 16};
constexpr int64_t kFrame = 2;  // black pixels around 28 × 28, which make 32 × 32

at::Tensor HalvedDigits(const at::Tensor& digits) {
  const int64_t side = 2 * kSmokeDcgan.side;
  const at::Tensor framed = Zeros({digits.size(0), 1, side, side});
  framed.slice(2, kFrame, side - kFrame).slice(3, kFrame, side - kFrame).copy_(digits);
  return AveragePool2d(framed, {.kernel = {2}, .stride = {2}}) * 2 - 1;
}

class DigitGeneration : public ImageGeneration {
 public:
  DigitGeneration(const TaskOptions& options, const LabelledImages& digits,
                  Hyperparameters hyperparameters)
      : ImageGeneration(options, kSmokeDcgan, std::move(hyperparameters)),
        learned_(HalvedDigits(digits.train_images)),
        held_out_(HalvedDigits(digits.test_images)) {}

  int64_t samples() const override { return learned_.size(0); }

 private:
  Result<at::Tensor> Learned(std::span<const int64_t> samples) override {
    return learned_.index_select(0, FromValues(samples, {std::ssize(samples)}));
  }
  int64_t held_out() const override { return held_out_.size(0); }
  Result<at::Tensor> HeldOut(std::span<const int64_t> numbers) override {
    return held_out_.index_select(0, FromValues(numbers, {std::ssize(numbers)}));
  }

  at::Tensor learned_;
  at::Tensor held_out_;
};

// Paper scale: a folder of pictures.
constexpr DcganShape kPaperDcgan{};

class PhotoGeneration : public ImageGeneration {
 public:
  PhotoGeneration(const TaskOptions& options, ImageFolder train, ImageFolder test,
                  Hyperparameters hyperparameters)
      : ImageGeneration(options, kPaperDcgan, std::move(hyperparameters)),
        context_(options.context),
        train_(std::move(train)),
        test_(std::move(test)) {}

  int64_t samples() const override { return train_.size(); }

 private:
  Result<at::Tensor> Learned(std::span<const int64_t> samples) override {
    return Read(train_, samples);
  }
  int64_t held_out() const override { return test_.size(); }
  Result<at::Tensor> HeldOut(std::span<const int64_t> numbers) override {
    return Read(test_, numbers);
  }

  // The square in the middle of each picture.
  Result<at::Tensor> Read(const ImageFolder& folder, std::span<const int64_t> numbers) const {
    std::vector<at::Tensor> pictures;
    for (const int64_t number : numbers) {
      ETUDE_ASSIGN_OR_RETURN(const at::Tensor picture, ReadJpeg(folder.PathOf(number), context_));
      const int64_t shorter = std::min(picture.size(1), picture.size(2));
      pictures.push_back(CropTo(picture, (picture.size(1) - shorter) / 2,
                                (picture.size(2) - shorter) / 2, shorter, shorter,
                                kPaperDcgan.side));
    }
    return Stack(pictures, 0) * 2 - 1;
  }

  RunContext context_;
  ImageFolder train_;
  ImageFolder test_;
};

// `batch` is of a step: five updates of the critic.
Hyperparameters WganSettings(int64_t batch, double rate) {
  const OptimizerOptions rmsprop{.kind = OptimizerOptions::Kind::kRmsprop, .rate = rate};
  return {.batch = batch, .optimizers = {rmsprop, rmsprop}};
}

}  // namespace

Result<std::unique_ptr<Task>> MakeImageGeneration(const TaskOptions& options) {
  if (options.scale == Scale::kSmoke) {
    ETUDE_ASSIGN_OR_RETURN(const LabelledImages digits, ReadMnist5k(options.data, options.context));
    Hyperparameters hyperparameters = WganSettings(kCriticUpdates * 32, 5e-4);
    hyperparameters.evaluate_every = 15;
    hyperparameters.most_steps = 750;
    return std::make_unique<DigitGeneration>(options, digits, std::move(hyperparameters));
  }
  ETUDE_ASSIGN_OR_RETURN(ImageFolder train, ImageFolder::Open(options.data + "/lsun/train"));
  ETUDE_ASSIGN_OR_RETURN(ImageFolder test, ImageFolder::Open(options.data + "/lsun/val"));
  const int64_t batch = std::min<int64_t>(kCriticUpdates * 64, train.size());
  const int64_t epoch = train.size() / batch;
  Hyperparameters hyperparameters = WganSettings(batch, 5e-5);
  hyperparameters.evaluate_every = std::max<int64_t>(1, epoch / 20);
  hyperparameters.most_steps = 25 * epoch;
  return std::make_unique<PhotoGeneration>(options, std::move(train), std::move(test),
                                           std::move(hyperparameters));
}

}  // namespace etude::suite
