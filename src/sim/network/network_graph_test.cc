#include "src/sim/network/network_graph.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/sim/machine/network_text.h"
#include "src/sim/network/network_files.h"

namespace etude {
namespace {

NetworkGraph NetworkGraphOf(const std::string& dims, const std::vector<std::string>& slow = {}) {
  auto graph = ParseNetworkGraph(*NetworkOfDims(dims), "network");
  EXPECT_TRUE(graph) << graph.error().message;
  for (const std::string& text : slow) EXPECT_TRUE(graph->Slow(text)) << text;
  EXPECT_TRUE(graph->Finish("network"));
  return *std::move(graph);
}

// Returns the nodes of a path, "0 switch 3".
std::string NetworkPathText(const NetworkGraph& graph, int64_t from, int64_t to,
                            const NetworkRoutes::Load& load = nullptr) {
  std::vector<uint32_t> links;
  NetworkRoutes(graph).Find(from, to, load, links);
  std::string text = std::to_string(from);
  for (const uint32_t link : links) text += " " + graph.NameOf(graph.links()[link].to);
  return text;
}

std::string NetworkErrorOf(const std::string& text, const std::vector<std::string>& slow = {}) {
  auto graph = ParseNetworkGraph(text, "net");
  if (!graph) return graph.error().message;
  for (const std::string& one : slow) {
    if (const Status slowed = graph->Slow(one); !slowed) return slowed.error().message;
  }
  const Status finished = graph->Finish("net");
  return finished ? "" : finished.error().message;
}

TEST(NetworkGraph, CrossesDimensionsLowestFirst) {
  const NetworkGraph torus = NetworkGraphOf("Ring(4):50GB/s,500ns Ring(4):25GB/s,1us");
  EXPECT_EQ(torus.npus(), 16);
  EXPECT_EQ(torus.links().size(), 64U);
  EXPECT_EQ(NetworkPathText(torus, 0, 15), "0 3 15");
  EXPECT_EQ(NetworkPathText(torus, 0, 9), "0 1 5 9");
  // Both ways around a ring of four are as long; NPUs at even places go ahead.
  EXPECT_EQ(NetworkPathText(torus, 0, 2), "0 1 2");
  EXPECT_EQ(NetworkPathText(torus, 1, 3), "1 0 3");
  const NetworkGraph mesh = NetworkGraphOf("Mesh(4):50GB/s,500ns");
  EXPECT_EQ(NetworkPathText(mesh, 3, 0), "3 2 1 0");
  EXPECT_EQ(NetworkGraphOf("Ring(2):50GB/s,0ns").links().size(), 2U);
  const NetworkGraph rails = NetworkGraphOf("Switch(2):400GB/s,100ns Switch(3):50GB/s,1us");
  EXPECT_EQ(NetworkPathText(rails, 0, 5), "0 0.0:switch 1 1.1:switch 5");
  EXPECT_EQ(NetworkPathText(NetworkGraphOf("FullyConnected(5):1GB/s,1ns"), 4, 1), "4 1");
}

TEST(NetworkGraph, FatTree) {
  const NetworkGraph tree = NetworkGraphOf("FatTree(4,2):50GB/s,500ns");
  EXPECT_EQ(tree.npus(), 16);
  EXPECT_EQ(tree.devices(), 20U);
  EXPECT_EQ(tree.links().size(), 2U * 48);
  EXPECT_EQ(NetworkPathText(tree, 0, 1), "0 edge0.0 1");
  std::vector<uint32_t> links;
  NetworkRoutes routes(tree);
  routes.Find(0, 2, nullptr, links);
  EXPECT_EQ(links.size(), 4U);
  links.clear();
  routes.Find(0, 15, nullptr, links);
  ASSERT_EQ(links.size(), 6U);
  EXPECT_DOUBLE_EQ(tree.links()[links[0]].bandwidth, 50);
  EXPECT_DOUBLE_EQ(tree.links()[links[1]].bandwidth, 25);
  EXPECT_DOUBLE_EQ(CostOfPath(tree, links).latency, 3000);
  EXPECT_DOUBLE_EQ(CostOfPath(tree, links).rate, 25);
  // Messages between different pairs use different cores.
  std::set<std::string> paths;
  for (int64_t to = 4; to < 16; ++to) paths.insert(NetworkPathText(tree, 0, to).substr(0, 30));
  EXPECT_GT(paths.size(), 2U);
}

TEST(NetworkGraph, Dragonfly) {
  const NetworkGraph network = NetworkGraphOf("Dragonfly(2,4,2):50GB/s,500ns");
  EXPECT_EQ(network.npus(), 72);
  EXPECT_EQ(network.devices(), 36U);
  // Links of NPUs, within 9 groups, and one between each two groups.
  EXPECT_EQ(network.links().size(), 2U * (72 + 9 * 6 + 36));
  for (int64_t to = 1; to < 72; ++to) {
    std::vector<uint32_t> links;
    NetworkRoutes(network).Find(0, to, nullptr, links);
    EXPECT_LE(links.size(), 5U);
  }
  // Minimal routes: each pair of NPUs of two groups uses the link of these groups, and no other.
  std::map<std::pair<uint32_t, uint32_t>, int> uses;
  NetworkRoutes routes(network);
  for (int64_t from = 0; from < 72; ++from) {
    for (int64_t to = 0; to < 72; ++to) {
      std::vector<uint32_t> links;
      if (from != to) routes.Find(from, to, nullptr, links);
      for (const uint32_t link : links) {
        const NetworkLink& one = network.links()[link];
        if (one.length > 1) ++uses[{one.from, one.to}];
      }
    }
  }
  EXPECT_EQ(uses.size(), 72U);
  for (const auto& [link, count] : uses) EXPECT_EQ(count, 8 * 8);
}

TEST(NetworkGraph, PrefersTheWidestOfTheShortestPaths) {
  const std::string text =
      "# two switches between two NPUs\n"
      "0 narrow 32GB/s 100ns\n"
      "1 narrow 32GB/s 100ns\n"
      "0 wide 450GB/s 100ns  # NVLink\n"
      "wide -> 1 450GB/s 100ns\n"
      "1 -> wide 450GB/s 100ns\n";
  auto graph = ParseNetworkGraph(text, "net");
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_TRUE(graph->Finish("net"));
  EXPECT_EQ(NetworkPathText(*graph, 0, 1), "0 wide 1");
  // A slow link is not avoided, a failed one is.
  ASSERT_TRUE(graph->Slow("0-wide:0.01+1us"));
  ASSERT_TRUE(graph->Finish("net"));
  EXPECT_EQ(NetworkPathText(*graph, 0, 1), "0 wide 1");
  ASSERT_TRUE(graph->Slow("0-wide:0"));
  ASSERT_TRUE(graph->Finish("net"));
  EXPECT_EQ(NetworkPathText(*graph, 0, 1), "0 narrow 1");
  EXPECT_EQ(graph->faults().back(), "link 0-wide: failed");
}

TEST(NetworkGraph, LeastLoadedAvoidsLoad) {
  const NetworkGraph tree = NetworkGraphOf("FatTree(4):50GB/s,500ns");
  const std::string hashed = NetworkPathText(tree, 0, 15);
  std::vector<uint32_t> links;
  NetworkRoutes(tree).Find(0, 15, nullptr, links);
  const auto load = [&](uint32_t link) { return uint64_t{link == links[1]}; };
  EXPECT_NE(NetworkPathText(tree, 0, 15, load), hashed);
}

TEST(NetworkGraph, FailedLinks) {
  EXPECT_EQ(NetworkPathText(NetworkGraphOf("Ring(4):1GB/s,0ns", {"0-1:0"}), 0, 1), "0 3 2 1");
  const std::string ring = *NetworkOfDims("Ring(4):1GB/s,0ns");
  EXPECT_EQ(NetworkErrorOf(ring, {"0-1:0", "3-2:0"}),
            "net: found no path from NPU 0 to NPU 1 without the failed links 0-1, 1-0, 2-3, 3-2");
  EXPECT_EQ(NetworkErrorOf(ring, {"2@0:0"}),
            "net: found no path from NPU 0 to NPU 2 without the failed links 1-2, 2-1, 2-3, 3-2");
  EXPECT_TRUE(
      NetworkErrorOf(ring, {"0-2:0.5"}).starts_with("found '0-2:0.5', found no link there"));
  EXPECT_TRUE(
      NetworkErrorOf(ring, {"0-9:0.5"}).starts_with("found '0-9:0.5', expected NPUs below 4"));
  EXPECT_TRUE(NetworkErrorOf(ring, {"0@1:0.5"}).find("a dimension below 1") != std::string::npos);
  EXPECT_TRUE(NetworkErrorOf(ring, {"0-1:2"}).find("from 0 to 1") != std::string::npos);
  EXPECT_TRUE(NetworkErrorOf(ring, {"0-1"}).starts_with("found '0-1', expected the ends"));
}

TEST(NetworkGraph, Errors) {
  EXPECT_EQ(NetworkErrorOf("0 a 1GB/s 1ns\n1 b 1GB/s 1ns\n"),
            "net: found no path from NPU 0 to NPU 1, expected a connected network");
  EXPECT_EQ(NetworkErrorOf("0 a 1GB/s 1ns\n1 -> a 1GB/s 1ns\n"),
            "net: found no path from NPU 0 to NPU 1, expected a connected network");
  EXPECT_EQ(NetworkErrorOf("0 2 1GB/s 1ns\n"), "net:1: found NPU 2, but no link of NPU 1");
  EXPECT_TRUE(
      NetworkErrorOf("# x\n0 1 0GB/s 1ns\n").starts_with("net:2: found the bandwidth '0GB/s'"));
  EXPECT_TRUE(NetworkErrorOf("0 1 1GB/s\n").starts_with("net:1: found 3 words"));
  EXPECT_TRUE(NetworkErrorOf("0 1 1GB/s fast\n").starts_with("net:1: found the latency 'fast'"));
  EXPECT_EQ(NetworkErrorOf("a b 1GB/s 1ns\n"), "net: found no NPUs, expected links");
  EXPECT_TRUE(
      NetworkErrorOf("0 0 1GB/s 1ns\n").starts_with("net:1: found a link from '0' to itself"));
  const auto dims = [](const std::string& text) { return NetworkErrorOf(*NetworkOfDims(text)); };
  EXPECT_EQ(dims("Rong(4):1GB/s,1ns"), "net: topology: found 'Rong'; did you mean 'Ring'?");
  EXPECT_TRUE(dims("FatTree(5):1GB/s,1ns")
                  .starts_with("net: npus_count: found FatTree(5), expected the even number"));
  EXPECT_TRUE(dims("Ring(4):0GB/s,1ns").starts_with("net: bandwidth: found '0GB/s'"));
  EXPECT_TRUE(dims("Ring(4,2):1GB/s,1ns").starts_with("net: npus_count: found Ring(4,2)"));
  EXPECT_TRUE(dims("FullyConnected(100000):1GB/s,1ns").find("links, expected at most") !=
              std::string::npos);
  EXPECT_TRUE(dims("FatTree(1000):1GB/s,1ns").find("NPUs, expected at most") != std::string::npos);
}

}  // namespace
}  // namespace etude
