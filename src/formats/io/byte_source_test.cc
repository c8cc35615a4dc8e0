#include "src/formats/io/byte_source.h"
#include "src/formats/test_support.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace etude {
namespace {

using testing_support::Gzip;

std::string Zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

// Returns all bytes of `source`, or the error's message.
std::string ReadAll(ByteSource& source) {
  std::string all;
  while (true) {
    const auto chunk = source.Next();
    if (!chunk) return "error: " + chunk.error().message;
    if (chunk->empty()) return all;
    all += *chunk;
  }
}

ByteSource Memory(std::string bytes, const Limits& limits = {}) {
  return ByteSource::FromMemory("file", std::move(bytes), limits);
}

std::string ManyNumbers() {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + " ";
  return text;
}

TEST(ByteSource, DeliversPlainGzipAndZstdAlike) {
  const std::string text = ManyNumbers();
  for (const auto& [bytes, compression] :
       {std::pair(text, Compression::kNone), std::pair(Gzip(text), Compression::kGzip),
        std::pair(Zstd(text), Compression::kZstd)}) {
    ByteSource source = Memory(bytes);
    EXPECT_EQ(ReadAll(source), text);
    EXPECT_EQ(source.compression(), compression);
    EXPECT_FALSE(source.cut());
    EXPECT_EQ(source.trailing_bytes(), 0u);
    EXPECT_EQ(source.bytes_out(), text.size());
    EXPECT_EQ(source.bytes_in(), bytes.size());
  }
}

TEST(ByteSource, ReadsPlainBytesAtAnOffset) {
  const std::string text = ManyNumbers();
  const std::string path =
      (std::filesystem::path(testing::TempDir()) / "etude_byte_source_at").string();
  std::ofstream(path, std::ios::binary) << text;
  ByteSource memory = Memory(text);
  ByteSource file = ByteSource::Open(path, Limits()).value();
  for (ByteSource* source : {&memory, &file}) {
    EXPECT_FALSE(source->can_read_at());
    EXPECT_EQ(source->Peek(10).value(), text.substr(0, 10));
    ASSERT_TRUE(source->can_read_at());
    std::string bytes(100, '\0');
    EXPECT_EQ(source->ReadAt(300'000, bytes).value(), 100u);
    EXPECT_EQ(bytes, text.substr(300'000, 100));
    EXPECT_EQ(source->ReadAt(text.size() - 7, bytes).value(), 7u);
    EXPECT_EQ(source->ReadAt(text.size() + 7, bytes).value(), 0u);
    EXPECT_EQ(ReadAll(*source), text);
  }
  ByteSource gzip = Memory(Gzip(text));
  EXPECT_EQ(ReadAll(gzip), text);
  EXPECT_FALSE(gzip.can_read_at());
  std::filesystem::remove(path);
}

// Reading a pipe would wait for a writer.
TEST(ByteSource, WhatAFolderNamesIsAFile) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "what_a_folder_names";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "file") << "text";
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", folder / "link");
  EXPECT_TRUE(CheckRegular(folder / "file").has_value());
  EXPECT_TRUE(CheckRegular(folder / "nothing").has_value()) << "opening it says so";
  for (const std::string& path : {(folder / "pipe").string(), (folder / "link").string(),
                                  std::string("/dev/null"), std::string("-")}) {
    const Status status = CheckRegular(path);
    ASSERT_FALSE(status.has_value()) << path;
    EXPECT_EQ(status.error().code, ErrorCode::kBadInput);
  }
  std::filesystem::remove_all(folder);
}

TEST(ByteSource, PeekConsumesNothing) {
  const std::string text = ManyNumbers();
  ByteSource source = Memory(Gzip(text));
  EXPECT_EQ(source.Peek(10).value(), text.substr(0, 10));
  EXPECT_EQ(source.Peek(400'000).value(), text.substr(0, 400'000));
  EXPECT_EQ(ReadAll(source), text);
  ByteSource small = Memory("ab");
  EXPECT_EQ(small.Peek(10).value(), "ab");
  EXPECT_EQ(ReadAll(small), "ab");
}

TEST(ByteSource, ReadsSeveralMembersAndSkippableFrames) {
  ByteSource gzip = Memory(Gzip("one ") + Gzip("") + Gzip("two"));
  EXPECT_EQ(ReadAll(gzip), "one two");
  ByteSource zstd =
      Memory(std::string("\x50\x2a\x4d\x18\x02\x00\x00\x00xy", 10) + Zstd("one ") + Zstd("two"));
  EXPECT_EQ(ReadAll(zstd), "one two");
}

TEST(ByteSource, GzipInGzipIsData) {
  ByteSource source = Memory(Gzip(Gzip("text")));
  EXPECT_EQ(ReadAll(source), Gzip("text"));
}

TEST(ByteSource, CutDataIsReportedNotRefused) {
  const std::string text = ManyNumbers();
  for (const std::string& bytes : {Gzip(text), Zstd(text)}) {
    for (const size_t kept : {size_t{5}, bytes.size() / 2, bytes.size() - 1}) {
      ByteSource source = Memory(bytes.substr(0, kept));
      const std::string read = ReadAll(source);
      EXPECT_TRUE(source.cut()) << kept;
      EXPECT_EQ(read, text.substr(0, read.size()));
    }
  }
}

TEST(ByteSource, CountsForeignBytesBehindCompressedData) {
  ByteSource gzip = Memory(Gzip("text") + "garbage");
  EXPECT_EQ(ReadAll(gzip), "text");
  EXPECT_EQ(gzip.trailing_bytes(), 7u);
  EXPECT_FALSE(gzip.cut());
  ByteSource zstd = Memory(Zstd("text") + std::string(5, '\0'));
  EXPECT_EQ(ReadAll(zstd), "text");
  EXPECT_EQ(zstd.trailing_bytes(), 5u);
}

TEST(ByteSource, RefusesDamagedData) {
  std::string bytes = Gzip(ManyNumbers());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x55);
  ByteSource source = Memory(bytes);
  EXPECT_NE(ReadAll(source).find("damaged gzip data"), std::string::npos);
  EXPECT_FALSE(source.Next().has_value()) << "the error stays";
}

TEST(ByteSource, StopsCompressionBombs) {
  Limits limits;
  limits.ratio_grace_bytes = 1 << 20;
  limits.ratio = 100;
  ByteSource source = Memory(Gzip(std::string(20 << 20, '\0')), limits);
  const std::string message = ReadAll(source);
  EXPECT_NE(message.find("limit 'ratio'"), std::string::npos) << message.substr(0, 100);
  // Within the grace any ratio is allowed.
  ByteSource small = Memory(Gzip(std::string(1 << 19, '\0')), limits);
  EXPECT_EQ(ReadAll(small).size(), size_t{1} << 19);
}

TEST(ByteSource, StopsAtTheLimitOfBytes) {
  Limits limits;
  limits.total_bytes = 1000;
  ByteSource source = Memory(ManyNumbers(), limits);
  EXPECT_NE(ReadAll(source).find("limit 'total_bytes'"), std::string::npos);
}

TEST(ReadWholeFile, TakesAsManyBytesAsItMay) {
  const std::string path = testing::TempDir() + "read_whole_file";
  std::ofstream(path) << "12345";
  EXPECT_EQ(ReadWholeFile(path, {}, 5, "").value(), "12345");
  const auto more = ReadWholeFile(path, {}, 4, ", expected four");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(more.error().message, path + ": more than 4 bytes, expected four");
  const auto element = ReadWholeFile(path, {.element_bytes = 4});
  ASSERT_FALSE(element);
  EXPECT_EQ(element.error().message, path + ": more than 4 bytes (--limit element_bytes=N)");
  std::filesystem::remove(path);
}

TEST(ByteSource, HandlesTinyInputs) {
  for (const std::string& bytes : {std::string(), std::string("a"), std::string("\x1f\x8b")}) {
    ByteSource source = Memory(bytes);
    EXPECT_EQ(ReadAll(source), bytes);
  }
}

TEST(ByteSource, TellsFoldersFromMissingFiles) {
  const auto folder = ByteSource::Open(std::filesystem::temp_directory_path().string(), Limits());
  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(folder.error().code, ErrorCode::kBadInput);
  const auto missing = ByteSource::Open("/nowhere/at/all", Limits());
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
  EXPECT_TRUE(missing.error().message.starts_with("/nowhere/at/all: "));
}

}  // namespace
}  // namespace etude
