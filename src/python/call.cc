#include "src/python/call.h"

#include <cxxabi.h>
#include <unistd.h>

#include "src/base/text/printable.h"
#include "src/python/bindings.h"

namespace etude::python {
namespace {

// Returns the value of etude.Error.code.
const char* CodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage: return "usage";
    case ErrorCode::kBadInput: return "bad_input";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kInterrupted: return "interrupted";
    case ErrorCode::kInternal: return "internal";
  }
  return "internal";
}

}  // namespace

void Raise(const Error& error) {
  const nb::object type = nb::module_::import_("etude.errors").attr("Error");
  const nb::object value =
      type(nb::str(CodeName(error.code)), ToPython(PrintableLines(error.message)));
  PyErr_SetObject(type.ptr(), value.ptr());
  throw nb::python_error();
}

void TakeGil(PyThreadState* thread) {
  try {
    PyEval_RestoreThread(thread);
  } catch (const abi::__forced_unwind&) {
    // Leaving this block without rethrowing would end the process.
    while (true) pause();
  }
}

void Warn(const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  const nb::object type = nb::module_::import_("etude.errors").attr("Warning");
  for (const std::string& text : texts) {
    if (PyErr_WarnFormat(type.ptr(), 1, "%U", ToPython(PrintableLines(text)).ptr()) != 0)
      throw nb::python_error();
  }
}

}  // namespace etude::python
