#include "src/analysis/view/timeline_counters.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

using Points = std::vector<std::pair<Nanos, int64_t>>;

TEST(TimelineCounters, QueuesBandwidthAndTensors) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kLinked);
  const StringId device = builder.Intern("cuda:0");
  const auto use = [&](uint64_t storage, int64_t numel) {
    const TensorId tensor = builder.InternTensor({.tensor = storage,
                                                  .storage = storage,
                                                  .numel = numel,
                                                  .element_bytes = 4,
                                                  .device = device});
    return Value::Tensor(StringId::None(), tensor);
  };
  const auto add = [&](uint64_t id, int64_t start, int64_t duration) {
    NodeRow row{.source_id = id, .kind = NodeKind::kOperator, .place = Place::kHost};
    row.start = Nanos{start};
    row.duration = Nanos{duration};
    return row;
  };
  // Two operators launch at 0 and 10; their kernels begin at 100 and 200.
  NodeRow row = add(1, 0, 5);
  const std::vector<Value> first = {use(7, 100)};
  row.outputs = builder.InternValues(first);
  builder.AddNode(row);
  row = add(2, 10, 5);
  // Storage 7 again, in a list, and more of it.
  const std::vector<Value> inner = {use(7, 200), use(8, 1)};
  const std::vector<Value> outer = {Value::List(StringId::None(), builder.InternValues(inner))};
  row.inputs = builder.InternValues(outer);
  builder.AddNode(row);
  const LaneId stream = builder.InternLane({.device = 0, .stream = 7});
  for (const uint64_t id : {3U, 4U}) {
    row = add(id, id == 3 ? 100 : 200, 50);
    row.kind = id == 3 ? NodeKind::kKernel : NodeKind::kCollective;
    row.place = Place::kDevice;
    row.parent = id - 2;
    row.lane = stream;
    const NodeId node = builder.AddNode(row);
    if (id == 4) builder.SetComm(node, {.bytes = Bytes{1000}});
  }
  const Trace trace = builder.Finish().value();
  std::map<std::string, Points> counters;
  for (const Counter& counter : TimelineCounters(trace)) counters[counter.name] = counter.points;
  EXPECT_EQ(counters.size(), 3u);
  EXPECT_EQ(counters["queue of stream 7 of device 0"],
            (Points{{Nanos{0}, 1}, {Nanos{10}, 2}, {Nanos{100}, 1}, {Nanos{200}, 0}}));
  EXPECT_EQ(counters["communication"], (Points{{Nanos{200}, 20'000'000'000}, {Nanos{250}, 0}}));
  EXPECT_EQ(counters["tensors on cuda:0"],
            (Points{{Nanos{0}, 800}, {Nanos{10}, 804}, {Nanos{15}, 0}}));
}

TEST(TimelineCounters, NothingKnownIsNothingShown) {
  TraceBuilder builder;
  NodeRow row{.source_id = 1, .kind = NodeKind::kKernel, .place = Place::kDevice};
  row.start = Nanos{5};
  builder.AddNode(row);
  EXPECT_TRUE(TimelineCounters(builder.Finish().value()).empty());
}

TEST(TimelineCounters, QueuesOfMergedRanksStayApart) {
  TraceBuilder builder;
  builder.info().SetFormat(TraceFormat::kLinked);
  for (const std::string rank : {"rank 0", "rank 1"}) {
    NodeRow row{.source_id = builder.node_count(), .kind = NodeKind::kOperator};
    row.place = Place::kHost;
    row.start = Nanos{0};
    row.duration = Nanos{5};
    builder.AddNode(row);
    row.parent = row.source_id++;
    row.kind = NodeKind::kKernel;
    row.place = Place::kDevice;
    row.lane = builder.InternLane({.process = builder.Intern(rank), .device = 0, .stream = 7});
    row.start = Nanos{100};
    builder.AddNode(row);
  }
  const Trace trace = builder.Finish().value();
  std::vector<std::string> names;
  for (const Counter& counter : TimelineCounters(trace)) names.push_back(counter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"queue of stream 7 of device 0 of rank 0",
                                             "queue of stream 7 of device 0 of rank 1"}));
}

}  // namespace
}  // namespace etude
