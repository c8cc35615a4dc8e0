#include "src/formats/pytorch_et/argument_types.h"

#include <cstddef>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "src/base/text/quantity.h"

namespace etude {
namespace {

// Returns true for "<Generator>", also with details in native captures: "<ProcessGroup> 0".
bool IsOpaque(std::string_view text, std::string_view type) {
  if (type == kComplexType && ComplexNumber(text)) return true;
  if (!text.starts_with('<')) return false;
  return text.ends_with('>') || text.find("> ") != std::string_view::npos;
}

// Parses a part of a complex number.
std::optional<double> RealNumber(std::string_view text) {
  if (const auto finite = ParseDecimal(text)) return finite;
  return NamedDouble(text);
}

}  // namespace

bool AdmitsInt(std::string_view type) { return type.empty() || type == "Int" || type == "SymInt"; }
bool AdmitsDouble(std::string_view type) {
  return type.empty() || type == "Double" || type == "SymFloat";
}
bool AdmitsBool(std::string_view type) {
  return type.empty() || type == "Bool" || type == "SymBool";
}

std::optional<double> NamedDouble(std::string_view text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "-nan") return -std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

std::string ComplexText(std::complex<double> number) {
  return fmt::format("({}, {})", number.real(), number.imag());
}

std::optional<std::complex<double>> ComplexNumber(std::string_view text) {
  if (!text.starts_with('(') || !text.ends_with(')')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  const size_t comma = text.find(", ");
  if (comma == std::string_view::npos) return std::nullopt;
  const auto real = RealNumber(text.substr(0, comma));
  const auto imaginary = RealNumber(text.substr(comma + 2));
  if (!real || !imaginary) return std::nullopt;
  return std::complex<double>(*real, *imaginary);
}

std::optional<Value> ValueOfText(std::string_view text, std::string_view type, StringId type_id,
                                 TraceBuilder& builder) {
  const auto make = [&](ValueKind kind) {
    return Value::Text(kind, type_id, builder.Intern(text));
  };
  if (type == "String" || type.empty()) return make(ValueKind::kString);
  if (type == "Device") return make(ValueKind::kDevice);
  if (text == "<None>") return Value::None(type_id);
  if (AdmitsDouble(type)) {
    if (const auto number = NamedDouble(text)) return Value::Double(type_id, *number);
  }
  if (IsOpaque(text, type)) return make(ValueKind::kOpaque);
  return std::nullopt;
}

TypeList::TypeList(std::string_view type) {
  const size_t open = type.find('[');
  if (open == std::string_view::npos || !type.ends_with(']')) return;
  rest_ = type.substr(open + 1, type.size() - open - 2);
}

std::string_view TypeList::Next() {
  int nesting = 0;
  for (size_t i = 0; i < rest_.size(); ++i) {
    const char c = rest_[i];
    if (c == '[' || c == '(' || c == '<' || c == '{') ++nesting;
    if (c == ']' || c == ')' || c == '>' || c == '}') --nesting;
    if (c == ',' && nesting <= 0) {
      const std::string_view first = rest_.substr(0, i);
      rest_.remove_prefix(i + 1);
      return first;
    }
  }
  return std::exchange(rest_, {});
}

}  // namespace etude
