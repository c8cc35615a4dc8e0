#include "src/suite/tasks/image_compression.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/suite/data/image_folder.h"
#include "src/suite/data/jpeg.h"
#include "src/suite/data/photographs/photographs.h"
#include "src/suite/nn/compression/multi_scale_ssim.h"
#include "src/suite/nn/compression/residual_codec.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kCrop = 32;  // pixels of a side that training sees
constexpr int64_t kHeldOutSide = 256;
constexpr int64_t kCodecColours = 3;

// Returns the part of `size` pixels around the middle of [3, H, W].
at::Tensor MiddlePart(const at::Tensor& picture, int64_t size) {
  return picture.narrow(1, (picture.size(1) - size) / 2, size)
      .narrow(2, (picture.size(2) - size) / 2, size);
}

// Rounds values from 0 to 1 to those of bytes.
at::Tensor AsBytes(const at::Tensor& picture) {
  return (picture.to(at::kFloat).clamp(0, 1) * 255).round() / 255;
}

// Quality of copies of pictures, summed over pictures.
struct Quality {
  double similarity = 0;  // MS-SSIM
  double noise = 0;       // PSNR, dB
  double rate = 0;        // bits per pixel

  void Add(const at::Tensor& picture, const at::Tensor& copy, double bits_per_pixel) {
    similarity += MultiScaleSsim(picture, copy).item<double>();
    noise += PeakSignalToNoise(picture, copy).item<double>();
    rate += bits_per_pixel;
  }
};

// Sides of the blocks of a picture, in pixels.
struct Blocks {
  int64_t height;
  int64_t width;
};

constexpr double kBitsOfBlock = 16;  // 5, 6 and 5 for the means of red, green and blue

// Returns the blocks, about square, whose means take `rate` bits per pixel.
Blocks BlocksOf(double rate) {
  const auto area = static_cast<uint64_t>(kBitsOfBlock / rate);
  const int64_t height = int64_t{1} << (std::bit_width(area) - 1) / 2;
  return {height, static_cast<int64_t>(area) / height};
}

// Returns [N, 3, H, W] from the coded means of its blocks: interpolated between the blocks'
// middles, or constant within them.
at::Tensor ByMeans(const at::Tensor& picture, const Blocks& blocks, bool interpolated) {
  const std::vector<int64_t> sides = {blocks.height, blocks.width};
  const at::Tensor means = AveragePool2d(picture, {.kernel = sides, .stride = sides});
  const std::vector<float> most = {31, 63, 31};
  const at::Tensor levels = FromValues(most, {1, kCodecColours, 1, 1}).to(picture.device());
  const at::Tensor coded = (means * levels).round() / levels;
  if (interpolated) return Resize(coded, picture.size(2), picture.size(3));
  return coded.repeat_interleave(blocks.height, 2).repeat_interleave(blocks.width, 3);
}

