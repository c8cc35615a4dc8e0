#pragma once

#include <string>
#include <string_view>

namespace etude {

// Returns the readable name of a function. Decodes mangled names (Itanium ABI: "_ZN5aiter1fEi"),
// which profiles of ROCm have for kernels of extensions, as "aiter::f(int)", or without arguments,
// "aiter::f<…>", if they are very long or deeply nested. Drops the suffix of AMD's kernel
// descriptors (".kd"). Other names are returned unchanged.
std::string DemangledName(std::string_view name);

// Returns the namespaces and the name of a mangled function, without function and template
// arguments: "aiter::cross_device_reduce_2stage". Returns "" if `name` is not mangled or has
// another form. Linear time for names of any length.
std::string MangledFunctionPath(std::string_view name);

// Returns a C++ function name, as compilers spell kernel names, without its result, arguments and
// namespaces: "void at::native::f<at::native::G<float> >(int)" gives "f<G<float> >". Other names
// are returned unchanged.
std::string BareFunctionName(std::string_view name);

}  // namespace etude
