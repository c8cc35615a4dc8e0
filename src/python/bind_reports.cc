#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "src/base/each_rank.h"
#include "src/python/bindings.h"
#include "src/report/inspections.h"
#include "src/report/text/health_output.h"
#include "src/report/text/table.h"
#include "src/transform/read_job.h"

namespace etude::python {
namespace {

using Json = nlohmann::ordered_json;

// etude.Report: result of inspecting one or several traces.
struct PyReport {
  std::string format;
  std::vector<Inspected> found;
  std::optional<bool> same;  // diff only

  // Returns a table as in the command: plain for one trace, joined for several.
  std::optional<Table> Find(const std::string& key) const {
    for (size_t i = 0; i < found.front().tables.size(); ++i) {
      if (found.front().tables[i].key != key) continue;
      return found.size() == 1 ? found.front().tables[i] : JoinTables(found, i);
    }
    return std::nullopt;
  }
};

std::vector<std::string> KeysOf(const PyReport& report) {
  std::vector<std::string> keys;
  for (const Table& table : report.found.front().tables) keys.push_back(table.key);
  return keys;
}

Table TableOf(const PyReport& report, const std::string& key) {
  std::optional<Table> table = report.Find(key);
  if (!table) throw nb::key_error(key.c_str());
  return *std::move(table);
}

// Input of an inspection: an open trace, or one to read.
struct Target {
  TracePtr trace;
  RankInput input;
};

// Returns the input that `choose` selects for an open trace's rank: the trace itself, or other
// files of its folder.
Target TargetOf(const TracePtr& trace, RankInput (*choose)(const CaptureRank&)) {
  const RankInput& opened = trace->input();
  Target target{trace, opened};
  target.input.rank = trace->rank();
  if (!opened.files) return target;
  RankInput chosen = choose(*opened.files);
  if (chosen.path == opened.path && chosen.device == opened.device) return target;
  chosen.rank = target.input.rank;
  return {nullptr, std::move(chosen)};
}

Result<std::vector<Target>> FindTargets(const std::vector<Source>& sources,
                                        RankInput (*choose)(const CaptureRank&),
                                        const RunContext& context) {
  std::vector<Target> targets;
  for (const Source& source : sources) {
    if (source.trace != nullptr) {
      targets.push_back(TargetOf(source.trace, choose));
      continue;
    }
    ETUDE_ASSIGN_OR_RETURN(std::vector<RankInput> inputs,
                           FindRanks(std::span(&source.path, 1), context, choose));
    for (RankInput& input : inputs) targets.push_back({nullptr, std::move(input)});
  }
  if (targets.empty()) return MakeError(ErrorCode::kUsage, "found no trace, expected at least one");
  return targets;
}

// Calls `work(trace)` with the target's trace, reading it if necessary.
template <typename Work>
auto WithTrace(const Target& target, const ReadOptions& read, const RunContext& context, Work work)
    -> decltype(work(target.trace->trace())) {
  if (target.trace != nullptr) return work(target.trace->trace());
  ETUDE_ASSIGN_OR_RETURN(const Trace trace, ReadRank(target.input, read, context));
  return work(trace);
}

PyReport InspectAll(const Inspection& inspection, nb::handle source, bool strict, int64_t jobs) {
  const std::vector<Source> sources = SourcesIn(source);
  const ReadOptions read{.strict = strict};
  std::vector<Inspected> found =
      Call([&](const RunContext& context) -> Result<std::vector<Inspected>> {
        ETUDE_RETURN_IF_ERROR(CheckJobs(jobs));
        ETUDE_ASSIGN_OR_RETURN(const std::vector<Target> targets,
                               FindTargets(sources, inspection.choose, context));
        return ForEachRank<Inspected>(
            targets.size(), jobs, context, [&](size_t i, const RunContext& own) {
              return WithTrace(targets[i], read, own, [&](const Trace& trace) {
                return Inspect(inspection, trace, targets[i].input, read, own);
              });
            });
      });
  return {.format = inspection.format(), .found = std::move(found)};
}

std::vector<std::optional<int64_t>> RanksOfTargets(const std::vector<Target>& targets) {
  std::vector<std::optional<int64_t>> ranks;
  for (const Target& target : targets) ranks.push_back(target.input.rank);
  return ranks;
}

std::string NameOf(const Target& target) {
  return target.input.path.empty() ? "a trace" : target.input.path;
}

// Compares like `etude diff`: ranks of only one side are a difference, and reported as warnings.
Result<PyReport> DiffAll(const std::vector<Source>& sources_a, const std::vector<Source>& sources_b,
                         bool strict, int64_t jobs, const RunContext& context) {
  ETUDE_RETURN_IF_ERROR(CheckJobs(jobs));
  ETUDE_ASSIGN_OR_RETURN(const std::vector<Target> a,
                         FindTargets(sources_a, RichestInput, context));
  ETUDE_ASSIGN_OR_RETURN(const std::vector<Target> b,
                         FindTargets(sources_b, RichestInput, context));
  const RankPairs ranks = PairRanks(RanksOfTargets(a), RanksOfTargets(b));
  for (const size_t rank : ranks.only_a) context.Warn(NameOf(a[rank]) + ": b has no such rank");
  for (const size_t rank : ranks.only_b) context.Warn(NameOf(b[rank]) + ": a has no such rank");
  if (ranks.pairs.empty()) return BadInput("a and b have no rank in common");
  const ReadOptions read{.strict = strict};
  ETUDE_ASSIGN_OR_RETURN(
      const std::vector<ComparedRanks> compared,
      ForEachRank<ComparedRanks>(
          ranks.pairs.size(), jobs, context,
          [&](size_t i, const RunContext& own) -> Result<ComparedRanks> {
            const Target& one = a[ranks.pairs[i].a];
            const Target& other = b[ranks.pairs[i].b];
            return WithTrace(one, read, own, [&](const Trace& trace) -> Result<ComparedRanks> {
              return WithTrace(other, read, own, [&](const Trace& with) -> Result<ComparedRanks> {
                ComparedRanks done = CompareTraces(trace, with, one.input.path);
                if (one.input.rank) done.found.rank = one.input.rank;
                return done;
              });
            });
          }));
  PyReport report{.format = "etude-diff", .same = ranks.only_a.empty() && ranks.only_b.empty()};
  for (const ComparedRanks& one : compared) {
    report.found.push_back(one.found);
    report.same = *report.same && one.same;
  }
  return report;
}

PyReport Diff(nb::handle a, nb::handle b, bool strict, int64_t jobs) {
  const std::vector<Source> sources_a = SourcesIn(a);
  const std::vector<Source> sources_b = SourcesIn(b);
  return Call([&](const RunContext& context) {
    return DiffAll(sources_a, sources_b, strict, jobs, context);
  });
}

std::vector<std::string> ColumnTypes(const Table& table) {
  std::vector<std::string> types;
  for (const Table::Column& column : table.columns) {
    switch (column.unit) {
      case Unit::kText: types.emplace_back("text"); break;
      case Unit::kCount:
      case Unit::kTime:
      case Unit::kBytes: types.emplace_back("integer"); break;
      case Unit::kRate:
      case Unit::kShare:
      case Unit::kChange:
      case Unit::kNumber: types.emplace_back("number"); break;
    }
  }
  return types;
}

void BindTable(nb::module_& module) {
  nb::class_<Table>(module, "Table",
                    "A table of figures. str() formats it as text; len() is the number of rows.")
      .def("__len__", [](const Table& table) { return table.rows.size(); })
      .def_ro("key", &Table::key)
      .def_ro("title", &Table::title)
      .def_prop_ro(
          "columns",
          [](const Table& table) {
            std::vector<std::string> keys;
            for (const Table::Column& column : table.columns) keys.push_back(column.key);
            return keys;
          },
          "Column names; a name ends with its unit: total_ns, bytes, share.")
      .def_prop_ro("column_types", ColumnTypes, nb::sig("def column_types(self) -> list[str]"),
                   "Type of each column: text, integer or number.")
      .def(
          "to_dicts", [](const Table& table) { return FromJson(ToJson(table)); },
          nb::sig("def to_dicts(self) -> list[dict[str, int | float | str | None]]"),
          "Returns one dict per row; unknown values are None.")
      .def("to_csv", [](const Table& table) { return ToPython(ToCsv(table)); })
      .def(
          "to_pandas", [](nb::handle self) { return Frames("table_to_pandas", self); },
          nb::sig("def to_pandas(self) -> pandas.DataFrame"),
          "Returns a pandas DataFrame; unknown values are <NA>.")
      .def("__str__", [](const Table& table) { return ToPython(ToText(table)); })
      .def("__repr__", [](const Table& table) {
        return "<etude.Table " + table.key + ": " + std::to_string(table.rows.size()) + " rows>";
      });
}

void BindReport(nb::module_& module) {
  nb::class_<PyReport>(
      module, "Report",
      "Tables by key, such as report[\"ops\"]. With several ranks, the first column of each table "
      "is `rank`.\nstr() is the text that the command prints.")
      .def_prop_ro("tables", KeysOf, "Keys of the tables.")
      .def("__getitem__", TableOf, nb::arg("key"))
      .def("__contains__", [](const PyReport& report,
                              const std::string& key) { return report.Find(key).has_value(); })
      .def(
          "__iter__", [](const PyReport& report) { return nb::iter(nb::cast(KeysOf(report))); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"))
      .def_prop_ro(
          "traces",
          [](const PyReport& report) {
            return FromJson(ToJson(report.found, report.format, "-")["traces"]);
          },
          nb::sig("def traces(self) -> list[dict[str, typing.Any]]"),
          "Rank, path, notes and health of each trace.")
      .def_prop_ro(
          "same", [](const PyReport& report) { return report.same; },
          "For a diff: whether the structure is the same and no rank is missing. Otherwise None.")
      .def(
          "to_json",
          [](const PyReport& report) { return FromJson(ToJson(report.found, report.format, "")); },
          nb::sig("def to_json(self) -> dict[str, typing.Any]"),
          "Returns the document that the command prints with --json.")
      .def("__str__",
           [](const PyReport& report) {
             constexpr size_t kShown = 20;  // same as the command
             return ToPython(ToText(report.found, "", kShown));
           })
      .def("__repr__", [](const PyReport& report) {
        return "<etude.Report " + report.format + ": " + std::to_string(report.found.size()) +
               " traces>";
      });
}

#define ETUDE_SOURCE                                                       \
  "str | os.PathLike[str] | Trace | Job | collections.abc.Sequence[str | " \
  "os.PathLike[str] | Trace | Job]"

// Makes the function of an inspection. The module copies the texts.
void BindInspection(nb::module_& module, const Inspection& inspection) {
  std::string name(inspection.name);
  std::ranges::replace(name, '-', '_');
  const std::string signature = "def " + name +
                                "(source: " ETUDE_SOURCE
                                ", *, strict: bool = False, jobs: int = 0) -> Report";
  const std::string help =
      fmt::format("Same as `etude {}`: {}.", inspection.name, inspection.summary);
  module.def(
      name.c_str(),
      [&inspection](nb::handle source, bool strict, int64_t jobs) {
        return InspectAll(inspection, source, strict, jobs);
      },
      nb::arg("source"), nb::kw_only(), nb::arg("strict") = false, nb::arg("jobs") = 0,
      nb::sig(signature.c_str()), help.c_str());
}

}  // namespace

void BindReports(nb::module_& module) {
  BindTable(module);
  BindReport(module);
  for (const Inspection& inspection : Inspections()) BindInspection(module, inspection);
  module.def("diff", Diff, nb::arg("a"), nb::arg("b"), nb::kw_only(), nb::arg("strict") = false,
             nb::arg("jobs") = 0,
             nb::sig("def diff(a: str | os.PathLike[str] | Trace | Job, b: str | os.PathLike[str] "
                     "| Trace | Job, *, strict: bool = False, jobs: int = 0) -> Report"),
             "Same as `etude diff`: differences of two traces or jobs in structure and time; see "
             "`same` of the report.");
}

}  // namespace etude::python
