#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/suite/nn/detection/boxes.h"

namespace etude::suite {

// Returns the average precision of VOC 2007 (Everingham, IJCV 2010, section 4.2) for a class: the
// mean, over the recalls 0, 0.1, …, 1, of the maximum precision at that recall or above. `right`:
// whether each detection, best score first, is an object that no earlier detection matched.
double ElevenPointPrecision(const std::vector<bool>& right, int64_t objects);

// Returns the mean over the classes with objects. A detection is right if it overlaps an object of
// its class on its picture by more than `least_overlap`. Difficult objects do not count. 0 if no
// class has objects. `found` is by picture, like `truth`; labels are from 0 to `classes` - 1.
double MeanAveragePrecision(std::span<const Annotation> truth,
                            std::span<const std::vector<Detection>> found, int64_t classes,
                            float least_overlap = 0.5F);

}  // namespace etude::suite
