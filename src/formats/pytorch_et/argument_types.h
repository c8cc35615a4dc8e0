#pragma once

#include <complex>
#include <optional>
#include <string>
#include <string_view>

#include "src/trace/trace_builder.h"

// What the types say with which PyTorch's observer names arguments: "Int", "Tensor(float)",
// "GenericList[Int,Int]". "" where a file gives none: any value goes with it.
namespace etude {

inline constexpr std::string_view kComplexType = "ComplexDouble";

inline bool IsTensorType(std::string_view type) { return type.starts_with("Tensor("); }

bool AdmitsInt(std::string_view type);
bool AdmitsDouble(std::string_view type);
bool AdmitsBool(std::string_view type);

// The number that the observer, which knows JSON has no words for it, writes as a string: "inf",
// "-inf", "nan" or "-nan"; nullopt for other text.
std::optional<double> NamedDouble(std::string_view text);

// "(1, -2.5)": a complex number as native captures know it. Of one that the observer recorded the
// parts are not known: nullopt, as for other text.
std::string ComplexText(std::complex<double> number);
std::optional<std::complex<double>> ComplexNumber(std::string_view text);

// The value that a file has as `text`; nullopt where that is of unforeseen form.
std::optional<Value> ValueOfText(std::string_view text, std::string_view type, StringId type_id,
                                 TraceBuilder& builder);

// The elements' types of a list's type text, one after another: "GenericList[Tensor(float),None]"
// gives "Tensor(float)" and "None". Commas inside brackets of any kind, as in C++ type names and
// in lists of lists, separate nothing.
class TypeList {
 public:
  // `type` is not a list's: no elements.
  explicit TypeList(std::string_view type);
  // The next element's type; "" if there is none left.
  std::string_view Next();

 private:
  std::string_view rest_;
};

}  // namespace etude
