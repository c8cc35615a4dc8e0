#include "src/formats/native/capture_reader.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <atomic>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "src/formats/kineto/kineto_reader.h"
#include "src/formats/native/capture_writer.h"
#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/formats/pytorch_et/linked_json_writer.h"
#include "src/formats/test_support.h"
#include "src/formats/timeline/chrome_writer.h"
#include "src/trace/validator.h"
#include "src/trace/words/machine_clock.h"

namespace etude {
namespace {

using capture::CaptureWriter;
using capture::Event;
using capture::RecordBuffer;
using capture::Tag;
using Numbers = std::initializer_list<uint64_t>;

constexpr std::string_view kHeader =
    R"({"format": "etude-native-capture", "version": 2, "realtime_ns": 5000, "monotonic_ns": 1000,
        "pid": 77, "rank": 3, "world_size": 4, "torch": "2.13.0"})";

// Writes files with the real writer, event by event.
class CaptureReaderTest : public testing::Test {
 protected:
  CaptureReaderTest()
      : path_(testing::TempDir() + "/" +
              testing::UnitTest::GetInstance()->current_test_info()->name() + ".etude") {}
  ~CaptureReaderTest() override { std::filesystem::remove(path_); }

  void Create(std::string_view header = kHeader) {
    std::string error;
    writer_ = CaptureWriter::Create(path_, header, {}, error);
    ASSERT_NE(writer_, nullptr) << error;
  }

  // Begins the block of a thread: times from `time` on, nodes and handles from 0 on.
  void Begin(uint32_t thread, int64_t time) {
    records_.Varint(thread);
    records_.Varint(static_cast<uint64_t>(time));
    records_.Varint(0);
    records_.Varint(0);
    time_ = time;
    node_ = 0;
    handle_ = 0;
  }
  // Writes the begin of a call up to the number of inputs; the caller adds the inputs.
  void Enter(uint32_t function, int64_t node, int64_t time, uint64_t inputs = 0,
             uint64_t overhead = 0, uint64_t sequence = 8) {
    records_.Mark(Event::kEnter);
    Time(time, overhead);
    records_.Signed(node - node_);
    records_.Signed(100 + node - handle_);
    records_.Varint(function);
    records_.Byte(0);           // scope
    records_.Varint(sequence);  // one more than its number
    records_.Varint(0);
    records_.Byte(capture::kGradMode);
    records_.Varint(inputs);
    node_ = node;
    handle_ = 100 + node;
  }
  void Exit(int64_t time, uint64_t overhead = 0) {
    records_.Mark(Event::kExit);
    Time(time, overhead);
    records_.Varint(0);
  }
  void Time(int64_t time, uint64_t overhead) {
    records_.Signed(time - time_);
    records_.Varint(overhead);
    time_ = time;
  }
  void Flush() { writer_->AddEvents(records_.Take()); }
  // Writes a contiguous tensor of 2 x 3 floats.
  void Tensor(uint32_t type, uint32_t device, uint8_t flags, uint64_t storage = 0xDEF0) {
    records_.Mark(Tag::kTensor);
    records_.Byte(flags | capture::tensor_flag::kHasStorage);
    records_.Varint(type);
    records_.Varint(device);
    records_.Fixed64(0xABC0);
    records_.Fixed64(storage);
    records_.Varint(4);    // offset
    records_.Varint(100);  // bytes
    records_.Varint(2);
    records_.Varint(2);
    records_.Varint(3);
  }

  // Writes a group of two ranks; this process is the first.
  void Group(std::string_view name) {
    records_.Mark(Tag::kProcessGroup);
    for (const std::string_view text : {name, std::string_view(), std::string_view("gloo")}) {
      records_.Text(text);
    }
    for (const uint64_t number : Numbers{0, 2}) records_.Varint(number);
  }

  std::string Finish(const std::string& facts = "\"nodes\": 1") {
    std::string error;
    EXPECT_TRUE(writer_->Finish(facts, error)) << error;
    return Bytes();
  }
  std::string Bytes() const { return testing_support::ReadFileBytes(path_); }
  static Result<Trace> Read(std::string_view bytes, size_t chunk = 1 << 20, bool strict = false) {
    return testing_support::ReadWith(MakeCaptureReader, bytes, chunk, {.strict = strict});
  }

  std::string path_;
  std::unique_ptr<CaptureWriter> writer_;
  RecordBuffer records_;
  int64_t time_ = 0;
  int64_t node_ = 0;
  int64_t handle_ = 0;
};

