#include "src/suite/tasks/image_to_image.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/suite/data/image_folder.h"
#include "src/suite/data/jpeg.h"
#include "src/suite/data/streets/label_colours.h"
#include "src/suite/data/streets/street_scenes.h"
#include "src/suite/nn/adversarial/cycle_gan.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

// Groups of parameters, and the updates of a step.
constexpr int kTranslators = 0;
constexpr int kCritics = 1;

constexpr double kCycleWeight = 10;
constexpr double kIdentityWeight = 5;
constexpr int64_t kPooled = 50;

struct CycleGanShape {
  int64_t side = 256;
  ResNetTranslator::Shape translator;
  PatchCritic::Shape critic;
};

at::Tensor MeanDistance(const at::Tensor& left, const at::Tensor& right) {
  return (left - right).abs().mean();
}
// Losses of least-squares GANs (Mao, 1611.04076).
at::Tensor AsReal(const at::Tensor& scores) { return (scores - 1).square().mean(); }
at::Tensor AsGenerated(const at::Tensor& scores) { return scores.square().mean(); }

// A photograph and the class of each pixel.
struct LabelledPhotos {
  at::Tensor photos;   // [N, 3, H, W], from -1 to 1
  at::Tensor classes;  // int64 [N, H, W]
};

// What both scales have in common. Photographs and label maps are [N, 3, H, W], from -1 to 1.
class ImageToImage : public Task {
 public:
  ImageToImage(const TaskOptions& options, const CycleGanShape& shape, LabelPalette palette,
               int64_t uncounted, Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        palette_(std::move(palette)),
        uncounted_(uncounted),
        shuffled_(options.shuffled_labels),
        to_map_(root(kTranslators)["to_map"], shape.translator),
        to_photo_(root(kTranslators)["to_photo"], shape.translator),
        map_critic_(root(kCritics)["map_critic"], shape.critic),
        photo_critic_(root(kCritics)["photo_critic"], shape.critic),
        map_pool_(root()["map_pool"], kPooled, shape.side),
        photo_pool_(root()["photo_pool"], kPooled, shape.side) {}

  int64_t samples() const override { return std::max(photos(), maps()); }
  int64_t updates_per_step() const override { return 2; }
  int GroupOf(int64_t update) const override { return update == 0 ? kTranslators : kCritics; }

  Result<at::Tensor> Loss(const Batch& batch) override {
    const bool critics_learn = GroupOf(batch.update) == kCritics;
    for (const Weights::Entry& entry : weights().entries()) {
      if (entry.is_parameter && entry.group == kCritics) {
        entry.value.set_requires_grad(critics_learn);
      }
    }
    if (critics_learn) return LossOfCritics();
    ETUDE_RETURN_IF_ERROR(Draw(batch.samples));
    return LossOfTranslators();
  }

  Result<double> Evaluate() override {
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor counts, Confusion(/*translated=*/true));
    return RightShare(counts);
  }

