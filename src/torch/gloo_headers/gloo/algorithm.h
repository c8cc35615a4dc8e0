#pragma once

// Minimal declarations of Gloo for PyTorch's headers; PyTorch's wheel lacks Gloo's headers.
namespace gloo {

class Algorithm;
class Context;

}  // namespace gloo
