#include "src/formats/kineto/kineto_reader.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/formats/test_support.h"
#include "src/formats/timeline/timeline.h"
#include "src/trace/copied_bytes.h"
#include "src/trace/words/record_scope.h"

namespace etude {
namespace {

using testing_support::DataText;
using testing_support::ReadWith;

Result<Trace> ReadKineto(std::string_view text, size_t chunk = 1 << 20,
                         const ReadOptions& options = {}, const RunContext& context = {}) {
  return ReadWith(MakeKinetoReader, text, chunk, options, context);
}

Trace ReadEvents(std::string_view events) {
  return ReadKineto(R"J({"schemaVersion":1,"traceEvents":[)J" + std::string(events) + "]}").value();
}

std::map<std::string, std::string> Extras(const Trace& trace, NodeId node) {
  std::map<std::string, std::string> extras;
  for (const Extra& extra : trace.extras(node)) {
    extras.emplace(trace.text(extra.key), trace.text(extra.text));
  }
  return extras;
}

constexpr NodeId kFirstEvent{0};

TEST(KinetoReader, ReadsHostEvents) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"M","name":"process_name","pid":1,"tid":0,"ts":0,"args":{"name":"python"}},
      {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":30,"tid":"PyTorch","ts":4368835824652.597,"dur":12.25,
       "args":{"External id":5,"Record function id":9,"Sequence number":3,"Fwd thread id":2,
               "Input Dims":[[2,3],[]],"Ev Idx":1,"device":0}})J");
  ASSERT_EQ(trace.node_count(), 1u);
  EXPECT_EQ(trace.source_id(kFirstEvent), 1u) << "the event's number in the file";
  EXPECT_EQ(trace.kind(kFirstEvent), NodeKind::kOperator);
  EXPECT_EQ(trace.place(kFirstEvent), Place::kHost);
  EXPECT_EQ(trace.start(kFirstEvent), Nanos{4'368'835'824'652'597});
  EXPECT_EQ(trace.duration(kFirstEvent), Nanos{12'250});
  EXPECT_EQ(trace.external_id(kFirstEvent), 5);
  EXPECT_EQ(trace.rf_id(kFirstEvent), 9u);
  EXPECT_EQ(trace.seq_id(kFirstEvent), 3);
  EXPECT_EQ(trace.fw_tid(kFirstEvent), 2u);
  const Lane& lane = trace.lane(trace.lane_id(kFirstEvent));
  EXPECT_EQ(trace.text(lane.process), "30");
  EXPECT_EQ(trace.text(lane.thread), "PyTorch");
  EXPECT_EQ(Extras(trace, kFirstEvent),
            (std::map<std::string, std::string>{
                {"Input Dims", "[[2,3],[]]"}, {"Ev Idx", "1"}, {"device", "0"}}));
  EXPECT_EQ(trace.stats()[Stat::kSkippedEvent], 1u);
}

TEST(KinetoReader, MarksWithTheirPhaseInTheirNameAreMarks) {
  const Trace trace = ReadEvents(R"J(
      {"name": "Iteration Start: PyTorch Profiler\", \"ph\": \"i\", \"s\": \"g", "pid": "Traces",
       "tid": "Trace PyTorch Profiler", "ts": 4822015366005.940},
      {"name": "Record Window End\", \"ph\": \"i\", \"s\": \"g", "pid": "", "tid": "", "ts": 4822015514920.704},
      {"name": "Record Window End", "pid": "", "tid": "", "ts": 4822015514920.704},
      {"name": "f\", \"ph\": \"X", "pid": 1, "tid": 1, "ts": 1, "dur": 1})J");
  EXPECT_EQ(trace.node_count(), 0u);
  EXPECT_EQ(trace.stats()[Stat::kSkippedEvent], 2u);
  EXPECT_EQ(trace.stats()[Stat::kMalformedElement], 2u) << "other events without a phase";
}

// PyTorch 2.11 gives waits for all streams of a device the tid 1.
TEST(KinetoReader, AnEventOfNoStreamIsOnNone) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"X","cat":"cuda_sync","name":"Context Sync","pid":0,"tid":1,"ts":12,"dur":1,"args":{"stream":-1,"device":0}})J");
  const Lane lane = trace.lane(trace.lane_id(kFirstEvent));
  EXPECT_EQ(lane.stream, -1);
  EXPECT_EQ(lane.device, 0);
  EXPECT_EQ(Extras(trace, kFirstEvent).at("event/tid"), "1");
}

TEST(KinetoReader, ReadsDeviceEvents) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"X","cat":"kernel","name":"gemm","pid":1,"tid":7,"ts":10,"dur":2,
       "args":{"device":1,"stream":7,"correlation":77,"External id":5,"grid":[1,2,3]}},
      {"ph":"X","cat":"gpu_memcpy","name":"copy","pid":1,"tid":8,"ts":10,"dur":2},
      {"ph":"X","cat":"cuda_sync","name":"Event Sync","pid":0,"tid":-1,"ts":12,"dur":1,"args":{"stream":-1}},
      {"ph":"X","cat":"cuda_driver","name":"cuLaunchKernel","pid":4,"tid":4,"ts":1,"dur":1},
      {"ph":"X","cat":"brand_new","name":"x","pid":4,"tid":4,"ts":1})J");
  EXPECT_EQ(trace.kind(kFirstEvent), NodeKind::kKernel);
  EXPECT_EQ(trace.place(kFirstEvent), Place::kDevice);
  EXPECT_EQ(trace.correlation(kFirstEvent), 77);
  Lane lane = trace.lane(trace.lane_id(kFirstEvent));
  EXPECT_EQ(lane.device, 1);
  EXPECT_EQ(lane.stream, 7);
  EXPECT_TRUE(lane.process.is_none());
  EXPECT_EQ(Extras(trace, kFirstEvent), (std::map<std::string, std::string>{{"grid", "[1,2,3]"}}));
  lane = trace.lane(trace.lane_id(NodeId(1)));
  EXPECT_EQ(lane.device, 1) << "pid and tid of a device event are device and stream";
  EXPECT_EQ(lane.stream, 8);
  EXPECT_EQ(trace.kind(NodeId(2)), NodeKind::kSync);
  EXPECT_EQ(trace.lane(trace.lane_id(NodeId(2))).stream, -1);
  EXPECT_EQ(trace.kind(NodeId(3)), NodeKind::kRuntime);
  EXPECT_EQ(Extras(trace, NodeId(3)).at("event/cat"), "\"cuda_driver\"");
  EXPECT_EQ(trace.kind(NodeId(4)), NodeKind::kUnknown);
  EXPECT_EQ(trace.duration(NodeId(4)), std::nullopt);
  EXPECT_EQ(trace.stats()[Stat::kUnknownDuration], 1u);
}

