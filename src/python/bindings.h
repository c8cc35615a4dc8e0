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

// A path: a str, or what os.fspath makes one of; and back.
std::string ToPath(nb::handle path);
nb::str FromPath(std::string_view path);
// The bytes of a str. UnicodeEncodeError if it holds half a surrogate pair.
std::string ToText(nb::handle text);

// What a function works on: a trace that was opened, or the path of one to read.
struct Source {
  TracePtr trace;
  std::string path;

  // What messages call it.
  std::string name() const;
};
// The sources that a path, Trace, Job, or a list of these names, in its order. TypeError for
// anything else.
std::vector<Source> SourcesIn(nb::handle given);
// The same of a path or Trace. kUsage for a Job of other than one trace.
Source OneSource(nb::handle given);

// kUsage for a number of ranks at a time below 0.
Status CheckJobs(int64_t jobs);

// `name(self)` of the Python module etude.frames.
nb::object Frames(const char* name, nb::handle self);

}  // namespace etude::python
