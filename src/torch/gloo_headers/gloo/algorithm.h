#pragma once

// See ../README.md.
namespace gloo {

class Algorithm;
class Context;

}  // namespace gloo
