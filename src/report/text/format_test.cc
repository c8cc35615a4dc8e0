#include "src/report/text/format.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(Format, Quantities) {
  EXPECT_EQ(FormatTime(Nanos{850}), "850 ns");
  EXPECT_EQ(FormatTime(Nanos{12'340}), "12.3 µs");
  EXPECT_EQ(FormatTime(Nanos{1'234'567}), "1.235 ms");
  EXPECT_EQ(FormatTime(Nanos{-2'500'000'000}), "-2.500 s");
  EXPECT_EQ(FormatBytes(Bytes{512}), "512 B");
  EXPECT_EQ(FormatBytes(Bytes{1023}), "1023 B");
  EXPECT_EQ(FormatBytes(Bytes{1536}), "1.50 KiB");
  EXPECT_EQ(FormatBytes(Bytes{-1536}), "-1.50 KiB");
  EXPECT_EQ(FormatRate(850), "850 B/s");
  EXPECT_EQ(FormatRate(301522925.66), "301.52 MB/s");
  EXPECT_EQ(FormatRate(2e12), "2.00 TB/s");
  EXPECT_EQ(FormatNumber(0.12345), "0.1235");
  EXPECT_EQ(FormatNumber(9999.4), "9999");
  EXPECT_EQ(FormatNumber(9999.6), "10,000");
  EXPECT_EQ(FormatNumber(-1'234'567.5), "-1,234,568");
  EXPECT_EQ(FormatNumber(1e15), "1e+15");
}

TEST(Format, WholeNumbersAreWhole) {
  EXPECT_EQ(WithoutNoise(20479999.999999996), 20480000.0);
  EXPECT_EQ(WithoutNoise(20479999.9999), 20479999.9999);
  EXPECT_EQ(WithoutNoise(1e-16), 1e-16);
  EXPECT_EQ(WithoutNoise(-3), -3);
}

TEST(Format, MangledNamesAreDecoded) {
  EXPECT_EQ(ShortName("_ZN5aiter1fIfLi8EEEvPT_i", 60), "void aiter::f<float, 8>(float*, int)");
  EXPECT_EQ(ShortName("_ZN5aiter1fIfLi8EEEvPT_i", 20), "f<float, 8>");
}

TEST(Format, TextsAreCutBetweenCodePoints) {
  EXPECT_EQ(ShortText("", 2), "");
  EXPECT_EQ(ShortText("aé", 2), "aé");
  EXPECT_EQ(ShortText("éaé", 2), "éa…");
  EXPECT_EQ(ShortText("ééé", 1), "é…");
}

TEST(Format, LongNamesOfFunctionsLoseWhatTheyShareFirst) {
  EXPECT_EQ(ShortName("void f(int)", 60), "void f(int)") << "short enough";
  EXPECT_EQ(ShortName("void at::native::f<4, at::native::G<float> >(int)", 40), "f<4, G<float> >");
  EXPECT_EQ(ShortName("void at::native::f<4, at::native::G<float> >(int)", 9), "f<4, G<fl…");
  EXPECT_EQ(ShortName("autograd::engine::evaluate_function: AddBackward0", 20),
            "autograd::…dBackward0");
  EXPECT_EQ(ShortName("model.layers.10.mlp.down_proj", 16), "model.la…own_proj");
  EXPECT_EQ(ShortName("é.ééé", 3), "é.…é");
  EXPECT_EQ(ShortName("sm80_gemm_f32", 6), "sm80_g…");
}

TEST(TextTable, AlignsByCodePoints) {
  TextTable table({TextTable::Align::kLeft, TextTable::Align::kRight});
  table.Row({"a", "12.3 µs"});
  table.Row({"longer", "1 s"});
  EXPECT_EQ(table.Text(""), "a       12.3 µs\nlonger      1 s\n");
}

}  // namespace
}  // namespace etude
