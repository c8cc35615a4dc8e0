#include "src/suite/tasks/face_embedding.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/container/hash.h"
#include "src/base/random_stream.h"
#include "src/suite/data/digits.h"
#include "src/suite/data/faces/labelled_faces.h"
#include "src/suite/data/image_folder.h"
#include "src/suite/data/jpeg.h"
#include "src/suite/nn/functional.h"
#include "src/suite/nn/layers.h"
#include "src/suite/nn/resnet.h"
#include "src/suite/nn/triplets.h"
#include "src/suite/nn/verification.h"

namespace etude::suite {
namespace {

constexpr int64_t kOfEachPerson = 4;  // pictures per person in a batch
constexpr double kMargin = 0.2;       // FaceNet's
constexpr int64_t kFacesAtOnce = 100;
constexpr int64_t kBaselineSide = 32;  // pixels per row that the baseline compares

// Returns rows scaled to length 1.
at::Tensor UnitRows(const at::Tensor& rows) {
  return rows / rows.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-12);
}

// The people on pictures. Samples are the pictures of people who have several.
class PeopleOnPictures {
 public:
  explicit PeopleOnPictures(std::span<const int64_t> people)
      : people_(people.begin(), people.end()) {
    for (size_t i = 0; i < people_.size(); ++i) {
      pictures_[people_[i]].push_back(static_cast<int64_t>(i));
    }
    for (size_t i = 0; i < people_.size(); ++i) {
      if (pictures_[people_[i]].size() > 1) samples_.push_back(static_cast<int64_t>(i));
    }
  }

  int64_t samples() const { return std::ssize(samples_); }
  int64_t PersonOn(int64_t picture) const { return people_[static_cast<size_t>(picture)]; }

  // Returns the pictures of `samples`, each followed by `count` others of the same person, drawn
  // without repetition by PyTorch's generator. Returns fewer if there are no more.
  std::vector<int64_t> WithOthers(std::span<const int64_t> samples, int64_t count) const {
    const at::Tensor draws = Uniform({std::ssize(samples), count}, 0, 1);
    const auto* draw = draws.const_data_ptr<float>();
    std::vector<int64_t> chosen;
    for (const int64_t sample : samples) {
      const int64_t picture = samples_[static_cast<size_t>(sample)];
      chosen.push_back(picture);
      std::vector<int64_t> others = pictures_.at(PersonOn(picture));
      std::erase(others, picture);
      for (int64_t i = 0; i < count; ++i, ++draw) {
        const int64_t left = std::ssize(others) - i;
        if (left <= 0) continue;
        const auto place = static_cast<int64_t>(*draw * static_cast<float>(left));
        std::swap(others[static_cast<size_t>(i)],
                  others[static_cast<size_t>(i + std::min(place, left - 1))]);
        chosen.push_back(others[static_cast<size_t>(i)]);
      }
    }
    return chosen;
  }

 private:
  std::vector<int64_t> people_;                       // by picture
  std::map<int64_t, std::vector<int64_t>> pictures_;  // by person
  std::vector<int64_t> samples_;                      // pictures
};

// The common part of both scales: batches, loss and quality.
class FaceEmbedding : public Task {
 public:
  FaceEmbedding(const TaskOptions& options, PeopleOnPictures people, Verification verification,
                Hyperparameters hyperparameters)
      : Task(options.device, std::move(hyperparameters)),
        people_(std::move(people)),
        verification_(std::move(verification)) {
    std::vector<int64_t> first;
    std::vector<int64_t> second;
    for (const PicturePair& pair : verification_.pairs) {
      first.push_back(pair.first);
      second.push_back(pair.second);
    }
    first_ = FromValues(first, {std::ssize(first)});
    second_ = FromValues(second, {std::ssize(second)});
  }

  int64_t samples() const override { return people_.samples(); }

