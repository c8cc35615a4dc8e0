#include "src/analysis/memory/memory_use.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/run/planted_trace.h"
#include "src/trace/trace_builder.h"

namespace etude {
namespace {

using testing_support::PlantedTrace;
using testing_support::Us;

// Host traces with operators on tensors of floats, each given by the address of its storage and its
// number of elements.
class PlantedStep {
 public:
  struct Tensor {
    int address;
    int elements;
  };
  PlantedStep& Operator(const std::string& name, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& outputs, int start = 0, int duration = 0) {
    return Add(name, name + "() -> ()", inputs, outputs,
               R"("ts":)" + std::to_string(start) + R"(,"inclusive_dur":)" +
                   std::to_string(duration) + R"(,"ctrl_deps":1)");
  }
  // Adds a Gloo label for the previous operator.
  PlantedStep& GlooLabel(int start, int duration) {
    return Add("gloo:all_reduce", "", {}, {},
               R"("ts":)" + std::to_string(start) + R"(,"inclusive_dur":)" +
                   std::to_string(duration) + R"(,"ctrl_deps":)" + std::to_string(id_));
  }
  Trace Read() const {
    return testing_support::ReadWith(MakeEtJsonReader,
                                     R"({"schema":"1.1.1","nodes":[)" + nodes_ + "]}")
        .value();
  }

 private:
  PlantedStep& Add(const std::string& name, const std::string& schema,
                   const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                   const std::string& place) {
    nodes_ += std::string(nodes_.empty() ? "" : ",") + R"({"id":)" + std::to_string(++id_) +
              R"(,"name":")" + name + R"(",)" + place + R"(,"inputs":)" + List(inputs) +
              R"(,"outputs":)" + List(outputs) +
              R"(,"attrs":[{"name":"op_schema","type":"string","value":")" + schema + R"("}]})";
    return *this;
  }
  static std::string List(const std::vector<Tensor>& tensors) {
    std::string values, shapes, types;
    for (const auto& [address, elements] : tensors) {
      const std::string comma = values.empty() ? "" : ",";
      values += comma + "[" + std::to_string(1000 + address) + "," + std::to_string(address) +
                ",0," + std::to_string(elements) + R"(,4,"cuda:0"])";
      shapes += comma + "[" + std::to_string(elements) + "]";
      types += comma + "\"Tensor(float)\"";
    }
    return R"({"values":[)" + values + R"(],"shapes":[)" + shapes + R"(],"types":[)" + types + "]}";
  }

