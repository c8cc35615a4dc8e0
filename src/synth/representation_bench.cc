// How many bytes a node takes as a PackedTrace, in memory and as a file, beside the Trace, the
// Chakra file of it and that compressed, and what packing and unpacking take. And its layers, in
// how many motifs nodes depend on each other in the same way each time, and what distances to
// parents and dependencies take: now, and at least if those inside a motif were written once.
//
//   representation_bench FILE...     traces in any format

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <zlib.h>

#include "src/base/hash.h"
#include "src/formats/chakra_writer.h"
#include "src/formats/read_trace.h"
#include "src/trace/layered_operations.h"
#include "src/trace/packed_numbers.h"
#include "src/trace/packed_trace.h"
#include "src/trace/same_trace.h"

namespace {

using etude::PackedTrace;
using etude::Trace;

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Microseconds a node that `fn` takes, the median of five times.
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

// One reference of a node: how far back it goes, in which of its places.
struct Distance {
  int64_t nodes = 0;
  size_t slot = 0;
  bool known = false;  // from an earlier time of a motif
};

size_t BytesOf(const std::vector<std::vector<Distance>>& distances,
               const std::vector<uint32_t>& tokens) {
  std::vector<int64_t> numbers;
  std::vector<uint64_t> contexts;
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (const Distance& distance : distances[i]) {
      if (distance.known) continue;
      numbers.push_back(distance.nodes);
      contexts.push_back(etude::HashMix(tokens[i], distance.slot));
    }
  }
  return etude::PackNumbers(numbers, contexts).bytes.size();
}

void MeasureLayers(const std::string& path, const Trace& trace) {
  const PackedTrace packed = PackedTrace::Pack(trace).value();
  const etude::MotifProgram& program = packed.program();
  const std::vector<uint32_t> tokens = program.Expand();
  std::vector<std::vector<Distance>> distances(tokens.size());
  etude::ForEachNode(trace, [&](etude::NodeId node) {
    const auto add = [&](etude::NodeId other) {
      std::vector<Distance>& of = distances[node.index()];
      of.push_back({.nodes = int64_t{node.value()} - other.value(), .slot = of.size()});
    };
    if (trace.parent(node)) add(trace.parent(node));
    for (const etude::NodeId dep : trace.deps(node)) add(dep);
  });
  const size_t now = BytesOf(distances, tokens);
  const std::vector<uint64_t> lengths = program.Lengths();
  const std::vector<std::vector<size_t>> places = program.Places();
  size_t same_motifs = 0;
  for (size_t motif = 0; motif < places.size(); ++motif) {
    const size_t first = places[motif].front();
    bool all_same = true;
    for (size_t at = 0; at < lengths[motif]; ++at) {
      for (size_t slot = 0; slot < distances[first + at].size(); ++slot) {
        const int64_t back = distances[first + at][slot].nodes;
        const auto inside = [&](int64_t distance) {
          const int64_t to = static_cast<int64_t>(at) - distance;
          return to >= 0 && to < static_cast<int64_t>(lengths[motif]);
        };
        bool same = true;
        for (const size_t place : places[motif]) {
          const int64_t here = distances[place + at][slot].nodes;
          same = same && (inside(back) ? here == back : !inside(here));
        }
        all_same = all_same && same;
        if (!same || !inside(back)) continue;
        for (const size_t place : places[motif]) {
          if (place != first) distances[place + at][slot].known = true;
        }
      }
    }
    same_motifs += all_same ? 1 : 0;
  }
  const etude::OperationTypes types = etude::FindTypes(trace);
  const etude::OperationGraph graph = GraphOf(trace, types, etude::Stretch(0, trace.node_count()));
  const etude::LayerShape shape = FindShape(graph).value_or(etude::LayerShape{});
  const size_t nodes = std::max<size_t>(trace.node_count(), 1);
  const double layering = PerNode(nodes, [&] { (void)LayerOperations(graph); });
  std::printf("%-34s %8zu %8zu %8zu %8zu %8zu %8zu %8zu %8zu %8.2f\n", ShortPath(path).c_str(),
              trace.node_count(), static_cast<size_t>(shape.layers),
              static_cast<size_t>(shape.width), places.size(), same_motifs, packed.ToBytes().size(),
              now, BytesOf(distances, tokens), layering);
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
  std::printf("\n%-34s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "trace", "nodes", "layers", "width",
              "motifs", "same", "file", "distances", "once", "layers");
  std::printf("%-34s %8s %17s %17s %26s %8s\n", "", "", "", "", "bytes", "us a node");
  for (const auto& [path, trace] : traces) MeasureLayers(path, trace);
  return failed;
}
