#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/formats/io/byte_source.h"
#include "src/formats/read_trace.h"
#include "src/formats/trace_reader.h"

// For tests of readers only.
namespace etude::testing_support {

// Pushes `text` in pieces of `chunk` bytes through a reader made by `make`.
template <typename Make>
Result<Trace> ReadWith(Make make, std::string_view text, size_t chunk = 1 << 20,
                       const ReadOptions& options = {}, const RunContext& context = {}) {
  const std::unique_ptr<TraceReader> reader = make("test", options, context);
  for (size_t at = 0; at < text.size(); at += chunk) {
    // A separate copy, so that the sanitizer sees reads beyond the piece.
    const std::string piece(text.substr(at, chunk));
    ETUDE_RETURN_IF_ERROR(reader->Push(piece));
  }
  return reader->Finish(/*cut=*/false);
}

inline std::string Gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Returns a protobuf message after its length, as in Chakra's files.
inline std::string Framed(const std::string& message) {
  std::string out;
  size_t length = message.size();
  while (length >= 0x80) {
    out.push_back(static_cast<char>((length & 0x7F) | 0x80));
    length >>= 7;
  }
  out.push_back(static_cast<char>(length));
  return out + message;
}

inline std::string ReadFileBytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the path of a file or folder of test data: in the clone, unpacked in the build folder, or
// else among the recorded traces that are not shipped with the tests.
inline std::string DataPath(const std::string& name) {
  for (const char* folder : {ETUDE_TEST_DATA "/", ETUDE_UNPACKED_DATA "/"}) {
    if (std::filesystem::exists(folder + name)) return folder + name;
  }
  return ETUDE_SHARED_DATA "/" + name;
}

// The uncompressed contents of a file of test data.
inline std::string DataText(const std::string& name) {
  auto source = ByteSource::Open(DataPath(name), Limits());
  std::string text;
  while (source) {
    const auto chunk = source->Next();
    if (!chunk || chunk->empty()) break;
    text += *chunk;
  }
  return text;
}

// Returns whether the folder of recorded traces that are not shipped with the tests exists.
inline bool HasSharedData() { return std::filesystem::exists(ETUDE_SHARED_DATA "/README.md"); }

// Returns whether `name` is in that folder, but the folder is missing.
inline bool LacksData(const std::string& name) {
  return !HasSharedData() && DataPath(name).starts_with(ETUDE_SHARED_DATA "/");
}

}  // namespace etude::testing_support

#define ETUDE_NEED_SHARED_DATA()                                  \
  do {                                                            \
    if (!etude::testing_support::HasSharedData()) {               \
      GTEST_SKIP() << "no recorded traces at " ETUDE_SHARED_DATA; \
    }                                                             \
  } while (false)

#define ETUDE_NEED_DATA(name)                                                  \
  do {                                                                         \
    if (etude::testing_support::LacksData(name)) {                             \
      GTEST_SKIP() << "no recorded traces at " ETUDE_SHARED_DATA ": " << name; \
    }                                                                          \
  } while (false)
