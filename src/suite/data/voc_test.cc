#include "src/suite/data/voc.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace etude::suite {
namespace {

constexpr std::string_view kAnnotation =
    "<annotation><size><width>100</width><height>40</height></size>\n"
    "<object><name>dog</name><difficult>1</difficult><part><name>head</name></part>\n"
    "<bndbox><xmin>1</xmin><ymin>2.5</ymin><xmax>100</xmax><ymax>40</ymax></bndbox></object>\n"
    "<object><name>cat</name>\n"
    "<bndbox><xmin>7</xmin><ymin>8</ymin><xmax>7</xmax><ymax>9</ymax></bndbox></object>\n"
    "</annotation>\n";

// A data set of two pictures; `annotation` is for the first, the second has none.
class VocTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "voc_test";
    std::filesystem::remove_all(folder_);
    Write("ImageSets/Main/trainval.txt", "one\r\n");
    Write("ImageSets/Main/test.txt", "two\n\n");
    Write("Annotations/one.xml", kAnnotation);
    Write("Annotations/two.xml",
          "<annotation><size><width>4</width><height>5</height></size></annotation>");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, std::string_view text) {
    const std::filesystem::path path = folder_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // Returns the error for the annotation with `before` replaced.
  std::string MessageWith(std::string_view before, std::string_view after) {
    std::string text(kAnnotation);
    text.replace(text.find(before), before.size(), after);
    Write("Annotations/one.xml", text);
    const auto read = ReadVoc(folder_, {});
    if (read) return "";
    EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
    EXPECT_TRUE(read.error().message.starts_with(folder_ + "/Annotations/one.xml"))
        << read.error().message;
    return read.error().message.substr(folder_.size() + 20);
  }

  std::string folder_;
};

TEST_F(VocTest, ReadsBoxesAndClasses) {
  const auto read = ReadVoc(folder_, {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->classes, (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(read->train.size(), 1u);
  ASSERT_EQ(read->test.size(), 1u);
  EXPECT_EQ(read->train[0].path, folder_ + "/JPEGImages/one.jpg");
  const Annotation& annotation = read->train[0].annotation;
  EXPECT_EQ(annotation.size.width, 100);
  ASSERT_EQ(annotation.objects.size(), 2u);
  EXPECT_EQ(annotation.objects[0].label, 1);
  EXPECT_TRUE(annotation.objects[0].difficult);
  EXPECT_EQ(annotation.objects[0].box, (Box{0, 1.5F, 100, 40}));
  EXPECT_FALSE(annotation.objects[1].difficult);
  EXPECT_EQ(annotation.objects[1].box, (Box{6, 7, 7, 9}));  // one pixel wide
  EXPECT_TRUE(read->test[0].annotation.objects.empty());
}

TEST_F(VocTest, SaysWhatIsWrongWithAnAnnotation) {
  EXPECT_EQ(MessageWith("<annotation>", "<annotations>"),
            ":6: mismatched tag, expected '</annotations>'");
  EXPECT_EQ(MessageWith("<xmin>1</xmin>", ""), ": found <bndbox> without <xmin>, expected one");
  EXPECT_EQ(MessageWith("<xmin>1</xmin>", "<xmin>one</xmin>"),
            ": <xmin>: found 'one', expected a number");
  EXPECT_EQ(MessageWith("<xmax>100<", "<xmax>101<"),
            ": found dog at (1, 2.5) to (101, 40), expected a box within (1, 1) to (100, 40)");
  EXPECT_EQ(MessageWith("<xmin>1<", "<xmin>nan<"),
            ": found dog at (nan, 2.5) to (100, 40), expected a box within (1, 1) to (100, 40)");
  EXPECT_EQ(MessageWith("<width>100<", "<width>0<"),
            ": found an image of 0 × 40 pixels, expected 1 to 65535");
  EXPECT_EQ(MessageWith("<difficult>1<", "<difficult>yes<"),
            ": <difficult>: found 'yes', expected 0 or 1");
  EXPECT_EQ(MessageWith("<name>dog</name>", "<name/>"), ": found an object without a name");
}

TEST_F(VocTest, AnAnnotationThatIsTooLargeSaysHowToReadIt) {
  const auto read = ReadVoc(folder_, {.limits = {.element_bytes = 50}});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, folder_ +
                                      "/Annotations/one.xml: more than 50 bytes "
                                      "(--limit element_bytes=N)");
}

TEST_F(VocTest, SaysWhatIsMissing) {
  EXPECT_EQ(ReadVoc(folder_ + "/none", {}).error().code, ErrorCode::kUnavailable);
  std::filesystem::remove(folder_ + "/Annotations/two.xml");
  EXPECT_EQ(ReadVoc(folder_, {}).error().code, ErrorCode::kIo);
  Write("ImageSets/Main/test.txt", "\n");
  EXPECT_EQ(ReadVoc(folder_, {}).error().message,
            folder_ + "/ImageSets/Main/test.txt: found no images, expected one name per line");
  Write("ImageSets/Main/test.txt", "../one\n");
  EXPECT_EQ(ReadVoc(folder_, {}).error().message,
            folder_ + "/ImageSets/Main/test.txt: found '../one', expected the name of an image");
}

}  // namespace
}  // namespace etude::suite