TEST(KinetoReader, OneCategoryOfDeviceWorkIsToldApartByName) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"X","cat":"mtia_ccp_events","name":"add-dtype_Float","pid":9,"tid":4,"ts":1,"dur":2,
       "args":{"stream":3,"correlation":77,"packet_ptr":4}},
      {"ph":"X","cat":"mtia_ccp_events","name":"dma_request","pid":9,"tid":4,"ts":3,"dur":2},
      {"ph":"X","cat":"mtia_ccp_events","name":"event_wait","pid":9,"tid":4,"ts":5,"dur":1},
      {"ph":"X","cat":"cpu_op","name":"dma_request","pid":1,"tid":1,"ts":5,"dur":1})J");
  EXPECT_EQ(trace.kind(kFirstEvent), NodeKind::kKernel);
  EXPECT_EQ(trace.kind(NodeId(1)), NodeKind::kMemcpy);
  EXPECT_EQ(trace.kind(NodeId(2)), NodeKind::kSync);
  EXPECT_EQ(trace.kind(NodeId(3)), NodeKind::kOperator);
  const Lane& lane = trace.lane(trace.lane_id(kFirstEvent));
  EXPECT_EQ(lane.device, 9);
  EXPECT_EQ(lane.stream, 3);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(trace.place(NodeId(i)), Place::kDevice);
    EXPECT_EQ(Extras(trace, NodeId(i)).at("event/cat"), "\"mtia_ccp_events\"");
  }
}

// Execution traces contain the same calls without a schema.
TEST(KinetoReader, WhatAutogradsEngineCallsIsALabel) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"X","cat":"cpu_op","name":"autograd::engine::evaluate_function: MulBackward0","pid":1,"tid":1,"ts":1,"dur":9},
      {"ph":"X","cat":"cpu_op","name":"MulBackward0","pid":1,"tid":1,"ts":2,"dur":7},
      {"ph":"X","cat":"cpu_op","name":"MulBackward0","pid":1,"tid":1,"ts":3,"dur":2},
      {"ph":"X","cat":"cpu_op","name":"aten::mul","pid":1,"tid":1,"ts":6,"dur":2},
      {"ph":"X","cat":"cpu_op","name":"MulBackward0","pid":1,"tid":1,"ts":12,"dur":2})J");
  const std::vector<NodeKind> kinds = {NodeKind::kLabel, NodeKind::kLabel, NodeKind::kOperator,
                                       NodeKind::kOperator, NodeKind::kOperator};
  for (uint32_t i = 0; i < kinds.size(); ++i) {
    EXPECT_EQ(trace.kind(NodeId(i)), kinds[i]) << i;
    EXPECT_EQ(EventCategory(trace, NodeId(i)), "cpu_op") << i;
    EXPECT_EQ(IsWorkingLabel(trace, NodeId(i)), kinds[i] == NodeKind::kLabel) << i;
  }
}

TEST(KinetoReader, ReadsCategoriesOfOldVersions) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"X","cat":"Operator","name":"ProfilerStep#5","pid":9,"tid":"9","ts":0,"dur":90},
      {"ph":"X","cat":"Operator","name":"aten::mm","pid":9,"tid":"9","ts":1,"dur":20,
       "args":{"External id":2}},
      {"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":9,"tid":"9","ts":2,"dur":3,
       "args":{"correlation":77,"external id":2}},
      {"ph":"X","cat":"Kernel","name":"gemm","pid":0,"tid":"stream 7","ts":8,"dur":5,
       "args":{"device":0,"stream":7,"correlation":77,"external id":2}},
      {"ph":"X","cat":"Memcpy","name":"Memcpy HtoD","pid":0,"tid":"stream 7","ts":20,"dur":5},
      {"ph":"X","cat":"Memset","name":"Memset (Device)","pid":0,"tid":"stream 7","ts":30,"dur":5})J");
  EXPECT_EQ(trace.kind(kFirstEvent), NodeKind::kLabel);
  EXPECT_EQ(trace.kind(NodeId(1)), NodeKind::kOperator);
  EXPECT_EQ(trace.parent(NodeId(1)), kFirstEvent);
  EXPECT_EQ(trace.kind(NodeId(2)), NodeKind::kRuntime);
  EXPECT_EQ(trace.parent(NodeId(2)), NodeId(1));
  EXPECT_EQ(trace.external_id(NodeId(2)), 2);
  EXPECT_EQ(trace.kind(NodeId(3)), NodeKind::kKernel);
  const Lane& lane = trace.lane(trace.lane_id(NodeId(3)));
  EXPECT_EQ(lane.device, 0);
  EXPECT_EQ(lane.stream, 7);
  EXPECT_EQ(trace.kind(NodeId(4)), NodeKind::kMemcpy);
  EXPECT_EQ(trace.kind(NodeId(5)), NodeKind::kMemset);
  EXPECT_EQ(Extras(trace, NodeId(5)).at("event/cat"), "\"Memset\"");
}

