#pragma once

// Our own declarations of what PyTorch's headers mention of Gloo, which its wheel lacks.
namespace gloo {

class Algorithm;
class Context;

}  // namespace gloo
