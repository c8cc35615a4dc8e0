#include "src/suite/tasks/image_to_text.h"

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

#include "src/suite/checkpoint.h"
#include "src/suite/data/captioned_scenes.h"
#include "src/suite/data/captions.h"
#include "src/suite/data/coco_captions.h"
#include "src/suite/data/digits.h"
#include "src/suite/data/jpeg.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/inception.h"
#include "src/suite/nn/layers.h"

namespace etude::suite {
namespace {

constexpr int64_t kScenesToLearn = 16'000;
constexpr int64_t kScenesHeldOut = 500;
constexpr uint64_t kScenesToLearnSeed = 41;
constexpr uint64_t kScenesHeldOutSeed = 42;
constexpr int64_t kCaptionedAtOnce = 250;

constexpr int kTrunkGroup = 1;  // updated by no optimizer
constexpr int64_t kLeastWordCount = 4;
constexpr int64_t kScaledSide = 299;
constexpr int64_t kCutSide = 224;
constexpr int64_t kMostHeldOut = 5'000;
constexpr size_t kCocoPicturesAtOnce = 50;

// An LSTM that receives a picture's features first and then the preceding words.
class CaptionWriter {
 public:
  CaptionWriter(const Scope& scope, int64_t words, int64_t width, int64_t hidden)
      : hidden_(hidden),
        words_(scope["embed"], words, width),
        lstm_(scope["lstm"], {.in = width, .hidden = hidden, .batch_first = true}),
        next_(scope["linear"], hidden, words) {}

  // Returns the mean of -ln p of the next words; `features` [N, width].
  at::Tensor operator()(const at::Tensor& features, const CaptionBatch& captions) const {
    const at::Device device = features.device();
    const at::Tensor said = words_(captions.before.to(device)).to(features.scalar_type());
    const at::Tensor states =
        lstm_(Cat({features.unsqueeze(1), said}, 1)).first.slice(1, 1).reshape({-1, hidden_});
    const at::Tensor logits = next_(states.index_select(0, captions.places.to(device)));
    return CrossEntropy(logits, captions.next.to(device));
  }

 private:
  int64_t hidden_;
  Embedding words_;
  Recurrent lstm_;
  Linear next_;
};

// Perplexity over batches of sentences.
class PerplexityMean {
 public:
  void Add(double mean_nats, const CaptionBatch& captions) {
    const auto said = static_cast<double>(captions.next.size(0));
    nats_ += mean_nats * said;
    said_ += said;
  }
  double perplexity() const { return std::exp(nats_ / said_); }

