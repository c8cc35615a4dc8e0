#include "src/base/text/nearest.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(Nearest, OneOfThreeLettersMayBeWrong) {
  EXPECT_EQ(Nearest("valdate", {"info", "validate"}), "validate");
  EXPECT_EQ(Nearest("Rign", {"FullyConnected", "Ring", "Switch"}), "Ring");
  EXPECT_EQ(Nearest("ring", {"FullyConnected", "Ring", "Switch"}), "Ring");
  EXPECT_EQ(Nearest("Torus", {"FullyConnected", "Ring", "Switch"}), "");
  EXPECT_EQ(Nearest("x", {"L", "o", "g", "G"}), "");
  EXPECT_EQ(Nearest("l", {"L", "o", "g", "G"}), "L");
  EXPECT_EQ(Nearest("G ", {"L", "o", "g", "G"}), "G");
  EXPECT_EQ(Nearest("", {"a", ""}), "");
}

TEST(Nearest, TheFirstOfEquals) {
  EXPECT_EQ(Nearest("tabl", {"table", "tab"}), "table");
  EXPECT_EQ(Nearest("tabl", {"tab", "table"}), "tab");
}

TEST(Nearest, ByTheNameProperOfQualifiedOnes) {
  const std::vector<std::string> operators = {"aten::add", "aten::linear", "aten::mm"};
  EXPECT_EQ(Nearest("linear", operators), "aten::linear");
  EXPECT_EQ(Nearest("lienar", operators), "aten::linear");
  EXPECT_EQ(Nearest("aten::ad", operators), "aten::add");
  EXPECT_EQ(Nearest("atn::mm", operators), "aten::mm");
  // Most letters match, but only in the qualifier, which all names share.
  EXPECT_EQ(Nearest("aten::xyz", operators), "");
}

TEST(DidYouMean, OnlyOffersWhatIsNear) {
  EXPECT_EQ(DidYouMean("valdate", {"info", "validate", "link"}), "; did you mean 'validate'?");
  EXPECT_EQ(DidYouMean("frobnicate", {"info", "validate", "link"}), "");
  EXPECT_EQ(MeantOrAll("frobnicate", {"info", "link"}), ", expected one of info, link");
}

}  // namespace
}  // namespace etude
