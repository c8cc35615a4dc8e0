#include "src/report/text/page_text.h"

#include <gtest/gtest.h>

#include <string>

namespace etude {
namespace {

TEST(PageText, MarksThatCannotBeSeenStandAsText) {
  EXPECT_EQ(VisibleText("a\nb"), "a\\u{a}b");
  EXPECT_EQ(VisibleText(std::string_view("a\0b", 3)), "a\\u{0}b");
  EXPECT_EQ(VisibleText("\xE2\x80\xAEgpj.exe"), "\\u{202e}gpj.exe");           // right to left
  EXPECT_EQ(VisibleText("\xE2\x81\xA6x\xE2\x81\xA9"), "\\u{2066}x\\u{2069}");  // isolates
  EXPECT_EQ(VisibleText("\xF3\xA0\x80\xA1"), "\\u{e0021}");                    // a tag
  EXPECT_EQ(VisibleText("\xC2\x9B"), "\\u{9b}");                               // C1
  EXPECT_EQ(VisibleText("Größe 网络 🚀"), "Größe 网络 🚀");
}

TEST(PageText, BytesThatAreNoTextAreReplaced) {
  EXPECT_EQ(VisibleText("a\xFF"), "a\xEF\xBF\xBD");
  EXPECT_EQ(VisibleText("\xED\xA0\x80").find('\xED'), std::string::npos);  // a surrogate
}

TEST(PageText, LongTextsAreCutBetweenCodePoints) {
  EXPECT_EQ(VisibleText("ééé", 2), "éé…");
  EXPECT_EQ(VisibleText("ééé", 3), "ééé");
  std::string rockets;
  for (int i = 0; i < 50; ++i) rockets += "🚀";
  EXPECT_EQ(VisibleText(rockets, 10), rockets.substr(0, 40) + "…");
}

TEST(PageText, HtmlHasNoCharacterWithAMeaning) {
  EXPECT_EQ(HtmlText("</td><script>alert('1')&\"x\""),
            "&lt;/td&gt;&lt;script&gt;alert(&#39;1&#39;)&amp;&quot;x&quot;");
}

TEST(PageText, JsonEndsNoElement) {
  const std::string hostile = "</script><!--\xE2\x80\xA8&\xFF";
  const std::string text = ScriptJson({{"name", hostile}});
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos);
  const auto read = nlohmann::ordered_json::parse(text);
  EXPECT_EQ(read["name"], "</script><!--\xE2\x80\xA8&\xEF\xBF\xBD");
}

TEST(PageText, Base64) {  // RFC 4648, section 10
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foob"), "Zm9vYg==");
  EXPECT_EQ(Base64("\xFF\xFE\xFD"), "//79");
}

}  // namespace
}  // namespace etude
