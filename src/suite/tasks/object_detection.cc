#include "src/suite/tasks/object_detection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "src/base/random_stream.h"
#include "src/suite/checkpoint.h"
#include "src/suite/data/detection_scenes.h"
#include "src/suite/data/jpeg.h"
#include "src/suite/data/voc.h"
#include "src/suite/nn/detection/average_precision.h"
#include "src/suite/nn/faster_rcnn.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/layers.h"
#include "src/suite/nn/resnet.h"

namespace etude::suite {
namespace {

// Gives each picture the objects of another one.
void ShuffleAnnotations(std::vector<Annotation>& annotations, uint64_t seed) {
  std::vector<PictureSize> sizes;
  for (const Annotation& annotation : annotations) sizes.push_back(annotation.size);
  RandomStream random(seed);
  Shuffle(std::span(annotations), random);
  for (size_t i = 0; i < sizes.size(); ++i) annotations[i] = Resized(annotations[i], sizes[i]);
}

// Returns the mean precision of always answering the mean box of each class, frequent classes
// first.
double PrecisionOfMeanBoxes(std::span<const Annotation> learned, std::span<const Annotation> asked,
                            int64_t classes) {
  std::vector<Box> sums(static_cast<size_t>(classes));
  std::vector<float> counts(static_cast<size_t>(classes), 0);
  for (const Annotation& annotation : learned) {
    for (const Object& object : Resized(annotation, {1, 1}).objects) {
      const auto label = static_cast<size_t>(object.label);
      Box& sum = sums[label];
      sum = {sum.left + object.box.left, sum.top + object.box.top, sum.right + object.box.right,
             sum.bottom + object.box.bottom};
      ++counts[label];
    }
  }
  Annotation answer{.size = {1, 1}};
  std::vector<float> scores;
  for (size_t label = 0; label < sums.size(); ++label) {
    if (counts[label] == 0) continue;
    const Box& sum = sums[label];
    const float count = counts[label];
    answer.objects.push_back(
        {.box = {sum.left / count, sum.top / count, sum.right / count, sum.bottom / count},
         .label = static_cast<int64_t>(label)});
    scores.push_back(count);
  }
  std::vector<std::vector<Detection>> found;
  for (const Annotation& annotation : asked) {
    std::vector<Detection>& own = found.emplace_back();
    const Annotation there = Resized(answer, annotation.size);
    for (size_t i = 0; i < scores.size(); ++i) {
      own.push_back({there.objects[i].box, there.objects[i].label, scores[i]});
    }
  }
  return MeanAveragePrecision(asked, found, classes);
}

// Smoke scale: shapes on generated pictures.
constexpr int64_t kTrainScenes = 2000;
constexpr int64_t kTestScenes = 200;
constexpr int64_t kScenesAtOnce = 50;
constexpr uint64_t kTrainScenesSeed = 9;
constexpr uint64_t kTestScenesSeed = 99;
constexpr int64_t kShapeHeadWidth = 128;

DetectorShape ShapeDetectorShape() {
  return {.classes = DetectionScenes::kClasses,
          .stride = 8,
          .anchors = {.sides = {14, 20, 28}, .ratios = {1}},
          .proposal_width = 64,
          .region_side = 4,
          .anchor_rule = {.least_positive = 0.6F, .samples = 64, .inside_only = false},
          .region_rule = {.samples = 32},
          .learning = {.before = 100, .after = 50},
          .asked = {.before = 100, .after = 20},
          .least_score = 0.05F,
          .most_detections = 20};
}

// Five convolutions with a feature cell per 8 × 8 pixels.
class ShapeTrunk {
 public:
  explicit ShapeTrunk(const Scope& scope) {
    int64_t in = 3;
    for (int64_t layer = 0; layer < std::ssize(kWidths); ++layer) {
      const int64_t out = kWidths[static_cast<size_t>(layer)];
      convolutions_.emplace_back(
          scope["conv"][layer], in, out,
          Window{.kernel = {3}, .stride = {layer < 3 ? 2 : 1}, .padding = {1}}, /*bias=*/false,
          Conv2d::Start::kHe);
      norms_.emplace_back(scope["norm"][layer], out);
      in = out;
    }
  }
  at::Tensor operator()(const at::Tensor& x) const {
    at::Tensor y = x;
    for (size_t i = 0; i < convolutions_.size(); ++i) y = norms_[i](convolutions_[i](y)).relu_();
    return y;
  }
  static constexpr int64_t out() { return kWidths.back(); }

