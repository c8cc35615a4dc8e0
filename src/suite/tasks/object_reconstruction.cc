#include "src/suite/tasks/object_reconstruction.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>

#include "src/base/container/hash.h"
#include "src/base/random_stream.h"
#include "src/suite/data/digits.h"
#include "src/suite/data/records/tf_records.h"
#include "src/suite/data/solids/generated_solids.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/solids/orbit_camera.h"
#include "src/suite/nn/solids/perspective_transformer.h"

namespace etude::suite {
namespace {

constexpr double kFull = 0.5;             // share of a voxel from which it counts as full
constexpr double kProjectionWeight = 10;  // of the loss
constexpr int64_t kThresholds = 20;       // tried for the mean shape
constexpr int64_t kMostInMean = 2000;     // volumes

// Pictures with one volume each.
struct Solids {
  at::Tensor pictures;  // [N, C, s, s]
  at::Tensor volumes;   // [N, 1, S, S, S], 0 or 1
};

// Common parts of both scales.
class ObjectReconstruction : public Task {
 public:
  ObjectReconstruction(const TaskOptions& options, const PtnShape& shape, const OrbitCamera& camera,
                       int64_t volume_side, int64_t views_a_step, Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        camera_(camera),
        views_a_step_(views_a_step),
        rays_(camera.Rays(volume_side).to(options.device)),
        network_(root(), shape) {}

  // Returns half the squared differences of the silhouettes, over random views or all.
  Result<at::Tensor> Loss(const Batch& batch) override {
    ETUDE_ASSIGN_OR_RETURN(Solids solids, Learned(batch.samples));
    const int64_t count = std::ssize(batch.samples);
    const at::Tensor volumes = There(solids.volumes);
    at::Tensor rays;
    if (views_a_step_ == camera_.views) {
      rays = rays_.unsqueeze(0).expand({count, -1, -1, -1, -1, -1});
    } else {
      const at::Tensor views =
          std::get<1>(Uniform({count, camera_.views}, 0, 1).topk(views_a_step_));
      rays = rays_.index_select(0, There(views.flatten())).unflatten(0, {count, views_a_step_});
    }
    at::Tensor silhouettes;
    {
      const at::NoGradGuard no_gradients;
      silhouettes = Projections(volumes, rays);
    }
    const at::Tensor difference = Projections(network_(There(solids.pictures)), rays) - silhouettes;
    return difference.square().sum() *
           (kProjectionWeight / 2 / static_cast<double>(views_a_step_ * count));
  }

  Result<double> Evaluate() override {
    ETUDE_ASSIGN_OR_RETURN(const Overlap overlap, OverlapOfAnswers());
    return overlap.mean;
  }

  Result<std::vector<Figure>> Figures() override {
    ETUDE_ASSIGN_OR_RETURN(const Overlap overlap, OverlapOfAnswers());
    return std::vector<Figure>{
        {"IoU of all volumes together", overlap.either > 0 ? overlap.common / overlap.either : 1}};
  }

  // Returns the IoU of the mean shape: the places that are full in at least a share of the volumes
  // to learn from, with the share that is best for these volumes.
  Result<double> Baseline() override {
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor learned, LearnedVolumes(kMostInMean));
    const at::Tensor mean = learned.mean({0}, /*keepdim=*/true);
    at::Tensor best;
    double best_mean = -1;
    for (int64_t i = 1; i < kThresholds; ++i) {
      const at::Tensor shape = mean.ge(static_cast<double>(i) / kThresholds).to(at::kFloat);
      const double of_shape = OverlapOf(shape.expand_as(learned), learned).mean;
      if (of_shape > best_mean) {
        best_mean = of_shape;
        best = shape;
      }
    }
    ETUDE_ASSIGN_OR_RETURN(const Overlap overlap, OverlapWith([&](const Solids& solids) {
                             return best.expand_as(solids.volumes);
                           }));
    return overlap.mean;
  }

 private:
  struct Overlap {
    double mean = 0;    // of each volume's intersection over union
    double common = 0;  // voxels of all intersections
    double either = 0;  // and unions
  };

  // Returns training samples on the CPU, with a random picture of each solid.
  virtual Result<Solids> Learned(std::span<const int64_t> samples) = 0;
  // Returns the first `most` volumes to learn from: [N, 1, S, S, S].
  virtual Result<at::Tensor> LearnedVolumes(int64_t most) = 0;
  virtual int64_t held_out() const = 0;
  virtual int64_t at_once() const = 0;  // solids in an evaluation
  // Returns all test pictures of some solids. Those of one solid have the same volume.
  virtual Result<Solids> HeldOut(int64_t begin, int64_t end) = 0;

