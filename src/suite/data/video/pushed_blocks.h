#pragma once

#include <cstdint>

#include "src/suite/data/video/push_sequences.h"

namespace etude::suite {

// Videos of an arm that pushes blocks over a table, seen from above. The table, the colours, sizes
// and places of the blocks, and the arm's way are drawn for each video.
struct PushedBlocks {
  static constexpr int64_t kFrames = 10;
  static constexpr int64_t kSide = 32;
  static constexpr int64_t kActions = 2;  // the gripper's commanded move, in two pixels
  static constexpr int64_t kStates = 2;   // the gripper's position, from −1 to 1
};

// Returns `count` videos, a function of `seed`. The frames are bytes from 0 to 255.
PushSequences GeneratePushes(int64_t count, uint64_t seed);

}  // namespace etude::suite