 private:
  static constexpr std::array<int64_t, 5> kWidths = {24, 48, 64, 64, 64};
  std::vector<Conv2d> convolutions_;
  std::vector<BatchNorm> norms_;
};

class ShapeDetection : public Task {
 public:
  ShapeDetection(const TaskOptions& options, Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        train_(DrawDetectionScenes(kTrainScenes, kTrainScenesSeed)),
        test_(DrawDetectionScenes(kTestScenes, kTestScenesSeed)),
        trunk_(root()["trunk"]),
        head_(root()["head"], ShapeTrunk::out() * shape_.region_side * shape_.region_side,
              kShapeHeadWidth),
        detector_(root(), shape_,
                  {.trunk = trunk_,
                   .channels = ShapeTrunk::out(),
                   .head = [this](const at::Tensor& x) { return head_(x.flatten(1)).relu(); },
                   .head_width = kShapeHeadWidth}) {
    if (options.shuffled_labels) ShuffleAnnotations(train_.annotations, options.seed);
  }

  int64_t samples() const override { return kTrainScenes; }

  Result<at::Tensor> Loss(const Batch& batch) override {
    const at::Tensor index = FromValues(batch.samples, {std::ssize(batch.samples)});
    at::Tensor pictures = train_.pictures.index_select(0, index);
    std::vector<Annotation> annotations;
    const bool is_mirrored = Uniform({1}, 0, 1).item<double>() < 0.5;
    if (is_mirrored) pictures = pictures.flip({3});
    for (const int64_t sample : batch.samples) {
      const Annotation& annotation = train_.annotations[static_cast<size_t>(sample)];
      annotations.push_back(is_mirrored ? Mirrored(annotation) : annotation);
    }
    return detector_.Loss(Normalised(pictures), annotations);
  }

  Result<double> Evaluate() override {
    std::vector<std::vector<Detection>> found;
    const std::vector<PictureSize> sizes(kScenesAtOnce, test_.annotations[0].size);
    for (int64_t begin = 0; begin < kTestScenes; begin += kScenesAtOnce) {
      const at::Tensor pictures = test_.pictures.narrow(0, begin, kScenesAtOnce);
      for (std::vector<Detection>& own : detector_.Detect(Normalised(pictures), sizes)) {
        found.push_back(std::move(own));
      }
    }
    return MeanAveragePrecision(test_.annotations, found, DetectionScenes::kClasses);
  }

  Result<double> Baseline() override {
    return PrecisionOfMeanBoxes(train_.annotations, test_.annotations, DetectionScenes::kClasses);
  }

 private:
  at::Tensor Normalised(const at::Tensor& pictures) {
    return ((pictures - 0.5) / 0.25).to(weights().device());
  }

  DetectionScenes train_;
  DetectionScenes test_;
  DetectorShape shape_ = ShapeDetectorShape();
  ShapeTrunk trunk_;
  Linear head_;
  FasterRcnn detector_;
};

// Paper scale: ResNet-101 on VOC 2007.
constexpr float kShorterSide = 600;
constexpr float kLongestSide = 1000;
constexpr int64_t kVocClasses = 20;
constexpr size_t kHeadStage = 3;
constexpr const char* kTrunkFile = "/resnet101.safetensors";

class VocDetection : public Task {
 public:
  // With `has_trunk_file` the trunk is to be loaded from a file.
  VocDetection(const TaskOptions& options, VocPictures data, bool has_trunk_file,
               Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        context_(options.context),
        data_(std::move(data)),
        learns_all_(!has_trunk_file),
        trunk_(root()["trunk"], {.blocks = {3, 4, 23, 3}, .fixed_norms = has_trunk_file}),
        detector_(root(), {.classes = kVocClasses},
                  {.trunk = [this](const at::Tensor& x) { return Features(x); },
                   .channels = trunk_.OutOf(kHeadStage - 1),
                   .head =
                       [this](const at::Tensor& x) {
                         return GlobalAveragePool(trunk_.Stage(kHeadStage, x));
                       },
                   .head_width = trunk_.OutOf(kHeadStage)}) {
    for (const VocPicture& picture : data_.train) annotations_.push_back(picture.annotation);
    if (options.shuffled_labels) ShuffleAnnotations(annotations_, options.seed);
    for (Annotation& annotation : annotations_) std::erase_if(annotation.objects, &IsDifficult);
    for (const VocPicture& picture : data_.test) asked_.push_back(picture.annotation);
  }

  // Loads the trunk from a file with torchvision's names.
  Status ReadTrunk(const std::string& path) {
    ETUDE_RETURN_IF_ERROR(ReadCheckpoint(path, weights().Below("trunk"), context_));
    return {};
  }

  int64_t samples() const override { return std::ssize(data_.train); }

  Result<at::Tensor> Loss(const Batch& batch) override {
    std::vector<at::Tensor> pictures;
    std::vector<Annotation> annotations;
    for (const int64_t sample : batch.samples) {
      const auto number = static_cast<size_t>(sample);
      ETUDE_ASSIGN_OR_RETURN(at::Tensor picture, ReadScaled(data_.train[number]));
      Annotation annotation = Resized(annotations_[number], SizeOf(picture));
      if (Uniform({1}, 0, 1).item<double>() < 0.5) {
        picture = picture.flip({2});
        annotation = Mirrored(annotation);
      }
      pictures.push_back(picture);
      annotations.push_back(std::move(annotation));
    }
    return detector_.Loss(Together(pictures), annotations);
  }

  Result<double> Evaluate() override {
    std::vector<std::vector<Detection>> found;
    for (const VocPicture& picture : data_.test) {
      if (context_.stopped()) return MakeError(ErrorCode::kInterrupted, "stopped");
      ETUDE_ASSIGN_OR_RETURN(const at::Tensor pixels, ReadScaled(picture));
      const std::vector<PictureSize> sizes = {SizeOf(pixels)};
      found.push_back(std::move(detector_.Detect(Together({pixels}), sizes)[0]));
      const float x = picture.annotation.size.width / sizes[0].width;
      const float y = picture.annotation.size.height / sizes[0].height;
      for (Detection& detection : found.back()) {
        const Box& box = detection.box;
        detection.box = {box.left * x, box.top * y, box.right * x, box.bottom * y};
      }
    }
    return MeanAveragePrecision(asked_, found, kVocClasses);
  }

  Result<double> Baseline() override {
    return PrecisionOfMeanBoxes(annotations_, asked_, kVocClasses);
  }

 private:
  static bool IsDifficult(const Object& object) { return object.difficult; }

  at::Tensor Features(const at::Tensor& pictures) const {
    at::Tensor x = pictures;
    {
      // General features (edges, colours) keep the file's weights.
      const at::AutoGradMode learns(learns_all_ && at::GradMode::is_enabled());
      x = trunk_.Stage(0, trunk_.Begin(x));
    }
    for (size_t stage = 1; stage < kHeadStage; ++stage) x = trunk_.Stage(stage, x);
    return x;
  }

  static PictureSize SizeOf(const at::Tensor& picture) {
    return {static_cast<float>(picture.size(2)), static_cast<float>(picture.size(1))};
  }

  // Reads a picture at the network's size.
  Result<at::Tensor> ReadScaled(const VocPicture& picture) const {
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor pixels, ReadVocPicture(picture, context_));
    const auto [width, height] = picture.annotation.size;
    const float scale =
        std::min(kShorterSide / std::min(width, height), kLongestSide / std::max(width, height));
    const auto scaled = [&](float side) {
      return std::max<int64_t>(1, std::llround(side * scale));
    };
    return Resize(pixels.unsqueeze(0), scaled(height), scaled(width)).squeeze(0);
  }

