#include "src/jobs/sweep/job_in_making.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "src/formats/io/atomic_file.h"

namespace etude {
namespace {

namespace fs = std::filesystem;

class JobInMakingTest : public testing::Test {
 protected:
  void SetUp() override {
    jobs_ =
        fs::path(testing::TempDir()) /
        (std::string("making_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(jobs_);
    fs::create_directory(jobs_);
  }
  void TearDown() override { fs::remove_all(jobs_); }

  fs::path jobs_;
};

TEST_F(JobInMakingTest, WhatIsLeftOfTheDeadGoesAndWhatIsMadeStays) {
  const fs::path left = jobs_ / "0123456789abcdef.aaaaaa";
  fs::create_directory(left);
  ASSERT_TRUE(WriteFile((left / "job.0.et").string(), "half").has_value());
  ASSERT_TRUE(WriteFile(left.string() + ".lock", "").has_value());
  const JobInMaking making = JobInMaking::Begin(jobs_.string(), "0123456789abcdef").value();
  fs::create_directory(making.folder());
  JobInMaking::RemoveAbandoned(jobs_.string());
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(left.string() + ".lock"));
  EXPECT_TRUE(fs::exists(making.folder()));
  EXPECT_TRUE(fs::exists(making.path()));
}

TEST_F(JobInMakingTest, NobodyTakesOneThatIsJustBegunForAbandoned) {
  std::atomic<bool> done = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      while (!done) JobInMaking::RemoveAbandoned(jobs_.string());
    });
  }
  int lost = 0;
  for (int i = 0; i < 2000; ++i) {
    const JobInMaking making = JobInMaking::Begin(jobs_.string(), "job").value();
    if (!fs::exists(making.path())) ++lost;
  }
  done = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(lost, 0);
  EXPECT_TRUE(fs::is_empty(jobs_));
}

}  // namespace
}  // namespace etude