  // Those that CycleGAN's authors report with it, and what the photograph's own colours have.
  Result<std::vector<Figure>> Figures() override {
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor counts, Confusion(/*translated=*/true));
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor own, Confusion(/*translated=*/false));
    const at::Tensor right = counts.diag().to(at::kDouble);
    const at::Tensor of_class = counts.sum(1);
    const at::Tensor occurs = of_class.gt(0);
    const at::Tensor either = (of_class + counts.sum(0)).to(at::kDouble) - right;
    const auto mean = [&](const at::Tensor& shares) {
      return shares.masked_select(occurs).mean().item<double>();
    };
    return std::vector<Figure>{{"class accuracy", mean(right / of_class)},
                               {"class IoU", mean(right / either)},
                               {"nearest colours of the photo", RightShare(own)}};
  }

  Result<double> Baseline() override {
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor counts, Confusion(/*translated=*/false));
    const at::Tensor of_class = counts.sum(1).to(at::kDouble);
    return (of_class.max() / of_class.sum()).item<double>();
  }

 protected:
  const LabelPalette& palette() const { return palette_; }

 private:
  // Training data, on the CPU; there is no relation between a photograph and a map of one number.
  virtual int64_t photos() const = 0;
  virtual int64_t maps() const = 0;
  virtual Result<at::Tensor> Photos(std::span<const int64_t> numbers) = 0;
  virtual Result<at::Tensor> Maps(std::span<const int64_t> numbers) = 0;
  // Data held out, in parts.
  virtual int64_t held_out_parts() const = 0;
  virtual Result<LabelledPhotos> HeldOut(int64_t part) = 0;

  // Takes the photographs of the samples, and as many label maps at random.
  Status Draw(std::span<const int64_t> samples) {
    std::vector<int64_t> of_photos;
    std::vector<int64_t> of_maps;
    const at::Tensor draws = Uniform({std::ssize(samples)}, 0, 1);
    const auto* draw = draws.const_data_ptr<float>();
    for (const int64_t sample : samples) {
      of_photos.push_back(sample % photos());
      const auto map = static_cast<int64_t>(*draw++ * static_cast<float>(maps()));
      of_maps.push_back(std::min(map, maps() - 1));
    }
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor photos, Photos(of_photos));
    ETUDE_ASSIGN_OR_RETURN(at::Tensor maps, Maps(of_maps));
    if (shuffled_) maps = Renamed(maps);
    photos_ = photos.to(weights().device());
    maps_ = maps.to(weights().device());
    return {};
  }

  // Gives the classes of each map the colours of other classes.
  at::Tensor Renamed(const at::Tensor& maps) const {
    const at::Tensor classes = palette_.Read(maps);
    const at::Tensor names = Uniform({maps.size(0), palette_.classes()}, 0, 1).argsort(int64_t{1});
    return palette_.Paint(names.gather(1, classes.flatten(1)).view(classes.sizes()));
  }

  at::Tensor LossOfTranslators() {
    made_maps_ = to_map_(photos_);
    made_photos_ = to_photo_(maps_);
    const at::Tensor cycle =
        MeanDistance(to_photo_(made_maps_), photos_) + MeanDistance(to_map_(made_photos_), maps_);
    const at::Tensor identity =
        MeanDistance(to_map_(maps_), maps_) + MeanDistance(to_photo_(photos_), photos_);
    const at::Tensor deceived =
        AsReal(map_critic_(made_maps_)) + AsReal(photo_critic_(made_photos_));
    return deceived + cycle * kCycleWeight + identity * kIdentityWeight;
  }

  // By what the translators made in their update.
  at::Tensor LossOfCritics() {
    const at::Tensor maps = map_pool_.Exchange(made_maps_);
    const at::Tensor photos = photo_pool_.Exchange(made_photos_);
    made_maps_.reset();
    made_photos_.reset();
    const at::Tensor of_maps = AsReal(map_critic_(maps_)) + AsGenerated(map_critic_(maps));
    const at::Tensor of_photos =
        AsReal(photo_critic_(photos_)) + AsGenerated(photo_critic_(photos));
    return (of_maps + of_photos) / 2;
  }

  // Counts the pixels held out: int64 [class, class answered].
  Result<at::Tensor> Confusion(bool translated) {
    const int64_t classes = palette_.classes();
    at::Tensor counts = Zeros({classes * classes}, at::kLong);
    for (int64_t part = 0; part < held_out_parts(); ++part) {
      ETUDE_ASSIGN_OR_RETURN(const LabelledPhotos pairs, HeldOut(part));
      const at::Tensor answers =
          palette_.Read(translated ? to_map_(pairs.photos.to(weights().device())) : pairs.photos);
      const at::Tensor places = pairs.classes * classes + answers;
      const at::Tensor counted = places.masked_select(pairs.classes.ne(uncounted_));
      counts += counted.bincount(/*weights=*/{}, /*minlength=*/classes * classes);
    }
    if (counts.sum().item<int64_t>() == 0) {
      return BadInput(
          "label maps held out: found no pixel of a class, expected Cityscapes' colours");
    }
    return counts.view({classes, classes});
  }

  static double RightShare(const at::Tensor& counts) {
    return static_cast<double>(counts.trace().item<int64_t>()) /
           static_cast<double>(counts.sum().item<int64_t>());
  }

  LabelPalette palette_;
  int64_t uncounted_;  // class whose pixels do not count; -1 if all do
  bool shuffled_;
  ResNetTranslator to_map_;
  ResNetTranslator to_photo_;
  PatchCritic map_critic_;
  PatchCritic photo_critic_;
  ImagePool map_pool_;
  ImagePool photo_pool_;
  // Of the current step.
  at::Tensor photos_;
  at::Tensor maps_;
  at::Tensor made_maps_;
  at::Tensor made_photos_;
};