// Common parts of both scales.
class ImageCompression : public Task {
 public:
  ImageCompression(const TaskOptions& options, const CodecShape& shape, int64_t part,
                   Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        shuffled_(options.shuffled_labels),
        part_(part),
        codec_(root(), shape) {}

  // Returns the mean absolute difference, over iterations, pixels and colours.
  Result<at::Tensor> Loss(const Batch& batch) override {
    ETUDE_ASSIGN_OR_RETURN(at::Tensor crops, Learned(batch.samples));
    if (shuffled_) crops = PlacesShuffled(crops);
    crops = There(crops);
    at::Tensor sum;
    for (const at::Tensor& coded : codec_(crops)) {
      const at::Tensor difference = (crops - coded).abs().mean();
      sum = sum.defined() ? sum + difference : difference;
    }
    return sum / static_cast<double>(codec_.shape().iterations);
  }

  Result<double> Evaluate() override {
    ETUDE_ASSIGN_OR_RETURN(const Quality quality, QualityOfCodec());
    return quality.similarity / static_cast<double>(held_out());
  }

  // A colour per cell, which takes a part of the codec's bits.
  Result<double> Baseline() override {
    return SimilarityOfMeans({ResidualCodec::kCell, ResidualCodec::kCell});
  }

  Result<std::vector<Figure>> Figures() override {
    const auto count = static_cast<double>(held_out());
    ETUDE_ASSIGN_OR_RETURN(const Quality own, QualityOfCodec());
    std::vector<Figure> figures = {{"bits per pixel", own.rate / count},
                                   {"PSNR", own.noise / count}};
    ETUDE_ASSIGN_OR_RETURN(const double means, SimilarityOfMeans(BlocksOf(codec_.shape().rate())));
    figures.push_back({"MS-SSIM of block means", means});
    ETUDE_ASSIGN_OR_RETURN(const std::optional<Quality> jpeg, QualityOfJpeg());
    if (jpeg) {
      figures.push_back({"bits per pixel of JPEG", jpeg->rate / count});
      figures.push_back({"MS-SSIM of JPEG", jpeg->similarity / count});
      figures.push_back({"PSNR of JPEG", jpeg->noise / count});
    }
    return figures;
  }

 private:
  // Returns crops to learn from, [N, 3, kCrop, kCrop], drawn by PyTorch's generator.
  virtual Result<at::Tensor> Learned(std::span<const int64_t> samples) = 0;
  virtual int64_t held_out() const = 0;
  // Returns a picture held out, [3, H, W]; sides are multiples of `part`.
  virtual Result<at::Tensor> HeldOut(int64_t number) = 0;

  // Moves the pixels of each crop to random places.
  static at::Tensor PlacesShuffled(const at::Tensor& crops) {
    const at::Tensor order = Uniform({crops.size(0), 1, kCrop * kCrop}, 0, 1).argsort(int64_t{2});
    return crops.flatten(2).gather(2, order.expand({-1, kCodecColours, -1})).view(crops.sizes());
  }

  // Returns the copy of [1, 3, H, W] after all iterations. Squares of `part_` pixels are coded by
  // themselves, or the whole picture if it is 0.
  at::Tensor Coded(const at::Tensor& picture) const {
    if (part_ == 0) return AsBytes(codec_(picture).back());
    const int64_t rows = picture.size(2) / part_;
    const int64_t columns = picture.size(3) / part_;
    const at::Tensor parts = picture.view({kCodecColours, rows, part_, columns, part_})
                                 .permute({1, 3, 0, 2, 4})
                                 .reshape({rows * columns, kCodecColours, part_, part_});
    return AsBytes(codec_(parts).back())
        .view({rows, columns, kCodecColours, part_, part_})
        .permute({2, 0, 3, 1, 4})
        .reshape(picture.sizes());
  }

  Result<Quality> QualityOfCodec() {
    Quality quality;
    for (int64_t i = 0; i < held_out(); ++i) {
      ETUDE_ASSIGN_OR_RETURN(at::Tensor picture, HeldOut(i));
      picture = There(picture).contiguous().unsqueeze(0);
      quality.Add(picture, Coded(picture), codec_.shape().rate());
    }
    return quality;
  }

  // Returns the mean MS-SSIM of block means: of the better one of both kinds.
  Result<double> SimilarityOfMeans(const Blocks& blocks) {
    std::array<double, 2> sums{};
    for (int64_t i = 0; i < held_out(); ++i) {
      ETUDE_ASSIGN_OR_RETURN(at::Tensor picture, HeldOut(i));
      picture = There(picture).unsqueeze(0);
      for (size_t kind = 0; kind < sums.size(); ++kind) {
        const at::Tensor copy = ByMeans(picture, blocks, /*interpolated=*/kind == 1);
        sums[kind] += MultiScaleSsim(picture, copy).item<double>();
      }
    }
    return std::ranges::max(sums) / static_cast<double>(held_out());
  }

  // Returns the quality of JPEG with at most the codec's size, or with quality 1 if that is larger;
  // nullopt without libturbojpeg.
  Result<std::optional<Quality>> QualityOfJpeg() {
    Quality quality;
    for (int64_t i = 0; i < held_out(); ++i) {
      ETUDE_ASSIGN_OR_RETURN(const at::Tensor picture, HeldOut(i));
      const auto pixels = static_cast<double>(picture.size(1) * picture.size(2));
      const auto rate = [&](const JpegCopy& copy) {
        return 8 * static_cast<double>(copy.bytes) / pixels;
      };
      std::optional<JpegCopy> best;
      for (int setting = 1; setting <= 100; ++setting) {
        Result<JpegCopy> copy = CopyByJpeg(picture, setting);
        if (!copy && copy.error().code == ErrorCode::kUnavailable) return std::nullopt;
        if (!copy) return tl::unexpected(std::move(copy).error());
        if (best && rate(*copy) > codec_.shape().rate()) break;
        best = *std::move(copy);
      }
      quality.Add(picture.unsqueeze(0), best->picture.unsqueeze(0), rate(*best));
    }
    return quality;
  }

  bool shuffled_;
  int64_t part_;
  ResidualCodec codec_;
};

// Smoke scale: photographs. A sample is a crop near a place of a grid.
constexpr CodecShape kSmokeCodec{.iterations = 2,
                                 .encoder = {8, 16, 32, 32},
                                 .decoder = {32, 32, 16, 16},
                                 .start = CodecShape::Start::kScaled,
                                 .has_shortcuts = true};

class PhotographCompression : public ImageCompression {
 public:
  PhotographCompression(const TaskOptions& options, const Photographs& photographs,
                        Hyperparameters hyperparameters)
      : ImageCompression(options, kSmokeCodec, kCrop, std::move(hyperparameters)),
        learned_(photographs.train) {
    for (const at::Tensor& photograph : photographs.test) {
      held_out_.push_back(MiddlePart(photograph, kHeldOutSide));
    }
    for (size_t picture = 0; picture < learned_.size(); ++picture) {
      for (int64_t top = 0; top + kCrop <= learned_[picture].size(1); top += kCrop) {
        for (int64_t left = 0; left + kCrop <= learned_[picture].size(2); left += kCrop) {
          places_.push_back({picture, top, left});
        }
      }
    }
  }

