#include "src/suite/tasks/video_prediction.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/suite/data/digits.h"
#include "src/suite/data/video/push_sequences.h"
#include "src/suite/data/video/pushed_blocks.h"
#include "src/suite/data/video/robot_pushing.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/video/cdna.h"

namespace etude::suite {
namespace {

constexpr int64_t kContext = 2;  // true frames before the first prediction that counts
constexpr double kStateWeight = 1e-4;

// Common parts of both scales.
class VideoPrediction : public Task {
 public:
  struct Options {
    CdnaShape shape;
    int64_t frames = 0;        // of a video
    double sampling_rate = 1;  // steps; the larger, the longer true frames are used
  };

  // Returns the mean squared difference of the predicted frames, and a little of the states'.
  Result<at::Tensor> Loss(const Batch& batch) override {
    const std::vector<int64_t> shown = LabelsOf(batch.samples);
    ETUDE_ASSIGN_OR_RETURN(const PushSequences own, Learned(batch.samples));
    const PushSequences videos = Ready(own);
    PushSequences labels = videos;
    if (!std::ranges::equal(shown, batch.samples)) {
      ETUDE_ASSIGN_OR_RETURN(const PushSequences others, Learned(shown));
      labels = Ready(others);
    }
    const Cdna::Prediction predicted =
        network_(videos, kContext, There(Sampled(std::ssize(batch.samples), batch.step)));
    const at::Tensor of_states = AfterContext(predicted.states) - FromContext(labels.states);
    return ErrorsOf(predicted.frames, labels).mean() + kStateWeight * of_states.square().mean();
  }

  // Returns the mean squared error of the predicted frames.
  Result<double> Evaluate() override {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<double> errors, ErrorsByFrame());
    return MeanOf(errors);
  }

  Result<std::vector<Figure>> Figures() override {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<double> errors, ErrorsByFrame());
    std::vector<Figure> figures;
    for (const double error : errors) {
      figures.push_back({fmt::format("PSNR of frame {}, dB", std::ssize(figures) + kContext + 1),
                         -10 * std::log10(error)});
    }
    return figures;
  }

  // Returns the error of the last frame of the context, repeated.
  Result<double> Baseline() override {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<double> errors,
                           HeldOutErrors([](const PushSequences& videos) {
                             return videos.frames.narrow(1, kContext - 1, 1)
                                 .expand({-1, videos.frames.size(1) - 1, -1, -1, -1});
                           }));
    return MeanOf(errors);
  }

 protected:
  VideoPrediction(const TaskOptions& options, const Options& own, int64_t samples,
                  Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        own_(own),
        label_of_(LabelOrder(samples, options.shuffled_labels, options.seed)),
        network_(root(), own.shape) {}

 private:
  // Return videos on the CPU.
  virtual Result<PushSequences> Learned(std::span<const int64_t> samples) = 0;
  virtual Result<PushSequences> HeldOut(int64_t begin, int64_t end) = 0;
  virtual int64_t held_out() const = 0;
  virtual int64_t at_once() const = 0;  // videos in an evaluation

  static at::Tensor FromContext(const at::Tensor& all) {
    return all.slice(1, kContext, all.size(1));
  }
  // The first prediction is that of the second frame.
  static at::Tensor AfterContext(const at::Tensor& predicted) {
    return predicted.slice(1, kContext - 1, predicted.size(1));
  }
  // Returns the mean squared errors of predictions after the context, by frame: [T − context].
  static at::Tensor ErrorsOf(const at::Tensor& predicted, const PushSequences& videos) {
    return (AfterContext(predicted) - FromContext(videos.frames)).square().mean({0, 2, 3, 4});
  }
  static double MeanOf(const std::vector<double>& errors) {
    double sum = 0;
    for (const double error : errors) sum += error;
    return sum / static_cast<double>(errors.size());
  }

  // Returns the samples whose frames are predicted: their own, unless labels are shuffled.
  std::vector<int64_t> LabelsOf(std::span<const int64_t> samples) const {
    std::vector<int64_t> labels;
    for (const int64_t sample : samples) labels.push_back(label_of_[static_cast<size_t>(sample)]);
    return labels;
  }

  // Returns the videos on the model's device, with frames from 0 to 1.
  PushSequences Ready(const PushSequences& videos) const {
    at::Tensor frames = There(videos.frames);
    if (frames.scalar_type() == at::kByte) frames = frames.to(at::kFloat) / 255;
    return {frames, There(videos.actions), There(videos.states)};
  }

  // Returns which frames are shown although they could be predicted (scheduled sampling; Bengio et
  // al., 1506.03099): [N, T]. Their share falls from 1 to 0 along an inverse sigmoid; which ones
  // they are is drawn anew for each frame.
  at::Tensor Sampled(int64_t videos, int64_t step) const {
    const double rate = own_.sampling_rate;
    const double share = rate / (rate + std::exp(static_cast<double>(step) / rate));
    const int64_t count = std::llround(share * static_cast<double>(videos));
    return Uniform({own_.frames, videos}, 0, 1).argsort(int64_t{1}).lt(count).t();
  }

  Result<std::vector<double>> ErrorsByFrame() {
    return HeldOutErrors(
        [this](const PushSequences& videos) { return network_(videos, kContext, {}).frames; });
  }

  // Returns the errors, by frame, of what `predict` returns for held-out videos.
  template <typename Predict>
  Result<std::vector<double>> HeldOutErrors(const Predict& predict) {
    std::vector<double> errors(static_cast<size_t>(own_.frames - kContext));
    for (int64_t begin = 0; begin < held_out(); begin += at_once()) {
      const int64_t end = std::min(held_out(), begin + at_once());
      ETUDE_ASSIGN_OR_RETURN(const PushSequences some, HeldOut(begin, end));
      const PushSequences videos = Ready(some);
      const at::Tensor found = ErrorsOf(predict(videos), videos).to(at::kCPU, at::kDouble);
      const double share = static_cast<double>(end - begin) / static_cast<double>(held_out());
      for (size_t i = 0; i < errors.size(); ++i) {
        errors[i] += share * found.const_data_ptr<double>()[i];
      }
    }
    return errors;
  }

  Options own_;
  std::vector<int64_t> label_of_;  // by sample
  Cdna network_;
};