TEST_F(CaptureReaderTest, AnOperatorWithAllItsFacts) {
  Create();
  const uint32_t add = writer_->DefineFunction("aten::add", "aten::add.Tensor(…) -> Tensor");
  const uint32_t thread = writer_->DefineThread(2, 1, 4242);
  const uint32_t type = writer_->DefineString("float");
  const uint32_t cpu = writer_->DefineString("cpu");
  Begin(thread, 2000);
  Enter(add, 3, 2100, 4);
  Tensor(type, cpu, capture::tensor_flag::kContiguous | capture::tensor_flag::kRequiresGrad);
  records_.Mark(Tag::kDouble);
  records_.Fixed64(std::bit_cast<uint64_t>(1e-9));
  records_.Mark(Tag::kList);
  records_.Varint(2);
  records_.Mark(Tag::kInt);
  records_.Signed(-5);
  records_.Mark(Tag::kTrue);
  records_.Mark(Tag::kNone);
  Exit(2600);
  Flush();
  const auto trace = Read(Finish(), 7, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->info().rank, 3);
  EXPECT_EQ(trace->info().world_size, 4);
  EXPECT_EQ(trace->info().pid, 77);
  EXPECT_EQ(trace->info().format, TraceFormat::kNative);
  ASSERT_EQ(trace->node_count(), 3u);
  const NodeId node = trace->Find(3);
  EXPECT_EQ(trace->kind(node), NodeKind::kOperator);
  EXPECT_EQ(trace->name(node), "aten::add");
  EXPECT_EQ(trace->source_id(trace->parent(node)), 2u);
  EXPECT_EQ(trace->start(node), Nanos{2100});
  EXPECT_EQ(trace->duration(node), Nanos{500});
  EXPECT_EQ(trace->rf_id(node), 103u);
  EXPECT_EQ(trace->seq_id(node), 7);
  const auto inputs = trace->inputs(node);
  ASSERT_EQ(inputs.size(), 4u);
  const TensorUse& use = trace->tensor(inputs[0].as_tensor());
  EXPECT_EQ(trace->text(use.type), "Tensor(float)");
  EXPECT_EQ(use.numel, 6);
  EXPECT_EQ(use.element_bytes, 4);
  EXPECT_EQ(use.offset, 4);
  EXPECT_EQ(use.storage_bytes, 100);
  EXPECT_EQ(use.requires_grad, Known::kYes);
  EXPECT_EQ(std::vector(trace->ints(use.strides).begin(), trace->ints(use.strides).end()),
            (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(inputs[1].as_double(), 1e-9);
  EXPECT_EQ(trace->text(inputs[2].type), "GenericList[Int,Bool]");
  EXPECT_EQ(trace->values(inputs[2].as_list())[0].as_int(), -5);
  EXPECT_EQ(inputs[3].kind, ValueKind::kNone);
}

TEST_F(CaptureReaderTest, TheClockStandsStillInCallbacks) {
  Create();
  const uint32_t label = writer_->DefineFunction("label", "");
  const uint32_t thread = writer_->DefineThread(2, 1, 1);
  Begin(thread, 1000);
  Enter(label, 3, 1000);
  Enter(label, 4, 1150, 0, /*overhead=*/50);
  Exit(1300, 50);
  Exit(1400, 50);
  Flush();
  const auto trace = Read(Finish());
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->start(trace->Find(4)), Nanos{1100});
  EXPECT_EQ(trace->duration(trace->Find(4)), Nanos{100});
  EXPECT_EQ(trace->duration(trace->Find(3)), Nanos{250});
  EXPECT_EQ(trace->parent(trace->Find(4)), trace->Find(3));
}

// A label that begins inside a call and ends after it, on another thread.
TEST_F(CaptureReaderTest, CallsThatEndElsewhere) {
  Create();
  const uint32_t call = writer_->DefineFunction("c10d::allreduce_", "c10d::allreduce_(…) -> …");
  const uint32_t label = writer_->DefineFunction("gloo:all_reduce", "");
  const uint32_t first = writer_->DefineThread(2, 1, 11);
  const uint32_t second = writer_->DefineThread(9, 2, 12);
  Begin(first, 1000);
  Enter(call, 3, 1000, 1);
  records_.Mark(Tag::kProcessGroup);
  records_.Text("7");
  records_.Text("data parallel");
  records_.Text("gloo");
  records_.Varint(0);
  records_.Varint(2);
  Enter(label, 4, 1100);
  records_.Mark(Event::kExitOver);
  records_.Varint(1);
  Time(1200, 0);
  records_.Varint(0);
  Flush();
  Begin(second, 1500);
  records_.Mark(Event::kExitElsewhere);
  records_.Varint(104);
  Time(1700, 0);
  records_.Varint(0);
  records_.Mark(Event::kExitElsewhere);  // of a call from before the recording
  records_.Varint(1);
  Time(1800, 0);
  records_.Varint(0);
  Flush();
  const auto trace = Read(Finish(), 1 << 20, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->node_count(), 5u);
  const NodeId node = trace->Find(4);
  EXPECT_EQ(trace->parent(node), trace->Find(3));
  EXPECT_EQ(trace->duration(node), Nanos{600});
  EXPECT_EQ(trace->duration(trace->Find(3)), Nanos{200});
  ASSERT_NE(trace->comm(node), nullptr);
  EXPECT_EQ(trace->text(trace->comm(node)->group), "7");
  ASSERT_EQ(trace->process_groups().size(), 1u);
  EXPECT_EQ(trace->process_groups()[0].size, 2);
}

// The label of a send ends when the data has gone; its missing facts come from its call, in ranks
// of the group.
TEST_F(CaptureReaderTest, PartnersOfSendsAndReceives) {
  Create();
  const uint32_t send = writer_->DefineFunction(
      "c10d::send", "c10d::send(Tensor[] tensors, X process_group, int dst, int tag) -> Y");
  const uint32_t receive = writer_->DefineFunction(
      "c10d::recv_", "c10d::recv_(Tensor[] tensors, X process_group, int src, int tag) -> Y");
  const uint32_t sends = writer_->DefineFunction("gloo:send", "");
  const uint32_t receives = writer_->DefineFunction("gloo:recv", "");
  const uint32_t thread = writer_->DefineThread(2, 1, 1);
  const auto call = [&](uint32_t function, uint32_t label, int64_t node, int64_t partner) {
    const int64_t time = 100 * node;
    Enter(function, node, time, 4);
    records_.Mark(Tag::kList);
    records_.Varint(0);
    records_.Mark(Tag::kProcessGroupWithRanks);
    for (const std::string_view text : {"4", "", "gloo"}) records_.Text(text);
    for (const uint64_t number : Numbers{1, 2, 2, 5, 7}) records_.Varint(number);  // ranks 5 and 7
    for (const int64_t number : {partner, int64_t{9}}) {
      records_.Mark(Tag::kInt);
      records_.Signed(number);
    }
    Enter(label, node + 1, time + 10);
    records_.Mark(Event::kExitOver);
    records_.Varint(1);
    Time(time + 20, 0);
    records_.Varint(0);
    records_.Mark(Event::kExitElsewhere);
    records_.Varint(static_cast<uint64_t>(100 + node + 1));
    Time(time + 30, 0);
    records_.Varint(0);
  };
  Begin(thread, 100);
  call(send, sends, 3, 1);
  call(receive, receives, 5, 0);
  call(send, sends, 7, 2);  // a rank outside of the group
  Flush();
  const auto trace = Read(Finish(), 1 << 20, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  const Comm* comm = trace->comm(trace->Find(4));
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(trace->kind(trace->Find(4)), NodeKind::kSend);
  EXPECT_EQ(comm->dst, 7);
  EXPECT_EQ(comm->tag, 9);
  comm = trace->comm(trace->Find(6));
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(comm->src, 5);
  EXPECT_EQ(comm->dst, std::nullopt);
  EXPECT_EQ(trace->comm(trace->Find(8))->dst, std::nullopt);
  EXPECT_EQ(trace->duration(trace->Find(4)), Nanos{20});
  EXPECT_TRUE(Validate(*trace).empty()) << Validate(*trace)[0].message;
}

// Overwrites bytes of the n-th block's frame.
std::string WithDamagedBlock(std::string bytes, size_t n) {
  size_t at = capture::kMagic.size();
  while (true) {
    capture::BlockHeader header;
    std::memcpy(&header, bytes.data() + at, sizeof header);
    if (n-- == 0) break;
    at += sizeof header + header.packed_bytes;
  }
  std::memcpy(bytes.data() + at + sizeof(capture::BlockHeader), "####", 4);
  return bytes;
}

// A lost block must not end calls from before it, nor merge two steps, and counts as all of its
// nodes.
TEST_F(CaptureReaderTest, ALostBlockTakesNoMoreThanItsOwnNodes) {
  Create();
  const uint32_t label = writer_->DefineFunction("label", "");
  const uint32_t first = writer_->DefineThread(2, 1, 11);
  const uint32_t second = writer_->DefineThread(3, 2, 12);
  const auto block = [&](uint32_t thread, int64_t time, int64_t last) {
    Begin(thread, time);
    records_.Truncate(0);  // like the recorder: number and handle of the thread's last call
    for (const int64_t number : {int64_t{thread}, time, last, last == 0 ? 0 : 100 + last}) {
      records_.Varint(static_cast<uint64_t>(number));
    }
    node_ = last;
    handle_ = last == 0 ? 0 : 100 + last;
  };
  block(first, 1000, 0);
  Enter(label, 4, 1000);
  Enter(label, 5, 1010);
  Exit(1020);
  Flush();
  block(second, 1000, 0);
  Enter(label, 6, 1000);  // continues after the lost block, which belongs to another thread
  Flush();
  block(first, 1100, 5);  // the lost one: ends 4, begins 7, and 8 inside it
  Exit(1100);
  Enter(label, 7, 1110);
  Enter(label, 8, 1120);
  Flush();
  block(first, 1200, 8);
  Exit(1200);  // of 8
  Enter(label, 9, 1210);
  Exit(1220);
  Exit(1230);  // of 7
  Enter(label, 10, 1300);
  Exit(1310);
  Flush();
  block(second, 1400, 6);
  Exit(1400);
  Flush();
  // Header, definitions, then the five blocks.
  const auto trace = Read(WithDamagedBlock(Finish(), 4));
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->stats()[Stat::kMalformedElement], 2u) << "7 and 8";
  EXPECT_EQ(trace->duration(trace->Find(4)), std::nullopt) << "its end was lost";
  EXPECT_EQ(trace->duration(trace->Find(5)), Nanos{10});
  EXPECT_EQ(trace->duration(trace->Find(6)), Nanos{400});
  EXPECT_EQ(trace->duration(trace->Find(9)), Nanos{10});
  EXPECT_EQ(trace->source_id(trace->parent(trace->Find(9))), 2u) << "its caller was lost";
  EXPECT_EQ(trace->duration(trace->Find(10)), Nanos{10});
}

TEST_F(CaptureReaderTest, ADamagedHeaderIsSaid) {
  Create();
  writer_->DefineThread(2, 1, 11);
  const auto trace = Read(WithDamagedBlock(Finish(), 0));
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("checksum"), std::string::npos) << trace.error().message;
}

