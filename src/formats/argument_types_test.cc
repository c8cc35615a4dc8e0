#include "src/formats/argument_types.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace etude
