#include "src/suite/data/image_folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "src/base/text/ascii.h"
#include "src/base/text/folder_names.h"
#include "src/suite/data/jpeg.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

namespace fs = std::filesystem;

constexpr double kLeastArea = 0.08;
constexpr double kMostStretch = 4.0 / 3;
constexpr int kTries = 10;
constexpr double kMiddleShare = 0.875;

bool IsPicture(const fs::path& path) {
  const std::string end = path.extension().string();
  return EndsWithNoCase(end, ".jpeg") || EndsWithNoCase(end, ".jpg");
}

double Draw(double low, double high) { return Uniform({1}, low, high).item<double>(); }

}  // namespace

at::Tensor RandomPartOf(const at::Tensor& picture, int64_t side) {
  const int64_t height = picture.size(1);
  const int64_t width = picture.size(2);
  std::array<int64_t, 2> part = {height, width};
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const double area = Draw(kLeastArea, 1) * static_cast<double>(height * width);
    const double stretch = std::exp(Draw(-std::log(kMostStretch), std::log(kMostStretch)));
    const std::array<int64_t, 2> tried = {std::llround(std::sqrt(area / stretch)),
                                          std::llround(std::sqrt(area * stretch))};
    if (tried[0] < 1 || tried[1] < 1 || tried[0] > height || tried[1] > width) continue;
    part = tried;
    break;
  }
  const auto top = static_cast<int64_t>(Draw(0, static_cast<double>(height - part[0] + 1)));
  const auto left = static_cast<int64_t>(Draw(0, static_cast<double>(width - part[1] + 1)));
  const at::Tensor cut = CropTo(picture, std::min(top, height - part[0]),
                                std::min(left, width - part[1]), part[0], part[1], side);
  return Draw(0, 1) < 0.5 ? cut.flip({2}) : cut;
}

at::Tensor MiddleOf(const at::Tensor& picture, int64_t side) {
  const int64_t shorter = std::min(picture.size(1), picture.size(2));
  const int64_t part =
      std::max<int64_t>(1, std::llround(kMiddleShare * static_cast<double>(shorter)));
  return CropTo(picture, (picture.size(1) - part) / 2, (picture.size(2) - part) / 2, part, part,
                side);
}

Result<std::vector<std::string>> PicturesIn(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return Unavailable(folder + ": missing");
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    if (IsPicture(name)) paths.push_back(folder + "/" + name);
  }
  if (paths.empty()) return BadInput(folder + ": found no images, expected .jpg files");
  return paths;
}

Result<ImageFolder> ImageFolder::Open(const std::string& folder) {
  ImageFolder pictures;
  pictures.folder_ = folder;
  std::error_code error;
  if (!fs::exists(folder, error)) return Unavailable(folder + ": missing");
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  for (const std::string& name : names) {
    if (fs::is_directory(folder + "/" + name, error)) pictures.classes_.push_back(name);
  }
  for (size_t label = 0; label < pictures.classes_.size(); ++label) {
    const std::string place = folder + "/" + pictures.classes_[label];
    ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> files, NamesIn(place));
    for (const std::string& name : files) {
      if (IsPicture(name)) {
        pictures.files_.push_back({place + "/" + name, static_cast<int64_t>(label)});
      }
    }
  }
  std::ranges::sort(pictures.files_, {}, &File::path);
  if (pictures.files_.empty()) {
    return BadInput(folder + ": found no images, expected one folder per class with .JPEG files");
  }
  return pictures;
}

std::optional<int64_t> ImageFolder::Find(const std::string& name) const {
  const std::string path = folder_ + "/" + name;
  const auto found = std::ranges::lower_bound(files_, path, {}, &File::path);
  if (found == files_.end() || found->path != path) return std::nullopt;
  return found - files_.begin();
}

Result<at::Tensor> ImageFolder::RandomPart(int64_t number, int64_t side,
                                           const RunContext& context) const {
  ETUDE_ASSIGN_OR_RETURN(const at::Tensor picture, ReadJpeg(PathOf(number), context));
  return RandomPartOf(picture, side);
}

Result<at::Tensor> ImageFolder::Middle(int64_t number, int64_t side,
                                       const RunContext& context) const {
  ETUDE_ASSIGN_OR_RETURN(const at::Tensor picture, ReadJpeg(PathOf(number), context));
  return MiddleOf(picture, side);
}

}  // namespace etude::suite