TEST(KinetoReader, TimesMayBeTexts) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":"1704161511420306.491","dur":"13.08"},
      {"ph":"X","cat":"cpu_op","name":"b","pid":1,"tid":1,"ts":"soon","dur":1},
      {"ph":"X","cat":"cpu_op","name":"ProfilerStep#1","pid":1,"tid":1,"ts":"1","dur":1})J");
  ASSERT_EQ(trace.node_count(), 2u);
  EXPECT_EQ(trace.kind(NodeId(1)), NodeKind::kLabel);
  EXPECT_EQ(trace.start(kFirstEvent), Nanos{1'704'161'511'420'306'491});
  EXPECT_EQ(trace.duration(kFirstEvent), Nanos{13'080});
  EXPECT_EQ(trace.stats()[Stat::kMalformedElement], 1u);
}

TEST(KinetoReader, FindsParentsByTime) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"X","cat":"cuda_runtime","name":"launch","pid":1,"tid":1,"ts":3,"dur":1},
      {"ph":"X","cat":"cpu_op","name":"inner","pid":1,"tid":1,"ts":2,"dur":3},
      {"ph":"X","cat":"user_annotation","name":"outer","pid":1,"tid":1,"ts":0,"dur":10},
      {"ph":"X","cat":"cpu_op","name":"other","pid":1,"tid":2,"ts":3,"dur":1},
      {"ph":"X","cat":"kernel","name":"k","pid":1,"tid":1,"ts":3,"dur":1})J");
  EXPECT_EQ(trace.parent(NodeId(0)), NodeId(1));
  EXPECT_EQ(trace.parent(NodeId(1)), NodeId(2));
  for (const uint32_t root : {2u, 3u, 4u}) {
    EXPECT_TRUE(trace.parent(NodeId(root)).is_none()) << root;
  }
}

