#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/nn/boxes.h"

namespace etude::suite {

// Pictures with boxes around objects, in the layout of PASCAL VOC (Everingham, IJCV 2010):
// JPEGImages/NAME.jpg, Annotations/NAME.xml, and in ImageSets/Main/PART.txt the names of a part.
// Corners in the files count pixels from 1, both ends included.
struct VocPicture {
  std::string path;
  Annotation annotation;
};
struct VocPictures {
  std::vector<std::string> classes;  // ascending; labels are their numbers
  std::vector<VocPicture> train;     // trainval.txt
  std::vector<VocPicture> test;      // test.txt
};

// Reads all annotations; the pictures are left for later. kUnavailable if there is no such folder,
// kBadInput, naming the file, if one is not as it should be.
Result<VocPictures> ReadVoc(const std::string& folder, const RunContext& context);

// The picture, [3, H, W], from 0 to 1. kBadInput also if it has not the size that was annotated.
Result<at::Tensor> ReadVocPicture(const VocPicture& picture, const RunContext& context);

}  // namespace etude::suite
