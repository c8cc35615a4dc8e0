#include "src/base/text/printable.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(Printable, PlainTextStays) {
  EXPECT_EQ(Printable("aten::add – 12 µs 漢 \xF0\x9F\x98\x80 \\u001b"),
            "aten::add – 12 µs 漢 \xF0\x9F\x98\x80 \\u001b");
}

TEST(Printable, WhatSteersTerminalsIsSpelledOut) {
  EXPECT_EQ(Printable("\x1B[31m\a\r\n\x7F"), "\\u001b[31m\\u0007\\u000d\\u000a\\u007f");
  EXPECT_EQ(Printable("a\xC2\x9B"
                      "31m"),
            "a\\u009b31m");  // C1: "control sequence"
  EXPECT_EQ(Printable("\xE2\x80\xAE"
                      "gpj.exe"),
            "\\u202egpj.exe");  // right to left
  EXPECT_EQ(Printable(std::string_view("\0x", 2)), "\\u0000x");
}

TEST(Printable, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(Printable("a\x9B"
                      "31m"),
            "a\xEF\xBF\xBD"
            "31m");
  EXPECT_EQ(Printable("\xC0\x9B"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // too long
  EXPECT_EQ(Printable("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // surrogate
  EXPECT_EQ(Printable("\xE2\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // cut off
}

TEST(Printable, LinesStay) { EXPECT_EQ(PrintableLines("a\n\tb\n"), "a\n\\u0009b\n"); }

TEST(Printable, LongLinesLoseTheirMiddle) {
  EXPECT_EQ(WithoutLongLines("", 4), "");
  EXPECT_EQ(WithoutLongLines("abcd\nefg\n", 5), "abcd\nefg\n");
  EXPECT_EQ(WithoutLongLines("a\n0123456789\nb", 6), "a\n012…89\nb");
  EXPECT_EQ(WithoutLongLines("0123456789", 6), "012…789");
  // Characters stay whole.
  EXPECT_EQ(WithoutLongLines("äöüäöü", 6), "ä…ü");
}

}  // namespace
}  // namespace etude
