#include "src/formats/pytorch_et/argument_types.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

namespace etude {
namespace {

std::vector<std::string> Split(std::string_view type) {
  std::vector<std::string> types;
  TypeList list(type);
  for (std::string_view next = list.Next(); !next.empty(); next = list.Next()) {
    types.emplace_back(next);
  }
  return types;
}

TEST(TypeList, SplitsAtCommasOutsideBrackets) {
  using Types = std::vector<std::string>;
  EXPECT_EQ(Split("GenericList[Int,Int]"), (Types{"Int", "Int"}));
  EXPECT_EQ(Split("GenericList[]"), Types{});
  EXPECT_EQ(Split("GenericList[GenericList[Tensor(float),Tensor(int)],None]"),
            (Types{"GenericList[Tensor(float),Tensor(int)]", "None"}));
  EXPECT_EQ(Split("Tuple[Tensor(c10::complex<float>),Tensor(std::pair<int,int>),String]"),
            (Types{"Tensor(c10::complex<float>)", "Tensor(std::pair<int,int>)", "String"}));
  EXPECT_EQ(Split("GenericList[Tensor(nullptr (uninitialized)),Tensor(long int)]"),
            (Types{"Tensor(nullptr (uninitialized))", "Tensor(long int)"}));
  EXPECT_EQ(Split("Int"), Types{});
  EXPECT_EQ(Split("GenericList[Int,Int"), Types{});
  EXPECT_EQ(Split("]]]],,[[["), Types{});
}

TEST(ComplexNumber, IsReadAsItIsWritten) {
  using Complex = std::complex<double>;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Complex number : {Complex(1, -2.5), Complex(0, 1e-300), Complex(-kInfinity, 3)}) {
    EXPECT_EQ(ComplexNumber(ComplexText(number)), number);
  }
  const auto unknown = ComplexNumber("(nan, 1)");
  ASSERT_TRUE(unknown);
  EXPECT_TRUE(std::isnan(unknown->real()));
  for (const char* text : {"", "(1)", "(1, )", "(1, 2", "(1, 2, 3)", "(1, x)", "<ComplexDouble>"}) {
    EXPECT_FALSE(ComplexNumber(text)) << text;
  }
}

TEST(ValueOfText, ThingsWithWhatIsKnownOfThem) {
  TraceBuilder builder;
  const auto kind = [&](std::string_view text, std::string_view type) {
    const auto value = ValueOfText(text, type, builder.Intern(type), builder);
    return value ? value->kind : ValueKind::kRaw;
  };
  EXPECT_EQ(kind("<ScriptObject>", "Object"), ValueKind::kOpaque);
  EXPECT_EQ(kind("<ProcessGroup> a b", "Object"), ValueKind::kOpaque);
  EXPECT_EQ(kind("<ReduceOp> SUM", "Object"), ValueKind::kOpaque);
  EXPECT_EQ(kind("<Generator> cpu 7", "Generator"), ValueKind::kOpaque);
  EXPECT_EQ(kind("(1, -2.5)", kComplexType), ValueKind::kOpaque);
  EXPECT_EQ(kind("(1, -2.5)", "Object"), ValueKind::kRaw);
  EXPECT_EQ(kind("<None>", "Object"), ValueKind::kNone);
  EXPECT_EQ(kind("<none", "Object"), ValueKind::kRaw);
  EXPECT_EQ(kind("SUM", "Object"), ValueKind::kRaw);
}

}  // namespace
}  // namespace etude
