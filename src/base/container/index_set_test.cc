#include "src/base/container/index_set.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace etude {
namespace {

TEST(IndexSet, ErasesWhatIsInTheWay) {
  std::mt19937_64 random(2);
  // Few distinct hashes: long runs of rows that are not in their home slot.
  std::vector<uint64_t> keys;
  const auto hash_of = [&](uint32_t row) { return keys[row] % 7 * 3 + 60; };
  IndexSet index;
  std::map<uint64_t, uint32_t> expected;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t key = random() % 40;
    const auto have = expected.find(key);
    keys.push_back(key);
    const auto row = static_cast<uint32_t>(keys.size() - 1);
    const uint32_t found =
        index.Find(hash_of(row), [&](uint32_t other) { return keys[other] == key; });
    ASSERT_EQ(found, have == expected.end() ? IndexSet::kAbsent : have->second);
    if (have == expected.end()) {
      index.Insert(hash_of(row), row, hash_of);
      expected[key] = row;
    } else {
      index.Erase(hash_of(row), found, hash_of);
      expected.erase(have);
    }
  }
}

}  // namespace
}  // namespace etude
