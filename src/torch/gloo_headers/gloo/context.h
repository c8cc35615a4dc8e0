#pragma once

#include <chrono>

// See ../README.md.
namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
