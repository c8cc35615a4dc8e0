#include "src/jobs/shared_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace etude {
namespace {

using PlacesOfJobs = std::vector<std::vector<int64_t>>;

TEST(PlacesOf, WaysToPlace) {
  EXPECT_EQ(PlacesOf("", {2, 3}, 6).value(), (PlacesOfJobs{{0, 1}, {2, 3, 4}}));
  EXPECT_EQ(PlacesOf("packed", {2, 3}, 6).value(), (PlacesOfJobs{{0, 1}, {2, 3, 4}}));
  EXPECT_EQ(PlacesOf("spread", {2, 3}, 6).value(), (PlacesOfJobs{{0, 2}, {1, 3, 4}}));
  EXPECT_EQ(PlacesOf("5,0/1-3", {2, 3}, 6).value(), (PlacesOfJobs{{5, 0}, {1, 2, 3}}));
  EXPECT_EQ(PlacesOf("0", {1}, 6).value(), (PlacesOfJobs{{0}}));
}

TEST(PlacesOf, RandomPlacesAreDistinctAndDependOnTheSeed) {
  const PlacesOfJobs first = PlacesOf("random:7", {20, 30}, 64).value();
  EXPECT_EQ(first, PlacesOf("random:7", {20, 30}, 64).value());
  EXPECT_NE(first, PlacesOf("random:8", {20, 30}, 64).value());
  EXPECT_EQ(PlacesOf("random", {20, 30}, 64).value(), PlacesOf("random:0", {20, 30}, 64).value());
  std::vector<int64_t> all = first[0];
  all.insert(all.end(), first[1].begin(), first[1].end());
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
  EXPECT_GE(all.front(), 0);
  EXPECT_LT(all.back(), 64);
}

TEST(PlacesOf, WrongPlacesAreNamed) {
  const auto message = [](std::string_view text) {
    const auto places = PlacesOf(text, {2, 3}, 6);
    return places ? "" : places.error().message;
  };
  EXPECT_NE(message("0,1").find("the NPUs of 2 jobs, separated by /"), std::string::npos);
  EXPECT_NE(message("0,1/2-4/5").find("the NPUs of 2 jobs"), std::string::npos);
  EXPECT_NE(message("0,6/1-3").find("NPUs from 0 to 5"), std::string::npos);
  EXPECT_NE(message("0,/1-3").find("NPUs from 0 to 5"), std::string::npos);
  EXPECT_NE(message("3-2/1-3").find("NPUs from 0 to 5"), std::string::npos);
  EXPECT_NE(message("0-2/3-5").find("expected 2 NPUs for job 1"), std::string::npos);
  EXPECT_NE(message("0,1/1-3").find("NPU 1 is in job 1 and job 2"), std::string::npos);
  EXPECT_NE(message("0,0/1-3").find("NPU 0 is in job 1 twice"), std::string::npos);
  EXPECT_NE(message("random:x").find("a seed such as random:7"), std::string::npos);
  const auto few = PlacesOf("packed", {4, 3}, 6);
  ASSERT_FALSE(few);
  EXPECT_NE(few.error().message.find("found 7 ranks of 2 jobs, but the network has 6 NPUs"),
            std::string::npos);
}

}  // namespace
}  // namespace etude