  // Each sample adds other pictures of the same person.
  Result<at::Tensor> Loss(const Batch& batch) override {
    const std::vector<int64_t> pictures = people_.WithOthers(batch.samples, kOfEachPerson - 1);
    std::vector<int64_t> people;
    for (const int64_t picture : pictures) people.push_back(people_.PersonOn(picture));
    ETUDE_ASSIGN_OR_RETURN(const at::Tensor images, Learned(pictures));
    return TripletLoss(Embedded(images), people, kMargin);
  }

  // A picture and its mirror image count as one.
  Result<double> Evaluate() override {
    return QualityOf([this](const at::Tensor& images) {
      return UnitRows(Embedded(images) + Embedded(images.flip({3}))).cpu();
    });
  }

  // Compares the pixels of small pictures by their cosine.
  Result<double> Baseline() override {
    return QualityOf([](const at::Tensor& images) {
      return UnitRows(Resize(images, kBaselineSide, kBaselineSide).flatten(1));
    });
  }

 protected:
 private:
  // Return images on the CPU, from 0 to 1: training pictures, changed at random, and test pictures,
  // by their numbers in the pairs.
  virtual Result<at::Tensor> Learned(std::span<const int64_t> pictures) = 0;
  virtual int64_t held_out() const = 0;
  virtual Result<at::Tensor> HeldOut(int64_t begin, int64_t end) = 0;
  // Returns the model's outputs for images, of any length.
  virtual at::Tensor Answers(const at::Tensor& images) = 0;

  at::Tensor Embedded(const at::Tensor& images) { return UnitRows(Answers(images).to(at::kFloat)); }

  Result<double> QualityOf(const std::function<at::Tensor(const at::Tensor& images)>& embed) {
    std::vector<at::Tensor> parts;
    for (int64_t begin = 0; begin < held_out(); begin += kFacesAtOnce) {
      ETUDE_ASSIGN_OR_RETURN(const at::Tensor images,
                             HeldOut(begin, std::min(held_out(), begin + kFacesAtOnce)));
      parts.push_back(embed(images));
    }
    const at::Tensor all = Cat(parts, 0);
    const at::Tensor scores =
        (all.index_select(0, first_) * all.index_select(0, second_)).sum(1).contiguous();
    return VerificationAccuracy(
        verification_, {scores.const_data_ptr<float>(), static_cast<size_t>(scores.numel())});
  }

  PeopleOnPictures people_;
  Verification verification_;
  at::Tensor first_;  // first pictures of the pairs, int64 on the CPU
  at::Tensor second_;
};

// Smoke scale: the Database of Faces.
constexpr int64_t kFaceSide = 32;
constexpr int64_t kFaceWidth = 16;  // channels of the first convolution
constexpr int64_t kFaceEmbedding = 64;

std::vector<int64_t> ValuesOf(const at::Tensor& labels) {
  const auto* begin = labels.const_data_ptr<int64_t>();
  return {begin, begin + labels.numel()};
}

class OrlFaceEmbedding : public FaceEmbedding {
 public:
  OrlFaceEmbedding(const TaskOptions& options, const LabelledImages& data,
                   Hyperparameters hyperparameters)
      : FaceEmbedding(options, PeopleOnPictures(ValuesOf(data.train_labels)),
                      LeaveTwoPeopleOut(ValuesOf(data.test_labels)), std::move(hyperparameters)),
        learned_(data.train_images),
        held_out_(data.test_images),
        answer_(root()["fc"], 4 * kFaceWidth * (kFaceSide / 8) * (kFaceSide / 8), kFaceEmbedding) {
    int64_t in = 1;
    for (const int64_t out : {kFaceWidth, 2 * kFaceWidth, 4 * kFaceWidth, 4 * kFaceWidth}) {
      const auto number = std::ssize(convolutions_);
      convolutions_.emplace_back(root()["conv"][number], in, out,
                                 Window{.kernel = {3}, .padding = {1}}, /*bias=*/false);
      norms_.emplace_back(root()["bn"][number], out);
      in = out;
    }
  }

