#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/suite/nn/boxes.h"

namespace etude::suite {

// How well the objects of a class were found, as VOC 2007 measures it (Everingham, IJCV 2010,
// section 4.2): the mean, over the recalls 0, 0.1, …, 1, of the best precision at that recall or a
// higher one. `right` says of each detection, best score first, whether it is an object that none
// before it was.
double ElevenPointPrecision(const std::vector<bool>& right, int64_t objects);

// Its mean over the classes that have objects: a detection is right where it overlaps an object of
// its class on its picture by more than `least_overlap`. Difficult objects do not count. 0 where no
// class has objects. `found` by picture, as `truth`; labels are from 0 to `classes` - 1.
double MeanAveragePrecision(std::span<const Annotation> truth,
                            std::span<const std::vector<Detection>> found, int64_t classes,
                            float least_overlap = 0.5F);

}  // namespace etude::suite
