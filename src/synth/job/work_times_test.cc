#include "src/synth/job/work_times.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/synth/device/device_file.h"
#include "src/trace/trace_builder.h"
#include "src/transform/operators/operator_table.h"

namespace etude {
namespace {

constexpr int64_t kTera = 1'000'000'000'000;

// 2 TFLOPS of products in bfloat16, 1 TFLOPS for the rest, 500 GB/s.
DeviceModel Plain() {
  return {.name = "plain", .bfloat16 = 2 * kTera, .vector = kTera, .memory = Bytes{kTera / 2}};
}

StepWork Work(int64_t flops, int64_t matrix_flops, int64_t bytes) {
  return {.name = "work",
          .flops = flops,
          .matrix_flops = matrix_flops,
          .type = DType::kBFloat16,
          .memory = Bytes{bytes}};
}

Nanos Time(const StepWork& work) { return RooflineTime(Plain(), work).value(); }

TEST(RooflineTime, IsTheLongestOfProductsRestAndMemory) {
  EXPECT_EQ(Time(Work(8'000'000, 8'000'000, 1'000'000)), Nanos{4'000});  // 8e6 / 2e12
  EXPECT_EQ(Time(Work(8'000'000, 8'000'000, 3'000'000)), Nanos{6'000});  // 3e6 / 5e11
  EXPECT_EQ(Time(Work(9'000'000, 2'000'000, 1'000'000)), Nanos{7'000});  // 7e6 / 1e12
}

TEST(RooflineTime, IsRoundedUp) {
  EXPECT_EQ(Time(Work(2'000, 2'000, 0)), Nanos{1});
  EXPECT_EQ(Time(Work(2'001, 2'001, 0)), Nanos{2});
  EXPECT_EQ(Time(Work(0, 0, 1)), Nanos{1});
  EXPECT_EQ(Time(Work(0, 0, 0)), Nanos{0});
}

TEST(RooflineTime, DoesNotOverflow) {
  EXPECT_EQ(Time(Work(INT64_MAX, INT64_MAX, 0)), Nanos{4'611'686'018'427'388});
}

// 2^63 - 1 ns are 9,223,372,036.854775807 s.
TEST(RooflineTime, WhatDoesNotFitIsRefused) {
  DeviceModel device = Plain();
  device.bfloat16 = 1;
  EXPECT_EQ(RooflineTime(device, Work(9'223'372'036, 9'223'372'036, 0)).value(),
            Nanos{9'223'372'036'000'000'000});
  const auto longer = RooflineTime(device, Work(9'223'372'037, 9'223'372'037, 0));
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(longer.error().message,
            "plain: 'work' takes 9.2e+09 s, 9223372037 operations at 1 per second, expected at "
            "most 9.2e+09 s");
  device = Plain();
  device.memory = Bytes{2};
  EXPECT_EQ(RooflineTime(device, Work(0, 0, 40'000'000'000)).error().message,
            "plain: 'work' takes 2.0e+10 s, 40000000000 bytes at 2 per second, expected at most "
            "9.2e+09 s");
}

TEST(TimeWorks, ComputationsThatTakeTooLongTogether) {
  DeviceModel device = Plain();
  device.bfloat16 = 1;
  StepJob job(Mesh::Make({{.name = "dp", .size = 1}}).value(), {{.axes = 1}},
              {{Work(9'000'000'000, 9'000'000'000, 0), Work(9'000'000'000, 9'000'000'000, 0)}});
  const auto timed = TimeWorks({.measured = {}, .device = device}, job);
  ASSERT_FALSE(timed);
  EXPECT_EQ(timed.error().message,
            "the computations of a rank up to 'work' take more than 9.2e+09 s, the maximum");
}

TEST(RooflineTime, NeedsAPeakOfTheType) {
  StepWork work = Work(8, 8, 8);
  work.type = DType::kFloat32;
  const auto time = RooflineTime(Plain(), work);
  ASSERT_FALSE(time);
  EXPECT_EQ(time.error().message,
            "plain: found no peak for matrix products of float32, which 'work' uses");
}

TEST(RooflineTime, WithoutAVectorPeakTheRestIsMemory) {
  DeviceModel device = Plain();
  device.vector = 0;
  EXPECT_EQ(RooflineTime(device, Work(9'000'000, 0, 1'000)).value(), Nanos{2});
}

// A product on an A100: 2 · 4096³ / 312e12 s is longer than 3 · 4096² · 2 / 2.039e12.
TEST(Devices, A100ByItsDataSheet) {
  const int64_t flops = int64_t{2} * 4096 * 4096 * 4096;
  const int64_t bytes = int64_t{3} * 4096 * 4096 * 2;
  const DeviceModel device = FindDevice("a100-sxm-80gb").value();
  EXPECT_EQ(RooflineTime(device, Work(flops, flops, bytes)).value(), Nanos{440'510});
  EXPECT_EQ(RooflineTime(device, Work(0, 0, bytes)).value(), Nanos{49'369});
  EXPECT_FALSE(device.MatrixPeak(DType::kFloat8E5M2));
  EXPECT_FALSE(FindDevice("a100"));
}

TEST(DeviceFile, StartsFromAPresetAndIsScaledByEfficiency) {
  const auto device = ParseDevice(
      "preset = 'a100-sxm-80gb'\n[device]\npeak.float32 = '156TFLOPS'\nmemory = '2TB/s'\n"
      "efficiency = { compute = 0.5, memory = 0.75 }\n",
      "mine.toml");
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_EQ(device->name, "mine.toml");
  EXPECT_EQ(device->float32, 78 * kTera);
  EXPECT_EQ(device->bfloat16, 156 * kTera);
  EXPECT_EQ(device->vector, 9'750'000'000'000);
  EXPECT_EQ(device->memory, Bytes{1'500'000'000'000});
  // Utilization is relative to the peak without the efficiency.
  EXPECT_EQ(device->NominalMatrixPeak(DType::kBFloat16), 312.0 * kTera);
  EXPECT_EQ(device->capacity, Bytes{80'000'000'000});
}

TEST(DeviceFile, Capacity) {
  const auto capacity = [](const std::string& text) {
    return ParseDevice(text, "d.toml").value().capacity;
  };
  EXPECT_EQ(capacity("preset = 'v100-sxm2'\n"), Bytes{});  // its sheet has two
  EXPECT_EQ(capacity("preset = 'v100-sxm2'\n[device]\ncapacity = '32GB'\n"), Bytes{32'000'000'000});
  EXPECT_EQ(capacity("preset = 'h100-sxm'\n[device]\ncapacity = '76GiB'\n"),
            Bytes{int64_t{76} << 30});
  EXPECT_EQ(FindDevice("tpu-v4")->capacity, Bytes{int64_t{32} << 30});
}

TEST(DeviceFile, WhatDoesNotFitIsSaid) {
  const auto message = [](const std::string& text) {
    const auto device = ParseDevice(text, "d.toml");
    return device ? "" : device.error().message;
  };
  EXPECT_NE(message("[device]\npeak.float32 = '1TFLOPS'\n").find("'memory' of [device]"),
            std::string::npos);
  EXPECT_NE(message("[device]\nmemory = '2TB'\n").find("expected bytes per second"),
            std::string::npos);
  EXPECT_NE(message("[device]\npeak.bfloat16 = '1TB'\n").find("expected operations per second"),
            std::string::npos);
  EXPECT_NE(message("preset = 'h100-sxn'\n").find("did you mean 'h100-sxm'"), std::string::npos);
  EXPECT_NE(message("preset = 'mi300x'\n[device]\nefficiency.memory = 1.5\n").find("up to 1"),
            std::string::npos);
  EXPECT_NE(message("[device]\nmemory = '2TB/s'\ncapacity = '80'\ncapacity = '1'\n"), "");
  EXPECT_EQ(message("[device]\nmemory = '2TB/s'\ncapacity = '80 apples'\n"),
            "d.toml:3:12: capacity: found '80 apples', expected bytes, such as 80GB");
  EXPECT_EQ(message("preset = 'mi300x'\ndevice = 1\n").substr(0, 9), "d.toml:2:");
}

TEST(MeasuredProducts, ByShapeAndType) {
  const auto products = MeasuredProducts::Parse(
      "# a comment\ncount,rows,inner,columns,type,time\r\n1,128,256,512,bfloat16,12.5us\n"
      "1, 128, 256, 512, float32, 90us\n",
      "m.csv");
  ASSERT_TRUE(products) << products.error().message;
  EXPECT_EQ(products->size(), 2u);
  EXPECT_EQ(products->Find({1, 128, 256, 512}, DType::kBFloat16), Nanos{12'500});
  EXPECT_EQ(products->Find({1, 128, 256, 512}, DType::kFloat32), Nanos{90'000});
  EXPECT_FALSE(products->Find({1, 512, 256, 128}, DType::kFloat32));
}

TEST(MeasuredProducts, AByteOrderMarkIsSkipped) {
  const auto products = MeasuredProducts::Parse(
      "\xEF\xBB\xBF"
      "count,rows,inner,columns,type,time\n1,2,3,4,float32,1ns\n",
      "m.csv");
  ASSERT_TRUE(products) << products.error().message;
  EXPECT_EQ(products->Find({1, 2, 3, 4}, DType::kFloat32), Nanos{1});
}

TEST(MeasuredProducts, WhatDoesNotFitIsSaid) {
  const auto message = [](const std::string& rows) {
    const auto products =
        MeasuredProducts::Parse("count,rows,inner,columns,type,time\n" + rows, "m.csv");
    return products ? "" : products.error().message;
  };
  EXPECT_EQ(message("1,2,3,4,float32\n"), "m.csv:2: found 5 values, expected 6");
  EXPECT_EQ(message("1,2,3,0,float32,1us\n"), "m.csv:2: found '0', expected a whole number from 1");
  EXPECT_EQ(message("1,2,3,4,float32,1\n"), "m.csv:2: found '1', expected a time, such as 120us");
  EXPECT_EQ(message("1,2,3,4,float32,0us\n"),
            "m.csv:2: found '0us', expected a time of one nanosecond or more");
  EXPECT_EQ(message("1,2,3,4,float32,0.4ns\n").substr(0, 15), "m.csv:2: found ");
  EXPECT_NE(message("1,2,3,4,fp32,1us\n").find("expected float32, float16"), std::string::npos);
  EXPECT_NE(message("1,2,3,4,float32,1us\n\n1,2,3,4,float32,2us\n").find("m.csv:4: "),
            std::string::npos);
  EXPECT_FALSE(MeasuredProducts::Parse("", "m.csv"));
  EXPECT_FALSE(MeasuredProducts::Parse("rows,inner\n", "m.csv"));
}

// A step of operators with arguments and times, and kernels that they started.
class ProductSketch {
 public:
  NodeId Operator(std::string_view name, const std::vector<std::vector<int64_t>>& shapes,
                  std::string_view device, int64_t nanos, std::string_view type = "Tensor(float)",
                  std::optional<Nanos> exclusive = {}) {
    std::vector<Value> inputs;
    for (const std::vector<int64_t>& shape : shapes) {
      inputs.push_back(Value::Tensor(builder_.Intern(type),
                                     builder_.InternTensor({.tensor = ++tensors_,
                                                            .storage = tensors_,
                                                            .element_bytes = 4,
                                                            .device = builder_.Intern(device),
                                                            .type = builder_.Intern(type),
                                                            .shape = builder_.InternInts(shape)})));
    }
    return builder_.AddNode({.source_id = builder_.node_count(),
                             .kind = NodeKind::kOperator,
                             .place = Place::kHost,
                             .name = builder_.Intern(name),
                             .duration = Nanos{nanos},
                             .exclusive = exclusive,
                             .inputs = builder_.InternValues(inputs)});
  }
  void Kernel(NodeId starter, int64_t nanos) {
    const NodeId node = builder_.AddNode({.source_id = builder_.node_count(),
                                          .kind = NodeKind::kKernel,
                                          .place = Place::kDevice,
                                          .name = builder_.Intern("gemm"),
                                          .duration = Nanos{nanos}});
    builder_.SetParent(node, builder_.source_id(starter));
  }
  Result<MeasuredProducts> Read() {
    return MeasuredProducts::Of(builder_.Finish().value(), "t.json");
  }

 private:
  TraceBuilder builder_;
  uint64_t tensors_ = 0;
};

TEST(MeasuredProducts, OfATraceTheMedianOfEachShape) {
  ProductSketch sketch;
  for (const int64_t nanos : {900, 50, 60, 70}) {
    sketch.Operator("aten::mm", {{2, 3}, {3, 5}}, "cpu", nanos);
  }
  sketch.Operator("aten::addmm", {{5}, {4, 3}, {3, 5}}, "cpu", 80);
  sketch.Operator("aten::mm", {{2, 3}, {4, 5}}, "cpu", 10);  // does not fit
  sketch.Operator("aten::relu", {{2, 3}, {3, 5}}, "cpu", 20);
  const auto products = sketch.Read();
  ASSERT_TRUE(products) << products.error().message;
  EXPECT_EQ(products->size(), 2u);
  EXPECT_EQ(products->Find({1, 2, 3, 5}, DType::kFloat32), Nanos{60});
  EXPECT_EQ(products->Find({1, 4, 3, 5}, DType::kFloat32), Nanos{80});
}

// Time of callees is not its own.
TEST(MeasuredProducts, OnACpuTheExclusiveTimeWhereThereIsOne) {
  ProductSketch sketch;
  sketch.Operator("aten::mm", {{2, 3}, {3, 5}}, "cpu", 90, "Tensor(float)", Nanos{70});
  sketch.Operator("aten::mm", {{4, 3}, {3, 5}}, "cpu", 50);
  sketch.Operator("aten::mm", {{6, 3}, {3, 5}}, "cpu", 50, "Tensor(float)", Nanos{0});
  const auto products = sketch.Read();
  ASSERT_TRUE(products) << products.error().message;
  EXPECT_EQ(products->Find({1, 2, 3, 5}, DType::kFloat32), Nanos{70});
  EXPECT_EQ(products->Find({1, 4, 3, 5}, DType::kFloat32), Nanos{50});
  EXPECT_EQ(products->size(), 2u) << "no time is none";
}

TEST(MeasuredProducts, OfADeviceTheTimeOfItsKernels) {
  ProductSketch sketch;
  const NodeId product =
      sketch.Operator("aten::bmm", {{7, 2, 3}, {7, 3, 5}}, "cuda:0", 9000, "Tensor(c10::BFloat16)");
  sketch.Kernel(product, 100);
  sketch.Kernel(product, 20);
  sketch.Operator("aten::mm", {{2, 3}, {3, 5}}, "cuda:0", 9000);  // started no known kernel
  const auto products = sketch.Read();
  ASSERT_TRUE(products) << products.error().message;
  EXPECT_EQ(products->size(), 1u);
  EXPECT_EQ(products->Find({7, 2, 3, 5}, DType::kBFloat16), Nanos{120});
}

TEST(MeasuredProducts, ATraceWithoutAnyIsRefused) {
  ProductSketch sketch;
  sketch.Operator("aten::relu", {{2, 3}}, "cpu", 20);
  EXPECT_FALSE(sketch.Read());
}

TEST(MeasuredProducts, OfATableOfOperatorsTheMedianOfEachShape) {
  OperatorTable table;
  const auto add = [&](const std::string& name, const std::string& arguments, double nanos,
                       bool noisy = false) {
    table.times[{name, arguments}] = {.time_ns = nanos, .spread = 0.1, .calls = 9, .noisy = noisy};
  };
  add("aten::mm", "float32[2,3],float32[3,5]", 50.6);
  add("aten::mm", "float32[2,3],float32[3,5]:1:3", 60);
  add("aten::addmm", "float32[5],float32[2,3],float32[3,5],1,1", 900);
  add("aten::linear", "bfloat16[4,2,3],bfloat16[7,3],None", 80);
  add("aten::bmm", "float32[6,2,3],float32[6,3,5]", 0.2);
  // Noisy, of sizes that do not fit, of whole numbers, of unknown sizes, and no product.
  add("aten::mm", "float32[8,3],float32[3,5]", 10, /*noisy=*/true);
  add("aten::mm", "float32[2,3],float32[4,5]", 10);
  add("aten::mm", "int64[9,3],int64[3,5]", 10);
  add("aten::linear", "float32[-2,-2,3],float32[5,3]", 10);
  add("aten::linear", "float32[3],float32[5,3]", 10);
  add("aten::mm", "float32[2", 10);
  add("aten::relu", "float32[2,3]", 10);
  const auto products = MeasuredProducts::Of(table, "t.csv");
  ASSERT_TRUE(products) << products.error().message;
  EXPECT_EQ(products->Find({1, 2, 3, 5}, DType::kFloat32), Nanos{60});
  EXPECT_EQ(products->Find({1, 8, 3, 7}, DType::kBFloat16), Nanos{80});
  EXPECT_EQ(products->Find({6, 2, 3, 5}, DType::kFloat32), Nanos{1});
  EXPECT_EQ(products->size(), 3u);
  table.times = {};
  const auto none = MeasuredProducts::Of(table, "t.csv");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "t.csv: found no matrix product that is not noisy among the operators, expected one "
            "such as aten::linear or aten::mm");
}

TEST(TimeWorks, MeasuredBeforeRooflineBeforeUnknownAndNoCommunication) {
  const auto job = [] {
    StepWork product = Work(1'000'000, 1'000'000, 1'000'000);
    product.product = {1, 100, 50, 100};
    StepWork other = product;
    other.product = {1, 100, 100, 50};
    const StepWork plain = Work(100, 0, 1'000'000);
    const StepWork sum{.name = "sum",
                       .memory = Bytes{8},
                       .collective = CollectiveType::kAllReduce,
                       .bytes = Bytes{8}};
    return StepJob(Mesh::Make({{.name = "dp", .size = 2}}).value(), {{.axes = 1}},
                   {{product, sum, other, plain}, {product, sum, other, plain}});
  };
  const auto measured = MeasuredProducts::Parse(
      "count,rows,inner,columns,type,time\n1,100,50,100,bfloat16,7us\n", "m.csv");
  StepJob with_device = job();
  const TimedWorks timed =
      TimeWorks({.measured = *measured, .device = Plain()}, with_device).value();
  EXPECT_EQ(timed.measured, 2);
  EXPECT_EQ(timed.modelled, 4);
  EXPECT_EQ(timed.unknown, 0);
  const std::vector<StepWork>& works = with_device.program(1);
  EXPECT_EQ(works[0].duration, Nanos{7'000});
  EXPECT_FALSE(works[1].duration);
  EXPECT_EQ(works[2].duration, Nanos{2'000});
  EXPECT_EQ(works[3].duration, Nanos{2'000});
  const Trace trace = with_device.TraceOf(1).value();
  EXPECT_EQ(trace.duration(NodeId::FromIndex(0)), Nanos{7'000});
  EXPECT_FALSE(trace.duration(NodeId::FromIndex(1)));

  StepJob without = job();
  EXPECT_EQ(TimeWorks({.measured = *measured, .device = {}}, without)->unknown, 4);
  EXPECT_FALSE(without.program(0)[3].duration);
}

}  // namespace
}  // namespace etude
