#include "src/replay/device_map.h"

#include <gtest/gtest.h>

namespace etude {
namespace {

TEST(DeviceMap, OperatorsOfFilesAreNotRun) {
  EXPECT_EQ(ReasonNotToRun("aten::from_file"), kTouchesFiles);
  EXPECT_EQ(ReasonNotToRun("aten::from_file.out"), kTouchesFiles);
  EXPECT_EQ(ReasonNotToRun("aten::add.Tensor"), "");
  // image::read_file(str filename), image::write_file(str filename, Tensor data)
  EXPECT_TRUE(IsFileArgument("filename"));
  EXPECT_TRUE(IsFileArgument("path"));
  EXPECT_TRUE(IsFileArgument("url"));
  EXPECT_FALSE(IsFileArgument("mode"));
  EXPECT_FALSE(IsFileArgument("equation"));
}

}  // namespace
}  // namespace etude