// Smoke scale: generated streets.
constexpr int64_t kStreetPhotos = 600;
constexpr int64_t kStreetMaps = 600;
constexpr int64_t kStreetsHeldOut = 200;
constexpr int64_t kStreetsAtOnce = 100;
constexpr uint64_t kStreetPhotosSeed = 51;
constexpr uint64_t kStreetMapsSeed = 52;
constexpr uint64_t kStreetsHeldOutSeed = 53;

class StreetTranslation : public ImageToImage {
 public:
  StreetTranslation(const TaskOptions& options, Hyperparameters hyperparameters)
      : ImageToImage(options,
                     {.side = StreetScenes::kSide,
                      .translator = {.width = 8, .halvings = 1, .blocks = 2},
                      .critic = {.width = 8, .halvings = 2}},
                     LabelPalette(StreetScenes::Colours()), /*uncounted=*/-1,
                     std::move(hyperparameters)),
        photos_(DrawStreetScenes(kStreetPhotos, kStreetPhotosSeed).pictures),
        maps_(palette().Paint(DrawStreetScenes(kStreetMaps, kStreetMapsSeed).classes)),
        held_out_(DrawStreetScenes(kStreetsHeldOut, kStreetsHeldOutSeed)) {}

 private:
  int64_t photos() const override { return photos_.size(0); }
  int64_t maps() const override { return maps_.size(0); }
  Result<at::Tensor> Photos(std::span<const int64_t> numbers) override {
    return photos_.index_select(0, FromValues(numbers, {std::ssize(numbers)}));
  }
  Result<at::Tensor> Maps(std::span<const int64_t> numbers) override {
    return maps_.index_select(0, FromValues(numbers, {std::ssize(numbers)}));
  }
  int64_t held_out_parts() const override { return kStreetsHeldOut / kStreetsAtOnce; }
  Result<LabelledPhotos> HeldOut(int64_t part) override {
    const int64_t begin = part * kStreetsAtOnce;
    return LabelledPhotos{held_out_.pictures.slice(0, begin, begin + kStreetsAtOnce),
                          held_out_.classes.slice(0, begin, begin + kStreetsAtOnce)};
  }

  at::Tensor photos_;
  at::Tensor maps_;
  StreetScenes held_out_;
};

// Paper scale: Cityscapes.
constexpr int64_t kLargestSide = 256;
constexpr int64_t kLeastPhotoSide = 32;
constexpr int64_t kLargestSideBeforeCut = 286;
constexpr std::string_view kPhotoEnd = "_A.jpg";
constexpr std::string_view kMapEnd = "_B.jpg";

struct CityscapesFiles {
  std::vector<std::string> photos;
  std::vector<std::string> maps;
  std::vector<std::pair<std::string, std::string>> held_out;  // photograph and map
};

// In the layout of CycleGAN's data sets, where testA/5_A.jpg and testB/5_B.jpg are a pair.
Result<CityscapesFiles> ListCityscapes(const std::string& folder) {
  CityscapesFiles files;
  ETUDE_ASSIGN_OR_RETURN(files.photos, PicturesIn(folder + "/trainA"));
  ETUDE_ASSIGN_OR_RETURN(files.maps, PicturesIn(folder + "/trainB"));
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> tests, PicturesIn(folder + "/testA"));
  for (const std::string& photo : tests) {
    std::string name = std::filesystem::path(photo).filename().string();
    if (!name.ends_with(kPhotoEnd)) {
      return BadInput(
          fmt::format("{}: found '{}', expected a name that ends with {}", photo, name, kPhotoEnd));
    }
    name.replace(name.size() - kPhotoEnd.size(), kPhotoEnd.size(), kMapEnd);
    std::string map = folder + "/testB/" + name;
    std::error_code error;
    if (!std::filesystem::exists(map, error)) {
      return BadInput(fmt::format("{}: missing; it is the label map of {}", map, photo));
    }
    files.held_out.emplace_back(photo, std::move(map));
  }
  return files;
}

// Returns the side that photographs like that in `path` are resized to. Small ones are not
// enlarged, but get a side that the networks can halve twice.
Result<int64_t> SideOf(const std::string& path, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const at::Tensor photo, ReadJpeg(path, context));
  const int64_t shorter = std::min(photo.size(1), photo.size(2));
  if (shorter < kLeastPhotoSide) {
    return BadInput(fmt::format("{}: found {} × {} pixels, expected at least {} × {}", path,
                                photo.size(2), photo.size(1), kLeastPhotoSide, kLeastPhotoSide));
  }
  return std::min(kLargestSide, shorter / 4 * 4);
}