  int64_t samples() const override { return std::ssize(places_); }

 private:
  struct Place {
    size_t picture;
    int64_t top;
    int64_t left;
  };

  // Moves crops by up to their side and mirrors them, at random.
  Result<at::Tensor> Learned(std::span<const int64_t> samples) override {
    enum Draw : uint8_t { kDown, kRight, kMirrored, kDraws };
    const at::Tensor draws = Uniform({std::ssize(samples), kDraws}, 0, 1);
    const auto* draw = draws.const_data_ptr<float>();
    std::vector<at::Tensor> crops;
    for (const int64_t sample : samples) {
      const Place& place = places_[static_cast<size_t>(sample)];
      const at::Tensor& picture = learned_[place.picture];
      const auto moved = [&](int64_t begin, Draw by, int64_t size) {
        return std::min(begin + static_cast<int64_t>(draw[by] * kCrop), size - kCrop);
      };
      const at::Tensor crop = picture.narrow(1, moved(place.top, kDown, picture.size(1)), kCrop)
                                  .narrow(2, moved(place.left, kRight, picture.size(2)), kCrop);
      crops.push_back(draw[kMirrored] < 0.5F ? crop.flip({2}) : crop);
      draw += kDraws;
    }
    return Stack(crops, 0);
  }
  int64_t held_out() const override { return std::ssize(held_out_); }
  Result<at::Tensor> HeldOut(int64_t number) override {
    return held_out_[static_cast<size_t>(number)];
  }

  std::vector<at::Tensor> learned_;
  std::vector<at::Tensor> held_out_;
  std::vector<Place> places_;
};

// Paper scale: JPEG files.
constexpr int64_t kMostPicturesHeldOut = 100;

class FileCompression : public ImageCompression {
 public:
  FileCompression(const TaskOptions& options, std::vector<std::string> learned,
                  std::vector<std::string> held_out, Hyperparameters hyperparameters)
      : ImageCompression(options, CodecShape{}, /*part=*/0, std::move(hyperparameters)),
        context_(options.context),
        learned_(std::move(learned)),
        held_out_(std::move(held_out)) {}

  int64_t samples() const override { return std::ssize(learned_); }