TEST(KinetoReader, PairsBeginningsWithEnds) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"B","name":"outer","pid":1,"tid":1,"ts":1,"args":{"a":1}},
      {"ph":"B","name":"inner","pid":1,"tid":1,"ts":2},
      {"ph":"E","pid":1,"tid":2,"ts":2},
      {"ph":"E","pid":1,"tid":1,"ts":4.5,"args":{"b":2}},
      {"ph":"E","pid":1,"tid":1,"ts":9},
      {"ph":"B","name":"open","pid":1,"tid":1,"ts":10})J");
  ASSERT_EQ(trace.node_count(), 3u);
  EXPECT_EQ(trace.duration(NodeId(0)), Nanos{8'000});
  EXPECT_EQ(trace.duration(NodeId(1)), Nanos{2'500});
  EXPECT_EQ(trace.parent(NodeId(1)), NodeId(0));
  EXPECT_EQ(Extras(trace, NodeId(1)).at("b"), "2");
  EXPECT_EQ(trace.duration(NodeId(2)), std::nullopt);
  EXPECT_EQ(trace.stats()[Stat::kMalformedElement], 1u) << "an end without a beginning";
  EXPECT_EQ(trace.stats()[Stat::kUnknownDuration], 1u);
}

// PyTorch extends the duration of unfinished events to the end of the recording.
TEST(KinetoReader, HowLongUnfinishedEventsTookIsUnknown) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"X","cat":"user_annotation","name":"open","pid":1,"tid":1,"ts":1,"dur":9.5,"args":{"finished":false}},
      {"ph":"X","cat":"cpu_op","name":"inside","pid":1,"tid":1,"ts":3,"dur":2,"args":{"finished":true}},
      {"ph":"X","cat":"cpu_op","name":"behind","pid":1,"tid":1,"ts":11,"dur":2})J");
  EXPECT_EQ(trace.duration(NodeId(0)), std::nullopt);
  EXPECT_EQ(Extras(trace, NodeId(0)).at("event/dur"), "9.5");
  EXPECT_EQ(Extras(trace, NodeId(0)).at("finished"), "false");
  EXPECT_EQ(trace.duration(NodeId(1)), Nanos{2'000});
  EXPECT_EQ(trace.parent(NodeId(1)), NodeId(0)) << "open meanwhile";
  EXPECT_TRUE(trace.parent(NodeId(2)).is_none());
  EXPECT_EQ(trace.stats()[Stat::kUnknownDuration], 1u);
}

TEST(KinetoReader, EndsBelongToTheirThreadsWhateverTheirCategory) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"B","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"args":{"stream":9}},
      {"ph":"E","pid":0,"tid":7,"ts":3},
      {"ph":"B","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5},
      {"ph":"B","cat":"cpu_op","name":"a","pid":0,"tid":7,"ts":6},
      {"ph":"E","cat":"other","pid":0,"tid":7,"ts":7},
      {"ph":"E","pid":0,"tid":7,"ts":9,"args":{"device":0,"stream":3}})J");
  ASSERT_EQ(trace.node_count(), 3u);
  EXPECT_EQ(trace.duration(NodeId(0)), Nanos{2'000});
  EXPECT_EQ(trace.duration(NodeId(1)), Nanos{4'000});
  EXPECT_EQ(trace.duration(NodeId(2)), Nanos{1'000});
  EXPECT_EQ(Extras(trace, NodeId(0)), (std::map<std::string, std::string>{{"event/tid", "7"}}));
  EXPECT_EQ(Extras(trace, NodeId(1)), (std::map<std::string, std::string>{{"stream", "3"}}))
      << "what the lane does not say";
  EXPECT_EQ(trace.stats()[Stat::kMalformedElement], 0u);
}

TEST(KinetoReader, ArgumentsOfEndsCompleteThoseOfBeginnings) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"B","cat":"cpu_op","name":"a","pid":0,"tid":7,"ts":1,"args":{"External id":8,"Sequence number":3}},
      {"ph":"E","pid":0,"tid":7,"ts":3,"args":{"correlation":5,"External id":9}},
      {"ph":"B","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5,
       "args":{"Process Group Name":"1","dtype":"Float","Group size":2}},
      {"ph":"E","pid":0,"tid":7,"ts":7,
       "args":{"Collective name":"allreduce","In msg nelems":4,"Process Group Description":"dp"}},
      {"ph":"B","cat":"kernel","name":"ncclDevKernel_SendRecv","pid":0,"tid":7,"ts":8},
      {"ph":"E","pid":0,"tid":7,"ts":9,"args":{"Collective name":"send","Dst Rank":1}})J");
  ASSERT_EQ(trace.node_count(), 3u);
  EXPECT_EQ(trace.correlation(NodeId(0)), 5);
  EXPECT_EQ(trace.external_id(NodeId(0)), 9) << "the end's, as Chrome has it";
  EXPECT_EQ(trace.seq_id(NodeId(0)), 3);
  EXPECT_EQ(trace.kind(NodeId(1)), NodeKind::kCollective);
  const Comm* comm = trace.comm(NodeId(1));
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(comm->type, CollectiveType::kAllReduce);
  EXPECT_EQ(trace.text(comm->group), "1");
  EXPECT_EQ(comm->bytes, Bytes{16});
  EXPECT_EQ(comm->group_size, 2);
  ASSERT_EQ(trace.process_groups().size(), 1u);
  EXPECT_EQ(trace.text(trace.process_groups()[0].description), "dp");
  EXPECT_EQ(trace.kind(NodeId(2)), NodeKind::kSend);
  EXPECT_EQ(trace.comm(NodeId(2))->dst, 1);
}

TEST(KinetoReader, ReadsCollectives) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL()","pid":0,"tid":7,"ts":1,"dur":2,
       "args":{"Collective name":"allreduce","dtype":"Float","In msg nelems":8,"Out msg nelems":8,"Group size":2,
               "Process Group Name":"1","Process Group Description":"dp","Process Group Ranks":"[0, 2]",
               "In split size":"[]","Out split size":"[1, 2, ...]"}},
      {"ph":"X","cat":"kernel","name":"ncclKernel_Broadcast_RING","pid":0,"tid":7,"ts":4,"dur":2},
      {"ph":"X","cat":"kernel","name":"ncclDevKernel_SendRecv()","pid":0,"tid":7,"ts":8,"dur":2,
       "args":{"Collective name":"send","Dst Rank":3}})J");
  const Comm* comm = trace.comm(kFirstEvent);
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(trace.kind(kFirstEvent), NodeKind::kCollective);
  EXPECT_EQ(comm->type, CollectiveType::kAllReduce);
  EXPECT_EQ(comm->bytes, Bytes{32});
  EXPECT_EQ(trace.text(comm->group), "1");
  ASSERT_EQ(trace.process_groups().size(), 1u);
  EXPECT_EQ(trace.ints(trace.process_groups()[0].ranks).size(), 2u);
  EXPECT_EQ(Extras(trace, kFirstEvent).at("Out split size"), "\"[1, 2, ...]\"");
  EXPECT_EQ(trace.comm(NodeId(1))->type, CollectiveType::kBroadcast);
  EXPECT_EQ(trace.kind(NodeId(2)), NodeKind::kSend);
  EXPECT_EQ(trace.comm(NodeId(2))->dst, 3);
}

TEST(KinetoReader, EachCollectiveHasOneHostNode) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,"ts":0,"dur":5},
      {"ph":"X","cat":"user_annotation","name":"nccl:all_gather","pid":1,"tid":1,"ts":1,"dur":2},
      {"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,"ts":6,"dur":1},
      {"ph":"X","cat":"user_annotation","name":"gloo:all_reduce","pid":1,"tid":2,"ts":1,"dur":2},
      {"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,"ts":8,"dur":1,"args":{"Collective name":"wait"}})J");
  EXPECT_EQ(trace.kind(NodeId(0)), NodeKind::kCollective) << "its label says so";
  EXPECT_EQ(trace.comm(NodeId(0))->type, CollectiveType::kAllGather);
  EXPECT_EQ(trace.kind(NodeId(1)), NodeKind::kLabel);
  EXPECT_EQ(trace.kind(NodeId(2)), NodeKind::kOperator) << "nothing says what it is";
  EXPECT_EQ(trace.kind(NodeId(3)), NodeKind::kCollective);
  EXPECT_EQ(trace.kind(NodeId(4)), NodeKind::kSync);
}

// Before PyTorch 2.2 neither the names of kernels nor those of their callers name the
// communication.
TEST(KinetoReader, KernelsWithoutFactsDoWhatTheirCallSays) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,"ts":0,"dur":9},
      {"ph":"X","cat":"user_annotation","name":"nccl:all_to_all","pid":1,"tid":1,"ts":1,"dur":7,
       "args":{"Input Dims":[[8,1024]],"Input type":["float"]}},
      {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":2,"dur":1,
       "args":{"correlation":7}},
      {"ph":"X","cat":"kernel","name":"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t()","pid":0,"tid":7,
       "ts":5,"dur":3,"args":{"correlation":7,"device":0,"stream":7}},
      {"ph":"X","cat":"kernel","name":"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t()","pid":0,"tid":7,
       "ts":9,"dur":3,"args":{"correlation":8,"device":0,"stream":7}})J");
  const Comm* found = trace.comm(NodeId(3));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->type, CollectiveType::kAllToAll);
  EXPECT_EQ(found->bytes, Bytes{8 * 1024 * 4});
  EXPECT_EQ(found->dtype, DType::kFloat32);
  EXPECT_FALSE(trace.comm(NodeId(4))->bytes) << "launched by no recorded call";
}

TEST(KinetoReader, GlooLabelsContainNothingAndEndNothing) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"X","cat":"user_annotation","name":"step","pid":1,"tid":1,"ts":0,"dur":50},
      {"ph":"X","cat":"cpu_op","name":"c10d::allreduce_","pid":1,"tid":1,"ts":1,"dur":2},
      {"ph":"X","cat":"user_annotation","name":"gloo:all_reduce","pid":1,"tid":1,"ts":2,"dur":60},
      {"ph":"X","cat":"cpu_op","name":"aten::mul","pid":1,"tid":1,"ts":10,"dur":2})J");
  EXPECT_EQ(trace.parent(NodeId(2)), NodeId(1));
  EXPECT_EQ(trace.parent(NodeId(3)), NodeId(0));
}

