#include "src/transform/read_job.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace etude {
namespace {

TEST(ReadRank, NamesTheFilesThatDoNotFitTogether) {
  const std::filesystem::path folder(testing::TempDir());
  const std::string host = (folder / "etude_read_job_host.json").string();
  const std::string device = (folder / "etude_read_job_device.json").string();
  std::ofstream(host)
      << R"({"schema":"1.1.1","distributedInfo":{"rank":0},"nodes":[{"id":1,"name":"a",)"
         R"("ctrl_deps":1,"inputs":{},"outputs":{},"attrs":[]}]})";
  std::ofstream(device) << R"({"schemaVersion":1,"distributedInfo":{"rank":1},"traceEvents":[]})";
  const auto trace = ReadRank({.path = host, .device = device}, {}, {});
  ASSERT_FALSE(trace.has_value());
  EXPECT_EQ(trace.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(trace.error().message,
            host + " and " + device + ": the host trace is of rank 0, the device trace of rank 1");
  std::filesystem::remove(host);
  std::filesystem::remove(device);
}

}  // namespace
}  // namespace etude
