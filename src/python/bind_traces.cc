#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "src/analysis/health.h"
#include "src/base/each_rank.h"
#include "src/formats/job/capture_folder.h"
#include "src/python/bindings.h"
#include "src/python/columns.h"
#include "src/python/tables.h"
#include "src/report/text/format.h"
#include "src/report/text/health_output.h"
#include "src/report/text/json_output.h"
#include "src/run/rank_run.h"
#include "src/transform/read_job.h"

namespace etude::python {
namespace {

using Json = nlohmann::ordered_json;

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// Returns the facts of a trace with the names of `etude info --json`.
Json InfoJson(const SharedTrace& shared) {
  const Trace& trace = shared.trace();
  const TraceInfo& info = trace.info();
  Json extras = Json::object();
  for (const Extra& extra : info.extras) {
    if (extra.form != Extra::Form::kJson) continue;
    extras[std::string(trace.text(extra.key))] = trace.text(extra.text);
  }
  return {{"path", TextOrNull(shared.input().path)},
          {"kind", Name(info.format)},
          {"schema", TextOrNull(info.schema)},
          {"time", TextOrNull(info.time)},
          {"pid", OrNull(info.pid)},
          {"rank", OrNull(info.rank ? info.rank : shared.rank())},
          {"world_size", OrNull(info.world_size)},
          {"start_ts", OrNull(info.start_ts)},
          {"finish_ts", OrNull(info.finish_ts)},
          {"exclusive_durations", info.traits.exclusive_durations},
          {"nodes", trace.node_count()},
          {"dependencies", trace.dep_count()},
          {"lanes", trace.lane_count()},
          {"tensors", trace.tensor_count()},
          {"health", ToJson(trace.stats())},
          {"extras", std::move(extras)},
          {"memory_bytes", trace.memory_bytes()}};
}

Result<PyTrace> ReadOne(const RankInput& input, bool strict, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(Trace trace, ReadRank(input, {.strict = strict}, context));
  ETUDE_RETURN_IF_ERROR(CheckSizes(trace));
  return PyTrace{std::make_shared<const SharedTrace>(std::move(trace), input)};
}

nb::object Open(nb::handle given, bool strict, int64_t jobs) {
  const std::string path = ToPath(given);
  const bool is_folder = IsFolder(path);
  std::vector<PyTrace> traces =
      Call([&](const RunContext& context) -> Result<std::vector<PyTrace>> {
        ETUDE_RETURN_IF_ERROR(CheckJobs(jobs));
        ETUDE_ASSIGN_OR_RETURN(const std::vector<RankInput> inputs,
                               FindRanks(std::span(&path, 1), context));
        return ForEachRank<PyTrace>(
            inputs.size(), jobs, context,
            [&](size_t i, const RunContext& own) { return ReadOne(inputs[i], strict, own); });
      });
  if (!is_folder) return nb::cast(std::move(traces.front()));
  std::ranges::stable_sort(traces, {}, [](const PyTrace& trace) { return trace.shared->rank(); });
  return nb::cast(PyJob{std::move(traces), path});
}

nb::object RankObject(const PyTrace& trace) {
  const std::optional<int64_t> rank = trace.shared->rank();
  return rank ? nb::object(nb::int_(*rank)) : nb::none();
}

nb::str Describe(const PyTrace& trace) {
  std::string text = "<etude.Trace";
  const std::string& path = trace.shared->input().path;
  if (!path.empty()) text += " " + path;
  text += ": " + std::to_string(trace.trace().node_count()) + " nodes";
  if (const auto rank = trace.shared->rank()) text += ", rank " + std::to_string(*rank);
  return ToPython(text + ">");
}

nb::list RanksOf(const PyJob& job) {
  nb::list ranks;
  for (const PyTrace& trace : job.traces) ranks.append(RankObject(trace));
  return ranks;
}

const PyTrace* FindRank(const PyJob& job, std::optional<int64_t> rank) {
  const auto found = std::ranges::find(job.traces, rank,
                                       [](const PyTrace& trace) { return trace.shared->rank(); });
  return found == job.traces.end() ? nullptr : &*found;
}

PyTrace TraceOf(const PyJob& job, std::optional<int64_t> rank) {
  const PyTrace* found = FindRank(job, rank);
  if (found == nullptr) {
    throw nb::key_error(("no rank " + (rank ? std::to_string(*rank) : "None")).c_str());
  }
  return *found;
}

void BindTrace(nb::module_& module) {
  nb::class_<PyTrace>(module, "Trace",
                      "An execution trace: nodes with their times, dependencies and tensors. "
                      "Immutable and thread-safe.\nA node is a row; len() is the number of nodes.")
      .def("__len__", [](const PyTrace& trace) { return trace.trace().node_count(); })
      .def_prop_ro(
          "info", [](const PyTrace& trace) { return FromJson(InfoJson(*trace.shared)); },
          nb::sig("def info(self) -> dict[str, typing.Any]"),
          "Facts about the trace, with the names of `etude info --json`.")
      .def_prop_ro("rank", RankObject, nb::sig("def rank(self) -> int | None"))
      .def_prop_ro(
          "path",
          [](const PyTrace& trace) {
            const std::string& path = trace.shared->input().path;
            return path.empty() ? nb::object(nb::none()) : nb::object(FromPath(path));
          },
          nb::sig("def path(self) -> str | None"),
          "Path of the file; None if the trace was created in memory.")
      .def_prop_ro(
          "health",
          [](const PyTrace& trace) {
            return FromJson(Call([shared = trace.shared](const RunContext&) -> Result<Json> {
              return ToJson(JudgeTrace(shared->trace()));
            }));
          },
          nb::sig("def health(self) -> dict[str, typing.Any]"),
          "Quality of the trace: `verdict` (good, usable, don't trust), `reasons`, and "
          "`graph_time`,\nthe time of its dependency graph (None: unknown).")
      .def_prop_ro(
          "nodes", [](const PyTrace& trace) { return NodeColumns(trace.shared); },
          "One row per node. `parent` is the row of its caller, `lane` the row of its thread or "
          "stream in\n`lanes`.")
      .def_prop_ro(
          "deps", [](const PyTrace& trace) { return DependencyColumns(trace.shared); },
          "Dependencies of nodes, besides their caller.")
      .def_prop_ro(
          "tensors", [](const PyTrace& trace) { return TensorColumns(trace.shared); },
          "One row per distinct use of a tensor: addresses, shape, dtype. `tensor_uses` has their "
          "nodes.")
      .def_prop_ro(
          "tensor_uses",
          [](const PyTrace& trace) {
            return Call([shared = trace.shared](const RunContext&) -> Result<Columns> {
              return TensorUseColumns(shared);
            });
          },
          "One row per tensor in the arguments and results of nodes: node, role, argument, and the "
          "row in\n`tensors`.")
      .def_prop_ro(
          "lanes", [](const PyTrace& trace) { return LaneTable(trace.trace()); },
          "Lanes of nodes: threads of processes, streams of devices.")
      .def_prop_ro(
          "comms", [](const PyTrace& trace) { return CommTable(trace.trace()); },
          "Facts of communication nodes.")
      .def_prop_ro(
          "process_groups", [](const PyTrace& trace) { return GroupTable(trace.trace()); },
          "Process groups in the trace.")
      .def(
          "to_arrow", [](nb::handle self) { return Frames("trace_to_arrow", self); },
          nb::sig("def to_arrow(self) -> pyarrow.Table"),
          "Returns `nodes` as a pyarrow Table, without a copy.")
      .def(
          "to_pandas", [](nb::handle self) { return Frames("trace_to_pandas", self); },
          nb::sig("def to_pandas(self) -> pandas.DataFrame"),
          "Returns a copy of `nodes` as a pandas DataFrame. Unknown values are <NA>.")
      .def(
          "to_networkx", [](nb::handle self) { return Frames("trace_to_networkx", self); },
          nb::sig("def to_networkx(self) -> typing.Any"),
          "Returns a networkx.MultiDiGraph of rows. Edges go from caller to callee (kind \"call\") "
          "and from a\ndependency to its dependent (kind control, data or sync). Nodes have those "
          "of name, kind, place,\nlane, start_ns, duration_ns and exclusive_ns that are known.")
      .def("__repr__", Describe);
}

void BindJob(nb::module_& module) {
  nb::class_<PyJob>(module, "Job",
                    "Traces of the ranks of a capture folder. len() is their number; job[3] is the "
                    "trace of rank 3.")
      .def("__len__", [](const PyJob& job) { return job.traces.size(); })
      .def_prop_ro("ranks", RanksOf, nb::sig("def ranks(self) -> list[int | None]"),
                   "Ranks in ascending order; None for a trace of unknown rank.")
      .def("__getitem__", TraceOf, nb::arg("rank").none())
      .def(
          "__contains__",
          [](const PyJob& job, std::optional<int64_t> rank) {
            return FindRank(job, rank) != nullptr;
          },
          nb::arg("rank").none())
      .def(
          "__iter__", [](const PyJob& job) { return nb::iter(RanksOf(job)); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[int | None]"))
      .def_prop_ro(
          "traces",
          [](const PyJob& job) {
            nb::list traces;
            for (const PyTrace& trace : job.traces) traces.append(nb::cast(trace));
            return traces;
          },
          nb::sig("def traces(self) -> list[Trace]"), "In the order of `ranks`.")
      .def_prop_ro("path", [](const PyJob& job) { return FromPath(job.path); })
      .def("__repr__", [](const PyJob& job) {
        return ToPython("<etude.Job " + job.path + ": " + FormatCount(job.traces.size(), "rank") +
                        ">");
      });
}

}  // namespace

void BindTraces(nb::module_& module) {
  BindTrace(module);
  BindJob(module);
  module.def("open", Open, nb::arg("path"), nb::kw_only(), nb::arg("strict") = false,
             nb::arg("jobs") = 0,
             nb::sig("def open(path: str | os.PathLike[str], *, strict: bool = False, jobs: int = "
                     "0) -> Trace | Job"),
             "Reads a trace in any format, or all ranks of a capture folder, and links host and "
             "device traces.\n`strict` rejects damaged files; `jobs` is the number of ranks read "
             "in parallel (0: number of\ncores).");
}

}  // namespace etude::python