TEST_F(CaptureReaderTest, WhatFollowsLostDefinitionsIsNotRead) {
  Create();
  const uint32_t label = writer_->DefineFunction("label", "");
  const uint32_t thread = writer_->DefineThread(2, 1, 11);
  Begin(thread, 1000);
  Enter(label, 3, 1000);
  Flush();
  const auto trace = Read(WithDamagedBlock(Finish(), 1));
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->node_count(), 1u);
  EXPECT_NE(trace->stats()[Stat::kMalformedElement], 0u);
  EXPECT_NE(trace->stats()[Stat::kTruncated], 0u);
}

// The thread that ends a call may write its block before the one that began it.
TEST_F(CaptureReaderTest, AnEndBeforeItsBeginning) {
  Create();
  const uint32_t label = writer_->DefineFunction("label", "");
  const uint32_t first = writer_->DefineThread(2, 1, 11);
  const uint32_t second = writer_->DefineThread(9, 2, 12);
  Begin(second, 1500);
  for (const uint64_t handle : Numbers{104, 105}) {
    records_.Mark(Event::kExitElsewhere);
    records_.Varint(handle);
    Time(1700, 0);
    records_.Varint(0);
  }
  Flush();
  Begin(first, 1000);
  Enter(label, 3, 1000);
  Enter(label, 4, 1100);
  records_.Mark(Event::kExitOver);
  records_.Varint(1);
  Time(1200, 0);
  records_.Varint(0);
  Enter(label, 5, 1300);  // open to the end of the recording
  Flush();
  const auto trace = Read(Finish(), 1 << 20, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->node_count(), 6u);
  EXPECT_EQ(trace->duration(trace->Find(3)), Nanos{200});
  EXPECT_EQ(trace->duration(trace->Find(4)), Nanos{600});
  EXPECT_EQ(trace->duration(trace->Find(5)), Nanos{400});
}

TEST_F(CaptureReaderTest, AnEndThatSaysNothingOfUse) {
  for (const char* dropped : {"\"x\"", "null", "-1", "0.5", "{}"}) {
    Create();
    const auto trace = Read(Finish(fmt::format("\"dropped_blocks\": {}", dropped)));
    ASSERT_TRUE(trace) << dropped << ": " << trace.error().message;
  }
}

