#include "src/transform/link/native_profile.h"

#include <gtest/gtest.h>

#include <string>

#include "src/formats/kineto/kineto_reader.h"
#include "src/formats/native/capture_reader.h"
#include "src/trace/other_process.h"
#include "src/trace/trace_builder.h"
#include "src/transform/link/link.h"

namespace etude {
namespace {

// The capture's clock stood at 1 ms when the wall clock was at 5 ms; the profile counts from 2 ms.
constexpr int64_t kMonotonic = 1'000'000;
constexpr int64_t kFromBase = 3'000'000;  // in the profile, the begin of the capture

// A capture with two threads: "op" from 1 to 5 µs after the beginning with "inner" from 2 to 4 µs
// on the first one, the label "replay" from 1 to 9 µs on the second one.
class Capture {
 public:
  Capture() {
    builder_.info().SetFormat(TraceFormat::kNative);
    builder_.info().schema = "etude-native-3";
    builder_.info().pid = 77;
    builder_.info().rank = 3;
    AddInfo("realtime_ns", "5000000");
    AddInfo("monotonic_ns", "1000000");
    builder_.AddNode({.source_id = 1,
                      .kind = NodeKind::kProcess,
                      .place = Place::kHost,
                      .name = builder_.Intern("process")});
    AddThread(2, "4242", 0x80000001);  // -2147483647 in CUPTI
    AddThread(3, "4243", 7);
    AddCall(10, 2, "4242", NodeKind::kOperator, "op", 1000, 4000);
    AddCall(11, 10, "4242", NodeKind::kOperator, "inner", 2000, 2000);
    AddCall(12, 3, "4243", NodeKind::kLabel, "replay", 1000, 8000);
  }
  Trace Finish() { return builder_.Finish().value(); }

  void AddInfo(const std::string& key, const std::string& text) {
    builder_.info().extras.push_back({.key = builder_.Intern(key), .text = builder_.Intern(text)});
  }
  LaneId LaneOf(const std::string& thread) {
    return builder_.InternLane(
        {.process = builder_.Intern("77"), .thread = builder_.Intern(thread)});
  }
  void AddThread(uint64_t id, const std::string& tid, uint32_t posix_id) {
    const NodeId node = builder_.AddNode({.source_id = id,
                                          .kind = NodeKind::kThread,
                                          .place = Place::kHost,
                                          .name = builder_.Intern("thread"),
                                          .parent = 1,
                                          .lane = LaneOf(tid),
                                          .tid = id});
    builder_.AddExtra(node, {.key = builder_.Intern(kPosixThreadKey),
                             .text = builder_.Intern(std::to_string(posix_id))});
  }
  void AddCall(uint64_t id, uint64_t parent, const std::string& thread, NodeKind kind,
               const std::string& name, int64_t start, int64_t duration) {
    builder_.AddNode({.source_id = id,
                      .kind = kind,
                      .place = Place::kHost,
                      .name = builder_.Intern(name),
                      .parent = parent,
                      .lane = LaneOf(thread),
                      .start = Nanos{kMonotonic + start},
                      .duration = Nanos{duration},
                      .rf_id = id + 1000});
  }

 private:
  TraceBuilder builder_;
};

// A profile of devices; times are in nanoseconds after the beginning of the capture.
class Devices {
 public:
  void AddCall(const std::string& tid, const std::string& name, int64_t start, int correlation) {
    Add("cuda_runtime", name, "77", tid, start, 500, correlation, "");
  }
  void AddKernel(const std::string& name, int64_t start, int correlation) {
    Add("kernel", name, "0", "7", start, 1000, correlation, R"(,"device":0,"stream":7)");
  }
  void AddOperator(const std::string& name) { Add("cpu_op", name, "77", "4242", 0, 10, 0, ""); }
  // Adds an event of the profiler itself.
  void AddOwn(const std::string& category, const std::string& name, const std::string& pid) {
    Add(category, name, pid, "0", 0, 10, 0, "");
  }
  Trace Finish() const {
    const RunContext context;
    auto reader = MakeKinetoReader("devices", {.strict = true}, context);
    EXPECT_TRUE(
        reader->Push("{\"baseTimeNanoseconds\":2000000,\"traceEvents\":[" + events_ + "]}"));
    return reader->Finish(false).value();
  }