  // Normalises pictures, and pads them to one size.
  at::Tensor Together(const std::vector<at::Tensor>& pictures) {
    int64_t height = 0;
    int64_t width = 0;
    for (const at::Tensor& picture : pictures) {
      height = std::max(height, picture.size(1));
      width = std::max(width, picture.size(2));
    }
    const at::Tensor all = Zeros({std::ssize(pictures), 3, height, width});
    for (size_t i = 0; i < pictures.size(); ++i) {
      const at::Tensor& picture = pictures[i];
      all[static_cast<int64_t>(i)]
          .narrow(1, 0, picture.size(1))
          .narrow(2, 0, picture.size(2))
          .copy_(ImageNetNormalised(picture));
    }
    return all.to(weights().device());
  }

  RunContext context_;
  VocPictures data_;
  std::vector<Annotation> annotations_;  // of data_.train, as used for training
  std::vector<Annotation> asked_;        // of data_.test
  bool learns_all_;
  ResNet trunk_;
  FasterRcnn detector_;
};

}  // namespace

Result<std::unique_ptr<Task>> MakeObjectDetection(const TaskOptions& options) {
  if (options.scale == Scale::kSmoke) {
    Hyperparameters hyperparameters{
        .batch = 16,
        .optimizers = {{.kind = OptimizerOptions::Kind::kAdam, .rate = 2e-3}},
        .schedule = {.warmup_steps = 50, .cosine = true},
        .evaluate_every = 15,
        .most_steps = 800};
    return std::make_unique<ShapeDetection>(options, std::move(hyperparameters));
  }
  const std::string folder = options.data + "/VOCdevkit/VOC2007";
  ETUDE_ASSIGN_OR_RETURN(VocPictures data, ReadVoc(folder, options.context));
  if (std::ssize(data.classes) > kVocClasses) {
    return BadInput(fmt::format("{}: found {} classes, expected at most {}", folder,
                                data.classes.size(), kVocClasses));
  }
  const std::string trunk = options.data + kTrunkFile;
  std::error_code error;
  const bool has_trunk_file = std::filesystem::exists(trunk, error);
  const auto pictures = std::ssize(data.train);
  const auto batch = std::min<int64_t>(10, pictures);
  const int64_t epoch = pictures / batch;
  // AIBench's rate and batch; the rest follows the code that it runs
  // (docs/suite/object-detection.md).
  Hyperparameters hyperparameters{
      .batch = batch,
      .optimizers = {{.rate = 1e-3, .momentum = 0.9, .weight_decay = 1e-4}},
      .schedule = {.cosine = true},
      .evaluate_every = epoch,
      .most_steps = 20 * epoch};
  auto task = std::make_unique<VocDetection>(options, std::move(data), has_trunk_file,
                                             std::move(hyperparameters));
  if (has_trunk_file) ETUDE_RETURN_IF_ERROR(task->ReadTrunk(trunk));
  return task;
}

}  // namespace etude::suite