TEST_F(CaptureReaderTest, DeepJsonIsNoHeaderAndNoEnd) {
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  Create(fmt::format(R"({{"version": 2, "deep": {}}})", deep));
  const auto header = Read(Finish());
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code, ErrorCode::kBadInput);
  Create();
  const auto end = Read(Finish("\"deep\": " + deep), 1 << 20, /*strict=*/true);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::kBadInput);
}

TEST_F(CaptureReaderTest, ASequenceNumberBeyondAll) {
  Create();
  const uint32_t add = writer_->DefineFunction("aten::add", "aten::add.Tensor(…) -> Tensor");
  Begin(writer_->DefineThread(2, 1, 4242), 2000);
  Enter(add, 3, 2100, 0, 0, uint64_t{1} << 63);
  Exit(2600);
  Flush();
  EXPECT_TRUE(Read(Finish()));
}

// Work of a backend's thread belongs to the last operator that had its memory when it began, by
// order of entry and not by time: a thread's clock stops while the recorder works, so the clocks of
// two threads differ (a collective could be assigned to the group of the next one on the same
// tensor).
TEST_F(CaptureReaderTest, ABackendsThreadWorksForAnOperator) {
  Create();
  const uint32_t call = writer_->DefineFunction("c10d::allreduce_", "c10d::allreduce_(…) -> …");
  const uint32_t label = writer_->DefineFunction("gloo:all_reduce", "");
  const uint32_t first = writer_->DefineThread(2, 1, 11);
  const uint32_t second = writer_->DefineThread(9, 2, 12);
  const uint32_t type = writer_->DefineString("float");
  const uint32_t cpu = writer_->DefineString("cpu");
  Begin(second, 1750);
  Enter(label, 1500, 1750, 1);
  Tensor(type, cpu, capture::tensor_flag::kContiguous);
  Exit(1800);
  Flush();
  Begin(first, 1000);
  for (const int64_t time : {1000, 1200, 1700}) {
    Enter(call, time, time, 2);
    Tensor(type, cpu, capture::tensor_flag::kContiguous);
    Group(std::to_string(time));
    Exit(time + 10);
  }
  Flush();
  const auto trace = Read(Finish(), 1 << 20, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  const NodeId node = trace->Find(1500);
  ASSERT_NE(trace->comm(node), nullptr);
  EXPECT_EQ(trace->text(trace->comm(node)->group), "1200");
  ASSERT_EQ(trace->deps(node).size(), 1u);
  EXPECT_EQ(trace->source_id(trace->deps(node)[0]), 1200u);
}

// The recorder delays the thread that issues a collective a lot, and the thread that performs it
// hardly. Work of the latter is placed by the clock of the former, which continues when it ends.
TEST_F(CaptureReaderTest, ABackendsThreadHasTheClockOfWhoAsked) {
  Create();
  const uint32_t step = writer_->DefineFunction("step", "");
  const uint32_t add = writer_->DefineFunction("aten::add", "aten::add.Tensor(…) -> Tensor");
  const uint32_t call =
      writer_->DefineFunction("c10d::_allgather_base_", "c10d::_allgather_base_(…) -> …");
  const uint32_t label = writer_->DefineFunction("gloo:all_gather", "");
  const uint32_t asks = writer_->DefineThread(2, 1, 11);
  const uint32_t works = writer_->DefineThread(9, 2, 12);
  const uint32_t type = writer_->DefineString("float");
  const uint32_t cpu = writer_->DefineString("cpu");
  Begin(asks, 0);
  Enter(step, 20, 990'000);
  Enter(call, 21, 3'020'000, 2, /*overhead=*/2'000'000);
  Tensor(type, cpu, capture::tensor_flag::kContiguous);
  Group("4");
  Exit(3'030'000);
  Enter(add, 24, 4'040'000, 0, /*overhead=*/500'000);
  Exit(4'050'000);
  Enter(add, 25, 5'060'000, 0, /*overhead=*/300'000);
  Exit(5'070'000);
  Exit(5'080'000);
  Flush();
  Begin(works, 0);
  Enter(label, 22, 3'040'000, 1);
  Tensor(type, cpu, capture::tensor_flag::kContiguous);
  Enter(add, 23, 4'000'000);
  Exit(4'100'000);
  Exit(5'040'000);
  Flush();
  const auto trace = Read(Finish(), 1 << 20, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  const auto lies = [&](uint64_t id) {
    const NodeId node = trace->Find(id);
    return std::pair(trace->start(node)->count, trace->duration(node)->count);
  };
  EXPECT_EQ(lies(21), std::pair(1'020'000L, 10'000L));
  EXPECT_EQ(lies(22), std::pair(1'030'000L, 2'000'000L));
  EXPECT_EQ(lies(23), std::pair(1'990'000L, 100'000L));
  EXPECT_EQ(lies(24), std::pair(1'540'000L, 10'000L));
  EXPECT_EQ(lies(25), std::pair(3'050'000L, 10'000L));
  EXPECT_EQ(lies(20), std::pair(990'000L, 2'080'000L));
}

// A callback of the program (a communication hook) runs before the all-reduce's label ends.
TEST_F(CaptureReaderTest, WhatRunsBehindAnAllReduceIsNotGloos) {
  Create();
  const uint32_t copy = writer_->DefineFunction("aten::copy_", "aten::copy_(…) -> Tensor(a!)");
  const uint32_t call = writer_->DefineFunction("c10d::allreduce_", "c10d::allreduce_(…) -> …");
  const uint32_t label = writer_->DefineFunction("gloo:all_reduce", "");
  const uint32_t asks = writer_->DefineThread(2, 1, 11);
  const uint32_t works = writer_->DefineThread(9, 2, 12);
  const uint32_t type = writer_->DefineString("float");
  const uint32_t cpu = writer_->DefineString("cpu");
  Begin(asks, 0);
  Enter(call, 21, 1000, 2);
  Tensor(type, cpu, capture::tensor_flag::kContiguous);
  Group("4");
  Exit(1100);
  Flush();
  Begin(works, 0);
  Enter(label, 22, 1200, 1);
  Tensor(type, cpu, capture::tensor_flag::kContiguous);
  Enter(copy, 23, 1700);
  Exit(1800);
  Exit(1900);
  Flush();
  const auto trace = Read(Finish(), 1 << 20, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->parent(trace->Find(23)), trace->Find(9));
  EXPECT_EQ(trace->duration(trace->Find(22)), Nanos{500});
}

// Gloo's reduce-scatter copies its input and reduces the copy, in memory that another operator may
// have used before: that one has its label, and the copy has as many elements as the input.
TEST_F(CaptureReaderTest, ABackendsThreadWorksOnACopy) {
  Create();
  const uint32_t gather =
      writer_->DefineFunction("c10d::_allgather_base_", "c10d::_allgather_base_(…) -> …");
  const uint32_t scatter =
      writer_->DefineFunction("c10d::_reduce_scatter_base_", "c10d::_reduce_scatter_base_(…) -> …");
  const uint32_t gathers = writer_->DefineFunction("gloo:all_gather", "");
  const uint32_t reduces = writer_->DefineFunction("gloo:all_reduce", "");
  const uint32_t first = writer_->DefineThread(2, 1, 11);
  const uint32_t second = writer_->DefineThread(9, 2, 12);
  const uint32_t type = writer_->DefineString("float");
  const uint32_t cpu = writer_->DefineString("cpu");
  Begin(first, 1000);
  const auto call = [&](uint32_t function, int64_t time, uint64_t storage) {
    Enter(function, time, time, 2);
    Tensor(type, cpu, capture::tensor_flag::kContiguous, storage);
    Group("4");
    Exit(time + 10);
  };
  call(gather, 1000, 0xA0);
  call(scatter, 1200, 0xB0);
  call(scatter, 1300, 0xB0);
  Flush();
  Begin(second, 1100);
  const auto label = [&](uint32_t function, int64_t time, uint64_t storage) {
    Enter(function, time, time, 1);
    Tensor(type, cpu, capture::tensor_flag::kContiguous, storage);
    Exit(time + 10);
  };
  label(gathers, 1100, 0xA0);
  label(reduces, 1400, 0xA0);
  label(reduces, 1500, 0xC0);
  label(reduces, 1600, 0xC0);  // of an operator that was not recorded
  Flush();
  const auto trace = Read(Finish(), 1 << 20, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  const auto caller = [&](uint64_t id) -> uint64_t {
    const auto deps = trace->deps(trace->Find(id));
    return deps.size() == 1 ? trace->source_id(deps[0]) : 0;
  };
  EXPECT_EQ(caller(1100), 1000u);
  EXPECT_EQ(caller(1400), 1200u);
  EXPECT_EQ(caller(1500), 1300u);
  EXPECT_EQ(caller(1600), 0u);
  EXPECT_EQ(trace->text(trace->comm(trace->Find(1400))->group), "4");
  EXPECT_FALSE(trace->comm(trace->Find(1600))->group);
}

// A barrier's label has no memory, nor has a scatter's on a rank that only receives: the group
// comes from their thread, or from the only possible operator. Without a group, later collectives
// of the group would be numbered differently than on other ranks.
TEST_F(CaptureReaderTest, ABackendsThreadWorksForItsGroup) {
  Create();
  const uint32_t reduce = writer_->DefineFunction("c10d::allreduce_", "c10d::allreduce_(…) -> …");
  const uint32_t scatter = writer_->DefineFunction("c10d::scatter_", "c10d::scatter_(…) -> …");
  const uint32_t gather = writer_->DefineFunction("c10d::gather_", "c10d::gather_(…) -> …");
  const uint32_t reduces = writer_->DefineFunction("gloo:all_reduce", "");
  const uint32_t scatters = writer_->DefineFunction("gloo:scatter", "");
  const uint32_t gathers = writer_->DefineFunction("gloo:gather", "");
  const uint32_t first = writer_->DefineThread(2, 1, 11);
  const uint32_t of_a = writer_->DefineThread(9, 2, 12);
  const uint32_t of_another = writer_->DefineThread(10, 3, 13);
  const uint32_t type = writer_->DefineString("float");
  const uint32_t cpu = writer_->DefineString("cpu");
  const auto call = [&](uint32_t function, int64_t id, std::string_view group, uint64_t storage) {
    Enter(function, id, id, 2);
    Tensor(type, cpu, capture::tensor_flag::kContiguous, storage);
    Group(group);
    Exit(id + 10);
  };
  const auto label = [&](uint32_t function, int64_t id, uint64_t storage) {
    Enter(function, id, id, storage != 0 ? 1 : 0);
    if (storage != 0) Tensor(type, cpu, capture::tensor_flag::kContiguous, storage);
    Exit(id + 10);
  };
  Begin(first, 1000);
  call(reduce, 1000, "a", 0xA0);
  call(scatter, 1020, "b", 0xB0);
  call(scatter, 1040, "a", 0xB0);
  call(gather, 1060, "c", 0xC0);
  call(scatter, 1080, "d", 0xD0);
  Flush();
  Begin(of_a, 1100);
  label(scatters, 1100, 0);
  label(reduces, 1200, 0xA0);
  Flush();
  Begin(of_another, 1110);
  label(scatters, 1110, 0);  // of b or of d
  label(gathers, 1300, 0);
  label(scatters, 1400, 0);  // of the thread that gathered in c
  Flush();
  const auto trace = Read(Finish(), 1 << 20, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  const auto group = [&](uint64_t id) { return trace->text(trace->comm(trace->Find(id))->group); };
  EXPECT_EQ(group(1100), "a");
  ASSERT_EQ(trace->deps(trace->Find(1100)).size(), 1u);
  EXPECT_EQ(trace->source_id(trace->deps(trace->Find(1100))[0]), 1040u);
  EXPECT_EQ(trace->comm(trace->Find(1100))->group_size, 2);
  EXPECT_EQ(group(1110), "");
  EXPECT_EQ(group(1300), "c");
  EXPECT_EQ(group(1400), "");
}

TEST_F(CaptureReaderTest, ProcessGroupsWithTheirRanks) {
  Create();
  const uint32_t call = writer_->DefineFunction("c10d::allreduce_", "c10d::allreduce_(…) -> …");
  const uint32_t thread = writer_->DefineThread(2, 1, 1);
  const auto group = [&](Tag tag, std::string_view name, uint64_t rank, uint64_t size) {
    records_.Mark(tag);
    records_.Text(name);
    for (const std::string_view text : {"", "gloo"}) records_.Text(text);
    for (const uint64_t number : {rank, size}) records_.Varint(number);
  };
  Begin(thread, 1000);
  Enter(call, 3, 1000, 2);
  group(Tag::kProcessGroupWithRanks, "4", 1, 2);
  for (const uint64_t number : Numbers{2, 5, 7}) records_.Varint(number);
  records_.Mark(Tag::kReduceOp);
  records_.Varint(4);
  Exit(1010);
  Enter(call, 4, 1020, 1);
  group(Tag::kProcessGroup, "0", 5, 8);
  Exit(1030);
  Flush();
  const auto trace = Read(Finish(), 1 << 20, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  const auto groups = trace->process_groups();
  ASSERT_EQ(groups.size(), 2u);
  const auto ranks = trace->ints(groups[0].ranks);
  EXPECT_EQ(std::vector<int64_t>(ranks.begin(), ranks.end()), (std::vector<int64_t>{5, 7}));
  EXPECT_EQ(groups[0].size, 2);
  EXPECT_TRUE(groups[1].ranks.is_none()) << "not told";
  EXPECT_EQ(groups[1].size, 8);
  const auto inputs = trace->inputs(trace->Find(3));
  EXPECT_EQ(trace->text(inputs[0].as_text()), "<ProcessGroup> 4");
  EXPECT_EQ(trace->text(inputs[1].as_text()), "<ReduceOp> MAX");
}

TEST_F(CaptureReaderTest, ACaptureThatDidNotEnd) {
  Create();
  const uint32_t label = writer_->DefineFunction("label", "");
  const uint32_t thread = writer_->DefineThread(2, 1, 1);
  Begin(thread, 1000);
  Enter(label, 3, 1000);
  Enter(label, 4, 1100);
  Exit(1200);
  Flush();
  const std::string whole = Finish();
  // The last block is the end.
  const std::string cut = whole.substr(0, whole.size() - 3);
  EXPECT_FALSE(Read(cut, 100, /*strict=*/true));
  const auto trace = Read(cut);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->stats()[Stat::kTruncated], 1u);
  EXPECT_EQ(trace->duration(trace->Find(4)), Nanos{100});
  EXPECT_EQ(trace->start(trace->Find(3)), Nanos{1000});
  EXPECT_EQ(trace->duration(trace->Find(3)), std::nullopt);
}

TEST_F(CaptureReaderTest, CutAnywhereAndBrokenAnywhere) {
  Create();
  const uint32_t label = writer_->DefineFunction("label", "");
  const uint32_t thread = writer_->DefineThread(2, 1, 1);
  for (int64_t i = 0; i < 5; ++i) {
    Begin(thread, 1000 * i);
    Enter(label, 3 + i, 1000 * i + 1);
    Exit(1000 * i + 2);
    Flush();
  }
  const std::string whole = Finish();
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto trace = Read(std::string_view(whole).substr(0, size));
    if (trace) {
      EXPECT_EQ(trace->stats()[Stat::kTruncated], 1u) << size;
    }
    EXPECT_FALSE(Read(std::string_view(whole).substr(0, size), 1 << 20, /*strict=*/true)) << size;
  }
  for (size_t at = capture::kMagic.size(); at < whole.size(); ++at) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0x41);
    const auto trace = Read(broken);
    if (trace) {
      EXPECT_LE(trace->node_count(), 7u) << at;
    }
  }
}

// A real capture keeps its contents as a pair of an execution trace and a profile, linked again.
TEST(NativeCapture, AsAPairOfPyTorchsFiles) {
  const auto native = ReadTrace(ETUDE_TEST_DATA "/small.etude", {}, {});
  ASSERT_TRUE(native) << native.error().message;
  std::string host_text;
  std::string device_text;
  const auto to = [](std::string& text) {
    return [&text](std::string_view bytes) {
      text += bytes;
      return Status();
    };
  };
  ASSERT_TRUE(WriteExecutionTrace(*native, to(host_text)));
  ASSERT_TRUE(WriteProfile(*native, to(device_text)));
  const auto host = testing_support::ReadWith(MakeEtJsonReader, host_text);
  const auto device = testing_support::ReadWith(MakeKinetoReader, device_text);
  ASSERT_TRUE(host) << host.error().message;
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_EQ(host->info().format, TraceFormat::kPyTorchEt);
  EXPECT_EQ(host->node_count(), native->node_count());
  std::map<uint64_t, NodeId> events;
  ForEachNode(*device, [&](NodeId event) {
    if (const auto handle = device->rf_id(event)) events[*handle] = event;
  });
  ForEachNode(*native, [&](NodeId node) {
    const NodeId same = host->Find(native->source_id(node));
    ASSERT_TRUE(same);
    EXPECT_EQ(host->kind(same), native->kind(node));
    EXPECT_EQ(host->start(same), std::nullopt);
    EXPECT_EQ(host->text(host->op_schema(same)), native->text(native->op_schema(node)));
    EXPECT_EQ(host->inputs(same).size(), native->inputs(node).size());
    if (!native->rf_id(node)) return;
    const NodeId event = events[*native->rf_id(node)];
    ASSERT_TRUE(event) << native->name(node);
    EXPECT_EQ(device->start(event), native->start(node));
    EXPECT_EQ(device->duration(event), native->duration(node));
  });
}

TEST_F(CaptureReaderTest, TheProfileOfACaptureNamesItsClock) {
  Create(R"({"format": "etude-native-capture", "version": 2, "etude_clock": "5f1b"})");
  const auto native = Read(Finish());
  ASSERT_TRUE(native);
  std::string profile;
  ASSERT_TRUE(WriteProfile(*native, [&](std::string_view bytes) {
    profile += bytes;
    return Status();
  }));
  const auto again = testing_support::ReadWith(MakeKinetoReader, profile);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(MachineClockOf(*again), "\"5f1b\"");
}

TEST_F(CaptureReaderTest, StatisticsOfIndices) {
  Create();
  const uint32_t function = writer_->DefineFunction("aten::embedding", "aten::embedding(…)");
  const uint32_t thread = writer_->DefineThread(2, 1, 4242);
  const uint32_t type = writer_->DefineString("long int");
  const uint32_t cpu = writer_->DefineString("cpu");
  namespace flag = capture::tensor_flag;
  Begin(thread, 2000);
  Enter(function, 3, 2100, 3);
  Tensor(type, cpu, flag::kContiguous);
  Tensor(type, cpu, flag::kContiguous | flag::kRange | flag::kStatistics);
  records_.Signed(4);
  records_.Signed(5);
  for (const uint64_t number : Numbers{100, 2, 2750}) records_.Varint(number);
  records_.Byte(0);
  Tensor(type, cpu, flag::kContiguous | flag::kRange | flag::kStatistics);
  records_.Signed(0);
  records_.Signed(40);
  for (const uint64_t number : Numbers{3, 3, 0}) records_.Varint(number);
  records_.Byte(capture::index_flag::kAscends | capture::index_flag::kValues);
  records_.Varint(3);
  for (const int64_t step : {0, 40, 0}) records_.Signed(step);
  Exit(2600);
  Flush();
  const auto trace = Read(Finish(), 7, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  const NodeId node = trace->Find(3);
  EXPECT_EQ(trace->text(trace->tensor_range(node)), R"({"1":[4,5],"2":[0,40]})");
  // Two values; 5/9 of the pairs are equal: see the test of FitZipf.
  EXPECT_EQ(trace->text(trace->index_statistics(node)),
            R"({"1":{"elements":100,"distinct":2,"equal_pairs":2750,"ascends":false,"skew":1.000},)"
            R"("2":{"elements":3,"distinct":3,"equal_pairs":0,"ascends":true}})");
  EXPECT_EQ(trace->text(trace->index_values(node)), R"({"2":[0,40,40]})");
}

TEST_F(CaptureReaderTest, AllocationsAreTheProfilersEvents) {
  Create();
  const uint32_t function = writer_->DefineFunction("aten::add", "aten::add(…)");
  const uint32_t first = writer_->DefineThread(2, 1, 4242);
  const uint32_t second = writer_->DefineThread(3, 2, 4243);
  const auto allocate = [&](int64_t time, uint64_t address, uint64_t bytes) {
    records_.Mark(Event::kAllocate);
    Time(time, 10);
    records_.Fixed64(address);
    records_.Varint(bytes);
  };
  const auto release = [&](int64_t time, uint64_t address) {
    records_.Mark(Event::kFree);
    Time(time, 0);
    records_.Fixed64(address);
  };
  // The other thread's block comes first in the file, but frees memory that is allocated earlier.
  Begin(second, 2000);
  release(2300, 0xA0);
  release(2400, 0xFF);  // from before the recording
  Flush();
  Begin(first, 2000);
  allocate(2050, 0xA0, 100);
  Enter(function, 9, 2100);
  allocate(2200, 0xB0, 50);
  Exit(2600);
  allocate(2700, 0xA0, 7);
  allocate(2800, 0xA0, 9);  // freed in between, which is not recorded
  Flush();
  const auto trace = Read(Finish(), 7, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  std::vector<std::string> seen;
  ForEachNode(*trace, [&](NodeId node) {
    if (trace->name(node) != "[memory]") return;
    EXPECT_EQ(trace->kind(node), NodeKind::kMetadata);
    const auto extras = trace->extras(node);
    ASSERT_EQ(extras.size(), 5u);
    EXPECT_EQ(trace->text(extras[2].key), "Addr");
    seen.push_back(std::to_string(trace->source_id(trace->parent(node))) + " " +
                   std::string(trace->text(extras[3].text)) + " " +
                   std::string(trace->text(extras[4].text)));
  });
  EXPECT_EQ(seen,
            (std::vector<std::string>{"2 100 100", "9 50 150", "3 -100 50", "2 7 57", "2 9 59"}));
  // The recorder's own time is removed from the operator's: 10 of 500.
  EXPECT_EQ(trace->duration(trace->Find(9)), Nanos{490});
}

TEST_F(CaptureReaderTest, AllocationsBeyondAllMemoryAreCounted) {
  Create();
  Begin(writer_->DefineThread(2, 1, 4242), 2000);
  constexpr uint64_t kFit = (uint64_t{1} << 13) - 1;  // of 2^50 bytes in 63 bits
  for (uint64_t i = 0; i < kFit + 2; ++i) {
    records_.Mark(Event::kAllocate);
    Time(2000, 0);
    records_.Fixed64(i + 1);
    records_.Varint(uint64_t{1} << 50);
  }
  records_.Mark(Event::kFree);
  Time(2000, 0);
  records_.Fixed64(1);
  Flush();
  const auto trace = Read(Finish());
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->stats()[Stat::kMalformedElement], 2u);
  EXPECT_EQ(trace->node_count(), 2 + kFit + 1);  // process and thread; the allocations; the free
}

TEST_F(CaptureReaderTest, WhatPyTorchSpendsOnCallingIsTakenOut) {
  Create(R"({"format": "etude-native-capture", "version": 2, "callback_ns": 200})");
  const uint32_t label = writer_->DefineFunction("step", "");
  const uint32_t add = writer_->DefineFunction("aten::add", "aten::add(…)");
  Begin(writer_->DefineThread(2, 1, 4242), 1000);
  Enter(label, 3, 2000);
  Enter(add, 4, 3000, 0, /*overhead=*/100);  // 100 since 2000, so the clock shows 2900
  Exit(3500);
  Enter(add, 5, 3600);  // only 100 after the last event: no more is removed
  Exit(4000);
  Exit(5000);
  Flush();
  const auto trace = Read(Finish(), 7, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->start(trace->Find(3)), Nanos{1800});
  EXPECT_EQ(trace->start(trace->Find(4)), Nanos{2500});
  EXPECT_EQ(trace->duration(trace->Find(4)), Nanos{500});
  EXPECT_EQ(trace->start(trace->Find(5)), Nanos{3000});
  EXPECT_EQ(trace->duration(trace->Find(5)), Nanos{400});
  EXPECT_EQ(trace->duration(trace->Find(3)), Nanos{3000 - 100 - 200 - 100});
}

TEST_F(CaptureReaderTest, StatisticsThatCannotBe) {
  Create();
  const uint32_t function = writer_->DefineFunction("aten::embedding", "aten::embedding(…)");
  const uint32_t thread = writer_->DefineThread(2, 1, 4242);
  const uint32_t type = writer_->DefineString("long int");
  Begin(thread, 2000);
  Enter(function, 3, 2100, 1);
  namespace flag = capture::tensor_flag;
  Tensor(type, type, flag::kContiguous | flag::kStatistics);  // without a range
  Exit(2600);
  Flush();
  const auto trace = Read(Finish());
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->stats()[Stat::kMalformedElement], 1u);
}

TEST_F(CaptureReaderTest, TheRecordersTimeStaysWhereThatIsAskedFor) {
  Create(R"({"format": "etude-native-capture", "version": 3, "callback_ns": 50})");
  const uint32_t outer = writer_->DefineFunction("outer", "");
  const uint32_t inner = writer_->DefineFunction("inner", "");
  Begin(writer_->DefineThread(2, 1, 4242, 0x80000001), 1000);
  Enter(outer, 3, 1000);
  Enter(inner, 4, 1400, 0, /*overhead=*/100);
  Exit(1600);
  Exit(2000);
  Flush();
  const std::string bytes = Finish();
  const RunContext context;
  const auto read = [&](bool keep) {
    auto reader = MakeCaptureReader("test", {.strict = true, .keep_recorder_time = keep}, context);
    EXPECT_TRUE(reader->Push(bytes));
    return reader->Finish(false).value();
  };
  const Trace kept = read(true);
  EXPECT_EQ(kept.start(kept.Find(4)), Nanos{1400});
  EXPECT_EQ(kept.duration(kept.Find(3)), Nanos{1000});
  const Trace taken = read(false);
  EXPECT_EQ(taken.start(taken.Find(4)), Nanos{1200});
  EXPECT_EQ(taken.duration(taken.Find(3)), Nanos{850});
  ASSERT_EQ(taken.extras(taken.Find(2)).size(), 1u);
  EXPECT_EQ(taken.text(taken.extras(taken.Find(2))[0].key), kPosixThreadKey);
  EXPECT_EQ(taken.text(taken.extras(taken.Find(2))[0].text), "2147483649");
}

TEST_F(CaptureReaderTest, AnOlderVersionIsRead) {
  Create(R"({"format": "etude-native-capture", "version": 1})");
  const uint32_t function = writer_->DefineFunction("f", "");
  Begin(writer_->DefineThread(2, 1, 4242), 2000);
  Enter(function, 3, 2100);
  Exit(2600);
  Flush();
  const auto trace = Read(Finish(), 7, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->info().schema, "etude-native-1");
  EXPECT_EQ(trace->duration(trace->Find(3)), Nanos{500});
}

TEST_F(CaptureReaderTest, OtherVersionsAndOtherFiles) {
  Create(R"({"format": "etude-native-capture", "version": 4})");
  const auto newer = Read(Finish());
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.error().message.find("version 4, expected 1 to 3"), std::string::npos);
  const auto other = Read("something else altogether");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kBadInput);
}

TEST_F(CaptureReaderTest, ALimitIsSaidWithTheFile) {
  Create();
  const uint32_t function = writer_->DefineFunction("aten::add", "");
  writer_->DefineThread(2, 1, 900);
  Begin(0, 1000);
  Enter(function, 3, 1000);
  Exit(1100);
  Flush();
  RunContext context;
  context.limits.nodes = 2;
  const auto trace = testing_support::ReadWith(MakeCaptureReader, Finish(), 1 << 20, {}, context);
  ASSERT_FALSE(trace.has_value());
  EXPECT_EQ(trace.error().message, "test: more than 2 nodes (limit 'nodes')");
}

TEST_F(CaptureReaderTest, ManyThreadsWriteAtOnce) {
  constexpr int64_t kThreads = 4;
  constexpr int64_t kBlocks = 200;
  Create();
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const uint32_t thread =
          writer_->DefineThread(static_cast<uint64_t>(1 + (i + 1) * 10'000), 1, 1);
      for (int64_t block = 0; block < kBlocks; ++block) {
        const uint32_t function =
            writer_->DefineFunction("f" + std::to_string(i) + "_" + std::to_string(block), "");
        RecordBuffer records;
        records.Varint(thread);
        records.Varint(1000);
        records.Varint(static_cast<uint64_t>((i + 1) * 10'000 + 2 + block));
        records.Varint(1);
        records.Mark(Event::kEnter);
        for (const uint64_t number : Numbers{0, 0, 0, 0}) records.Varint(number);
        records.Varint(function);
        for (int zero = 0; zero < 5; ++zero) records.Byte(0);
        records.Mark(Event::kExit);
        for (const uint64_t number : Numbers{2, 0, 0}) records.Varint(number);
        writer_->AddEvents(records.Take());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto trace = Read(Finish(), 1 << 20, /*strict=*/true);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->node_count(), static_cast<size_t>(1 + kThreads + kThreads * kBlocks));
}

}  // namespace
}  // namespace etude
