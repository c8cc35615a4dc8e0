#include "src/suite/data/xml.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace etude::suite {
namespace {

Result<XmlElement> Parsed(std::string_view text) {
  static const std::string kPath = "a.xml";
  return ParseXml(kPath, text, Limits());
}

TEST(Xml, ReadsElementsTextAndEntities) {
  const auto root = Parsed(
      "\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<!-- a <b> -->\n"
      "<a x='1' y=\"&lt;2\">\n <b> one &amp; &#228;&#x1F600; </b><c/><b>two</b>\n tail\n</a >\n");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(root->name, "a");
  EXPECT_EQ(root->text, "tail");
  ASSERT_EQ(root->children.size(), 3u);
  EXPECT_EQ(root->Child("b")->text, "one & ä😀");
  EXPECT_EQ(root->Child("c")->text, "");
  EXPECT_EQ(root->Child("d"), nullptr);
}

TEST(Xml, SaysWhatIsWrongAndWhere) {
  struct Case {
    std::string_view text;
    std::string_view message;
  };
  for (const auto& [text, message] :
       {Case{"", "a.xml:1: found the end of the file, expected an element"},
        Case{"text", "a.xml:1: found 'text', expected an element"},
        Case{"<a>\n<b>\n</a>", "a.xml:3: found '</a>', expected '</b>'"},
        Case{"<a>\n<b", "a.xml:2: found the end of the file, expected '>'"},
        Case{"<a>", "a.xml:1: found the end of the file, expected '</a>'"},
        Case{"<a></ab>", "a.xml:1: found '</ab>', expected '</a>'"},
        Case{"<a/><b/>", "a.xml:1: found '<b/>', expected the end of the file"},
        Case{"<a>&nbsp;</a>",
             "a.xml:1: found '&nbsp;</a>', expected &amp;, &lt;, &gt;, &quot; or &apos;"},
        Case{"<a>&#xD800;</a>",
             "a.xml:1: found '&#xD800;</a>', expected the number of a character"},
        Case{"<a>&#99999999999;</a>",
             "a.xml:1: found '&#99999999999;</a>', expected the number of a character"},
        Case{"<a x=1/>", "a.xml:1: found '1/>', expected a value in quotes"},
        Case{"<a x='1' x='2'/>", "a.xml:1: found '='2'/>', expected one attribute 'x'"},
        Case{"<a x='", "a.xml:1: found the end of the file, expected the value's end"},
        Case{"<!DOCTYPE a><a/>", "a.xml:1: found '!DOCTYPE a><a/>', expected a name"},
        Case{"<!-- a", "a.xml:1: found the end of the file, expected the comment's end"}}) {
    const auto root = Parsed(text);
    ASSERT_FALSE(root) << text;
    EXPECT_EQ(root.error().code, ErrorCode::kBadInput);
    EXPECT_EQ(root.error().message, message);
  }
}

TEST(Xml, DepthIsBounded) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "<a>";
  const auto root = Parsed(text);
  ASSERT_FALSE(root);
  EXPECT_NE(root.error().message.find("at most 256 deep"), std::string::npos);
}

// Each beginning of a document is refused, and none is read past its end.
TEST(Xml, BeginningsAreNoDocuments) {
  const std::string_view text = "<?xml v='1'?><a b='&amp;'>x&#65;<!--c--><d/><?p?></a>";
  ASSERT_TRUE(Parsed(text));
  for (size_t size = 0; size < text.size(); ++size) {
    // In memory of its own, so that a sanitizer sees what is read after it.
    EXPECT_FALSE(Parsed(std::string(text.substr(0, size)))) << size;
  }
}

// Whatever a byte becomes, the document is read or refused.
TEST(Xml, AnyByteMayBeWrong) {
  const std::string text = "<?xml v='1'?><a b='&amp;'>x&#65;<!--c--><d/><?p?></a>";
  for (size_t place = 0; place < text.size(); ++place) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = text;
      changed[place] = static_cast<char>(byte);
      const auto root = Parsed(changed);
      EXPECT_TRUE(root || root.error().code == ErrorCode::kBadInput);
    }
  }
}

}  // namespace
}  // namespace etude::suite
