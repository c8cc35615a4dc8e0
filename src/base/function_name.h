#pragma once

#include <string>
#include <string_view>

namespace etude {

// The name of a C++ function as compilers spell it, as those of kernels are, without what most of
// them share: result, arguments and namespaces. "void at::native::f<at::native::G<float> >(int)" is
// "f<G<float> >"; what is no such name stays as it is.
std::string BareFunctionName(std::string_view name);

}  // namespace etude
