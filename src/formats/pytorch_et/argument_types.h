#pragma once

#include <complex>
#include <optional>
#include <string>
#include <string_view>

#include "src/trace/trace_builder.h"

// Argument types of PyTorch's observer: "Int", "Tensor(float)", "GenericList[Int,Int]". "" if
// missing: any value is allowed.
namespace etude {

inline constexpr std::string_view kComplexType = "ComplexDouble";

inline bool IsTensorType(std::string_view type) { return type.starts_with("Tensor("); }

bool AdmitsInt(std::string_view type);
bool AdmitsDouble(std::string_view type);
bool AdmitsBool(std::string_view type);

// Parses a number that the observer writes as a string because JSON lacks it: "inf", "-inf", "nan"
// or "-nan"; nullopt for other text.
std::optional<double> NamedDouble(std::string_view text);

// Convert a complex number to and from its text in native captures, "(1, -2.5)". The observer does
// not record the parts: nullopt, as for other text.
std::string ComplexText(std::complex<double> number);
std::optional<std::complex<double>> ComplexNumber(std::string_view text);

// Returns the value for `text` in a file; nullopt for an unexpected form.
std::optional<Value> ValueOfText(std::string_view text, std::string_view type, StringId type_id,
                                 TraceBuilder& builder);

// Iterates over the element types in a list's type: "GenericList[Tensor(float),None]" gives
// "Tensor(float)" and "None". Commas inside brackets of any kind, as in C++ type names and nested
// lists, do not separate.
class TypeList {
 public:
  // Has no elements if `type` is not that of a list.
  explicit TypeList(std::string_view type);
  // Returns the next element's type; "" if there is none left.
  std::string_view Next();

 private:
  std::string_view rest_;
};

}  // namespace etude
