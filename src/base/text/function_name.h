#pragma once

#include <string>
#include <string_view>

namespace etude {

// The name of a function as people write it. Mangled names (Itanium ABI: "_ZN5aiter1fEi"), as
// profiles of ROCm have for kernels of extensions, are decoded: "aiter::f(int)"; those that are
// very long or nested deep without their arguments: "aiter::f<…>". The suffix of AMD's kernel
// descriptors
// (".kd") is dropped. Other names stay as they are.
std::string DemangledName(std::string_view name);

// The namespaces and the name of a mangled function, without arguments and those of templates:
// "aiter::cross_device_reduce_2stage"; "" if `name` is not mangled or is of another form. In linear
// time, for names of any length.
std::string MangledFunctionPath(std::string_view name);

// The name of a C++ function as compilers spell it, as those of kernels are, without what most of
// them share: result, arguments and namespaces. "void at::native::f<at::native::G<float> >(int)" is
// "f<G<float> >"; what is no such name stays as it is.
std::string BareFunctionName(std::string_view name);

}  // namespace etude
