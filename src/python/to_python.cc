#include "src/python/bindings.h"

#include <utility>

namespace etude::python {

nb::str ToPython(std::string_view text) {
  PyObject* made =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (made == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(made);
}

nb::object FromJson(const nlohmann::ordered_json& json) {
  using Kind = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Kind::boolean: return nb::bool_(json.get<bool>());
    case Kind::number_integer: return nb::int_(json.get<int64_t>());
    case Kind::number_unsigned: return nb::int_(json.get<uint64_t>());
    case Kind::number_float: return nb::float_(json.get<double>());
    case Kind::string: return ToPython(json.get_ref<const std::string&>());
    case Kind::array: {
      nb::list list;
      for (const auto& item : json) list.append(FromJson(item));
      return list;
    }
    case Kind::object: {
      nb::dict dict;
      for (const auto& [key, value] : json.items()) dict[ToPython(key)] = FromJson(value);
      return dict;
    }
    case Kind::null:
    case Kind::binary:
    case Kind::discarded: break;
  }
  return nb::none();
}

std::string ToPath(nb::handle path) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &bytes) == 0) throw nb::python_error();
  const auto owned = nb::steal<nb::bytes>(bytes);
  return {owned.c_str(), owned.size()};
}

nb::str FromPath(std::string_view path) {
  PyObject* made =
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size()));
  if (made == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(made);
}

std::string ToText(nb::handle text) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes == nullptr) throw nb::python_error();
  return {bytes, static_cast<size_t>(size)};
}

nb::object Frames(const char* name, nb::handle self) {
  return nb::module_::import_("etude.frames").attr(name)(self);
}

}  // namespace etude::python
