#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/nn/detection/boxes.h"

namespace etude::suite {

// Pictures with boxes around objects, in the layout of PASCAL VOC (Everingham, IJCV 2010):
// JPEGImages/NAME.jpg, Annotations/NAME.xml, and the names of a part in ImageSets/Main/PART.txt.
// Corners in the files are pixel numbers from 1, inclusive.
struct VocPicture {
  std::string path;
  Annotation annotation;
};
struct VocPictures {
  std::vector<std::string> classes;  // ascending; labels are indices
  std::vector<VocPicture> train;     // trainval.txt
  std::vector<VocPicture> test;      // test.txt
};

// Reads all annotations, but no pictures. kUnavailable for a missing folder, kBadInput with the
// file's name for an invalid file.
Result<VocPictures> ReadVoc(const std::string& folder, const RunContext& context);

// Reads the picture, [3, H, W], from 0 to 1. kBadInput also if its size differs from the
// annotation.
Result<at::Tensor> ReadVocPicture(const VocPicture& picture, const RunContext& context);

}  // namespace etude::suite
