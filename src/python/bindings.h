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

// Define the parts of the module, one file each.
void BindColumns(nb::module_& module);
void BindTraces(nb::module_& module);
void BindReports(nb::module_& module);
void BindTransforms(nb::module_& module);

// etude.Trace.
struct PyTrace {
  TracePtr shared;

  const Trace& trace() const { return shared->trace(); }
};

// etude.Job: the traces of a folder's ranks, by rank.
struct PyJob {
  std::vector<PyTrace> traces;
  std::string path;
};

// Converts text of a file; invalid UTF-8 becomes U+FFFD.
nb::str ToPython(std::string_view text);
nb::object FromJson(const nlohmann::ordered_json& json);

// Convert a path (str, or any os.fspath argument), and back.
std::string ToPath(nb::handle path);
nb::str FromPath(std::string_view path);
// Returns the bytes of a str. UnicodeEncodeError for lone surrogates.
std::string ToText(nb::handle text);

// Input of a function: an open trace, or a path to read.
struct Source {
  TracePtr trace;
  std::string path;

  // Returns its name for messages.
  std::string name() const;
};
// Returns the sources in a path, Trace, Job, or a list of these, in order. TypeError for anything
// else.
std::vector<Source> SourcesIn(nb::handle given);
// Returns the source in a path or Trace. kUsage for a Job with several traces or none.
Source OneSource(nb::handle given);

// Checks a number of concurrent ranks: kUsage if it is negative.
Status CheckJobs(int64_t jobs);

// Returns `name(self)` of the Python module etude.frames.
nb::object Frames(const char* name, nb::handle self);

}  // namespace etude::python
