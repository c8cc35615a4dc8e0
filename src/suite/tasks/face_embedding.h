#pragma once

#include <memory>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C7: face embedding by triplets (FaceNet: Schroff et al., 1503.03832). Paper scale: ResNet-50 with
// 128 numbers a face, learned on VGGFace2 and asked for the pairs of Labeled Faces in the Wild;
// smoke scale: four convolutions, 64 numbers, on the Database of Faces, of whose 40 people ten are
// held out.
Result<std::unique_ptr<Task>> MakeFaceEmbedding(const TaskOptions& options);

}  // namespace etude::suite
