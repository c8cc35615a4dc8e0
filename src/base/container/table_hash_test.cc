#include "src/base/container/table_hash.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

namespace etude {
namespace {

std::string_view KeyBytes(const std::array<uint64_t, 2>& words) {
  return {reinterpret_cast<const char*>(words.data()), sizeof(words)};
}

TEST(TableHash, IsOneInAProcess) {
  EXPECT_EQ(TableHash("some text"), TableHash(std::string("some text")));
  EXPECT_EQ(TableHash(7), TableHash(7));
}

TEST(TableHash, TellsApart) {
  std::set<uint64_t> hashes;
  std::string text;
  for (int i = 0; i < 100; ++i, text += '\0') hashes.insert(TableHash(text));
  EXPECT_EQ(hashes.size(), 100u) << "zeros of other lengths";
  hashes.clear();
  for (uint64_t i = 0; i < 10'000; ++i) hashes.insert(TableHash(i));
  EXPECT_EQ(hashes.size(), 10'000u);
}

// Two words whose differences cancel in HashBytes for any seed.
TEST(TableHash, DifferencesDoNotCancel) {
  constexpr uint64_t kTop = uint64_t{1} << 63;
  const std::array<uint64_t, 2> one = {1, 2};
  const std::array<uint64_t, 2> other = {1 ^ kTop, 2 ^ kTop ^ kTop >> 32};
  ASSERT_EQ(HashBytes(KeyBytes(one), 3), HashBytes(KeyBytes(other), 3));
  EXPECT_NE(TableHash(KeyBytes(one)), TableHash(KeyBytes(other)));
}

// Values that differ in their upper bits only, while HashMix takes the slot from the lower ones.
// Uses fixed keys, because one in a hundred random keys gives fewer distinct slots.
TEST(TableHash, UpperBitsReachThePlace) {
  constexpr TableKeys kKeys;
  std::set<uint64_t> places;
  for (uint64_t i = 0; i < 1024; ++i) {
    places.insert(TableMix(kKeys.start, i << 54, kKeys.factor) % 4096);
  }
  EXPECT_GT(places.size(), 256u);
}

}  // namespace
}  // namespace etude