 private:
  Result<at::Tensor> Learned(std::span<const int64_t> pictures) override {
    const at::Tensor index = FromValues(pictures, {std::ssize(pictures)});
    return Moved(learned_.index_select(0, index));
  }
  int64_t held_out() const override { return held_out_.size(0); }
  Result<at::Tensor> HeldOut(int64_t begin, int64_t end) override {
    return held_out_.slice(0, begin, end);
  }

  at::Tensor Answers(const at::Tensor& images) override {
    // Normalise by the picture itself, because light differs between pictures.
    const at::Tensor mean = images.mean({2, 3}, /*keepdim=*/true);
    const at::Tensor deviation = images.std({2, 3}, /*unbiased=*/true, /*keepdim=*/true);
    at::Tensor x = There((images - mean) / (deviation + 1e-6));
    for (size_t i = 0; i < convolutions_.size(); ++i) {
      x = norms_[i](convolutions_[i](x)).relu();
      if (i + 1 < convolutions_.size()) x = MaxPool2d(x, {.kernel = {2}, .stride = {2}});
    }
    return answer_(x.flatten(1));
  }

  // Each one is mirrored or not, rotated by up to 9°, scaled by up to a tenth
  // and moved by up to a twentieth of the side.
  static at::Tensor Moved(const at::Tensor& images) {
    const int64_t count = images.size(0);
    const at::Tensor mirror = Uniform({count}, 0, 1).lt(0.5).to(at::kFloat) * -2 + 1;
    const at::Tensor angle = Uniform({count}, -0.15, 0.15);
    const at::Tensor scale = Uniform({count}, 0.9, 1.1);
    const at::Tensor shift = Uniform({count, 2}, -0.1, 0.1);
    const at::Tensor cosine = angle.cos() * scale;
    const at::Tensor sine = angle.sin() * scale;
    const at::Tensor maps = Stack({Stack({mirror * cosine, -sine, shift.select(1, 0)}, 1),
                                   Stack({mirror * sine, cosine, shift.select(1, 1)}, 1)},
                                  1);
    return GridSample(images, AffineGrid(maps, kFaceSide, kFaceSide), /*border=*/true);
  }

  at::Tensor learned_;
  at::Tensor held_out_;
  std::vector<Conv2d> convolutions_;
  std::vector<BatchNorm> norms_;
  Linear answer_;
};

// Paper scale: folders of pictures.
constexpr int64_t kFolderFaceSide = 224;
constexpr int64_t kPictureEmbedding = 128;

// Training pictures, test pictures, and the test pictures that are in pairs.
struct FaceFolders {
  ImageFolder train;
  ImageFolder test;
  std::vector<int64_t> held_out;  // of `test`
  Verification verification;      // pairs contain indices in `held_out`
};

class PictureEmbedding : public FaceEmbedding {
 public:
  PictureEmbedding(const TaskOptions& options, FaceFolders folders, PeopleOnPictures people,
                   Hyperparameters hyperparameters)
      : FaceEmbedding(options, std::move(people), std::move(folders.verification),
                      std::move(hyperparameters)),
        context_(options.context),
        train_(std::move(folders.train)),
        test_(std::move(folders.test)),
        held_out_(std::move(folders.held_out)),
        trunk_(root(), {.blocks = {3, 4, 6, 3}}),
        answer_(root()["fc"], trunk_.out(), kPictureEmbedding) {}

 private:
  Result<at::Tensor> Learned(std::span<const int64_t> pictures) override {
    std::vector<at::Tensor> images;
    const at::Tensor draws = Uniform({std::ssize(pictures)}, 0, 1);
    const auto* draw = draws.const_data_ptr<float>();
    for (const int64_t picture : pictures) {
      ETUDE_ASSIGN_OR_RETURN(const at::Tensor image,
                             train_.Middle(picture, kFolderFaceSide, context_));
      images.push_back(*draw++ < 0.5F ? image.flip({2}) : image);
    }
    return Stack(images, 0);
  }
  int64_t held_out() const override { return std::ssize(held_out_); }
  Result<at::Tensor> HeldOut(int64_t begin, int64_t end) override {
    std::vector<at::Tensor> images;
    for (int64_t i = begin; i < end; ++i) {
      ETUDE_ASSIGN_OR_RETURN(images.emplace_back(), test_.Middle(held_out_[static_cast<size_t>(i)],
                                                                 kFolderFaceSide, context_));
    }
    return Stack(images, 0);
  }