// Profiles of Ascend devices (torch_npu): arrows begin at the operator, and names come after the
// events.
TEST(KinetoReader, AscendsDevicesByProcessesAndArguments) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"X","cat":"cpu_op","name":"aten::add","pid":9,"tid":9,"ts":"10.000","dur":20},
      {"ph":"X","name":"aclnnAdd","pid":"3_0","tid":5,"ts":"40.000","dur":4,
       "args":{"Task Type":"AI_VECTOR_CORE","Stream Id":5}},
      {"ph":"X","name":"MemcpyAsync","pid":"3_0","tid":5,"ts":"50.000","dur":4,
       "args":{"Task Type":"MEMCPY_ASYNC","Stream Id":5}},
      {"ph":"X","name":"EVENT_WAIT","pid":"3_0","tid":5,"ts":"60.000","dur":4,
       "args":{"Task Type":"EVENT_WAIT","Stream Id":5}},
      {"ph":"X","name":"hcom_allReduce__345_0_1","pid":7,"tid":0,"ts":"70.000","dur":8},
      {"ph":"X","name":"Notify_Wait","pid":7,"tid":1,"ts":"70.000","dur":8},
      {"ph":"X","name":"Computing","pid":8,"tid":0,"ts":"40.000","dur":4},
      {"ph":"X","name":"AscendCL@aclnnAdd","pid":6,"tid":2,"ts":"20.000","dur":4},
      {"ph":"X","name":"thing","pid":5,"tid":2,"ts":"20.000","dur":4},
      {"ph":"s","name":"torch_to_npu","id":"5_1_0","pid":9,"tid":9,"ts":"10.000","cat":"async_npu"},
      {"ph":"f","name":"torch_to_npu","id":"5_1_0","pid":"3_0","tid":5,"ts":"40.000","cat":"async_npu"},
      {"ph":"M","name":"process_name","pid":"3_0","args":{"name":"Ascend Hardware"}},
      {"ph":"M","name":"process_name","pid":7,"args":{"name":"Communication"}},
      {"ph":"M","name":"process_name","pid":8,"args":{"name":"Overlap Analysis"}},
      {"ph":"M","name":"process_name","pid":6,"args":{"name":"CANN"}},
      {"ph":"M","name":"process_name","pid":5,"args":{"name":"NPU 3"}})J");
  const auto is = [&](uint32_t node, NodeKind kind, Place place) {
    return trace.kind(NodeId(node)) == kind && trace.place(NodeId(node)) == place;
  };
  EXPECT_TRUE(is(1, NodeKind::kKernel, Place::kDevice));
  EXPECT_EQ(trace.lane(trace.lane_id(NodeId(1))).stream, 5);
  EXPECT_EQ(trace.parent(NodeId(1)), NodeId(0)) << "as its arrow says";
  EXPECT_TRUE(is(2, NodeKind::kMemcpy, Place::kDevice));
  EXPECT_TRUE(is(3, NodeKind::kSync, Place::kDevice));
  EXPECT_TRUE(is(4, NodeKind::kCollective, Place::kDevice));
  EXPECT_EQ(trace.comm(NodeId(4))->type, CollectiveType::kAllReduce);
  EXPECT_TRUE(is(5, NodeKind::kLabel, Place::kDevice)) << "a piece of the one before";
  EXPECT_TRUE(is(6, NodeKind::kLabel, Place::kUnknown)) << "a sum of others, named behind it";
  EXPECT_TRUE(is(7, NodeKind::kRuntime, Place::kHost));
  EXPECT_TRUE(is(8, NodeKind::kUnknown, Place::kUnknown));
  EXPECT_EQ(trace.stats()[Stat::kSkippedEvent], 7u);
  ASSERT_EQ(trace.info().extras.size(), 1u);
  EXPECT_EQ(trace.text(trace.info().extras[0].text), R"J({"NPU 3":1})J");
}

TEST(KinetoReader, SumsOfOtherEventsAreSkipped) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"M","name":"process_name","pid":8,"args":{"name":"Overlap Analysis"}},
      {"ph":"X","name":"Free","pid":8,"tid":0,"ts":"40.000","dur":4},
      {"ph":"X","cat":"cpu_op","name":"aten::add","pid":9,"tid":9,"ts":"10.000","dur":20})J");
  EXPECT_EQ(trace.node_count(), 1u);
  EXPECT_EQ(trace.stats()[Stat::kSkippedEvent], 2u);
}

