#include "src/suite/tasks/image_classification.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/base/container/hash.h"
#include "src/base/random_stream.h"
#include "src/suite/data/digits.h"
#include "src/suite/data/image_folder.h"
#include "src/suite/data/jpeg.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/layers.h"
#include "src/suite/nn/resnet.h"

namespace etude::suite {
namespace {

constexpr int64_t kPictureSide = 224;
constexpr int64_t kPicturesAtOnce = 100;

// A residual network and its classifier.
class ResNetClassifier {
 public:
  ResNetClassifier(const Scope& scope, const ResNetShape& shape, int64_t classes)
      : trunk_(scope, shape), classes_(scope["fc"], trunk_.out(), classes) {}
  at::Tensor operator()(const at::Tensor& x) const {
    return classes_(GlobalAveragePool(trunk_(x)));
  }

 private:
  ResNet trunk_;
  Linear classes_;
};

// Smoke scale: handwritten digits, shifted by up to two pixels.
class DigitClassification : public Task {
 public:
  DigitClassification(const TaskOptions& options, LabelledImages data,
                      Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        data_(std::move(data)),
        model_(root(),
               {.channels = 1,
                .width = 16,
                .blocks = {2, 2, 2},
                .bottlenecks = false,
                .large_images = false},
               data_.classes) {
    if (options.shuffled_labels) data_.train_labels = Shuffled(data_.train_labels, options.seed);
  }

  int64_t samples() const override { return data_.train_labels.size(0); }

  Result<at::Tensor> Loss(const Batch& batch) override {
    const at::Tensor index = FromValues(batch.samples, {std::ssize(batch.samples)});
    const at::Tensor images = Moved(data_.train_images.index_select(0, index));
    const at::Tensor logits = model_(Normalised(images));
    return CrossEntropy(logits, data_.train_labels.index_select(0, index).to(logits.device()));
  }

  Result<double> Evaluate() override {
    return TestAccuracy(data_, kPicturesAtOnce,
                        [this](const at::Tensor& images) { return model_(Normalised(images)); });
  }

  Result<double> Baseline() override { return MajorityShare(data_.test_labels); }

 private:
  at::Tensor Normalised(const at::Tensor& images) {
    return ((images - 0.1307) / 0.3081).to(weights().device());
  }

  // One shift for the whole batch: cheap, and different in each step.
  static at::Tensor Moved(const at::Tensor& images) {
    const at::Tensor draw = Uniform({2}, -2.49, 2.49).round();
    return images.roll({draw[0].item<int64_t>(), draw[1].item<int64_t>()}, {2, 3});
  }

  LabelledImages data_;
  ResNetClassifier model_;
};

// Paper scale: ResNet-50 on ImageNet.
class PictureClassification : public Task {
 public:
  PictureClassification(const TaskOptions& options, ImageFolder train, ImageFolder test,
                        Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        context_(options.context),
        train_(std::move(train)),
        test_(std::move(test)),
        model_(root(), {.blocks = {3, 4, 6, 3}}, kClasses) {
    if (options.shuffled_labels) {
      for (int64_t i = 0; i < train_.size(); ++i) {
        RandomStream random(HashMix(options.seed, static_cast<uint64_t>(i)));
        train_.set_label(
            i, static_cast<int64_t>(random.Below(static_cast<uint64_t>(train_.classes()))));
      }
    }
  }

  // Also for folders with fewer classes: the network is the paper's.
  static constexpr int64_t kClasses = 1000;

  int64_t samples() const override { return train_.size(); }

  Result<at::Tensor> Loss(const Batch& batch) override {
    std::vector<at::Tensor> pictures;
    std::vector<int64_t> labels;
    for (const int64_t sample : batch.samples) {
      ETUDE_ASSIGN_OR_RETURN(pictures.emplace_back(),
                             train_.RandomPart(sample, kPictureSide, context_));
      labels.push_back(train_.LabelOf(sample));
    }
    const at::Tensor logits = model_(Normalised(pictures));
    return CrossEntropy(logits, Labels(labels).to(logits.device()), -100, /*smoothing=*/0.1);
  }

  Result<double> Evaluate() override {
    int64_t right = 0;
    for (int64_t begin = 0; begin < test_.size(); begin += kPicturesAtOnce) {
      std::vector<at::Tensor> pictures;
      std::vector<int64_t> labels;
      for (int64_t i = begin; i < std::min(test_.size(), begin + kPicturesAtOnce); ++i) {
        ETUDE_ASSIGN_OR_RETURN(pictures.emplace_back(), test_.Middle(i, kPictureSide, context_));
        labels.push_back(test_.LabelOf(i));
      }
      const at::Tensor answers = model_(Normalised(pictures)).argmax(1).cpu();
      right += answers.eq(Labels(labels)).sum().item<int64_t>();
    }
    return static_cast<double>(right) / static_cast<double>(test_.size());
  }

  Result<double> Baseline() override {
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < test_.size(); ++i) labels.push_back(test_.LabelOf(i));
    return MajorityShare(Labels(labels));
  }

 private:
  static at::Tensor Labels(const std::vector<int64_t>& labels) {
    return FromValues(std::span<const int64_t>(labels), {std::ssize(labels)});
  }

  at::Tensor Normalised(const std::vector<at::Tensor>& pictures) {
    return ImageNetNormalised(Stack(pictures, 0)).to(weights().device());
  }

  RunContext context_;
  ImageFolder train_;
  ImageFolder test_;
  ResNetClassifier model_;
};

}  // namespace

Result<std::unique_ptr<Task>> MakeImageClassification(const TaskOptions& options) {
  if (options.scale == Scale::kSmoke) {
    ETUDE_ASSIGN_OR_RETURN(LabelledImages data, ReadMnist5k(options.data, options.context));
    Hyperparameters hyperparameters{
        .batch = 64,
        .optimizers = {{.rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4}},
        .schedule = {.warmup_steps = 30, .cosine = true},
        .evaluate_every = 31,
        .most_steps = 620};
    return std::make_unique<DigitClassification>(options, std::move(data),
                                                 std::move(hyperparameters));
  }
  ETUDE_ASSIGN_OR_RETURN(ImageFolder train, ImageFolder::Open(options.data + "/imagenet/train"));
  ETUDE_ASSIGN_OR_RETURN(ImageFolder test, ImageFolder::Open(options.data + "/imagenet/val"));
  for (const ImageFolder* part : {&train, &test}) {
    if (part->classes() <= PictureClassification::kClasses) continue;
    return BadInput(options.data + "/imagenet: found more than 1,000 classes");
  }
  if (train.class_names() != test.class_names()) {
    return BadInput(options.data +
                    "/imagenet: found different classes in train and val, expected the same");
  }
  const int64_t batch = std::min<int64_t>(256, train.size());
  const int64_t epoch = train.size() / batch;
  Hyperparameters hyperparameters{
      .batch = batch,
      .optimizers = {{.rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-4}},
      .schedule = {.warmup_steps = 5 * epoch, .cosine = true},
      .evaluate_every = epoch,
      .most_steps = 90 * epoch};
  return std::make_unique<PictureClassification>(options, std::move(train), std::move(test),
                                                 std::move(hyperparameters));
}

}  // namespace etude::suite
