#include "src/suite/task_maker.h"

#include <gtest/gtest.h>

#include "src/suite/results/catalogue.h"

namespace etude::suite {
namespace {

TEST(FindMaker, EachTaskOfTheCatalogueHasOne) {
  for (const TaskFacts& task : Catalogue()) {
    const TaskMaker* maker = FindMaker(task.id);
    ASSERT_NE(maker, nullptr) << task.id;
    EXPECT_NE(maker->make, nullptr) << task.id;
  }
  EXPECT_EQ(FindMaker("no-such-task"), nullptr);
}

}  // namespace
}  // namespace etude::suite
