#include "src/suite/data/digits.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "src/base/random_stream.h"
#include "src/suite/data/idx.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr int64_t kDigits = 10;
constexpr int64_t kHeldOutEvery = 5;

}  // namespace

Result<ImagesAndLabels> ReadImages(const std::string& images_path, const std::string& labels_path,
                                   int64_t classes, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const IdxArray images, ReadIdx(images_path, context));
  ETUDE_ASSIGN_OR_RETURN(const IdxArray labels, ReadIdx(labels_path, context));
  if (images.sizes.size() != 3 || labels.sizes.size() != 1 || images.sizes[0] != labels.sizes[0]) {
    return BadInput(
        fmt::format("{}: found a number of images that differs from the number of labels in {}",
                    images_path, labels_path));
  }
  std::vector<float> pixels(images.bytes.size());
  std::ranges::transform(images.bytes, pixels.begin(), [](char byte) {
    return static_cast<float>(static_cast<uint8_t>(byte)) / 255.0F;
  });
  std::vector<int64_t> numbers(labels.bytes.begin(), labels.bytes.end());
  for (const int64_t one : numbers) {
    if (one >= 0 && one < classes) continue;
    return BadInput(
        fmt::format("{}: found label {}, expected 0 to {}", labels_path, one, classes - 1));
  }
  return ImagesAndLabels{FromValues(pixels, {images.sizes[0], 1, images.sizes[1], images.sizes[2]}),
                         FromValues(numbers, {labels.sizes[0]})};
}

LabelledImages Split(const ImagesAndLabels& all, const at::Tensor& is_held_out, int64_t classes) {
  const at::Tensor held_out = is_held_out.nonzero().squeeze(1);
  const at::Tensor learned = is_held_out.logical_not().nonzero().squeeze(1);
  return {all.images.index_select(0, learned), all.labels.index_select(0, learned),
          all.images.index_select(0, held_out), all.labels.index_select(0, held_out), classes};
}

Result<LabelledImages> ReadMnist(const std::string& folder, const RunContext& context) {
  const std::string base = folder + "/mnist/";
  ETUDE_ASSIGN_OR_RETURN(ImagesAndLabels train,
                         ReadImages(base + "train-images-idx3-ubyte",
                                    base + "train-labels-idx1-ubyte", kDigits, context));
  ETUDE_ASSIGN_OR_RETURN(ImagesAndLabels test,
                         ReadImages(base + "t10k-images-idx3-ubyte",
                                    base + "t10k-labels-idx1-ubyte", kDigits, context));
  return LabelledImages{train.images, train.labels, test.images, test.labels, kDigits};
}

Result<LabelledImages> ReadMnist5k(const std::string& folder, const RunContext& context) {
  const std::string base = folder + "/mnist-5k/";
  std::error_code error;
  if (!std::filesystem::exists(base, error)) {
    return Unavailable(base + ": missing; `etude suite setup` makes it");
  }
  ETUDE_ASSIGN_OR_RETURN(
      const ImagesAndLabels all,
      ReadImages(base + "images-idx3-ubyte", base + "labels-idx1-ubyte", kDigits, context));
  return Split(all, Arange(all.labels.size(0)).remainder(kHeldOutEvery).eq(0), kDigits);
}

at::Tensor Shuffled(const at::Tensor& labels, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(labels.size(0)));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  RandomStream random(seed);
  Shuffle(std::span(order), random);
  return labels.index_select(0, FromValues(std::span<const int64_t>(order), {labels.size(0)}));
}

std::vector<int64_t> LabelOrder(int64_t samples, bool is_shuffled, uint64_t seed) {
  at::Tensor order = Arange(samples);
  if (is_shuffled) order = Shuffled(order, seed);
  const auto* first = order.const_data_ptr<int64_t>();
  return {first, first + samples};
}

double MajorityShare(const at::Tensor& labels) {
  return static_cast<double>(labels.bincount().max().item<int64_t>()) /
         static_cast<double>(labels.numel());
}

double TestAccuracy(const LabelledImages& data, int64_t at_once,
                    const std::function<at::Tensor(const at::Tensor& images)>& scores) {
  int64_t right = 0;
  const int64_t all = data.test_labels.size(0);
  for (int64_t begin = 0; begin < all; begin += at_once) {
    const int64_t end = std::min(all, begin + at_once);
    const at::Tensor answers = scores(data.test_images.slice(0, begin, end)).argmax(1).cpu();
    right += answers.eq(data.test_labels.slice(0, begin, end)).sum().item<int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(all);
}

}  // namespace etude::suite
