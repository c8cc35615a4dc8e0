#pragma once

#include <chrono>

// Our own declarations of what PyTorch's headers mention of Gloo, which its wheel lacks.
namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
