#include <fmt/format.h>

#include "src/python/bindings.h"

namespace etude::python {

std::string Source::name() const {
  if (trace == nullptr) return path;
  return trace->input().path.empty() ? "a trace" : trace->input().path;
}

namespace {

bool IsList(nb::handle given) {
  return nb::isinstance<nb::list>(given) || nb::isinstance<nb::tuple>(given);
}

}  // namespace

std::vector<Source> SourcesIn(nb::handle given) {
  std::vector<Source> sources;
  if (nb::isinstance<PyTrace>(given)) {
    sources.push_back({nb::cast<PyTrace>(given).shared, {}});
  } else if (nb::isinstance<PyJob>(given)) {
    for (const PyTrace& trace : nb::cast<const PyJob&>(given).traces) {
      sources.push_back({trace.shared, {}});
    }
  } else if (IsList(given)) {
    for (const nb::handle item : nb::iter(given)) {
      if (IsList(item)) {
        throw nb::type_error("expected a path, Trace or Job in the list, found a list");
      }
      for (Source& source : SourcesIn(item)) sources.push_back(std::move(source));
    }
  } else {
    sources.push_back({nullptr, ToPath(given)});
  }
  return sources;
}

Source OneSource(nb::handle given) {
  if (IsList(given)) {
    throw nb::type_error("expected one path, Trace or Job, found a list");
  }
  if (!nb::isinstance<PyJob>(given)) return SourcesIn(given).front();
  const std::vector<PyTrace>& traces = nb::cast<const PyJob&>(given).traces;
  if (traces.size() == 1) return {traces.front().shared, {}};
  Raise({ErrorCode::kUsage,
         fmt::format("found a Job of {} traces, expected one: job[RANK]", traces.size())});
}

Status CheckJobs(int64_t jobs) {
  if (jobs >= 0) return {};
  return MakeError(ErrorCode::kUsage,
                   fmt::format("jobs: found {}, expected a number of ranks, or 0", jobs));
}

}  // namespace etude::python
