#pragma once

#include <ATen/core/Tensor.h>

namespace etude::suite {

// Videos of something that is moved, with the actions that move it.
struct PushSequences {
  at::Tensor frames;   // [N, T, 3, side, side], from 0 to 1, or bytes
  at::Tensor actions;  // [N, T, A]: from each frame to the next
  at::Tensor states;   // [N, T, S]: of the gripper at each frame
};

}  // namespace etude::suite