 private:
  double nats_ = 0;
  double said_ = 0;
};

// Smoke scale: generated scenes.
class SceneCaptioning : public Task {
 public:
  SceneCaptioning(const TaskOptions& options, Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        train_(MakeCaptionedScenes(kScenesToLearn, kScenesToLearnSeed)),
        test_(MakeCaptionedScenes(kScenesHeldOut, kScenesHeldOutSeed)),
        caption_of_(LabelOrder(kScenesToLearn, options.shuffled_labels, options.seed)),
        fit_(root()["fit"]["linear"], kMaps.back() * kLastSide * kLastSide, kWidth),
        fit_norm_(root()["fit"]["bn"], kWidth),
        writer_(root()["writer"], kCaptionedWords, kWidth, kHidden) {
    int64_t in = 3;
    for (size_t i = 0; i < kMaps.size(); ++i) {
      const Scope place = root()[fmt::format("conv{}", i + 1)];
      convolutions_.emplace_back(place, in, kMaps[i], Window{.kernel = {3}, .padding = {1}},
                                 /*bias=*/false, Conv2d::Start::kHe);
      norms_.emplace_back(place["norm"], kMaps[i]);
      in = kMaps[i];
    }
  }

  int64_t samples() const override { return std::ssize(train_); }

  Result<at::Tensor> Loss(const Batch& batch) override {
    std::vector<at::Tensor> pictures;
    std::vector<Caption> captions;
    for (const int64_t sample : batch.samples) {
      const auto number = static_cast<size_t>(sample);
      pictures.push_back(Render(train_[number]));
      captions.push_back(train_[static_cast<size_t>(caption_of_[number])].caption);
    }
    return writer_(Features(pictures), SideBySide(captions));
  }

  Result<double> Evaluate() override {
    PerplexityMean mean;
    for (int64_t begin = 0; begin < kScenesHeldOut; begin += kCaptionedAtOnce) {
      std::vector<at::Tensor> pictures;
      std::vector<Caption> captions;
      for (int64_t i = begin; i < std::min(kScenesHeldOut, begin + kCaptionedAtOnce); ++i) {
        pictures.push_back(Render(test_[static_cast<size_t>(i)]));
        captions.push_back(test_[static_cast<size_t>(i)].caption);
      }
      const CaptionBatch batch = SideBySide(captions);
      mean.Add(writer_(Features(pictures), batch).item<double>(), batch);
    }
    return mean.perplexity();
  }

  Result<double> Baseline() override {
    return UnigramPerplexity(Captions(train_), Captions(test_), kCaptionedWords);
  }

 private:
  static constexpr std::array<int64_t, 4> kMaps = {16, 32, 64, 64};
  static constexpr int64_t kLastSide = 4;
  static constexpr int64_t kWidth = 128;
  static constexpr int64_t kHidden = 128;

  static std::vector<Caption> Captions(const std::vector<CaptionedScene>& scenes) {
    std::vector<Caption> captions;
    for (const CaptionedScene& scene : scenes) captions.push_back(scene.caption);
    return captions;
  }

  at::Tensor Features(const std::vector<at::Tensor>& pictures) {
    at::Tensor x = (Stack(pictures, 0) * 2 - 1).to(weights().device());
    for (size_t i = 0; i < convolutions_.size(); ++i) {
      x = norms_[i](convolutions_[i](x)).relu_();
      if (i + 1 < convolutions_.size()) x = MaxPool2d(x, {.kernel = {2}, .stride = {2}});
    }
    return fit_norm_(fit_(x.flatten(1)));
  }

  std::vector<CaptionedScene> train_;
  std::vector<CaptionedScene> test_;
  std::vector<int64_t> caption_of_;
  std::vector<Conv2d> convolutions_;
  std::vector<BatchNorm> norms_;
  Linear fit_;
  BatchNorm fit_norm_;
  CaptionWriter writer_;
};

// MS COCO at paper scale.
struct CocoData {
  CocoCaptions train;
  CocoCaptions test;
  CaptionVocabulary words;
};

// Paper scale: MS COCO 2014.
class PictureCaptioning : public Task {
 public:
  PictureCaptioning(const TaskOptions& options, CocoData data, Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        context_(options.context),
        data_(std::move(data)),
        caption_of_(
            LabelOrder(std::ssize(data_.train.sentences), options.shuffled_labels, options.seed)),
        trunk_(root(kTrunkGroup)["trunk"]),
        fit_(root()["encoder"]["linear"], InceptionV3::kFeatures, kWidth),
        norm_(root()["encoder"]["bn"], kWidth, 1e-5, 0.01),
        writer_(root()["decoder"], data_.words.size(), kWidth, kHidden) {
    std::vector<std::vector<Caption>> captions(data_.test.pictures.size());
    for (const CocoCaptions::Sentence& sentence : data_.test.sentences) {
      captions[static_cast<size_t>(sentence.picture)].push_back(data_.words.Numbers(sentence.text));
    }
    for (size_t i = 0; i < captions.size() && std::ssize(held_out_) < kMostHeldOut; ++i) {
      if (captions[i].empty()) continue;
      held_out_.push_back({static_cast<int64_t>(i), std::move(captions[i])});
    }
  }

  int64_t samples() const override { return std::ssize(data_.train.sentences); }

  // Loads pretrained weights of the trunk.
  Status LoadTrunk(const std::string& path) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      context_.Warn(path +
                    ": missing pretrained weights; without them the target cannot be reached");
      return {};
    }
    ETUDE_RETURN_IF_ERROR(ReadCheckpoint(path, weights().Below("trunk"), context_));
    return {};
  }

  Result<at::Tensor> Loss(const Batch& batch) override {
    if (batch.samples.size() < 2) {
      return MakeError(
          ErrorCode::kUsage,
          "found a batch of 1, expected at least 2 per rank because of batch normalization");
    }
    std::vector<at::Tensor> pictures;
    std::vector<Caption> captions;
    for (const int64_t sample : batch.samples) {
      const auto number = static_cast<size_t>(sample);
      ETUDE_ASSIGN_OR_RETURN(pictures.emplace_back(),
                             ReadCut(data_.train, data_.train.sentences[number].picture, true));
      const auto other = static_cast<size_t>(caption_of_[number]);
      captions.push_back(data_.words.Numbers(data_.train.sentences[other].text));
    }
    return writer_(norm_(fit_(TrunkFeatures(pictures))), SideBySide(captions));
  }

  Result<double> Evaluate() override {
    ETUDE_RETURN_IF_ERROR(SeeHeldOut());
    PerplexityMean mean;
    size_t number = 0;
    for (const at::Tensor& seen : seen_) {
      std::vector<int64_t> rows;
      std::vector<Caption> captions;
      for (int64_t row = 0; row < seen.size(0); ++row, ++number) {
        for (const Caption& caption : held_out_[number].captions) {
          rows.push_back(row);
          captions.push_back(caption);
        }
      }
      const CaptionBatch batch = SideBySide(captions);
      const at::Tensor index = FromValues(std::span<const int64_t>(rows), {std::ssize(rows)});
      const at::Tensor features = norm_(fit_(seen)).index_select(0, index.to(seen.device()));
      mean.Add(writer_(features, batch).item<double>(), batch);
    }
    return mean.perplexity();
  }

