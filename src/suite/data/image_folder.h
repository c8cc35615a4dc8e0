#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"

namespace etude::suite {

// Pictures in one folder for each class, as ImageNet is usually unpacked:
// `folder`/n01440764/x.JPEG. Classes are numbered by name.
class ImageFolder {
 public:
  // Lists the files. kUnavailable if the folder is not there, kIo if it cannot be read, kBadInput
  // if there is no picture.
  static Result<ImageFolder> Open(const std::string& folder);

  int64_t size() const { return static_cast<int64_t>(files_.size()); }
  int64_t classes() const { return static_cast<int64_t>(classes_.size()); }
  // Folders' names, by label.
  const std::vector<std::string>& class_names() const { return classes_; }
  int64_t LabelOf(int64_t number) const { return files_[static_cast<size_t>(number)].label; }
  void set_label(int64_t number, int64_t label) {
    files_[static_cast<size_t>(number)].label = label;
  }

  // A random part of 8 to 100 % of the picture, of about its proportions, made `side` × `side`,
  // mirrored or not (Szegedy, 1409.4842, section 6): [3, side, side].
  Result<at::Tensor> RandomPart(int64_t number, int64_t side, const RunContext& context) const;
  // The middle seven eighths of the shorter side, as a square.
  Result<at::Tensor> Middle(int64_t number, int64_t side, const RunContext& context) const;

 private:
  struct File {
    std::string path;
    int64_t label;
  };
  std::vector<File> files_;
  std::vector<std::string> classes_;
};

}  // namespace etude::suite
