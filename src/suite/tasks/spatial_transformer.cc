#include "src/suite/tasks/spatial_transformer.h"

#include <numbers>
#include <utility>

#include "src/suite/data/digits.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/layers.h"

namespace etude::suite {
namespace {

constexpr int64_t kSide = 28;
constexpr double kDropped = 0.5;
constexpr int64_t kTestBatch = 500;
constexpr uint64_t kTestSeed = 15;  // constant distortion of the test digits

// Draws an affine map per sample that rotates, scales and moves a digit: [N, 2, 3].
at::Tensor RandomMaps(int64_t samples) {
  const at::Tensor angle = Uniform({samples}, -std::numbers::pi / 3, std::numbers::pi / 3);
  const at::Tensor scale = Uniform({samples}, 0.9, 1.5);  // of positions: above 1 shrinks
  const at::Tensor shift = Uniform({samples, 2}, -0.3, 0.3);
  const at::Tensor cosine = angle.cos() * scale;
  const at::Tensor sine = angle.sin() * scale;
  return Stack(
      {Stack({cosine, -sine, shift.select(1, 0)}, 1), Stack({sine, cosine, shift.select(1, 1)}, 1)},
      1);
}

// A network that estimates the distortion of its input and undoes it.
class Localiser {
 public:
  explicit Localiser(const Scope& scope)
      : first_(scope["conv1"], 1, 8, {.kernel = {7}}),
        second_(scope["conv2"], 8, 10, {.kernel = {5}}),
        hidden_(scope["hidden"], 10 * 3 * 3, 32),
        map_(scope["map"], 32, 6) {
    // Starts with the identity map.
    const std::vector<float> identity = {1, 0, 0, 0, 1, 0};
    map_.weight().detach().zero_();
    map_.bias().detach().copy_(FromValues(std::span<const float>(identity), {6}));
  }

  at::Tensor operator()(const at::Tensor& x) const {
    const Window half = {.kernel = {2}, .stride = {2}};
    at::Tensor y = MaxPool2d(first_(x), half).relu();
    y = MaxPool2d(second_(y), half).relu();
    return map_(hidden_(y.flatten(1)).relu()).view({-1, 2, 3});
  }

 private:
  Conv2d first_;
  Conv2d second_;
  Linear hidden_;
  Linear map_;
};

class SpatialTransformer : public Task {
 public:
  SpatialTransformer(const TaskOptions& options, LabelledImages data,
                     Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        data_(std::move(data)),
        localiser_(root()["localiser"]),
        first_(root()["conv1"], 1, 10, {.kernel = {5}}),
        second_(root()["conv2"], 10, 20, {.kernel = {5}}),
        hidden_(root()["hidden"], 320, 50),
        classes_(root()["classes"], 50, data_.classes) {
    if (options.shuffled_labels) data_.train_labels = Shuffled(data_.train_labels, options.seed);
  }

  int64_t samples() const override { return data_.train_labels.size(0); }

  Result<at::Tensor> Loss(const Batch& batch) override {
    const at::Tensor index = FromValues(batch.samples, {std::ssize(batch.samples)});
    const at::Tensor images = data_.train_images.index_select(0, index);
    const at::Tensor logits = Classify(Distort(images));
    return CrossEntropy(logits, data_.train_labels.index_select(0, index).to(logits.device()));
  }

  Result<double> Evaluate() override {
    SeedTorch(kTestSeed);
    return TestAccuracy(data_, kTestBatch,
                        [this](const at::Tensor& images) { return Classify(Distort(images)); });
  }

  Result<double> Baseline() override { return MajorityShare(data_.test_labels); }

 private:
  at::Tensor Distort(const at::Tensor& images) {
    const at::Tensor grid = AffineGrid(RandomMaps(images.size(0)), kSide, kSide);
    const at::Tensor distorted = GridSample(images, grid);
    return ((distorted - 0.1307) / 0.3081).to(weights().device());
  }

  at::Tensor Classify(const at::Tensor& images) const {
    const at::Tensor x = GridSample(images, AffineGrid(localiser_(images), kSide, kSide));
    const Window half = {.kernel = {2}, .stride = {2}};
    at::Tensor y = MaxPool2d(first_(x), half).relu();
    y = MaxPool2d(ChannelDropout(second_(y), kDropped, is_training()), half).relu();
    return classes_(Dropout(hidden_(y.flatten(1)).relu(), kDropped, is_training()));
  }

  LabelledImages data_;
  Localiser localiser_;
  Conv2d first_;
  Conv2d second_;
  Linear hidden_;
  Linear classes_;
};

}  // namespace

Result<std::unique_ptr<Task>> MakeSpatialTransformer(const TaskOptions& options) {
  const bool smoke = options.scale == Scale::kSmoke;
  ETUDE_ASSIGN_OR_RETURN(LabelledImages data, smoke ? ReadMnist5k(options.data, options.context)
                                                    : ReadMnist(options.data, options.context));
  Hyperparameters hyperparameters;
  if (smoke) {
    hyperparameters = {.batch = 64,
                       .optimizers = {{.kind = OptimizerOptions::Kind::kAdam, .rate = 2e-3}},
                       .schedule = {.warmup_steps = 300},
                       .largest_norm = 1,
                       .evaluate_every = 100,
                       .most_steps = 2500};
  } else {
    // Hyperparameters of PyTorch's tutorial, which AIBench runs.
    hyperparameters = {.batch = 64,
                       .optimizers = {{.kind = OptimizerOptions::Kind::kSgd, .rate = 0.01}},
                       .evaluate_every = 469,
                       .most_steps = 50 * 938};
  }
  return std::make_unique<SpatialTransformer>(options, std::move(data), std::move(hyperparameters));
}

}  // namespace etude::suite
