#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// Returns a random crop of 8 to 100 % of `picture` [C, H, W] with about its proportions, resized to
// `side` × `side` and randomly mirrored (Szegedy, 1409.4842, section 6): [C, side, side].
at::Tensor RandomPartOf(const at::Tensor& picture, int64_t side);
// Returns the central square of `picture`, seven eighths of the shorter side: [C, side, side].
at::Tensor MiddleOf(const at::Tensor& picture, int64_t side);

// Returns the paths of the JPEG files in `folder`, sorted. kUnavailable for a missing folder, kIo
// for an unreadable one, kBadInput if it contains none.
Result<std::vector<std::string>> PicturesIn(const std::string& folder);

// Pictures in one folder per class, the usual layout of ImageNet: `folder`/n01440764/x.JPEG.
// Classes are numbered by name.
class ImageFolder {
 public:
  // Lists the files. kUnavailable for a missing folder, kIo for an unreadable one, kBadInput if it
  // contains no picture.
  static Result<ImageFolder> Open(const std::string& folder);

  int64_t size() const { return static_cast<int64_t>(files_.size()); }
  int64_t classes() const { return static_cast<int64_t>(classes_.size()); }
  // Returns the folder names, by label.
  const std::vector<std::string>& class_names() const { return classes_; }
  // Returns the picture FOLDER/NAME; nullopt if there is none.
  std::optional<int64_t> Find(const std::string& name) const;
  int64_t LabelOf(int64_t number) const { return files_[static_cast<size_t>(number)].label; }
  void set_label(int64_t number, int64_t label) {
    files_[static_cast<size_t>(number)].label = label;
  }

  const std::string& PathOf(int64_t number) const {
    return files_[static_cast<size_t>(number)].path;
  }

  // Return the parts above of picture `number`: [3, side, side].
  Result<at::Tensor> RandomPart(int64_t number, int64_t side, const RunContext& context) const;
  Result<at::Tensor> Middle(int64_t number, int64_t side, const RunContext& context) const;

 private:
  struct File {
    std::string path;
    int64_t label;
  };
  std::string folder_;
  std::vector<File> files_;  // ordered by path
  std::vector<std::string> classes_;
};

}  // namespace etude::suite