  std::string nodes_;
  int id_ = 1;
};

TEST(TensorMemory, NoTensorsNoAnswer) {
  EXPECT_FALSE(TensorMemory(PlantedStep().Read()));
  EXPECT_FALSE(TensorMemory(PlantedStep().Operator("aten::empty", {}, {}).Read()));
  EXPECT_FALSE(TensorMemory(PlantedTrace().Operator("aten::mm", 1, 0, 10).Read()));
}

// The call returns at 12, the collective is done at 35, and the memory is free before the last one.
TEST(TensorMemory, ACollectiveOnItsWayHoldsItsMemory) {
  const auto peak = [](int duration) {
    const Trace trace = PlantedStep()
                            .Operator("aten::relu", {{1, 100}}, {{2, 100}}, 0, 5)
                            .Operator("c10d::allreduce_", {{2, 100}}, {{2, 100}}, 10, 2)
                            .GlooLabel(11, duration)
                            .Operator("aten::neg", {{1, 100}}, {{3, 10}}, 20, 5)
                            .Operator("aten::mul", {{1, 100}}, {{4, 50}}, 30, 5)
                            .Operator("aten::add", {{1, 100}}, {{5, 20}}, 40, 5)
                            .Read();
    return TensorMemory(trace).value().front().peak;
  };
  EXPECT_EQ(peak(2), Bytes{4 * (100 + 100)});
  EXPECT_EQ(peak(24), Bytes{4 * (100 + 100 + 50)});
  EXPECT_EQ(peak(40), Bytes{4 * (100 + 100 + 50)}) << "and not with what is used no more";
}

TEST(TensorMemory, FromTheMakerToTheLastUse) {
  // Weight 1 is from outside. 2 lives from relu to add, 3 from mul to sum; 2's address is reused.
  const Trace trace = PlantedStep()
                          .Operator("aten::relu", {{1, 100}}, {{2, 100}})
                          .Operator("aten::mul", {{2, 100}}, {{3, 200}})
                          .Operator("aten::add", {{2, 100}}, {{4, 10}})
                          .Operator("aten::sum", {{3, 200}}, {{2, 50}})
                          .Operator("aten::neg", {{2, 50}}, {{5, 1}})
                          .Read();
  const auto found = TensorMemory(trace);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1u);
  const DeviceMemory& memory = found->front();
  EXPECT_EQ(memory.device, "cuda:0");
  EXPECT_EQ(memory.at_start, Bytes{400});
  EXPECT_EQ(memory.allocations, 5u) << "2 twice";
  std::vector<int64_t> live;
  for (const DeviceMemory::Point& point : memory.timeline) live.push_back(point.live.count);
  // relu: 1 + 2; mul: 2 + 3; add: 2 + 3 + 4; sum: 3 + the new 2; neg: 2 + 5.
  EXPECT_EQ(live, (std::vector<int64_t>{800, 1200, 1240, 1000, 204}));
  EXPECT_EQ(memory.peak, Bytes{1240});
  EXPECT_EQ(trace.name(memory.at_peak.node), "aten::add");
  EXPECT_EQ(memory.at_end, Bytes{204});
  ASSERT_EQ(memory.holders.size(), 3u);
  EXPECT_EQ(memory.holders[0].op, "aten::mul");
  EXPECT_EQ(memory.holders[0].bytes, Bytes{800});
  EXPECT_EQ(memory.holders[2].op, "aten::add");
}

TEST(TensorMemory, AStorageIsAsLargeAsWhatIsSeenInIt) {
  const Trace trace = PlantedStep()
                          .Operator("aten::relu", {{1, 10}}, {{2, 10}})
                          .Operator("aten::add", {{1, 500}}, {{3, 1}})
                          .Read();
  EXPECT_EQ(TensorMemory(trace)->front().at_start, Bytes{2000});
}

// A sparse gradient of a table of 1000 rows must not count as dense.
TEST(TensorMemory, NoTensorIsLargerThanItsStorage) {
  TraceBuilder builder;
  const StringId type = builder.Intern("Tensor(float)");
  const int64_t elements = 1000;
  const TensorUse use{.tensor = 1,
                      .numel = elements,
                      .element_bytes = 4,
                      .device = builder.Intern("cpu"),
                      .type = type,
                      .shape = builder.InternInts({&elements, 1})};
  const auto tensor = [&](uint64_t address, uint64_t storage, int64_t storage_bytes) {
    TensorUse one = use;
    one.tensor = address;
    one.storage = storage;
    one.storage_bytes = storage_bytes;
    return Value::Tensor(type, builder.InternTensor(one));
  };
  // Sparse; with a smaller (resized) storage; with a larger one; with one of unknown size.
  const Value inputs[] = {tensor(1, 0, -1), tensor(2, 12, 100), tensor(3, 13, 9000),
                          tensor(4, 14, -1)};
  builder.AddNode({.source_id = 1,
                   .kind = NodeKind::kOperator,
                   .place = Place::kHost,
                   .name = builder.Intern("aten::add"),
                   .inputs = builder.InternValues(inputs),
                   .op_schema = builder.Intern("aten::add(Tensor a) -> Tensor")});
  const Trace trace = builder.Finish().value();
  EXPECT_EQ(TensorMemory(trace)->front().at_start, Bytes{100 + 4000 + 4000});
}

TEST(AllocatorMemory, NoEventsNoFigures) {
  EXPECT_TRUE(AllocatorMemory(PlantedTrace().Operator("aten::mm", 1, 0, 10).Read()).empty());
}

// PyTorch counts the CPU's memory while a profiler runs: totals exclude earlier memory.
TEST(AllocatorMemory, OnTheCpuWhatWasThereBeforeIsUnknown) {
  const Trace trace =
      PlantedTrace().Operator("aten::empty", 1, 0, 10).Memory(1, 5, 7, 100, 100, 0).Read();
  const std::vector<DeviceMemory> found = AllocatorMemory(trace);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().device, "cpu");
  EXPECT_EQ(found.front().at_start, std::nullopt);
  EXPECT_EQ(found.front().peak, Bytes{100});
}

