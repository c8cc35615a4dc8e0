#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/formats/json/py_literal.h"
#include "src/trace/trace.h"
#include "src/trace/trace_builder.h"

// Arguments of a node as text: lists of values, and parallel lists with shapes, strides and types.
// JSON in linked traces, Python's str() in Chakra traces.
namespace etude {

enum class TextStyle : uint8_t { kPython, kJson };

// Appends one list each. `tables` is the Trace or TraceBuilder of the values. A value of unexpected
// form is written as it was read.
template <typename Tables>
void AppendValues(const Tables& tables, std::span<const Value> values, TextStyle style,
                  std::string& out);
// Appends [] for values that are not tensors or have no known shape.
template <typename Tables>
void AppendShapes(const Tables& tables, std::span<const Value> values, std::string& out);
template <typename Tables>
void AppendStrides(const Tables& tables, std::span<const Value> values, std::string& out);
template <typename Tables>
void AppendTypes(const Tables& tables, std::span<const Value> values, TextStyle style,
                 std::string& out);

// Returns true if a tensor among `values`, lists included, has strides.
template <typename Tables>
bool HasStrides(const Tables& tables, std::span<const Value> values);

// Handle an Etude extension: AppendNumbers appends [kind, number] (a ValueKind and
// TensorUse::number) for tensors that were Python numbers, [] for all others. HasNumbers returns
// true if there are any, lists included.
template <typename Tables>
void AppendNumbers(const Tables& tables, std::span<const Value> values, std::string& out);
template <typename Tables>
bool HasNumbers(const Tables& tables, std::span<const Value> values);

struct IoText {
  std::string_view values;
  std::string_view shapes;
  std::string_view types;
  std::string_view strides;  // "": not recorded
};

// Converts such texts, in Python's or JSON's form, to values, by the rules of EtArguments. Not
// thread-safe.
class IoParser {
 public:
  explicit IoParser(size_t depth) : depth_(depth) {}

  // Keeps values of unexpected form as JSON text and counts them. Returns nullopt if a text is not
  // a list.
  std::optional<ValueListId> Parse(const IoText& text, TraceBuilder& builder);

 private:
  // An item of one of the lists, or nothing if a list ended early.
  struct Cursor {
    const std::vector<PyItem>* items = nullptr;
    uint32_t index = 0;
    uint32_t end = 0;  // no item if equal to `index`

    const PyItem* get() const { return index < end ? &(*items)[index] : nullptr; }
    void Next() {
      if (index < end) index = (*items)[index].end;
    }
    Cursor Elements() const;
  };

  Value MakeValue(const Cursor& value, const Cursor& shape, const Cursor& stride,
                  std::string_view type);
  Value MakeList(const Cursor& value, const Cursor& shape, const Cursor& stride,
                 std::string_view type, StringId type_id);
  std::optional<TensorId> MakeTensor(const Cursor& value, const Cursor& shape, const Cursor& stride,
                                     StringId type_id);
  std::optional<Value> MakeScalar(const PyItem& item, std::string_view type, StringId type_id);
  Value Raw(const Cursor& value, StringId type_id);
  IntListId MakeInts(const Cursor& list);

  size_t depth_;
  TraceBuilder* builder_ = nullptr;
  PyLiteral values_;
  PyLiteral shapes_;
  PyLiteral types_;
  PyLiteral strides_;
  std::vector<int64_t> ints_;
};

}  // namespace etude