TEST(KinetoReader, DevicesOfXlaAndRocprof) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"M","name":"process_name","pid":1,"args":{"name":"/device:TPU:0"}},
      {"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"Steps"}},
      {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"XLA Ops"}},
      {"ph":"M","name":"process_name","pid":2,"args":{"name":"/device:GPU:1 (pid 2)"}},
      {"ph":"M","name":"thread_name","pid":2,"tid":1,"args":{"name":"XLA Ops"}},
      {"ph":"M","name":"thread_name","pid":2,"tid":2,"args":{"name":"Stream #13(Compute)"}},
      {"ph":"M","name":"process_name","pid":3,"args":{"name":"/host:CPU"}},
      {"ph":"M","name":"process_name","pid":6,"args":{"name":"GPU0"}},
      {"ph":"M","name":"process_name","pid":4,"args":{"name":"CPU HIP API"}},
      {"ph":"M","name":"process_name","pid":5,"args":{"name":"COPY"}},
      {"ph":"X","name":"0","pid":1,"tid":1,"ts":0,"dur":50},
      {"ph":"X","name":"while.1","pid":1,"tid":2,"ts":0,"dur":30},
      {"ph":"X","name":"fusion.1","pid":1,"tid":2,"ts":1,"dur":10},
      {"ph":"X","name":"all-reduce.1","pid":1,"tid":2,"ts":12,"dur":10},
      {"ph":"X","name":"fusion.3","pid":2,"tid":1,"ts":0,"dur":10},
      {"ph":"X","name":"loop_fusion","pid":2,"tid":2,"ts":0,"dur":10,"args":{"correlation_id":"5"}},
      {"ph":"X","name":"PjitFunction(f)","pid":3,"tid":2,"ts":0,"dur":10},
      {"ph":"X","name":"cuLaunchKernel","pid":3,"tid":2,"ts":1,"dur":2,"args":{"correlation_id":"5"}},
      {"ph":"X","name":"gemm.kd","pid":"6","tid":"1","ts":"1","dur":"2"},
      {"ph":"X","name":"hipMemcpy","pid":"4","tid":"1","ts":"1","dur":"2"},
      {"ph":"X","name":"CopyHostToDevice","pid":"5","tid":"1","ts":"1","dur":"2"},
      {})J");
  EXPECT_EQ(trace.stats()[Stat::kMalformedElement], 0u);
  std::string kinds;
  ForEachNode(trace, [&](NodeId node) {
    kinds += std::string(kinds.empty() ? "" : " ") + std::string(Name(trace.kind(node))) + "-" +
             std::string(Name(trace.place(node)));
  });
  EXPECT_EQ(kinds,
            "label-device label-device kernel-device collective-device label-device kernel-device "
            "label-host runtime-host kernel-device runtime-host memcpy-device");
  EXPECT_EQ(trace.comm(NodeId(3))->type, CollectiveType::kAllReduce);
  EXPECT_EQ(trace.correlation(NodeId(5)), 5);
  EXPECT_EQ(trace.correlation(NodeId(7)), 5);
  EXPECT_EQ(trace.lane(trace.lane_id(NodeId(2))).device, 0);
  EXPECT_EQ(trace.lane(trace.lane_id(NodeId(5))).device, 1);
  EXPECT_EQ(trace.lane(trace.lane_id(NodeId(5))).stream, 13);
}

TEST(KinetoReader, CategoriesOfRocprofv3) {
  const Trace trace = ReadEvents(R"J(
      {"ph":"X","cat":"hip_api","name":"hipLaunchKernel","pid":9,"tid":9,"ts":1,"dur":2,"args":{"corr_id":4}},
      {"ph":"X","cat":"kernel_dispatch","name":"gemm","pid":9,"tid":"STREAM [2]","ts":5,"dur":2,
       "args":{"agent":"GPU-4","corr_id":4,"queue":1,"stream_id":2}},
      {"ph":"X","cat":"memory_copy","name":"MEMORY_COPY_HOST_TO_DEVICE","pid":9,"ts":9,"dur":2,
       "args":{"dst_agent":"GPU-4","copy_bytes":64,"corr_id":5}})J");
  EXPECT_EQ(trace.kind(NodeId(1)), NodeKind::kKernel);
  EXPECT_EQ(trace.correlation(NodeId(0)), trace.correlation(NodeId(1)));
  EXPECT_EQ(trace.lane(trace.lane_id(NodeId(1))).device, 4);
  EXPECT_EQ(trace.lane(trace.lane_id(NodeId(1))).stream, 2);
  EXPECT_EQ(CopiedBytes(trace, NodeId(2)), Bytes{64});
}

// For times that it could not take, the profiler writes 0 or uninitialised memory.
TEST(KinetoReader, TimesThatCannotBeTrueAreUnknown) {
  const auto event = [](std::string_view category, int64_t ts, int64_t dur, int correlation) {
    return R"J({"ph":"X","cat":")J" + std::string(category) +
           R"J(","name":"x","pid":0,"tid":7,"ts":)J" + std::to_string(ts) + R"J(,"dur":)J" +
           std::to_string(dur) + R"J(,"args":{"correlation":)J" + std::to_string(correlation) +
           R"J(,"device":0,"stream":7}})J";
  };
  constexpr int kWorks = 10;
  // Ten launches with kernels, starting at `at`, and one more kernel.
  const auto unknown = [&](int64_t at, int64_t ts, int64_t dur) {
    std::string events;
    for (int i = 0; i < kWorks; ++i) {
      events += event("cuda_runtime", at + i * 20, 5, i + 1) + ",";
      events += event("kernel", at + 10 + i * 20, 10, i + 1) + ",";
    }
    events += event("cuda_runtime", at + kWorks * 20, 5, 99) + ",";
    const Trace trace = ReadEvents(events + event("kernel", ts, dur, 99));
    const NodeId last(2 * kWorks + 1);
    uint64_t others = 0;
    ForEachNode(trace, [&](NodeId node) {
      others += node != last && !(trace.start(node) && trace.duration(node)) ? 1 : 0;
    });
    EXPECT_EQ(others, 0u);
    EXPECT_EQ(trace.stats()[Stat::kUnknownTime], trace.start(last) ? 0u : 1u);
    if (!trace.start(last)) {
      EXPECT_FALSE(trace.duration(last));
      EXPECT_EQ(Extras(trace, last).at("event/ts"), std::to_string(ts));
      EXPECT_EQ(Extras(trace, last).at("event/dur"), std::to_string(dur));
    }
    return !trace.start(last);
  };
  constexpr int64_t kNow = 1'615'207'264'500'000;
  constexpr int64_t kSecond = 1'000'000;
  EXPECT_TRUE(unknown(kNow, 0, 0));
  EXPECT_TRUE(unknown(kNow, 0, kNow)) << "only its end was taken";
  EXPECT_TRUE(unknown(0, -kNow, 0)) << "times are from a base on";
  EXPECT_TRUE(unknown(kNow, kNow + 5, kNow)) << "much too long";
  EXPECT_TRUE(unknown(5 * kSecond, 0, 0)) << "before its launch";
  EXPECT_TRUE(unknown(5 * kSecond, 0, 5 * kSecond));
  EXPECT_TRUE(unknown(kNow, kNow + 11, 5 * kSecond)) << "on top of all others of its stream";
  EXPECT_FALSE(unknown(0, 0, 0)) << "where all begin";
  EXPECT_FALSE(unknown(kNow, kNow + 205, 5 * kSecond)) << "behind all others";
  EXPECT_FALSE(unknown(kNow, kNow - 500, 100)) << "clocks are not the same";
  EXPECT_FALSE(unknown(kNow, kNow + 60 * kSecond, 10)) << "much later";
}

