#pragma once

#include <chrono>

// Minimal declarations of Gloo for PyTorch's headers; PyTorch's wheel lacks Gloo's headers.
namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