// Smoke scale: generated videos.
constexpr int64_t kVideos = 1500;
constexpr int64_t kHeldOutVideos = 100;
constexpr uint64_t kTrainVideosSeed = 111;
constexpr uint64_t kTestVideosSeed = 112;

class BlockPrediction : public VideoPrediction {
 public:
  BlockPrediction(const TaskOptions& options, Hyperparameters hyperparameters)
      : VideoPrediction(options,
                        {.shape = {.colours = 3,
                                   .side = PushedBlocks::kSide,
                                   .channels = 8,
                                   .repeated = 1,
                                   .kernel = 3,
                                   .moved = 6,
                                   .actions = PushedBlocks::kActions,
                                   .states = PushedBlocks::kStates,
                                   .start = Conv2d::Start::kUniform},
                         .frames = PushedBlocks::kFrames,
                         .sampling_rate = 20},
                        kVideos, std::move(hyperparameters)),
        learned_(GeneratePushes(kVideos, kTrainVideosSeed)),
        held_out_(GeneratePushes(kHeldOutVideos, kTestVideosSeed)) {}

  int64_t samples() const override { return kVideos; }

 private:
  Result<PushSequences> Learned(std::span<const int64_t> samples) override {
    const at::Tensor index = FromValues(samples, {std::ssize(samples)});
    return PushSequences{learned_.frames.index_select(0, index),
                         learned_.actions.index_select(0, index),
                         learned_.states.index_select(0, index)};
  }
  Result<PushSequences> HeldOut(int64_t begin, int64_t end) override {
    return PushSequences{held_out_.frames.slice(0, begin, end),
                         held_out_.actions.slice(0, begin, end),
                         held_out_.states.slice(0, begin, end)};
  }
  int64_t held_out() const override { return kHeldOutVideos; }
  int64_t at_once() const override { return 25; }

  PushSequences learned_;
  PushSequences held_out_;
};

// Paper scale.
class RobotPrediction : public VideoPrediction {
 public:
  RobotPrediction(const TaskOptions& options, RobotPushing data, Hyperparameters hyperparameters)
      : VideoPrediction(options,
                        {.shape = {.side = RobotPushing::kSide,
                                   .actions = RobotPushing::kActions,
                                   .states = RobotPushing::kStates},
                         .frames = RobotPushing::kFrames,
                         .sampling_rate = 900},
                        data.learned(), std::move(hyperparameters)),
        data_(std::move(data)) {}

  int64_t samples() const override { return data_.learned(); }

 private:
  Result<PushSequences> Learned(std::span<const int64_t> samples) override {
    return data_.Read(samples);
  }
  Result<PushSequences> HeldOut(int64_t begin, int64_t end) override {
    std::vector<int64_t> numbers;
    for (int64_t i = begin; i < end; ++i) numbers.push_back(data_.learned() + i);
    return data_.Read(numbers);
  }
  int64_t held_out() const override { return data_.held_out(); }
  int64_t at_once() const override { return 32; }

  RobotPushing data_;
};

}  // namespace

Result<std::unique_ptr<Task>> MakeVideoPrediction(const TaskOptions& options) {
  if (options.scale == Scale::kSmoke) {
    Hyperparameters hyperparameters{
        .batch = 8,
        .optimizers = {{.kind = OptimizerOptions::Kind::kAdam, .rate = 5e-3}},
        .schedule = {.cosine = true},
        .largest_norm = 1,
        .evaluate_every = 10,
        .most_steps = 400};
    return std::make_unique<BlockPrediction>(options, std::move(hyperparameters));
  }
  ETUDE_ASSIGN_OR_RETURN(RobotPushing data,
                         RobotPushing::Open(options.data + "/push/push_train", options.context));
  const int64_t batch = std::min<int64_t>(32, data.learned());
  Hyperparameters hyperparameters{
      .batch = batch,
      .optimizers = {{.kind = OptimizerOptions::Kind::kAdam, .rate = 1e-3}},
      .evaluate_every = std::min<int64_t>(2000, data.learned() / batch),
      .most_steps = 100'000};
  return std::make_unique<RobotPrediction>(options, std::move(data), std::move(hyperparameters));
}

}  // namespace etude::suite
