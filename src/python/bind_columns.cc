#include <cstddef>
#include <memory>
#include <utility>

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "src/python/arrow.h"
#include "src/python/bindings.h"
#include "src/python/columns.h"

namespace etude::python {
namespace {

using NumpyView = nb::ndarray<nb::numpy, nb::ro>;

nb::dlpack::dtype DtypeOf(Column::Type type) {
  switch (type) {
    case Column::Type::kInt8: return nb::dtype<int8_t>();
    case Column::Type::kInt32: return nb::dtype<int32_t>();
    case Column::Type::kInt64: return nb::dtype<int64_t>();
    case Column::Type::kUInt64: return nb::dtype<uint64_t>();
  }
  return nb::dtype<int64_t>();
}

// Returns a view of the values; `owner` keeps them alive.
NumpyView ViewOf(const Column& column, nb::handle owner) {
  static constexpr int64_t kNothing = 0;  // NumPy requires an address for empty arrays, too
  const auto stride = static_cast<int64_t>(column.stride / column.value_bytes());
  const void* data = column.data == nullptr ? &kNothing : column.data;
  return {data, {column.rows}, owner, {stride}, DtypeOf(column.type)};
}

nb::ndarray<nb::numpy, bool, nb::ndim<1>> KnownOf(const Column& column) {
  auto known = std::make_unique<bool[]>(column.rows + 1);
  for (size_t i = 0; i < column.rows; ++i) known[i] = column.is_known(i);
  bool* data = known.release();
  const nb::capsule owner(data, [](void* at) noexcept { delete[] static_cast<bool*>(at); });
  return {data, {column.rows}, owner};
}

nb::tuple IntsOf(const Column& column, size_t list) {
  const auto ints = column.trace->trace().ints(IntListId::FromIndex(list));
  nb::list made;
  for (const int64_t value : ints) made.append(value);
  return nb::tuple(made);
}

// Returns the Python object for a known value of the column.
nb::object MeaningOf(const Column& column, int64_t value) {
  const auto index = static_cast<size_t>(value);
  switch (column.meaning) {
    case Column::Meaning::kText:
      return ToPython(column.trace->trace().text(StringId::FromIndex(index)));
    case Column::Meaning::kName: return ToPython(column.names[index]);
    case Column::Meaning::kIntList: return IntsOf(column, index);
    case Column::Meaning::kNumber:
    case Column::Meaning::kRow: break;
  }
  if (column.type == Column::Type::kUInt64) return nb::int_(static_cast<uint64_t>(value));
  return nb::int_(value);
}

nb::object ItemOf(const Column& column, int64_t row) {
  const auto rows = static_cast<int64_t>(column.rows);
  if (row < 0) row += rows;
  if (row < 0 || row >= rows) throw nb::index_error("row out of range");
  const auto at = static_cast<size_t>(row);
  if (!column.is_known(at)) return nb::none();
  return MeaningOf(column, column.Get(at));
}

// Returns the number of categories of the column; nullopt for plain numbers.
std::optional<size_t> CategoryCount(const Column& column) {
  switch (column.meaning) {
    case Column::Meaning::kText: return column.trace->trace().strings().size();
    case Column::Meaning::kName: return column.names.size();
    case Column::Meaning::kIntList: return column.trace->trace().int_lists().size();
    case Column::Meaning::kNumber:
    case Column::Meaning::kRow: break;
  }
  return std::nullopt;
}

const char* MeaningName(const Column& column) {
  switch (column.meaning) {
    case Column::Meaning::kNumber: return "number";
    case Column::Meaning::kRow: return "row";
    case Column::Meaning::kText: return "text";
    case Column::Meaning::kName: return "name";
    case Column::Meaning::kIntList: return "list";
  }
  return "number";
}

nb::object CategoriesOf(const Column& column) {
  const std::optional<size_t> count = CategoryCount(column);
  if (!count) return nb::none();
  nb::list made;
  for (size_t i = 0; i < *count; ++i) made.append(MeaningOf(column, static_cast<int64_t>(i)));
  return made;
}

// Makes a capsule for the Arrow PyCapsule interface.
template <typename T>
nb::object ArrowCapsule(T thing, const char* name) {
  auto owned = std::make_unique<T>(thing);
  PyObject* capsule = PyCapsule_New(owned.get(), name, [](PyObject* self) {
    auto* held = static_cast<T*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
    ReleaseArrow(*held);
    delete held;
  });
  if (capsule == nullptr) {
    ReleaseArrow(*owned);
    throw nb::python_error();
  }
  owned.release();
  return nb::steal(capsule);
}

nb::object ArrowCapsules(const ArrowPair& pair) {
  return nb::make_tuple(ArrowCapsule(pair.schema, "arrow_schema"),
                        ArrowCapsule(pair.array, "arrow_array"));
}

nb::object SchemaCapsule(ArrowPair pair) {
  ReleaseArrow(pair.array);
  return ArrowCapsule(pair.schema, "arrow_schema");
}

template <typename T, typename... Extra>
void BindArrowArray(nb::class_<T, Extra...>& type) {
  type.def(
      "__arrow_c_array__", [](const T& self, nb::handle) { return ArrowCapsules(ToArrow(self)); },
      nb::arg("requested_schema") = nb::none(),
      nb::sig("def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, "
              "object]"),
      "Arrow's C data interface, without a copy. A requested schema is ignored.");
  type.def(
      "__arrow_c_schema__", [](const T& self) { return SchemaCapsule(ToArrow(self)); },
      nb::sig("def __arrow_c_schema__(self) -> object"), "The type only.");
}

void BindColumn(nb::module_& module) {
  nb::class_<Column> type(module, "Column",
                          "A column of a trace. Numbers are views into the trace, without a copy. "
                          "Strings and\nlists are stored as indices into `categories`.");
  type.def_ro("name", &Column::name)
      .def("__len__", [](const Column& column) { return column.rows; })
      .def("__getitem__", ItemOf, nb::arg("row"),
           nb::sig("def __getitem__(self, row: int) -> int | str | tuple[int, ...] | None"),
           "Returns the value of a row; None if it is unknown.")
      .def_prop_ro(
          "values", [](nb::handle self) { return ViewOf(nb::cast<const Column&>(self), self); },
          nb::sig("def values(self) -> numpy.typing.NDArray[numpy.integer]"),
          "The numbers as a read-only NumPy view, without a copy. Numbers of unknown values "
          "are\nmeaningless: check `known`, or use `masked()`. Missing rows, strings and lists are "
          "-1.")
      .def_prop_ro("known", KnownOf, nb::rv_policy::move,
                   nb::sig("def known(self) -> numpy.typing.NDArray[numpy.bool_]"),
                   "Which values are known, as a new array of booleans.")
      .def_prop_ro("meaning", MeaningName,
                   nb::sig("def meaning(self) -> typing.Literal['number', 'row', 'text', 'name', "
                           "'list']"),
                   "Meaning of the numbers: plain numbers, rows of another table, or indices into "
                   "`categories`.")
      .def(
          "category",
          [](const Column& column, int64_t code) {
            const auto count = static_cast<int64_t>(CategoryCount(column).value_or(0));
            if (code < 0 || code >= count) throw nb::index_error("no such category");
            return MeaningOf(column, code);
          },
          nb::arg("code"), nb::sig("def category(self, code: int) -> str | tuple[int, ...]"),
          "One of `categories`.")
      .def_prop_ro(
          "categories", CategoriesOf,
          nb::sig("def categories(self) -> list[str] | list[tuple[int, ...]] | None"),
          "Values that the indices refer to, as a new list; None for plain numbers and rows.")
      .def(
          "to_list", [](nb::handle self) { return Frames("column_to_list", self); },
          nb::sig("def to_list(self) -> list[int | str | tuple[int, ...] | None]"),
          "Returns all values; None where a value is unknown.")
      .def(
          "masked", [](nb::handle self) { return Frames("masked", self); },
          nb::sig("def masked(self) -> numpy.ma.MaskedArray"),
          "Returns `values` as a NumPy masked array, in which unknown values are masked.")
      .def(
          "to_arrow", [](nb::handle self) { return Frames("array_to_arrow", self); },
          nb::sig("def to_arrow(self) -> pyarrow.Array"),
          "Returns a pyarrow Array, without a copy.")
      .def(
          "to_pandas", [](nb::handle self) { return Frames("column_to_pandas", self); },
          nb::sig("def to_pandas(self) -> pandas.Series"), "Returns a copy as a pandas Series.")
      .def("__repr__", [](const Column& column) {
        return "<etude.Column " + column.name + ": " + std::to_string(column.rows) + " rows>";
      });
  BindArrowArray(type);
}

void BindColumnTable(nb::module_& module) {
  nb::class_<Columns> type(
      module, "Columns",
      "Columns of equal length, such as table[\"start_ns\"]. len() is the number of rows.");
  type.def("__len__", [](const Columns& columns) { return columns.rows; })
      .def_prop_ro("names",
                   [](const Columns& columns) {
                     std::vector<std::string> names;
                     for (const Column& column : columns.columns) names.push_back(column.name);
                     return names;
                   })
      .def(
          "__getitem__",
          [](const Columns& columns, const std::string& name) {
            const Column* found = columns.Find(name);
            if (found == nullptr) throw nb::key_error(name.c_str());
            return *found;
          },
          nb::arg("name"))
      .def("__contains__", [](const Columns& columns,
                              const std::string& name) { return columns.Find(name) != nullptr; })
      .def(
          "__iter__",
          [](const Columns& columns) {
            nb::list names;
            for (const Column& column : columns.columns) names.append(ToPython(column.name));
            return nb::iter(names);
          },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"))
      .def(
          "__arrow_c_stream__",
          [](const Columns& columns, nb::handle) {
            return ArrowCapsule(ToArrowStream(columns), "arrow_array_stream");
          },
          nb::arg("requested_schema") = nb::none(),
          nb::sig("def __arrow_c_stream__(self, requested_schema: object = None) -> object"),
          "Arrow's C stream interface: one batch, without a copy.")
      .def(
          "to_arrow", [](nb::handle self) { return Frames("table_to_arrow", self); },
          nb::sig("def to_arrow(self) -> pyarrow.Table"),
          "Returns a pyarrow Table, without a copy.")
      .def(
          "to_pandas", [](nb::handle self) { return Frames("columns_to_pandas", self); },
          nb::sig("def to_pandas(self) -> pandas.DataFrame"),
          "Returns a copy as a pandas DataFrame. Unknown values are <NA>.")
      .def("__repr__", [](const Columns& columns) {
        return "<etude.Columns: " + std::to_string(columns.rows) + " rows, " +
               std::to_string(columns.columns.size()) + " columns>";
      });
  BindArrowArray(type);
}

void BindDependencies(nb::module_& module) {
  nb::class_<Dependencies> type(module, "Dependencies",
                                "Dependencies of nodes, besides their caller, as compressed rows: "
                                "those of node n are entries\noffsets[n] up to offsets[n + 1] of "
                                "`targets` and `kinds`. len() is the number of dependencies.");
  type.def("__len__", [](const Dependencies& deps) { return deps.targets.rows; })
      .def_prop_ro(
          "offsets",
          [](nb::handle self) { return ViewOf(nb::cast<const Dependencies&>(self).offsets, self); },
          nb::sig("def offsets(self) -> numpy.typing.NDArray[numpy.int64]"))
      .def_prop_ro(
          "targets",
          [](nb::handle self) { return ViewOf(nb::cast<const Dependencies&>(self).targets, self); },
          nb::sig("def targets(self) -> numpy.typing.NDArray[numpy.int32]"))
      .def_ro("kinds", &Dependencies::kinds)
      .def(
          "of",
          [](const Dependencies& deps, int64_t node) {
            const auto nodes = static_cast<int64_t>(deps.offsets.rows) - 1;
            if (node < 0 || node >= nodes) throw nb::index_error("node out of range");
            const auto row = static_cast<size_t>(node);
            nb::list found;
            const auto end = static_cast<size_t>(deps.offsets.Get(row + 1));
            for (auto i = static_cast<size_t>(deps.offsets.Get(row)); i < end; ++i) {
              found.append(
                  nb::make_tuple(deps.targets.Get(i), ItemOf(deps.kinds, static_cast<int64_t>(i))));
            }
            return found;
          },
          nb::arg("node"), nb::sig("def of(self, node: int) -> list[tuple[int, str]]"),
          "Returns the rows that a node depends on, with the kind: control, data or sync.")
      .def(
          "to_arrow", [](nb::handle self) { return Frames("array_to_arrow", self); },
          nb::sig("def to_arrow(self) -> pyarrow.Array"),
          "Returns a pyarrow list array, without a copy: for each node structs of target and kind.")
      .def(
          "to_pandas", [](nb::handle self) { return Frames("dependencies_to_pandas", self); },
          nb::sig("def to_pandas(self) -> pandas.DataFrame"),
          "Returns a copy as a pandas DataFrame: one row per dependency, with node, target and "
          "kind.")
      .def("__repr__", [](const Dependencies& deps) {
        return "<etude.Dependencies: " + std::to_string(deps.targets.rows) + " of " +
               std::to_string(deps.offsets.rows - 1) + " nodes>";
      });
  BindArrowArray(type);
}

}  // namespace

void BindColumns(nb::module_& module) {
  BindColumn(module);
  BindColumnTable(module);
  BindDependencies(module);
}

}  // namespace etude::python