 private:
  Result<at::Tensor> Learned(std::span<const int64_t> samples) override {
    const at::Tensor draws = Uniform({std::ssize(samples), 2}, 0, 1);
    const auto* draw = draws.const_data_ptr<float>();
    std::vector<at::Tensor> crops;
    for (const int64_t sample : samples) {
      ETUDE_ASSIGN_OR_RETURN(const at::Tensor picture,
                             ReadJpeg(learned_[static_cast<size_t>(sample)], context_));
      const int64_t side = std::min({kCrop, picture.size(1), picture.size(2)});
      const auto place = [&](int64_t size) {
        const int64_t last = size - side;
        return std::min(static_cast<int64_t>(*draw++ * static_cast<float>(last + 1)), last);
      };
      const int64_t top = place(picture.size(1));
      const int64_t left = place(picture.size(2));
      crops.push_back(CropTo(picture, top, left, side, side, kCrop));
    }
    return Stack(crops, 0);
  }

  // Pictures held out are taken at equal distances in their list.
  int64_t held_out() const override {
    return std::min(kMostPicturesHeldOut, std::ssize(held_out_));
  }
  Result<at::Tensor> HeldOut(int64_t number) override {
    const auto at = static_cast<size_t>(number * std::ssize(held_out_) / held_out());
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor picture, ReadJpeg(held_out_[at], context_));
    const int64_t shorter = std::min(picture.size(1), picture.size(2));
    const int64_t side =
        std::min(shorter / ResidualCodec::kCell * ResidualCodec::kCell, kHeldOutSide);
    if (side >= kSmallestSsimSide) return MiddlePart(picture, side);
    const at::Tensor square = MiddlePart(picture, shorter);
    return CropTo(square, 0, 0, shorter, shorter, kSmallestSsimSide);
  }

  RunContext context_;
  std::vector<std::string> learned_;
  std::vector<std::string> held_out_;
};

// Returns the pictures in a folder, or in its folders as in ImageNet's layout.
Result<std::vector<std::string>> FilesIn(const std::string& folder) {
  Result<std::vector<std::string>> files = PicturesIn(folder);
  if (files || files.error().code != ErrorCode::kBadInput) return files;
  ETUDE_ASSIGN_OR_RETURN(const ImageFolder classes, ImageFolder::Open(folder));
  std::vector<std::string> paths;
  for (int64_t i = 0; i < classes.size(); ++i) paths.push_back(classes.PathOf(i));
  return paths;
}

}  // namespace

Result<std::unique_ptr<Task>> MakeImageCompression(const TaskOptions& options) {
  const auto adam = [](double rate) {
    return OptimizerOptions{.kind = OptimizerOptions::Kind::kAdam, .rate = rate};
  };
  if (options.scale == Scale::kSmoke) {
    ETUDE_ASSIGN_OR_RETURN(const Photographs photographs,
                           ReadPhotographs(options.data, kCrop, kHeldOutSide, options.context));
    Hyperparameters hyperparameters{.batch = 16,
                                    .optimizers = {adam(5e-3)},
                                    .schedule = {.cosine = true},
                                    .evaluate_every = 10,
                                    .most_steps = 1000};
    return std::make_unique<PhotographCompression>(options, photographs,
                                                   std::move(hyperparameters));
  }
  ETUDE_ASSIGN_OR_RETURN(std::vector<std::string> learned,
                         FilesIn(options.data + "/imagenet/train"));
  ETUDE_ASSIGN_OR_RETURN(std::vector<std::string> held_out,
                         FilesIn(options.data + "/imagenet/val"));
  const int64_t batch = std::min<int64_t>(32, std::ssize(learned));
  const int64_t epoch = std::ssize(learned) / batch;
  Hyperparameters hyperparameters{.batch = batch,
                                  .optimizers = {adam(5e-4)},
                                  .evaluate_every = std::max<int64_t>(1, epoch / 4),
                                  .most_steps = 20 * epoch};
  return std::make_unique<FileCompression>(options, std::move(learned), std::move(held_out),
                                           std::move(hyperparameters));
}

}  // namespace etude::suite