 private:
  void Add(const std::string& category, const std::string& name, const std::string& pid,
           const std::string& tid, int64_t start, int64_t duration, int correlation,
           const std::string& args) {
    const int64_t ns = kFromBase + start;
    if (!events_.empty()) events_ += ",";
    events_ += R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","pid":)" + pid +
               R"(,"tid":)" + tid + R"(,"ts":)" + std::to_string(ns / 1000) + "." +
               std::to_string(ns % 1000 + 1000).substr(1) + R"(,"dur":)" +
               std::to_string(duration / 1000) + "." +
               std::to_string(duration % 1000 + 1000).substr(1) + R"(,"args":{"correlation":)" +
               std::to_string(correlation) + args + "}}";
  }

  std::string events_;
};

NodeId Named(const Trace& trace, std::string_view name) {
  NodeId found;
  ForEachNode(trace, [&](NodeId node) {
    if (trace.name(node) == name) found = node;
  });
  EXPECT_TRUE(found) << name;
  return found;
}
std::string ParentOf(const Trace& trace, std::string_view name) {
  const NodeId parent = trace.parent(Named(trace, name));
  return parent ? std::string(trace.name(parent)) : "";
}

Devices PlantedDevices() {
  Devices devices;
  // As Kineto prints a thread known from CUPTI alone: without the sign.
  devices.AddCall("2147483647", "cudaLaunchKernel", 2500, 1);
  devices.AddKernel("first", 6000, 1);
  devices.AddCall("7", "cudaGraphLaunch", 3000, 2);
  devices.AddKernel("second", 8000, 2);
  devices.AddKernel("third", 10'000, 2);
  devices.AddCall("999", "cudaMemcpyAsync", 3100, 3);
  devices.AddKernel("fourth", 12'000, 3);
  return devices;
}

TEST(NativeProfile, CallsOfTheRuntimeLieInTheCallsOfTheCapture) {
  const Trace native = Capture().Finish();
  const Trace devices = PlantedDevices().Finish();
  ASSERT_TRUE(IsOfDevicesOnly(devices));
  const auto profile = MakeNativeProfile(native, devices, {});
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->info().format, TraceFormat::kKineto);
  EXPECT_EQ(profile->info().rank, 3);
  EXPECT_EQ(profile->node_count(), 10u);  // three calls and seven events; no roots
  EXPECT_EQ(ParentOf(*profile, "cudaLaunchKernel"), "inner");
  EXPECT_EQ(ParentOf(*profile, "cudaGraphLaunch"), "replay");
  EXPECT_EQ(ParentOf(*profile, "cudaMemcpyAsync"), "");
  EXPECT_EQ(ParentOf(*profile, "inner"), "op");
  EXPECT_EQ(ParentOf(*profile, "op"), "");
  // All on the capture's clock.
  EXPECT_EQ(profile->start(Named(*profile, "inner")), Nanos{kMonotonic + 2000});
  EXPECT_EQ(profile->start(Named(*profile, "cudaLaunchKernel")), Nanos{kMonotonic + 2500});
  EXPECT_EQ(profile->start(Named(*profile, "first")), Nanos{kMonotonic + 6000});
  for (const Extra& extra : profile->info().extras) {
    EXPECT_NE(profile->text(extra.key), "baseTimeNanoseconds");
  }
  EXPECT_EQ(profile->lane_id(Named(*profile, "cudaLaunchKernel")),
            profile->lane_id(Named(*profile, "op")));
  // A graph is one launch of two kernels.
  for (const char* kernel : {"second", "third"}) {
    EXPECT_EQ(profile->correlation(Named(*profile, kernel)),
              profile->correlation(Named(*profile, "cudaGraphLaunch")));
  }
}

TEST(NativeProfile, TheProfilersOwnEventsAreOfNoOtherProcess) {
  Devices devices = PlantedDevices();
  devices.AddOwn("overhead", "Activity Buffer Request", "-1");
  devices.AddOwn("Trace", "PyTorch Profiler (0)", "\"Spans\"");
  const auto profile = MakeNativeProfile(Capture().Finish(), devices.Finish(), {});
  ASSERT_TRUE(profile && profile->info().pid);
  EXPECT_EQ(CountOfOtherProcess(*profile), 0u);
}

TEST(NativeProfile, LinksAsOtherProfilesDo) {
  const Trace native = Capture().Finish();
  const Trace profile = MakeNativeProfile(native, PlantedDevices().Finish(), {}).value();
  const auto linked = Link(native, profile, {});
  ASSERT_TRUE(linked) << linked.error().message;
  EXPECT_EQ(linked->host_matched(), 3u);
  EXPECT_EQ(linked->device_nodes(), 4u);
  EXPECT_EQ(linked->device_linked(), 3u);
  EXPECT_EQ(linked->events[static_cast<size_t>(EventLink::kOrphanNoOperator)], 1u);
  const Trace& trace = linked->trace;
  EXPECT_EQ(ParentOf(trace, "first"), "inner");
  EXPECT_EQ(ParentOf(trace, "second"), "replay");
  EXPECT_EQ(ParentOf(trace, "third"), "replay");
  EXPECT_EQ(trace.start(Named(trace, "op")), Nanos{kMonotonic + 1000});
  EXPECT_EQ(trace.duration(Named(trace, "first")), Nanos{1000});
}

// By the profile's clock it begins slightly before the end of the previous node.
TEST(NativeProfile, ACallBelongsToWhatRanInItsMiddle) {
  const Trace native = Capture().Finish();
  Devices devices;
  devices.AddCall("2147483647", "cudaLaunchKernel", 3900, 1);
  devices.AddKernel("kernel", 9000, 1);
  const Trace profile = MakeNativeProfile(native, devices.Finish(), {}).value();
  EXPECT_EQ(ParentOf(profile, "cudaLaunchKernel"), "op");
  EXPECT_EQ(ParentOf(Link(native, profile, {}).value().trace, "kernel"), "op");
}

TEST(NativeProfile, SystemIdsOfThreadsComeFirst) {
  Capture capture;
  capture.AddThread(4, "7", 0);  // a thread whose system id is CUPTI's name of another one
  capture.AddCall(13, 4, "7", NodeKind::kOperator, "mine", 1000, 8000);
  Devices devices;
  devices.AddCall("7", "cudaLaunchKernel", 2000, 1);
  const Trace profile = MakeNativeProfile(capture.Finish(), devices.Finish(), {}).value();
  EXPECT_EQ(ParentOf(profile, "cudaLaunchKernel"), "mine");
}

TEST(NativeProfile, ANameOfTwoThreadsIsOfNeither) {
  Capture capture;
  capture.AddThread(4, "4244", 2147483647);
  Devices devices;
  devices.AddCall("2147483647", "cudaLaunchKernel", 2500, 1);
  devices.AddCall("-2147483647", "cudaMemcpyAsync", 2600, 2);
  const Trace profile = MakeNativeProfile(capture.Finish(), devices.Finish(), {}).value();
  EXPECT_EQ(ParentOf(profile, "cudaLaunchKernel"), "");
  EXPECT_EQ(ParentOf(profile, "cudaMemcpyAsync"), "inner");
}

TEST(NativeProfile, AProfileWithOperatorsIsNoneOfDevices) {
  Devices devices = PlantedDevices();
  devices.AddOperator("aten::add");
  EXPECT_FALSE(IsOfDevicesOnly(devices.Finish()));
  EXPECT_FALSE(IsOfDevicesOnly(Capture().Finish()));
}

TEST(NativeProfile, TimesBeyondAllTimesAreUnknown) {
  Devices devices;
  devices.AddCall("4242", "cudaLaunchKernel", INT64_MAX - kFromBase - 600, 1);
  devices.AddCall("4242", "cudaMemcpyAsync", 2500, 2);
  TraceBuilder builder;  // the same clocks, further apart
  builder.info().SetFormat(TraceFormat::kNative);
  for (const auto& [key, text] :
       {std::pair("realtime_ns", "0"), std::pair("monotonic_ns", "1000000")}) {
    builder.info().extras.push_back({.key = builder.Intern(key), .text = builder.Intern(text)});
  }
  const auto profile = MakeNativeProfile(builder.Finish().value(), devices.Finish(), {});
  ASSERT_TRUE(profile);
  EXPECT_FALSE(profile->start(Named(*profile, "cudaLaunchKernel")));
  EXPECT_TRUE(profile->start(Named(*profile, "cudaMemcpyAsync")));
}

TEST(NativeProfile, ClocksThatCannotBeCompared) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kNative);
  const auto without = MakeNativeProfile(builder.Finish().value(), PlantedDevices().Finish(), {});
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, ErrorCode::kBadInput);
  TraceBuilder far;
  far.info().SetFormat(TraceFormat::kNative);
  for (const auto& [key, text] : {std::pair("realtime_ns", "9223372036854775807"),
                                  std::pair("monotonic_ns", "-9223372036854775807")}) {
    far.info().extras.push_back({.key = far.Intern(key), .text = far.Intern(text)});
  }
  EXPECT_FALSE(MakeNativeProfile(far.Finish().value(), PlantedDevices().Finish(), {}));
}

}  // namespace
}  // namespace etude
