#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nanobind/nanobind.h>
#include <nlohmann/json.hpp>

#include "src/python/call.h"
#include "src/python/shared_trace.h"
#include "src/report/inspected.h"

namespace etude::python {

// Parts of the module, a file each.
void BindColumns(nb::module_& module);
void BindTraces(nb::module_& module);
void BindReports(nb::module_& module);
void BindTransforms(nb::module_& module);

// etude.Trace.
struct PyTrace {
  TracePtr shared;

  const Trace& trace() const { return shared->trace(); }
};

// etude.Job: the traces of the ranks of one folder, by rank.
struct PyJob {
  std::vector<PyTrace> traces;
  std::string path;
};

// Text of a file: what is not UTF-8 becomes U+FFFD.
nb::str ToPython(std::string_view text);
nb::object FromJson(const nlohmann::ordered_json& json);

// A path: a str, or what os.fspath makes one of.
std::string ToPath(nb::handle path);
// The path that is meant, if `source` is one; nullopt for a Trace or a Job. Anything else is a
// TypeError.
std::optional<std::string> PathIn(nb::handle source);
// The traces of a Trace or a Job.
std::vector<PyTrace> TracesIn(nb::handle source);

// A trace that belongs to `shared`'s file, or was made of it.
PyTrace MakeTrace(Trace trace, std::optional<int64_t> rank, std::string path);

}  // namespace etude::python
