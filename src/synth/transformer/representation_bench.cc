// Measures the bytes per node of a PackedTrace, in memory and as a file, compared with the Trace
// and its plain and compressed Chakra file, and the time of packing and unpacking. Also prints its
// layers, the number of motifs with the same dependencies in all occurrences, and the time of
// finding layers.
//
//   representation_bench FILE...     traces in any format

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <zlib.h>

#include "src/formats/chakra/chakra_writer.h"
#include "src/formats/read_trace.h"
#include "src/trace/job/layered_operations.h"
#include "src/trace/job/packed_trace.h"
#include "src/trace/same_trace.h"

namespace {

using etude::PackedTrace;
using etude::Trace;

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Returns the time of `fn` in microseconds per node, the median of five runs.
template <typename Fn>
double PerNode(size_t nodes, Fn fn) {
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const double begin = CpuSeconds();
    fn();
    seconds.push_back(CpuSeconds() - begin);
  }
  std::ranges::sort(seconds);
  return seconds[2] * 1e6 / static_cast<double>(nodes);
}

std::string ChakraBytesOf(const Trace& trace) {
  std::string bytes;
  const auto written = etude::WriteChakra(trace, {.verbatim = true}, [&](std::string_view piece) {
    bytes += piece;
    return etude::Status();
  });
  return written ? bytes : "";
}

size_t GzipSize(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  const int rc = compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                           reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 6);
  return rc == Z_OK ? size : 0;
}

std::string ShortPath(const std::string& path) {
  return path.substr(path.rfind('/', path.rfind('/') - 1) + 1);
}

void MeasureLayers(const std::string& path, const Trace& trace) {
  const etude::OperationTypes types = etude::FindTypes(trace);
  const auto graph_at = [&](size_t first, size_t count) {
    return GraphOf(trace, types, etude::Stretch(first, count));
  };
  const PackedTrace packed = PackedTrace::Pack(trace).value();
  const std::vector<uint64_t> lengths = packed.program().Lengths();
  const std::vector<std::vector<size_t>> places = packed.program().Places();
  size_t same = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const etude::OperationGraph first = graph_at(places[i].front(), lengths[i]);
    same +=
        std::ranges::all_of(places[i], [&](size_t at) { return graph_at(at, lengths[i]) == first; })
            ? 1
            : 0;
  }
  const etude::OperationGraph graph = graph_at(0, trace.node_count());
  const etude::LayerShape shape = FindShape(graph).value_or(etude::LayerShape{});
  const double layering =
      PerNode(std::max<size_t>(trace.node_count(), 1), [&] { (void)LayerOperations(graph); });
  std::printf("%-34s %8zu %8zu %8zu %8zu %8zu %8.2f\n", ShortPath(path).c_str(), trace.node_count(),
              static_cast<size_t>(shape.layers), static_cast<size_t>(shape.width), places.size(),
              same, layering);
}

int Measure(const std::string& path, const Trace* trace) {
  const size_t nodes = std::max<size_t>(trace->node_count(), 1);
  const auto packed = PackedTrace::Pack(*trace);
  if (!packed || !etude::testing_same::SameTrace(packed->Unpack().value(), *trace)) {
    std::fprintf(stderr, "%s: does not come back\n", path.c_str());
    return 1;
  }
  const std::string file = packed->ToBytes();
  const std::string chakra = ChakraBytesOf(*trace);
  const double pack = PerNode(nodes, [&] { (void)PackedTrace::Pack(*trace); });
  const double unpack = PerNode(nodes, [&] { (void)packed->Unpack(); });
  const auto per_node = [&](size_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(nodes);
  };
  std::printf("%-34s %8zu %7zu %8zu %8.1f %8.1f %8.1f %8.1f %8.1f %8.2f %8.2f\n",
              ShortPath(path).c_str(), nodes, packed->token_count(), packed->program().size(),
              per_node(packed->memory_bytes()), per_node(file.size()),
              per_node(trace->memory_bytes()), per_node(chakra.size()), per_node(GzipSize(chakra)),
              pack, unpack);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::printf("%-34s %8s %7s %8s %8s %8s %8s %8s %8s %8s %8s\n", "trace", "nodes", "tokens",
              "program", "packed", "file", "Trace", ".et", ".et.gz", "pack", "unpack");
  std::printf("%-34s %8s %7s %8s %44s %17s\n", "", "", "", "parts", "bytes a node", "us a node");
  int failed = 0;
  std::vector<std::pair<std::string, Trace>> traces;
  for (int i = 1; i < argc; ++i) {
    auto trace = etude::ReadTrace(argv[i], {}, {});
    if (!trace) {
      std::fprintf(stderr, "%s\n", trace.error().message.c_str());
      failed = 1;
      continue;
    }
    failed |= Measure(argv[i], &*trace);
    traces.emplace_back(argv[i], *std::move(trace));
  }
  std::printf("\n%-34s %8s %8s %8s %8s %8s %8s\n", "trace", "nodes", "layers", "width", "motifs",
              "same", "us a node");
  for (const auto& [path, trace] : traces) MeasureLayers(path, trace);
  return failed;
}