TEST(AllocatorMemory, WhatTheCpusAllocatorReservesIsUnknown) {
  const Trace trace =
      PlantedTrace().Operator("aten::empty", 1, 0, 10).Memory(1, 5, 7, 100, 100, 0).Read();
  EXPECT_EQ(AllocatorMemory(trace).front().reserved, std::nullopt);
}

TEST(AllocatorMemory, PeakAndWhatHoldsIt) {
  const Trace trace = PlantedTrace()
                          .Operator("aten::empty", 1, 0, 10)
                          .Memory(1, 5, 7, 100, 1100)  // 1000 from before
                          .Operator("aten::mm", 1, 20, 30)
                          .Memory(1, 22, 8, 500, 1600)
                          .Memory(1, 28, 8, -500, 1100)
                          .Operator("aten::add", 1, 40, 50)
                          .Memory(1, 45, 8, 300, 1400)
                          .Read();
  const std::vector<DeviceMemory> found = AllocatorMemory(trace);
  ASSERT_EQ(found.size(), 1u);
  const DeviceMemory& memory = found.front();
  EXPECT_EQ(memory.device, "cuda:0");
  EXPECT_EQ(memory.peak, Bytes{1600});
  EXPECT_EQ(memory.at_peak.time, Us(22));
  EXPECT_EQ(memory.at_start, Bytes{1000});
  EXPECT_EQ(memory.at_end, Bytes{1400});
  EXPECT_EQ(memory.reserved, Bytes{3200});
  EXPECT_EQ(memory.allocations, 3u);
  EXPECT_EQ(memory.timeline.size(), 4u);
  ASSERT_EQ(memory.holders.size(), 3u);
  EXPECT_EQ(memory.holders[0].op, kOutsideMemory);
  EXPECT_EQ(memory.holders[0].bytes, Bytes{1000});
  EXPECT_EQ(memory.holders[1].op, "aten::mm");
  EXPECT_EQ(memory.holders[2].op, "aten::empty");
}

// At least 700 bytes existed before: they are freed.
TEST(AllocatorMemory, EventsWithoutTotalsAreSummed) {
  const Trace trace = PlantedTrace()
                          .Operator("aten::empty", 1, 0, 10)
                          .MemoryWithoutTotal(1, 5, 100)
                          .Operator("aten::mm", 1, 20, 30)
                          .MemoryWithoutTotal(1, 22, -800)
                          .MemoryWithoutTotal(1, 24, 500)
                          .MemoryWithoutTotal(1, 28, 400)
                          .MemoryWithoutTotal(1, 29, -300)
                          .Read();
  const std::vector<DeviceMemory> found = AllocatorMemory(trace);
  ASSERT_EQ(found.size(), 1u);
  const DeviceMemory& memory = found.front();
  EXPECT_EQ(memory.device, "cuda:0");
  EXPECT_FALSE(memory.has_totals);
  EXPECT_EQ(memory.at_start, std::nullopt);
  EXPECT_EQ(memory.peak, Bytes{900});
  EXPECT_EQ(memory.at_peak.time, Us(28));
  EXPECT_EQ(memory.at_end, Bytes{600});
  EXPECT_EQ(memory.allocations, 3u);
  ASSERT_EQ(memory.timeline.size(), 5u);
  EXPECT_EQ(memory.timeline[0].live, Bytes{800});
  EXPECT_EQ(memory.timeline[1].live, Bytes{0});
  EXPECT_TRUE(memory.holders.empty()) << "it is not said which memory is taken back";
}

}  // namespace
}  // namespace etude
