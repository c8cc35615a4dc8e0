#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "src/formats/io/atomic_file.h"
#include "src/formats/read_trace.h"
#include "src/python/bindings.h"
#include "src/python/columns.h"
#include "src/report/tables/accounts.h"
#include "src/transform/edit/slice.h"
#include "src/transform/read_job.h"
#include "src/transform/write_trace.h"

namespace etude::python {
namespace {

using Json = nlohmann::ordered_json;

Result<TracePtr> Read(const Source& source, bool strict, const RunContext& context) {
  if (source.trace != nullptr) return source.trace;
  ETUDE_ASSIGN_OR_RETURN(Trace trace, ReadTrace(source.path, {.strict = strict}, context));
  return std::make_shared<const SharedTrace>(std::move(trace), RankInput{.path = source.path});
}

// A new trace, and an account of how it was made.
struct Made {
  TracePtr trace;
  Json account;
};

// Returns it as etude.Made.
nb::object MadeObject(Made made) {
  const nb::object type = nb::module_::import_("etude.results").attr("Made");
  return type(PyTrace{std::move(made.trace)}, FromJson(made.account));
}

Result<Made> MakeOf(Trace trace, const std::optional<int64_t>& rank, Json account) {
  ETUDE_RETURN_IF_ERROR(CheckSizes(trace));
  return Made{std::make_shared<const SharedTrace>(std::move(trace), RankInput{.rank = rank}),
              std::move(account)};
}

nb::object LinkTraces(nb::handle host_given, nb::handle device_given, bool drop_orphans,
                      bool strict) {
  const Source host = OneSource(host_given);
  const Source device = OneSource(device_given);
  return MadeObject(Call([&](const RunContext& context) -> Result<Made> {
    ETUDE_ASSIGN_OR_RETURN(const TracePtr host_trace, Read(host, strict, context));
    ETUDE_ASSIGN_OR_RETURN(const TracePtr device_trace, Read(device, strict, context));
    ETUDE_ASSIGN_OR_RETURN(
        LinkResult linked,
        LinkRun({&host_trace->trace(), host.name()}, {&device_trace->trace(), device.name()},
                {.keep_orphans = !drop_orphans, .limits = context.limits}));
    Json account = LinkAccount(linked);
    return MakeOf(std::move(linked.trace), host_trace->rank(), std::move(account));
  }));
}

nb::object Convert(nb::handle given, nb::handle output, const std::optional<std::string>& to,
                   bool strict) {
  const Source source = OneSource(given);
  const std::string path = ToPath(output);
  if (to && *to != "et" && *to != "linked") {
    Raise({ErrorCode::kUsage, "to: found '" + *to + "', expected 'et' or 'linked'"});
  }
  return FromJson(Call([&](const RunContext& context) -> Result<Json> {
    const RankInput input =
        source.trace != nullptr ? source.trace->input() : RankInput{.path = source.path};
    ETUDE_RETURN_IF_ERROR(CheckOutput(path, {input.path, input.device}));
    ETUDE_ASSIGN_OR_RETURN(const TracePtr trace, Read(source, strict, context));
    const TraceOutput where{
        .path = path, .format = ChooseFormat(to.value_or(""), path), .break_cycles = !strict};
    ETUDE_ASSIGN_OR_RETURN(const WrittenTrace written,
                           WriteTraceOf(source.name(), trace->trace(), where, context));
    return ToJson(written);
  }));
}

nb::object SliceTrace(nb::handle given, const Selection& selection, bool strict) {
  const Source source = OneSource(given);
  if (selection.empty()) {
    Raise({ErrorCode::kUsage,
           "slice: missing selector: label, step, thread, stream, module, time, op, phase, "
           "micro_batch or comm"});
  }
  return MadeObject(Call([&](const RunContext& context) -> Result<Made> {
    ETUDE_ASSIGN_OR_RETURN(const TracePtr trace, Read(source, strict, context));
    Result<SliceResult> slice = Slice(trace->trace(), selection, context.limits);
    if (!slice) {
      return MakeError(slice.error().code, source.name() + ": " + slice.error().message);
    }
    Json account = SliceAccount(*slice);
    return MakeOf(std::move(slice->trace), trace->rank(), std::move(account));
  }));
}

// Returns a str, an int, or a list of these as texts.
std::vector<std::string> FiltersIn(nb::handle given) {
  if (given.is_none()) return {};
  if (nb::isinstance<nb::str>(given) || nb::isinstance<nb::int_>(given)) {
    return {ToText(nb::str(given))};
  }
  if (!nb::isinstance<nb::list>(given) && !nb::isinstance<nb::tuple>(given)) {
    throw nb::type_error("expected a str or int to select by, or a list of these");
  }
  std::vector<std::string> texts;
  for (const nb::handle item : nb::iter(given)) {
    if (!nb::isinstance<nb::str>(item) && !nb::isinstance<nb::int_>(item)) {
      throw nb::type_error("expected a list of str or int to select by");
    }
    texts.push_back(ToText(nb::str(item)));
  }
  return texts;
}

}  // namespace

void BindTransforms(nb::module_& module) {
  module.def("link", LinkTraces, nb::arg("host"), nb::arg("device"), nb::kw_only(),
             nb::arg("drop_orphans") = false, nb::arg("strict") = false,
             nb::sig("def link(host: str | os.PathLike[str] | Trace, device: str | "
                     "os.PathLike[str] | Trace, *, drop_orphans: bool = False, strict: bool = "
                     "False) -> etude.results.Made"),
             "Same as `etude link`: joins the host trace with times and device work of the device "
             "trace, and\naccounts for every node of both.");
  module.def("convert", Convert, nb::arg("source"), nb::arg("path"), nb::kw_only(),
             nb::arg("to") = nb::none(), nb::arg("strict") = false,
             nb::sig("def convert(source: str | os.PathLike[str] | Trace, path: str | "
                     "os.PathLike[str], *, to: typing.Literal['et', 'linked'] | None = None, "
                     "strict: bool = False) -> dict[str, typing.Any]"),
             "Same as `etude convert`: writes the trace as Chakra (et) or linked JSON. `to` "
             "overrides the format\nimplied by the file name. Returns a summary of what was "
             "written and dropped. `strict` rejects\ncycles instead of breaking them.");
  module.def(
      "slice",
      [](nb::handle source, nb::handle label, nb::handle step, nb::handle thread, nb::handle stream,
         nb::handle module_name, nb::handle time, nb::handle op, nb::handle phase,
         nb::handle micro_batch, bool comm, bool strict) {
        return SliceTrace(source,
                          {.labels = FiltersIn(label),
                           .steps = FiltersIn(step),
                           .threads = FiltersIn(thread),
                           .streams = FiltersIn(stream),
                           .modules = FiltersIn(module_name),
                           .times = FiltersIn(time),
                           .operators = FiltersIn(op),
                           .phases = FiltersIn(phase),
                           .micro_batches = FiltersIn(micro_batch),
                           .communication = comm},
                          strict);
      },
      nb::arg("source"), nb::kw_only(), nb::arg("label") = nb::none(), nb::arg("step") = nb::none(),
      nb::arg("thread") = nb::none(), nb::arg("stream") = nb::none(),
      nb::arg("module") = nb::none(), nb::arg("time") = nb::none(), nb::arg("op") = nb::none(),
      nb::arg("phase") = nb::none(), nb::arg("micro_batch") = nb::none(), nb::arg("comm") = false,
      nb::arg("strict") = false,
      nb::sig(
          "def slice(source: str | os.PathLike[str] | Trace, *, label: str | "
          "collections.abc.Sequence[str] | None = None, step: int | str | "
          "collections.abc.Sequence[int | str] | None = None, thread: int | str | "
          "collections.abc.Sequence[int | str] | None = None, stream: int | str | "
          "collections.abc.Sequence[int | str] | None = None, module: str | "
          "collections.abc.Sequence[str] | None = None, time: str | "
          "collections.abc.Sequence[str] | None = None, op: str | "
          "collections.abc.Sequence[str] | None = None, phase: str | "
          "collections.abc.Sequence[str] | None = None, micro_batch: int | str | "
          "collections.abc.Sequence[int | str] | None = None, comm: bool = False, strict: bool = "
          "False) -> etude.results.Made"),
      "Same as `etude slice`: the selected part, and a summary of what was kept and cut. A node "
      "must match\none value of each given selector.");
}

}  // namespace etude::python
