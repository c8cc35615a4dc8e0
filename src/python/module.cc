// The module etude._core: traces and operations on them, for Python. Contains only bindings; the
// implementation is in the lower modules.

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