class CityscapesTranslation : public ImageToImage {
 public:
  CityscapesTranslation(const TaskOptions& options, CityscapesFiles files, int64_t side,
                        Hyperparameters hyperparameters)
      : ImageToImage(options, {.side = side}, LabelPalette(CityscapesColours()),
                     /*uncounted=*/std::ssize(CityscapesColours()) - 1, std::move(hyperparameters)),
        context_(options.context),
        files_(std::move(files)),
        side_(side) {}

 private:
  int64_t photos() const override { return std::ssize(files_.photos); }
  int64_t maps() const override { return std::ssize(files_.maps); }
  Result<at::Tensor> Photos(std::span<const int64_t> numbers) override {
    return Parts(files_.photos, numbers);
  }
  Result<at::Tensor> Maps(std::span<const int64_t> numbers) override {
    return Parts(files_.maps, numbers);
  }
  int64_t held_out_parts() const override { return std::ssize(files_.held_out); }
  Result<LabelledPhotos> HeldOut(int64_t part) override {
    if (context_.stopped()) return MakeError(ErrorCode::kInterrupted, "stopped");
    const auto& [photo_path, map_path] = files_.held_out[static_cast<size_t>(part)];
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor photo, Read(photo_path, side_));
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor map, Read(map_path, side_));
    return LabelledPhotos{photo.unsqueeze(0), palette().Read(map.unsqueeze(0))};
  }

  // The whole picture, as a square.
  Result<at::Tensor> Read(const std::string& path, int64_t side) const {
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor picture, ReadJpeg(path, context_));
    return CropTo(picture, 0, 0, picture.size(1), picture.size(2), side) * 2 - 1;
  }

  // Cut and mirrored at random.
  Result<at::Tensor> Parts(const std::vector<std::string>& paths,
                           std::span<const int64_t> numbers) const {
    const int64_t before = side_ * kLargestSideBeforeCut / kLargestSide;
    const int64_t places = before - side_ + 1;
    std::vector<at::Tensor> parts;
    for (const int64_t number : numbers) {
      ETUDE_ASSIGN_OR_RETURN(const at::Tensor picture,
                             Read(paths[static_cast<size_t>(number)], before));
      const at::Tensor draws = Uniform({3}, 0, 1);
      const auto* draw = draws.const_data_ptr<float>();
      const auto place = [&](float share) {
        return std::min(static_cast<int64_t>(share * static_cast<float>(places)), places - 1);
      };
      const at::Tensor part =
          picture.narrow(1, place(draw[0]), side_).narrow(2, place(draw[1]), side_);
      parts.push_back(draw[2] < 0.5F ? part.flip({2}) : part);
    }
    return Stack(parts, 0);
  }

  RunContext context_;
  CityscapesFiles files_;
  int64_t side_;
};

Hyperparameters CycleGanSettings(int64_t batch, double rate, int64_t most_steps) {
  const OptimizerOptions adam{.kind = OptimizerOptions::Kind::kAdam, .rate = rate, .beta1 = 0.5};
  return {.batch = batch,
          .optimizers = {adam, adam},
          .schedule = {.linear_from = 0.5},
          .most_steps = most_steps};
}

}  // namespace

Result<std::unique_ptr<Task>> MakeImageToImage(const TaskOptions& options) {
  if (options.scale == Scale::kSmoke) {
    Hyperparameters hyperparameters = CycleGanSettings(4, 2e-3, 400);
    hyperparameters.evaluate_every = 4;
    return std::make_unique<StreetTranslation>(options, std::move(hyperparameters));
  }
  ETUDE_ASSIGN_OR_RETURN(CityscapesFiles files, ListCityscapes(options.data + "/cityscapes"));
  ETUDE_ASSIGN_OR_RETURN(const int64_t side, SideOf(files.photos.front(), options.context));
  const auto epoch = std::max(std::ssize(files.photos), std::ssize(files.maps));
  Hyperparameters hyperparameters = CycleGanSettings(1, 2e-4, 200 * epoch);
  hyperparameters.evaluate_every = epoch;
  return std::make_unique<CityscapesTranslation>(options, std::move(files), side,
                                                 std::move(hyperparameters));
}

}  // namespace etude::suite