  at::Tensor Answers(const at::Tensor& images) override {
    return answer_(GlobalAveragePool(trunk_(There(ImageNetNormalised(images)))));
  }

  RunContext context_;
  ImageFolder train_;
  ImageFolder test_;
  std::vector<int64_t> held_out_;
  ResNet trunk_;
  Linear answer_;
};

Result<FaceFolders> ReadFaceFolders(const TaskOptions& options) {
  const std::string test_folder = options.data + "/lfw";
  ETUDE_ASSIGN_OR_RETURN(ImageFolder train, ImageFolder::Open(options.data + "/vggface2/train"));
  ETUDE_ASSIGN_OR_RETURN(ImageFolder test, ImageFolder::Open(test_folder));
  ETUDE_ASSIGN_OR_RETURN(FacePairs asked,
                         ReadLfwPairs(test_folder + "/pairs.txt", test, options.context));
  std::vector<int64_t> held_out;
  for (const PicturePair& pair : asked.pairs) {
    held_out.push_back(pair.first);
    held_out.push_back(pair.second);
  }
  std::ranges::sort(held_out);
  held_out.erase(std::ranges::unique(held_out).begin(), held_out.end());
  for (PicturePair& pair : asked.pairs) {
    for (int64_t* picture : {&pair.first, &pair.second}) {
      *picture = std::ranges::lower_bound(held_out, *picture) - held_out.begin();
    }
  }
  return FaceFolders{.train = std::move(train),
                     .test = std::move(test),
                     .held_out = std::move(held_out),
                     .verification = LeaveSetOut(std::move(asked.pairs), asked.set_size)};
}

Result<std::unique_ptr<Task>> MakePictureEmbedding(const TaskOptions& options) {
  ETUDE_ASSIGN_OR_RETURN(FaceFolders folders, ReadFaceFolders(options));
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < folders.train.size(); ++i) {
    RandomStream random(HashMix(options.seed, static_cast<uint64_t>(i)));
    labels.push_back(options.shuffled_labels ? static_cast<int64_t>(random.Below(
                                                   static_cast<uint64_t>(folders.train.classes())))
                                             : folders.train.LabelOf(i));
  }
  PeopleOnPictures people(labels);
  if (people.samples() == 0) {
    return BadInput(options.data +
                    "/vggface2/train: nobody has two pictures, expected a folder for each person");
  }
  const int64_t batch = std::min<int64_t>(64, people.samples());
  const int64_t epoch = people.samples() / batch;
  Hyperparameters hyperparameters{
      .batch = batch,
      .optimizers = {{.rate = 0.05, .momentum = 0.9, .weight_decay = 1e-4}},
      .schedule = {.warmup_steps = 1000, .cosine = true},
      .evaluate_every = std::max<int64_t>(epoch / 4, 1),
      .most_steps = 10 * epoch};
  return std::make_unique<PictureEmbedding>(options, std::move(folders), std::move(people),
                                            std::move(hyperparameters));
}

}  // namespace

Result<std::unique_ptr<Task>> MakeFaceEmbedding(const TaskOptions& options) {
  if (options.scale == Scale::kPaper) return MakePictureEmbedding(options);
  ETUDE_ASSIGN_OR_RETURN(LabelledImages data,
                         ReadOrlFaces(options.data, kFaceSide, options.context));
  if (options.shuffled_labels) data.train_labels = Shuffled(data.train_labels, options.seed);
  Hyperparameters hyperparameters{
      .batch = 16,
      .optimizers = {{.kind = OptimizerOptions::Kind::kAdam, .rate = 1e-4}},
      .evaluate_every = 2,
      .most_steps = 400};
  return std::make_unique<OrlFaceEmbedding>(options, data, std::move(hyperparameters));
}

}  // namespace etude::suite
