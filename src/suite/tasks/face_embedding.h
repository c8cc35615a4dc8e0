#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C7: face embedding by triplets (FaceNet: Schroff et al., 1503.03832). Paper scale: ResNet-50 with
// 128 numbers per face, trained on VGGFace2 and tested on the pairs of Labeled Faces in the Wild.
// Smoke scale: four convolutions and 64 numbers, on the Database of Faces, with ten of its 40
// people in the test set.
Result<std::unique_ptr<Task>> MakeFaceEmbedding(const TaskOptions& options);

}  // namespace etude::suite
