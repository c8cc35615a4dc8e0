#pragma once

// Minimal declarations of Gloo for PyTorch's headers; PyTorch's wheel lacks Gloo's headers.
namespace gloo::transport {

class Device;

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};

}  // namespace gloo::transport
