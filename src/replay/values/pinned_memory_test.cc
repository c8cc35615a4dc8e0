#include "src/replay/values/pinned_memory.h"

#include <gtest/gtest.h>

#include <string>

#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/formats/test_support.h"

namespace etude {
namespace {

using testing_support::ReadWith;

// Makes a trace of `aten::to` of memory 7 on `from`, to a tensor on `to`.
Trace CopyOf(const std::string& from, const std::string& to, const std::string& non_blocking) {
  const auto tensor = [](int id, int storage, const std::string& device) {
    return "[" + std::to_string(id) + "," + std::to_string(storage) + ",0,4,4,\"" + device + "\"]";
  };
  const std::string text =
      R"J({"schema":"1.1.1-chakra.0.0.4","pid":1,"time":"","start_ts":0,"nodes":[
        {"id":1,"name":"[pytorch|profiler|execution_trace|process]","ctrl_deps":1},
        {"id":2,"name":"aten::to","ctrl_deps":1,"inputs":{"values":[)J" +
      tensor(5, 7, from) + ",\"" + to + "\",6," + non_blocking + R"J(,false,"<None>"],
         "shapes":[[4],[],[],[],[],[]],"strides":[],
         "types":["Tensor(float)","Device","Int","Bool","Bool","None"]},
         "outputs":{"values":[)J" +
      tensor(6, 8, to) + R"J(],"shapes":[[4]],"types":["Tensor(float)"],"strides":[]},
         "attrs":[{"name":"op_schema","type":"string","value":
         "aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)"}]}],
        "finish_ts":1})J";
  return ReadWith(MakeEtJsonReader, text).value();
}

size_t CountPinned(const Trace& trace) {
  const RecordedStep step = RecordedStep::Select(trace, "").value();
  const DataFlow flow(step);
  return FindPinned(step, flow).size();
}

TEST(PinnedMemory, IsCopiedToADeviceWithoutWaiting) {
  EXPECT_EQ(CountPinned(CopyOf("cpu", "cuda:0", "true")), 1u);
  EXPECT_EQ(CountPinned(CopyOf("cpu", "cuda:0", "false")), 0u);
  EXPECT_EQ(CountPinned(CopyOf("cpu", "cpu", "true")), 0u);
  EXPECT_EQ(CountPinned(CopyOf("cuda:0", "cpu", "true")), 0u);
}

}  // namespace
}  // namespace etude
