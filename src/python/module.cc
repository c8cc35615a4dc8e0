// The module etude._core: traces and what is done with them, for Python. Everything here is glue;
// what it does is in the modules below.

#include <nanobind/nanobind.h>

#include "src/base/version.h"
#include "src/python/bindings.h"

NB_MODULE(_core, module) {
  module.attr("__version__") = nanobind::str(etude::kVersion.data(), etude::kVersion.size());
  etude::python::BindColumns(module);
  etude::python::BindReports(module);
  etude::python::BindTraces(module);
  etude::python::BindTransforms(module);
}
