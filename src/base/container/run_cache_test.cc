#include "src/base/container/run_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace etude {
namespace {

class RunCacheTest : public testing::Test {
 protected:
  // Returns the length of `key`, cached with that many bytes.
  size_t Length(RunCache& cache, const std::string& key) {
    const auto got = cache.Get<size_t>(
        key,
        [&]() -> Result<size_t> {
          ++made_;
          if (key == "bad") return BadInput("no");
          return key.size();
        },
        [](size_t size) { return size; });
    return got ? **got : 0;
  }

  std::atomic<int> made_ = 0;
};

TEST_F(RunCacheTest, MakesAValueOnce) {
  RunCache cache;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(Length(cache, "four"), 4u); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(Length(cache, "three"), 5u);
  EXPECT_EQ(made_, 2);
}

TEST_F(RunCacheTest, KeepsWhatWasUsedLast) {
  RunCache cache(10);
  Length(cache, "aaaa");
  Length(cache, "bbbb");
  Length(cache, "aaaa");
  Length(cache, "cc");
  Length(cache, "dddd");  // 14 bytes: b, least recently used, is evicted
  EXPECT_EQ(made_, 4);
  Length(cache, "aaaa");
  Length(cache, "cc");
  EXPECT_EQ(made_, 4);
  Length(cache, "bbbb");
  EXPECT_EQ(made_, 5);
  // A value larger than the whole cache is not kept.
  Length(cache, "eleven bytes");
  Length(cache, "eleven bytes");
  EXPECT_EQ(made_, 7);
}

TEST_F(RunCacheTest, KeepsNoErrors) {
  RunCache cache;
  EXPECT_EQ(Length(cache, "bad"), 0u);
  EXPECT_EQ(Length(cache, "bad"), 0u);
  EXPECT_EQ(made_, 2);
}

}  // namespace
}  // namespace etude