  Result<double> Baseline() override {
    std::vector<Caption> train;
    for (const CocoCaptions::Sentence& sentence : data_.train.sentences) {
      train.push_back(data_.words.Numbers(sentence.text));
    }
    std::vector<Caption> test;
    for (const HeldOut& one : held_out_) {
      test.insert(test.end(), one.captions.begin(), one.captions.end());
    }
    return UnigramPerplexity(train, test, data_.words.size());
  }

 private:
  static constexpr int64_t kWidth = 299;
  static constexpr int64_t kHidden = 512;

  struct HeldOut {
    int64_t picture;
    std::vector<Caption> captions;
  };

  // Reads a picture, scaled to a square, and cuts a random part, maybe mirrored, or the centre.
  Result<at::Tensor> ReadCut(const CocoCaptions& part, int64_t number, bool random) const {
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor picture,
                           ReadJpeg(part.pictures[static_cast<size_t>(number)], context_));
    const at::Tensor scaled = Resize(picture.unsqueeze(0), kScaledSide, kScaledSide).squeeze(0);
    constexpr int64_t kRest = kScaledSide - kCutSide;
    if (!random) {
      return scaled.narrow(1, kRest / 2, kCutSide).narrow(2, kRest / 2, kCutSide);
    }
    const at::Tensor draw = Uniform({3}, 0, 1);
    const auto at = [&](int64_t i) {
      return static_cast<int64_t>(draw[i].item<double>() * static_cast<double>(kRest + 1));
    };
    const at::Tensor cut = scaled.narrow(1, at(0), kCutSide).narrow(2, at(1), kCutSide);
    return draw[2].item<double>() < 0.5 ? cut.flip({2}) : cut;
  }

  // Runs the trunk outside of training mode, also during training.
  at::Tensor TrunkFeatures(const std::vector<at::Tensor>& pictures) {
    const at::NoGradGuard no_gradients;
    const bool training = is_training();
    weights().set_training(false);
    at::Tensor features = trunk_((Stack(pictures, 0) * 2 - 1).to(weights().device()));
    weights().set_training(training);
    return features;
  }

  // Caches the trunk's features of test pictures, which are the same in each evaluation.
  Status SeeHeldOut() {
    size_t next = seen_.size() * kCocoPicturesAtOnce;
    while (next < held_out_.size()) {
      const size_t end = std::min(held_out_.size(), next + kCocoPicturesAtOnce);
      std::vector<at::Tensor> pictures;
      for (; next < end; ++next) {
        ETUDE_ASSIGN_OR_RETURN(pictures.emplace_back(),
                               ReadCut(data_.test, held_out_[next].picture, false));
      }
      seen_.push_back(TrunkFeatures(pictures));
    }
    return {};
  }

  RunContext context_;
  CocoData data_;
  std::vector<int64_t> caption_of_;
  InceptionV3 trunk_;
  Linear fit_;
  BatchNorm norm_;
  CaptionWriter writer_;
  std::vector<HeldOut> held_out_;
  std::vector<at::Tensor> seen_;  // trunk features of the test pictures, in batches
};

Result<CocoData> ReadCaptionedCoco(const std::string& folder, const RunContext& context) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) {
    return Unavailable(folder +
                       ": missing; expected MS COCO 2014: annotations/, train2014/ and val2014/");
  }
  ETUDE_ASSIGN_OR_RETURN(CocoCaptions train, CocoCaptions::Read(folder, "train2014", context));
  ETUDE_ASSIGN_OR_RETURN(CocoCaptions test, CocoCaptions::Read(folder, "val2014", context));
  CaptionVocabulary words(train.sentences, kLeastWordCount);
  return CocoData{std::move(train), std::move(test), std::move(words)};
}

}  // namespace

Result<std::unique_ptr<Task>> MakeImageToText(const TaskOptions& options) {
  if (options.scale == Scale::kSmoke) {
    Hyperparameters hyperparameters{
        .batch = 64,
        .optimizers = {{.kind = OptimizerOptions::Kind::kAdam, .rate = 3e-3}},
        .schedule = {.warmup_steps = 50, .cosine = true},
        .largest_norm = 5,
        .evaluate_every = 25,
        .most_steps = 900};
    return std::make_unique<SceneCaptioning>(options, std::move(hyperparameters));
  }
  const std::string folder = options.data + "/coco";
  ETUDE_ASSIGN_OR_RETURN(CocoData data, ReadCaptionedCoco(folder, options.context));
  // AIBench's hyperparameters.
  const int64_t batch = std::min<int64_t>(128, std::ssize(data.train.sentences));
  const int64_t epoch = std::ssize(data.train.sentences) / batch;
  Hyperparameters hyperparameters{
      .batch = batch,
      .optimizers = {{.kind = OptimizerOptions::Kind::kAdam, .rate = 1e-3}},
      .evaluate_every = std::max<int64_t>(1, epoch / 10),
      .most_steps = 5 * epoch};
  auto task =
      std::make_unique<PictureCaptioning>(options, std::move(data), std::move(hyperparameters));
  ETUDE_RETURN_IF_ERROR(task->LoadTrunk(folder + "/inception_v3.safetensors"));
  return task;
}

}  // namespace etude::suite