  // Returns the overlap; an empty answer equals an empty volume.
  static Overlap OverlapOf(const at::Tensor& answers, const at::Tensor& volumes) {
    const at::Tensor is_answer = answers.ge(kFull).flatten(1);
    const at::Tensor is_full = volumes.ge(kFull).flatten(1);
    const at::Tensor common = is_answer.logical_and(is_full).sum({1}).to(at::kDouble);
    const at::Tensor either = is_answer.logical_or(is_full).sum({1}).to(at::kDouble);
    const at::Tensor share = Where(either.gt(0), common / either.clamp_min(1), either + 1);
    return {.mean = share.mean().item<double>(),
            .common = common.sum().item<double>(),
            .either = either.sum().item<double>()};
  }

  Result<Overlap> OverlapOfAnswers() {
    return OverlapWith(
        [this](const Solids& solids) { return network_(There(solids.pictures)).cpu(); });
  }

  // Returns the overlap of all held-out volumes with what `answers` returns for some solids.
  template <typename Answers>
  Result<Overlap> OverlapWith(const Answers& answers) {
    Overlap all;
    int64_t count = 0;
    for (int64_t begin = 0; begin < held_out(); begin += at_once()) {
      ETUDE_ASSIGN_OR_RETURN(const Solids solids,
                             HeldOut(begin, std::min(held_out(), begin + at_once())));
      const Overlap some = OverlapOf(answers(solids), solids.volumes);
      const int64_t pictures = solids.volumes.size(0);
      all.mean += some.mean * static_cast<double>(pictures);
      all.common += some.common;
      all.either += some.either;
      count += pictures;
    }
    all.mean /= static_cast<double>(count);
    return all;
  }

  OrbitCamera camera_;
  int64_t views_a_step_;
  at::Tensor rays_;  // [views, S, S, S, 3]
  PerspectiveTransformer network_;
};

// Smoke scale: generated solids.
constexpr int64_t kSolids = 1200;
constexpr int64_t kPicturesOfEach = 6;
constexpr int64_t kHeldOutSolids = 200;
constexpr uint64_t kTrainSolidsSeed = 131;
constexpr uint64_t kTestSolidsSeed = 132;

class SolidReconstruction : public ObjectReconstruction {
 public:
  SolidReconstruction(const TaskOptions& options, Hyperparameters hyperparameters)
      : ObjectReconstruction(options,
                             {.colours = 1,
                              .side = GeneratedSolids::kPictureSide,
                              .filters = 16,
                              .hidden = 128,
                              .code = 64,
                              .channels = {48, 24, 1},
                              .kernels = {4, 4},
                              .start = PtnShape::Start::kHe},
                             SolidsCamera(), GeneratedSolids::kVolumeSide, /*views_a_step=*/2,
                             std::move(hyperparameters)),
        learned_(GenerateSolids(kSolids, kPicturesOfEach, kTrainSolidsSeed)),
        held_out_(GenerateSolids(kHeldOutSolids, 1, kTestSolidsSeed)) {
    if (!options.shuffled_labels) return;
    learned_.volumes = learned_.volumes.index_select(0, Shuffled(Arange(kSolids), options.seed));
  }

  int64_t samples() const override { return kSolids; }

 private:
  Result<Solids> Learned(std::span<const int64_t> samples) override {
    const int64_t count = std::ssize(samples);
    const at::Tensor index = FromValues(samples, {count});
    const at::Tensor picture =
        Uniform({count}, 0, kPicturesOfEach).to(at::kLong).clamp_max(kPicturesOfEach - 1);
    return Solids{learned_.pictures.flatten(0, 1)
                      .index_select(0, index * kPicturesOfEach + picture)
                      .unsqueeze(1),
                  learned_.volumes.index_select(0, index).unsqueeze(1)};
  }
  Result<at::Tensor> LearnedVolumes(int64_t most) override {
    return learned_.volumes.slice(0, 0, most).unsqueeze(1);
  }
  int64_t held_out() const override { return kHeldOutSolids; }
  int64_t at_once() const override { return 50; }
  Result<Solids> HeldOut(int64_t begin, int64_t end) override {
    return Solids{held_out_.pictures.slice(0, begin, end),
                  held_out_.volumes.slice(0, begin, end).unsqueeze(1)};
  }

  GeneratedSolids learned_;
  GeneratedSolids held_out_;
};

// Paper scale: the records of Perspective Transformer Nets' program.
constexpr int64_t kViews = 24;
constexpr int64_t kViewSide = 64;
constexpr int64_t kVoxels = 32;  // a side
constexpr int64_t kViewColours = 3;

class ShapeNetReconstruction : public ObjectReconstruction {
 public:
  ShapeNetReconstruction(const TaskOptions& options, TfRecords learned, TfRecords held_out,
                         Hyperparameters hyperparameters)
      : ObjectReconstruction(options, {},
                             {.views = kViews, .nearest = 0.866, .farthest = 2.598, .zoom = 0.866},
                             kVoxels, /*views_a_step=*/kViews, std::move(hyperparameters)),
        learned_(std::move(learned)),
        held_out_(std::move(held_out)),
        volume_of_(LabelOrder(learned_.size(), options.shuffled_labels, options.seed)) {}

