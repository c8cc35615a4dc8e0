#pragma once

// Our own declarations of what PyTorch's headers mention of Gloo, which its wheel lacks.
namespace gloo::transport {

class Device;

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};

}  // namespace gloo::transport