// Profiles of ROCm 6.1 have kernels without correlation.
TEST(KinetoReader, KernelsWithoutCorrelationBelongToCallsByOrder) {
  const auto call = [](int i, std::string_view name) {
    const std::string at = std::to_string(i * 100);
    const std::string next = std::to_string(i * 100 + 1);
    return R"J({"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,"ts":)J" + at +
           R"J(,"dur":20,"args":{"Collective name":")J" + std::string(name) +
           R"J(","In msg nelems":)J" + std::to_string(i + 1) +
           R"J(,"dtype":"Float","Process Group Name":"0","Group size":2}},
            {"ph":"X","cat":"cuda_runtime","name":"hipExtLaunchKernel","pid":1,"tid":1,"ts":)J" +
           next + R"J(,"dur":2,"args":{"correlation":)J" + std::to_string(70 + i) + "}},";
  };
  const auto kernel = [](int i) {
    return R"J({"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic(ncclWork*)","pid":0,"tid":3,"ts":)J" +
           std::to_string(i * 100 + 30) +
           R"J(,"dur":50,"args":{"device":0,"stream":3,"correlation":0}},)J";
  };
  const std::string end = R"J({"ph":"M","name":"x"})J";
  const Trace trace =
      ReadEvents(call(0, "allreduce") + kernel(0) + call(1, "broadcast") + kernel(1) + end);
  ASSERT_EQ(trace.node_count(), 6u);
  EXPECT_EQ(trace.comm(NodeId(2))->type, CollectiveType::kAllReduce);
  EXPECT_EQ(trace.comm(NodeId(5))->type, CollectiveType::kBroadcast);
  EXPECT_EQ(trace.comm(NodeId(5))->bytes, Bytes{8});
  EXPECT_EQ(trace.text(trace.comm(NodeId(5))->group), "0");
  EXPECT_EQ(trace.correlation(NodeId(5)), 71) << "that of the launch in the call";
  EXPECT_EQ(trace.stats()[Stat::kCallByOrder], 2u);
  const Trace lost = ReadEvents(call(0, "allreduce") + call(1, "broadcast") + kernel(1) + end);
  EXPECT_EQ(lost.comm(NodeId(4))->type, CollectiveType::kUnknown) << "one or the other";
  EXPECT_FALSE(lost.comm(NodeId(4))->bytes);
  EXPECT_EQ(lost.text(lost.comm(NodeId(4))->group), "0") << "both are of it";
  EXPECT_EQ(lost.correlation(NodeId(4)), 0);
  const Trace more = ReadEvents(call(0, "allreduce") + kernel(0) + kernel(1) + end);
  EXPECT_FALSE(more.comm(NodeId(3))->group) << "not all of them can be of the call";
}

TEST(KinetoReader, ReadsDistributedInfo) {
  const auto read = [](std::string_view info) {
    return ReadKineto(R"J({"schemaVersion":1,"distributedInfo":)J" + std::string(info) +
                      R"J(,"traceEvents":[],"traceName":"t"})J")
        .value();
  };
  Trace trace = read(R"J({"backend":"nccl","rank":1,"world_size":4,"pg_count":1,"pg_config":
      [{"pg_name":"0","pg_desc":"default_pg","backend_config":"cuda:nccl","pg_size":4,"ranks":[0,1,2,3]}]})J");
  EXPECT_EQ(trace.info().rank, 1);
  EXPECT_EQ(trace.info().world_size, 4);
  EXPECT_EQ(trace.info().schema, "1");
  ASSERT_EQ(trace.process_groups().size(), 1u);
  EXPECT_EQ(trace.process_groups()[0].size, 4);
  EXPECT_EQ(trace.info().extras.size(), 2u) << "kept as it is, too";
  // Older files contain texts with Python's quotes.
  trace =
      read(R"J({"rank":"2","world_size":"4","pg_config":"[{'pg_name': '0', 'ranks': [0, 1]}]"})J");
  EXPECT_EQ(trace.info().rank, 2);
  EXPECT_EQ(trace.process_groups().size(), 1u);
  trace = read(R"J({"rank":null,"pg_config":"<cut"})J");
  EXPECT_EQ(trace.info().rank, std::nullopt);
  EXPECT_EQ(trace.stats()[Stat::kUnknownValue], 1u);
}

TEST(KinetoReader, ReadsBareArraysAndRepairsEscapes) {
  const Trace trace =
      ReadKineto(
          R"J([{"ph":"X","name":"C:\work\x","pid":1,"tid":1,"ts":1,"dur":1,"args":{"q":"\w"}}])J",
          3)
          .value();
  EXPECT_EQ(trace.name(kFirstEvent), R"J(C:\work\x)J");
  EXPECT_EQ(trace.stats()[Stat::kRepairedEscape], 3u);
  EXPECT_EQ(Extras(trace, kFirstEvent).at("q"), R"J("\\w")J");
}

