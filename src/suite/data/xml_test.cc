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
       {Case{"", "a.xml:1: no element found, expected well-formed XML"},
        Case{"text", "a.xml:1: syntax error, expected well-formed XML"},
        Case{"<a>\n<b>\n</a>", "a.xml:3: mismatched tag, expected '</b>'"},
        Case{"<a>\n<b", "a.xml:2: unclosed token, expected well-formed XML"},
        Case{"<a>", "a.xml:1: no element found, expected '</a>'"},
        Case{"<a></ab>", "a.xml:1: mismatched tag, expected '</a>'"},
        Case{"<a/><b/>", "a.xml:1: junk after document element, expected well-formed XML"},
        Case{"<a>&nbsp;</a>", "a.xml:1: undefined entity, expected well-formed XML"},
        Case{"<a>&#xD800;</a>",
             "a.xml:1: reference to invalid character number, expected well-formed XML"},
        Case{"<a>&#99999999999;</a>",
             "a.xml:1: reference to invalid character number, expected well-formed XML"},
        Case{"<a x=1/>", "a.xml:1: not well-formed (invalid token), expected well-formed XML"},
        Case{"<a x='1' x='2'/>", "a.xml:1: duplicate attribute, expected well-formed XML"},
        Case{"<a x='", "a.xml:1: unclosed token, expected well-formed XML"},
        Case{"<!-- a", "a.xml:1: unclosed token, expected well-formed XML"}}) {
    const auto root = Parsed(text);
    ASSERT_FALSE(root) << text;
    EXPECT_EQ(root.error().code, ErrorCode::kBadInput);
    EXPECT_EQ(root.error().message, message);
  }
}

// Entities, which may expand billionfold, are not expanded.
TEST(Xml, DocumentTypesAreRefused) {
  const auto root = Parsed("<!DOCTYPE a [<!ENTITY b 'c'>]>\n<a>&b;</a>");
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().message, "a.xml:1: a document type, expected none");
}

TEST(Xml, DepthIsBounded) {
  for (const std::string_view element : {"<a>", "<a><b/>"}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += element;
    const auto root = Parsed(text);
    ASSERT_FALSE(root);
    EXPECT_EQ(root.error().message,
              "a.xml:1: nested too deeply, expected at most 256 levels (--limit depth=N)");
  }
}

// Expat parses the document in pieces.
TEST(Xml, LargeDocumentsAreRead) {
  std::string text = "<a>";
  for (int i = 0; i < 150'000; ++i) text += "<b>x</b>";
  const auto root = Parsed(text + "</a>");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(root->children.size(), 150'000u);
  EXPECT_EQ(root->children.back().text, "x");
}

// Truncated documents are refused without reading past their end.
TEST(Xml, BeginningsAreNoDocuments) {
  const std::string_view text = "<?xml version='1.0'?><a b='&amp;'>x&#65;<!--c--><d/><?p?></a>";
  ASSERT_TRUE(Parsed(text));
  for (size_t size = 0; size < text.size(); ++size) {
    // In separate memory, so that sanitizers detect reads past the end.
    EXPECT_FALSE(Parsed(std::string(text.substr(0, size)))) << size;
  }
}

// A document with any changed byte is read or refused.
TEST(Xml, AnyByteMayBeWrong) {
  const std::string text = "<?xml version='1.0'?><a b='&amp;'>x&#65;<!--c--><d/><?p?></a>";
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