  int64_t samples() const override { return learned_.size(); }

 private:
  // Return the pictures [24, 3, 64, 64] and the volume [1, 32, 32, 32] of a record.
  static Result<at::Tensor> PicturesOf(const TfExample& example) {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<float> pictures,
                           example.Floats("image", kViews * kViewSide * kViewSide * kViewColours));
    return FromValues(pictures, {kViews, kViewSide, kViewSide, kViewColours}).permute({0, 3, 1, 2});
  }
  static Result<at::Tensor> VolumeOf(const TfExample& example) {
    ETUDE_ASSIGN_OR_RETURN(const std::vector<float> volume,
                           example.Floats("vox", kVoxels * kVoxels * kVoxels));
    return FromValues(volume, {1, kVoxels, kVoxels, kVoxels});
  }
  Result<at::Tensor> LearnedVolume(int64_t number) const {
    ETUDE_ASSIGN_OR_RETURN(const std::string record, learned_.Read(number));
    ETUDE_ASSIGN_OR_RETURN(const TfExample example,
                           TfExample::Parse(record, learned_.PlaceOf(number)));
    return VolumeOf(example);
  }

  Result<Solids> Learned(std::span<const int64_t> samples) override {
    std::vector<at::Tensor> pictures;
    std::vector<at::Tensor> volumes;
    for (const int64_t sample : samples) {
      ETUDE_ASSIGN_OR_RETURN(const std::string record, learned_.Read(sample));
      ETUDE_ASSIGN_OR_RETURN(const TfExample example,
                             TfExample::Parse(record, learned_.PlaceOf(sample)));
      ETUDE_ASSIGN_OR_RETURN(const at::Tensor views, PicturesOf(example));
      const auto view = static_cast<int64_t>(Uniform({1}, 0, kViews).item<double>());
      pictures.push_back(views[std::min(view, kViews - 1)]);
      const int64_t shown = volume_of_[static_cast<size_t>(sample)];
      ETUDE_ASSIGN_OR_RETURN(at::Tensor volume,
                             shown == sample ? VolumeOf(example) : LearnedVolume(shown));
      volumes.push_back(std::move(volume));
    }
    return Solids{Stack(pictures, 0), Stack(volumes, 0)};
  }
  Result<at::Tensor> LearnedVolumes(int64_t most) override {
    std::vector<at::Tensor> volumes;
    for (int64_t i = 0; i < std::min(most, learned_.size()); ++i) {
      ETUDE_ASSIGN_OR_RETURN(at::Tensor volume, LearnedVolume(i));
      volumes.push_back(std::move(volume));
    }
    return Stack(volumes, 0);
  }
  int64_t held_out() const override { return held_out_.size(); }
  int64_t at_once() const override { return 1; }
  Result<Solids> HeldOut(int64_t begin, int64_t /*end*/) override {
    ETUDE_ASSIGN_OR_RETURN(const std::string record, held_out_.Read(begin));
    ETUDE_ASSIGN_OR_RETURN(const TfExample example,
                           TfExample::Parse(record, held_out_.PlaceOf(begin)));
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor pictures, PicturesOf(example));
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor volume, VolumeOf(example));
    return Solids{pictures, volume.expand({kViews, 1, kVoxels, kVoxels, kVoxels})};
  }

  TfRecords learned_;
  TfRecords held_out_;
  std::vector<int64_t> volume_of_;  // by training record: its own, unless shuffled
};

}  // namespace

Result<std::unique_ptr<Task>> MakeObjectReconstruction(const TaskOptions& options) {
  if (options.scale == Scale::kSmoke) {
    Hyperparameters hyperparameters{
        .batch = 16,
        .optimizers = {{.kind = OptimizerOptions::Kind::kAdam, .rate = 2e-3}},
        .schedule = {.cosine = true},
        .evaluate_every = 20,
        .most_steps = 600};
    return std::make_unique<SolidReconstruction>(options, std::move(hyperparameters));
  }
  // Chairs are the synset 03001627 of WordNet.
  const std::string chairs = options.data + "/shapenet/03001627";
  ETUDE_ASSIGN_OR_RETURN(TfRecords learned,
                         TfRecords::Open(chairs + "_train.tfrecords", options.context));
  ETUDE_ASSIGN_OR_RETURN(TfRecords held_out,
                         TfRecords::Open(chairs + "_val.tfrecords", options.context));
  const int64_t batch = std::min<int64_t>(6, learned.size());
  Hyperparameters hyperparameters{
      .batch = batch,
      .optimizers = {{.kind = OptimizerOptions::Kind::kAdam, .rate = 1e-4, .weight_decay = 1e-3}},
      .evaluate_every = std::min<int64_t>(400, learned.size() / batch),
      .most_steps = 10'000};
  return std::make_unique<ShapeNetReconstruction>(options, std::move(learned), std::move(held_out),
                                                  std::move(hyperparameters));
}

}  // namespace etude::suite
