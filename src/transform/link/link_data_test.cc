// Links and converts recorded traces, and compares with results of MLCommons Chakra 1.0.0.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/formats/chakra/chakra_reader.h"
#include "src/formats/chakra/chakra_writer.h"
#include "src/formats/pytorch_et/et_json_reader.h"
#include "src/formats/pytorch_et/linked_json_writer.h"
#include "src/formats/read_trace.h"
#include "src/formats/test_support.h"
#include "src/transform/link/link.h"
#include "src/transform/to_chakra.h"
#include "tests/trace_dump.h"

namespace etude {
namespace {

using testing_support::DataPath;

struct Pair {
  std::string name;
  std::string host;
  std::string device;
  std::string linked;  // from Chakra; "" if there is none
  std::string chakra;
  HostLink by = HostLink::kRfId;  // how its host nodes are matched
  uint64_t unmatched = 0;         // host nodes without an event, except the roots
  uint64_t device_linked = 0;
  uint64_t device_orphans = 0;
};

void PrintTo(const Pair& pair, std::ostream* out) { *out << pair.name; }

Pair Chakra(const std::string& name, const std::string& folder, const std::string& results,
            uint64_t linked, uint64_t orphans) {
  const std::string rank = name.substr(name.find_last_not_of("0123456789") + 1);
  return {.name = name,
          .host = folder + "/host." + rank + ".json.gz",
          .device = folder + "/device." + rank + ".json.gz",
          .linked = results + "/linked." + rank + ".json.zst",
          .chakra = results + "/chakra." + rank + ".et.zst",
          .device_linked = linked,
          .device_orphans = orphans};
}

std::vector<Pair> Pairs() {
  std::vector<Pair> pairs;
  for (const char* name : {"mlp", "dlrm", "lstm", "resnet18", "transformer"}) {
    const std::string prefix = std::string("cpu/") + name;
    pairs.push_back(
        {.name = name, .host = prefix + "_et.json.gz", .device = prefix + "_kineto.json.gz"});
  }
  for (const char* rank : {"0", "1"}) {
    const std::string prefix = std::string("cpu/ddp_mlp/rank-") + rank;
    pairs.push_back({.name = std::string("ddp_mlp_") + rank,
                     .host = prefix + ".json.gz",
                     .device = prefix + "_kineto.json.gz"});
  }
  for (const auto& [job, rank, count] :
       {std::tuple("messages", "0", 9), {"messages", "1", 9}, {"graph", "0", 34}}) {
    const std::string prefix = std::string("gpu/") + job;
    pairs.push_back({.name = std::string(job) + "_" + rank,
                     .host = prefix + "/host." + rank + ".json.gz",
                     .device = prefix + "/device." + rank + ".json.gz",
                     .device_linked = static_cast<uint64_t>(count)});
  }
  pairs.push_back({.name = "simple_add",
                   .host = "gpu/benchmark_simple_add_et.json.gz",
                   .device = "gpu/benchmark_simple_add_trace.json.gz",
                   .by = HostLink::kExternalId,
                   .device_linked = 4});
  pairs.push_back({.name = "linear",
                   .host = "gpu/linear_et_1.0.1.json.gz",
                   .device = "gpu/linear_kineto.json.gz",
                   .by = HostLink::kAligned,
                   .device_linked = 261});
  // The profiler missed launches of the previous step on ranks 1 and 3.
  pairs.push_back(Chakra("dlrm8_0", "gpu/dlrm8", "chakra/dlrm8", 261, 0));
  pairs.push_back(Chakra("dlrm8_1", "gpu/dlrm8", "chakra/dlrm8", 262, 64));
  pairs.push_back(Chakra("dlrm8_2", "gpu/dlrm8", "chakra/dlrm8", 262, 0));
  pairs.push_back(Chakra("dlrm8_3", "gpu/dlrm8", "chakra/dlrm8", 273, 64));
  for (const auto& [name, count] : {std::pair("resnet110_syn", 3094), {"gpt2_syn", 4313}}) {
    const std::string folder = std::string("chakra/") + name;
    Pair pair = Chakra(std::string(name) + "_0", folder, folder, static_cast<uint64_t>(count), 0);
    pairs.push_back(pair);
  }
  return pairs;
}

Trace Read(const std::string& path) {
  static const RunContext context;
  auto trace = ReadTrace(DataPath(path), {.strict = true}, context);
  EXPECT_TRUE(trace.has_value()) << trace.error().message;
  return *std::move(trace);
}

std::string ChakraBytes(const Trace& trace) {
  std::string bytes;
  const auto report = WriteChakra(trace, {}, [&](std::string_view part) {
    bytes += part;
    return Status();
  });
  EXPECT_TRUE(report.has_value());
  return bytes;
}
std::string LinkedText(const Trace& trace) {
  std::string text;
  const auto report = WriteLinkedJson(trace, [&](std::string_view part) {
    text += part;
    return Status();
  });
  EXPECT_TRUE(report.has_value());
  EXPECT_EQ(report->lost_edges, 0u);
  EXPECT_EQ(report->lost_extras, 0u);
  return text;
}
Trace ReadFrom(std::unique_ptr<TraceReader> reader, const std::string& bytes) {
  EXPECT_TRUE(reader->Push(bytes).has_value());
  auto trace = reader->Finish(false);
  EXPECT_TRUE(trace.has_value()) << trace.error().message;
  return *std::move(trace);
}

class LinkData : public testing::TestWithParam<Pair> {
 protected:
  void SetUp() override { ETUDE_NEED_DATA(GetParam().host); }

