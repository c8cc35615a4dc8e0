// Builds and scans a trace of ten million nodes (or the number in the first argument) and prints
// bytes per node and rates. The shape follows a recorded ResNet-18 step: 86 names, 232 shapes, one
// new tensor use in three, and one dependency per node on the previous one.

#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

constexpr size_t kNames = 86;
constexpr size_t kShapes = 232;

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

Result<Trace> Build(uint64_t nodes) {
  TraceBuilder builder;
  std::vector<StringId> names;
  for (size_t i = 0; i < kNames; ++i)
    names.push_back(builder.Intern("aten::op" + std::to_string(i)));
  std::vector<IntListId> shapes;
  for (size_t i = 0; i < kShapes; ++i) {
    const std::array<int64_t, 4> shape = {8, 64, static_cast<int64_t>(i + 1), 56};
    shapes.push_back(builder.InternInts(shape));
  }
  const StringId type = builder.Intern("Tensor(float)");
  const StringId device = builder.Intern("cuda:0");
  const LaneId lane = builder.InternLane({.thread = builder.Intern("1")});
  for (uint64_t i = 0; i < nodes; ++i) {
    const size_t shape = (i / 3) % kShapes;
    const TensorUse use{.tensor = i / 3 + 1,
                        .storage = i / 3 + 2,
                        .numel = static_cast<int64_t>(8 * 64 * 56 * (shape + 1)),
                        .element_bytes = 4,
                        .device = device,
                        .type = type,
                        .shape = shapes[shape]};
    const std::array<Value, 2> inputs = {Value::Tensor(type, builder.InternTensor(use)),
                                         Value::Int(type, 1)};
    NodeRow row;
    row.source_id = i + 1;
    row.kind = NodeKind::kOperator;
    row.place = Place::kHost;
    row.name = names[i % kNames];
    if (i != 0) row.parent = i / 4 + 1;
    row.lane = lane;
    row.start = Nanos{static_cast<int64_t>(i) * 1000};
    row.duration = Nanos{900};
    row.inputs = builder.InternValues(inputs);
    row.rf_id = i;
    row.seq_id = static_cast<int64_t>(i);
    row.scope = uint8_t{0};
    const NodeId node = builder.AddNode(row);
    if (i != 0) builder.AddDep(node, NodeId(node.value() - 1), DepKind::kControl);
  }
  return builder.Finish();
}

// Reads every column and edge once, so that the compiler removes nothing.
uint64_t Scan(const Trace& trace) {
  uint64_t sum = 0;
  ForEachNode(trace, [&](NodeId node) {
    sum += static_cast<uint64_t>(trace.duration(node)->count) + trace.name_id(node).value() +
           trace.rf_id(node).value_or(0);
    for (const Value& value : trace.inputs(node)) {
      if (value.kind == ValueKind::kTensor) {
        sum += static_cast<uint64_t>(trace.tensor(value.as_tensor()).numel);
      }
    }
    for (const NodeId dep : trace.deps(node)) sum += dep.value();
    for (const NodeId child : trace.children(node)) sum += child.value();
  });
  return sum;
}

int Main(uint64_t nodes) {
  const double begin = CpuSeconds();
  const Result<Trace> trace = Build(nodes);
  if (!trace) {
    std::fprintf(stderr, "%s\n", trace.error().message.c_str());
    return 3;
  }
  const double built = CpuSeconds();
  constexpr int kScans = 5;
  uint64_t sum = 0;
  for (int i = 0; i < kScans; ++i) sum += Scan(*trace);
  const double scanned = (CpuSeconds() - built) / kScans;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double count = static_cast<double>(nodes);
  std::printf("nodes %llu (checksum %llx)\n", static_cast<unsigned long long>(nodes),
              static_cast<unsigned long long>(sum));
  std::printf("memory   %7.1f bytes/node held, %.1f at the peak of building\n",
              static_cast<double>(trace->memory_bytes()) / count,
              static_cast<double>(usage.ru_maxrss) * 1024 / count);
  std::printf("build    %7.2f M nodes/s (%.2f CPU s)\n", count / (built - begin) / 1e6,
              built - begin);
  std::printf("scan     %7.2f M nodes/s (%.2f CPU s)\n", count / scanned / 1e6, scanned);
  return 0;
}

}  // namespace
}  // namespace etude

int main(int argc, char** argv) {
  return etude::Main(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000);
}