TEST(KinetoReader, SkipsAndCountsMalformedEvents) {
  const std::string text =
      R"J({"traceEvents":[{"ph":"X","name":"good","ts":1,"dur":1},{"name":"no phase"},
      {"ph":"X","ts":1},{"ph":"X","name":"no time"},{"ph":"X","name":"x","ts":"soon"},4,
      {"ph":"X","name":"x","ts":1,"args":{"a":[1 2]}},{"ph":"X","name":"x","ts":1,"z":01},
      {"ph":"X","name":"negative","ts":1,"dur":-1},{"ph":"X","name":"odd","ts":1,"dur":NaN,"args":3}]})J";
  const Trace trace = ReadKineto(text).value();
  EXPECT_EQ(trace.node_count(), 3u);
  // The part between an unreadable event and the next one is lost with it.
  EXPECT_EQ(trace.stats()[Stat::kMalformedElement], 5u);
  EXPECT_EQ(trace.stats()[Stat::kNegativeDuration], 1u);
  EXPECT_EQ(trace.duration(NodeId(1)), std::nullopt);
  EXPECT_EQ(trace.duration(NodeId(2)), std::nullopt);
  EXPECT_EQ(Extras(trace, NodeId(2)).at("event/args"), "3");
  const auto strict = ReadKineto(text, 50, {.strict = true});
  ASSERT_FALSE(strict.has_value());
  EXPECT_NE(strict.error().message.find("event 1 cannot be read: found no 'ph'"), std::string::npos)
      << strict.error().message;
}

TEST(KinetoReader, RefusesWhatIsNoTrace) {
  for (const char* text : {"", "{}", "[]", "{\"traceEvents\":3}", "[1,2]", "{\"nodes\":[]}"}) {
    EXPECT_FALSE(ReadKineto(text).has_value()) << text;
  }
  EXPECT_TRUE(ReadKineto(R"J({"schemaVersion":1,"traceEvents":[]})J").has_value());
}

struct RecordedProfile {
  const char* file;
  size_t nodes;
  size_t skipped;
};
void PrintTo(const RecordedProfile& recorded, std::ostream* out) { *out << recorded.file; }

class RecordedKineto : public testing::TestWithParam<RecordedProfile> {};

TEST_P(RecordedKineto, IsReadWithoutLoss) {
  ETUDE_NEED_DATA(GetParam().file);
  const std::string text = DataText(GetParam().file);
  const Trace trace = ReadKineto(text).value();
  EXPECT_EQ(trace.node_count(), GetParam().nodes);
  EXPECT_EQ(trace.stats()[Stat::kSkippedEvent], GetParam().skipped);
  for (const Stat stat : {Stat::kMalformedElement, Stat::kTruncated, Stat::kRoundedTime,
                          Stat::kUnknownDuration, Stat::kUnknownValue}) {
    EXPECT_EQ(trace.stats()[stat], 0u) << Info(stat).name;
  }
  ForEachNode(trace, [&](NodeId node) {
    const NodeId parent = trace.parent(node);
    if (!parent) return;
    ASSERT_LE(*trace.start(parent), *trace.start(node));
    ASSERT_LE(*trace.start(node) + *trace.duration(node),
              *trace.start(parent) + *trace.duration(parent));
  });
}

INSTANTIATE_TEST_SUITE_P(
    Data, RecordedKineto,
    testing::Values(RecordedProfile{"gpu/benchmark_simple_add_trace.json.gz", 56, 55},
                    RecordedProfile{"gpu/linear_kineto.json.gz", 61950, 24909},
                    RecordedProfile{"gpu/dlrm8/device.0.json.gz", 2460, 830},
                    RecordedProfile{"chakra/resnet110_syn/device.0.json.gz", 20699, 6184},
                    RecordedProfile{"gpu/messages/device.0.json.gz", 141, 0},
                    RecordedProfile{"gpu/graph/device.0.json.gz", 153, 139},
                    RecordedProfile{"cpu/ddp_mlp/rank-0_kineto.json.gz", 302, 38},
                    RecordedProfile{"cpu/transformer_kineto.json.gz", 4282, 542}));

// The profiler's times give the same nesting as the observer's records of the same run.
TEST(KinetoReader, NestingAgreesWithTheExecutionTrace) {
  for (const std::string& model : {std::string("mlp"), std::string("lstm"), std::string("dlrm")}) {
    const Trace device = ReadKineto(DataText("cpu/" + model + "_kineto.json.gz")).value();
    const Trace host = ReadWith(MakeEtJsonReader, DataText("cpu/" + model + "_et.json.gz")).value();
    const auto parents = [](const Trace& trace) {
      std::map<uint64_t, uint64_t> parent_of;
      ForEachNode(trace, [&](NodeId node) {
        const NodeId parent = trace.parent(node);
        const uint64_t id = trace.rf_id(node).value_or(0);
        if (id != 0) parent_of[id] = parent ? trace.rf_id(parent).value_or(0) : 0;
      });
      return parent_of;
    };
    EXPECT_EQ(parents(device), parents(host)) << model;
  }
}

TEST(KinetoReader, ChunkSizesGiveTheSameTrace) {
  const std::string text = DataText("gpu/messages/device.0.json.gz");
  const Trace whole = ReadKineto(text).value();
  for (size_t chunk = 1; chunk < 300; chunk += chunk < 70 ? 1 : 37) {
    EXPECT_TRUE(ReadKineto(text, chunk).value().SameContent(whole)) << chunk;
  }
}

RC_GTEST_PROP(KinetoReaderProperty, CuttingNeverGivesMoreNodes, ()) {
  static const std::string text =
      testing_support::ReadFileBytes(ETUDE_TEST_DATA "/../corpus/kineto/object.json");
  const auto kept = *rc::gen::inRange<size_t>(0, text.size() - 1);
  const auto whole = ReadKineto(text);
  RC_ASSERT(whole.has_value());
  const auto trace =
      ReadKineto(std::string_view(text).substr(0, kept), *rc::gen::inRange<size_t>(1, 500));
  if (trace) {
    RC_ASSERT(trace->node_count() <= whole->node_count());
    RC_ASSERT(trace->stats()[Stat::kTruncated] == 1u);
  }
}

}  // namespace
}  // namespace etude