  LinkResult LinkPair() {
    const Trace host = Read(GetParam().host);
    const Trace device = Read(GetParam().device);
    auto result = Link(host, device, {});
    EXPECT_TRUE(result.has_value()) << result.error().message;
    EXPECT_EQ(result->host_nodes(), host.node_count());
    uint64_t events = 0;
    for (const uint64_t count : result->events) events += count;
    EXPECT_EQ(events, device.node_count());
    return *std::move(result);
  }
};

TEST_P(LinkData, LinksAllThatCanBeLinked) {
  const Pair& pair = GetParam();
  const LinkResult result = LinkPair();
  const auto host = [&](HostLink link) { return result.host[static_cast<size_t>(link)]; };
  EXPECT_EQ(host(pair.by) + host(HostLink::kRoot) + pair.unmatched, result.host_nodes());
  EXPECT_EQ(result.device_linked(), pair.device_linked);
  EXPECT_EQ(result.device_nodes(), pair.device_linked + pair.device_orphans);
  EXPECT_EQ(result.trace.node_count(), result.host_nodes() + result.device_nodes());
  EXPECT_TRUE(result.trace.is_acyclic());
  EXPECT_FALSE(result.renumbered);
}

TEST_P(LinkData, SurvivesLinkedJson) {
  const LinkResult result = LinkPair();
  const RunContext context;
  const std::string text = LinkedText(result.trace);
  const Trace back = ReadFrom(MakeEtJsonReader("linked", {.strict = true}, context), text);
  EXPECT_EQ(back.info().format, TraceFormat::kLinked);
  EXPECT_EQ(testing_dump::GroupsText(back), testing_dump::GroupsText(result.trace));
  EXPECT_EQ(back.info().rank, result.trace.info().rank);
  ASSERT_EQ(back.node_count(), result.trace.node_count());
  ForEachNode(result.trace, [&](NodeId node) {
    const Trace& trace = result.trace;
    const NodeId same = back.Find(trace.source_id(node));
    ASSERT_TRUE(same);
    EXPECT_EQ(back.name(same), trace.name(node));
    EXPECT_EQ(back.kind(same), trace.kind(node)) << trace.name(node);
    EXPECT_EQ(back.place(same), trace.place(node));
    EXPECT_EQ(back.start(same), trace.start(node));
    EXPECT_EQ(back.duration(same), trace.duration(node));
    EXPECT_EQ(back.exclusive(same), trace.exclusive(node));
    EXPECT_EQ(back.correlation(same), trace.correlation(node));
    EXPECT_EQ(back.external_id(same), trace.external_id(node));
    EXPECT_EQ(testing_dump::LaneText(back, same), testing_dump::LaneText(trace, node));
    EXPECT_EQ(
        testing_dump::Arguments(back, back.input_list(same)),
        testing_dump::Arguments(trace, trace.input_list(node).is_none() ? back.input_list(same)
                                                                        : trace.input_list(node)));
    const NodeId parent = trace.parent(node);
    EXPECT_EQ(back.parent(same), parent ? back.Find(trace.source_id(parent)) : NodeId::None());
    EXPECT_EQ(testing_dump::CommText(back, back.comm(same)),
              testing_dump::CommText(trace, trace.comm(node)));
  });
  // The graph for simulators is the same with and without an intermediate file.
  const auto direct = ToChakra(result.trace, {});
  const auto by_file = ToChakra(back, {});
  ASSERT_TRUE(direct.has_value() && by_file.has_value());
  const auto edges = [](const Trace& trace) {
    std::vector<std::tuple<uint64_t, uint64_t, DepKind>> all;
    ForEachNode(trace, [&](NodeId node) {
      for (size_t i = 0; i < trace.deps(node).size(); ++i) {
        all.emplace_back(trace.source_id(node), trace.source_id(trace.deps(node)[i]),
                         trace.dep_kinds(node)[i]);
      }
    });
    std::ranges::sort(all);
    return all;
  };
  EXPECT_EQ(edges(direct->trace), edges(by_file->trace));
}

TEST_P(LinkData, SurvivesChakra) {
  const LinkResult result = LinkPair();
  const auto chakra = ToChakra(result.trace, {});
  ASSERT_TRUE(chakra.has_value());
  EXPECT_TRUE(chakra->trace.is_acyclic());
  EXPECT_EQ(chakra->trace.node_count(), result.trace.node_count());
  EXPECT_EQ(chakra->contradictions, 0u);
  const RunContext context;
  const std::string bytes = ChakraBytes(chakra->trace);
  const Trace back = ReadFrom(MakeChakraReader("chakra", {.strict = true}, context), bytes);
  EXPECT_EQ(testing_dump::NodeTexts(back), testing_dump::NodeTexts(chakra->trace));
  EXPECT_EQ(testing_dump::InfoText(back), testing_dump::InfoText(chakra->trace));
  EXPECT_EQ(ChakraBytes(back), bytes);
  EXPECT_EQ(back.dangling().size(), 0u);
}

// Kernels are identified by name, start and stream, host nodes by rf_id, name and thread.
using KernelKey = std::tuple<std::string, int64_t, int32_t>;
using HostKey = std::tuple<uint64_t, std::string, uint64_t>;

HostKey KeyOfHost(const Trace& trace, NodeId node) {
  return {trace.rf_id(node).value_or(0), std::string(trace.name(node)),
          trace.tid(node).value_or(0)};
}
KernelKey KeyOfKernel(const Trace& trace, NodeId node) {
  return {std::string(trace.name(node)), trace.start(node).value_or(Nanos{-1}).count,
          trace.lane(trace.lane_id(node)).stream};
}

class ChakraReference : public LinkData {};

TEST_P(ChakraReference, IsSaidByOurLinkToo) {
  const LinkResult result = LinkPair();
  const Trace& ours = result.trace;
  const Trace theirs = Read(GetParam().linked);
  std::map<KernelKey, HostKey> their_kernels;
  std::map<HostKey, NodeId> their_hosts;
  ForEachNode(theirs, [&](NodeId node) {
    if (theirs.place(node) == Place::kDevice) {
      their_kernels[KeyOfKernel(theirs, node)] = KeyOfHost(theirs, theirs.parent(node));
    } else {
      their_hosts[KeyOfHost(theirs, node)] = node;
    }
  });
  uint64_t fills = 0;
  uint64_t more = 0;
  uint64_t other_exclusive = 0;
  ForEachNode(ours, [&](NodeId node) {
    if (ours.place(node) == Place::kDevice) {
      const auto same = their_kernels.find(KeyOfKernel(ours, node));
      if (same == their_kernels.end()) {
        // Chakra's linker lacks gpu_memset, and drops work without a launch.
        const bool fill = ours.kind(node) == NodeKind::kMemset;
        fill ? ++fills : ++more;
        return;
      }
      EXPECT_EQ(KeyOfHost(ours, ours.parent(node)), same->second) << ours.name(node);
      their_kernels.erase(same);
      return;
    }
    const auto same = their_hosts.find(KeyOfHost(ours, node));
    ASSERT_NE(same, their_hosts.end()) << ours.name(node);
    // It assigns no times to ProfilerStep marks.
    if (!theirs.start(same->second)) {
      EXPECT_TRUE(!ours.start(node) || ours.name(node).starts_with("ProfilerStep"));
      return;
    }
    EXPECT_EQ(ours.start(node), theirs.start(same->second));
    EXPECT_EQ(ours.duration(node), theirs.duration(same->second));
    // Its times are floating-point numbers, off by some nanoseconds for each child. It does not
    // subtract children that begin with their parent, or that then seem to end after it.
    const Nanos more_exclusive = *theirs.exclusive(same->second) - *ours.exclusive(node);
    const Nanos noise{5 + static_cast<int64_t>(ours.children(node).size())};
    EXPECT_GE(more_exclusive.count, -noise.count) << ours.name(node);
    if (more_exclusive > noise) ++other_exclusive;
    their_hosts.erase(same);
  });
  EXPECT_TRUE(their_kernels.empty());
  EXPECT_LE(more, GetParam().device_orphans);
  EXPECT_LE(other_exclusive, 40u);
  EXPECT_LE(fills, 286u);
}

TEST_P(ChakraReference, HasNoNodeThatOursLacks) {
  const auto ours = ToChakra(LinkPair().trace, {});
  ASSERT_TRUE(ours.has_value());
  const Trace theirs = Read(GetParam().chakra);
  // The converter drops start times: kernels are identified by name, stream, duration and operator.
  using Key = std::tuple<std::string, int32_t, int64_t, HostKey>;
  const auto keys = [](const Trace& trace) {
    std::multiset<Key> all;
    std::set<HostKey> hosts;
    ForEachNode(trace, [&](NodeId node) {
      if (trace.place(node) != Place::kDevice) {
        hosts.insert(KeyOfHost(trace, node));
        return;
      }
      const LaneId lane = trace.lane_id(node);
      // It cuts durations to whole microseconds.
      const int64_t micros = trace.duration(node).value_or(Nanos{0}).count / 1000;
      all.emplace(std::string(trace.name(node)), trace.lane(lane).stream, micros,
                  KeyOfHost(trace, trace.parent(node)));
    });
    return std::pair(all, hosts);
  };
  const auto [our_kernels, our_hosts] = keys(ours->trace);
  const auto [their_kernels, their_hosts] = keys(theirs);
  EXPECT_TRUE(std::ranges::includes(our_kernels, their_kernels));
  EXPECT_TRUE(std::ranges::includes(our_hosts, their_hosts));
  EXPECT_EQ(our_hosts.size(), their_hosts.size() + 1) << "it drops the process root";
  // Both have the same collectives with the same types; by its rule, its sizes are at least as
  // large.
  const auto collectives = [](const Trace& trace) {
    std::multiset<std::pair<std::string, CollectiveType>> all;
    for (const auto& [node, comm] : trace.comms()) {
      if (trace.place(node) == Place::kDevice) all.emplace(trace.name(node), comm.type);
    }
    return all;
  };
  EXPECT_EQ(collectives(ours->trace), collectives(theirs));
}

std::string NameOf(const testing::TestParamInfo<Pair>& param) { return param.param.name; }
std::vector<Pair> PairsWithReference() {
  std::vector<Pair> pairs = Pairs();
  std::erase_if(pairs, [](const Pair& pair) { return pair.linked.empty(); });
  return pairs;
}
INSTANTIATE_TEST_SUITE_P(Recorded, LinkData, testing::ValuesIn(Pairs()), NameOf);
INSTANTIATE_TEST_SUITE_P(Recorded, ChakraReference, testing::ValuesIn(PairsWithReference()),
                         NameOf);

// Host-only traces keep their call tree and get their order.
void ExpectConverts(std::initializer_list<const char*> paths) {
  for (const char* path : paths) {
    const Trace host = Read(path);
    const auto chakra = ToChakra(host, {});
    ASSERT_TRUE(chakra.has_value()) << path;
    EXPECT_EQ(chakra->trace.node_count(), host.node_count());
    EXPECT_TRUE(chakra->trace.is_acyclic());
    EXPECT_EQ(chakra->contradictions, 0u);
    uint64_t roots = 0;
    ForEachNode(host, [&](NodeId node) {
      roots += host.kind(node) == NodeKind::kProcess || host.kind(node) == NodeKind::kThread;
      EXPECT_EQ(chakra->trace.parent(node), host.parent(node)) << path;
    });
    EXPECT_EQ(chakra->order_edges, host.node_count() - roots) << path;
  }
}

TEST(ConvertData, HostTraces) { ExpectConverts({"cpu/lstm_et.json.gz", "cpu/mlp_et.json.gz"}); }

TEST(ConvertData, SharedHostTracesOfAllVersions) {
  ETUDE_NEED_SHARED_DATA();
  ExpectConverts({"chakra/sample102/host.0.json.gz", "gpu/linear_et_1.0.1.json.gz",
                  "gpu/hf_gpt2_et_1.1.0.json.gz"});
}

}  // namespace
}  // namespace etude
