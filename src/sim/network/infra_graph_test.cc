#include "src/sim/network/infra_graph.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/sim/network/network_files.h"

namespace etude {
namespace {

// Two servers of two NPUs and NICs, and a switch with ports.
constexpr const char* kSchemaForm = R"(
name: pod
devices:
- name: server
  components:
  - {name: gpu, count: 2, choice: xpu}
  - {name: nic, count: 2, choice: device}
  - {name: nvsw, count: 1, choice: switch}
  links:
  - name: nvlink
    physical:
      bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 400}
      latency: {choice: ns, ns: 300}
  - name: pcie
    physical: {bandwidth: {gigabits_per_second: 512}}
  edges:
  - {ep1: {component: gpu}, ep2: {component: nvsw}, scheme: many2many, link: nvlink}
  - {ep1: {component: "gpu[:]"}, ep2: {device: "nic[0:2]", component: "port[0]"},
     scheme: one2one, link: pcie}
- name: nic
  components: [{name: port, count: 1, choice: port}]
- name: tor
  components:
  - {name: asic, count: 1, choice: switch}
  - {name: port, count: 4, choice: port}
  links: [{name: ic, physical: {bandwidth: {gigabytes_per_second: 1000}}}]
  edges: [{ep1: {component: asic}, ep2: {component: port}, scheme: many2many, link: ic}]
instances:
- {name: host, device: server, count: 2}
- {name: leaf, device: tor, count: 1}
links:
- name: eth
  physical: {bandwidth: {gigabits_per_second: 400}, latency: {us: 1.5}}
edges:
- {ep1: {instance: "host[0]", component: "nic[0:2].port[0]"},
   ep2: {instance: "leaf[0]", component: "port[0:2]"}, scheme: one2one, link: eth}
- {ep1: {instance: "host[-1]", component: "nic.port"},
   ep2: {instance: "leaf", component: "port[2:]"}, scheme: one2one, link: eth}
)";

constexpr const char* kOlderForm = R"(
infrastructure:
  devices:
    - components:
        - {name: npu, type: npu, count: 2}
        - {name: nic, type: nic}
      links:
        - {name: pcie, bandwidth: {giga_bytes_per_second: 32}}
      connections:
        - npu.0.pcie.nic.0
        - npu.1.pcie.nic.1
      instances: [{name: server, count: 2}]
    - name: switch
      components: [{name: port, type: port, count: 4}]
  instances: [{name: leaf, device: switch}]
  links: [{name: eth1, bandwidth: {choice: giga_bytes_per_second, giga_bytes_per_second: 100}}]
  connections:
    - server.0.nic.0.eth1.leaf.0.port.0
    - server.0.nic.1.eth1.leaf.0.port.0
    - server.1.nic.0.eth1.leaf.0.port.0
    - server.1.nic.1.eth1.leaf.0.port.0
)";

std::vector<std::string> InfraPathOf(const NetworkGraph& graph, int64_t from, int64_t to) {
  std::vector<uint32_t> links;
  NetworkRoutes(graph).Find(from, to, nullptr, links);
  std::vector<std::string> names;
  for (const uint32_t link : links) names.push_back(graph.NameOf(graph.links()[link].to));
  return names;
}

std::string InfraErrorOf(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos);
  text.replace(at, from.size(), to);
  auto graph = ParseNetworkGraph(text, "infra.yaml");
  if (!graph) return graph.error().message;
  const Status finished = graph->Finish("infra.yaml");
  return finished ? "" : finished.error().message;
}

TEST(InfraGraph, ReadsTheFormOfTheSchema) {
  auto graph = ParseNetworkGraph(kSchemaForm, "infra.yaml");
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_TRUE(graph->Slow("host.0.gpu.1-host.0.nvsw.0:0.5"));
  ASSERT_TRUE(graph->Finish("infra.yaml"));
  EXPECT_EQ(graph->npus(), 4);
  EXPECT_EQ(graph->dims()[0].topology, "InfraGraph of 4 NPUs, 11 other components, 16 links");
  EXPECT_EQ(InfraPathOf(*graph, 0, 1), (std::vector<std::string>{"host.0.nvsw.0", "1"}));
  EXPECT_EQ(InfraPathOf(*graph, 1, 2),
            (std::vector<std::string>{"host.0.nic.1.port.0", "leaf.0.port.1", "leaf.0.asic.0",
                                      "leaf.0.port.2", "host.1.nic.0.port.0", "2"}));
  std::vector<uint32_t> links;
  NetworkRoutes(*graph).Find(1, 2, nullptr, links);
  EXPECT_DOUBLE_EQ(CostOfPath(*graph, links).rate, 50);
  EXPECT_DOUBLE_EQ(CostOfPath(*graph, links).latency, 3000);
}

TEST(InfraGraph, ReadsTheOlderForm) {
  auto graph = ParseNetworkGraph(kOlderForm, "infra.yaml");
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_TRUE(graph->Finish("infra.yaml"));
  EXPECT_EQ(graph->npus(), 4);
  EXPECT_EQ(InfraPathOf(*graph, 0, 3),
            (std::vector<std::string>{"server.0.nic.0", "leaf.0.port.0", "server.1.nic.1", "3"}));
}

TEST(InfraGraph, NamesThePlaceOfErrors) {
  EXPECT_EQ(InfraErrorOf(kSchemaForm, "{gigabits_per_second: 512}", "{gigabits_per_second: 0}"),
            "infra.yaml:18:5: found link 'pcie' with a bandwidth of 0, expected "
            "gigabits_per_second or gigabytes_per_second above 0 for the link from host.0.gpu.0 to "
            "host.0.nic.0.port.0");
  EXPECT_TRUE(
      InfraErrorOf(kSchemaForm, "physical: {bandwidth: {gigabytes_per_second: 1000}}", "x: 1")
          .find("found link 'ic' without a bandwidth") != std::string::npos);
  EXPECT_TRUE(InfraErrorOf(kSchemaForm, "gigabits_per_second: 512", "gigatransfers_per_second: 32")
                  .find("expected one of gigabits_per_second") != std::string::npos);
  EXPECT_TRUE(
      InfraErrorOf(kSchemaForm, "scheme: one2one", "scheme: all").find("found scheme 'all'") !=
      std::string::npos);
  EXPECT_TRUE(InfraErrorOf(kSchemaForm, "name: eth\n", "name: eth\n- name: eth\n")
                  .find("found link 'eth' twice") != std::string::npos);
  EXPECT_TRUE(InfraErrorOf(kSchemaForm, "{gigabits_per_second: 512}",
                           "{gigabits_per_second: 512, gigabytes_per_second: 64}")
                  .find("found several units") != std::string::npos);
  EXPECT_TRUE(InfraErrorOf(kSchemaForm, "{name: nic, count: 2, choice: device}",
                           "{name: gpu, count: 2, choice: device}")
                  .find("found component 'gpu' twice") != std::string::npos);
  EXPECT_TRUE(InfraErrorOf(kSchemaForm, "instance: \"leaf[0]\"", "instance: \"leaf[1]\"")
                  .find("found '[1]' of 1") != std::string::npos);
  EXPECT_TRUE(InfraErrorOf(kSchemaForm, "choice: xpu", "choice: cpu")
                  .find("found no components of choice xpu") != std::string::npos);
  EXPECT_TRUE(InfraErrorOf(kSchemaForm, "device: tor", "device: top")
                  .find("found no device 'top' for 'leaf.0'") != std::string::npos);
  EXPECT_EQ(InfraErrorOf(kOlderForm, "    - server.0.nic.0.eth1.leaf.0.port.0\n", ""),
            "infra.yaml: found no path from NPU 0 to NPU 1, expected a connected network");
  EXPECT_TRUE(InfraErrorOf(kOlderForm, "server.0.nic.0.eth1.leaf.0.port.0", "server.0.eth1")
                  .find("expected a connection such as") != std::string::npos);
  EXPECT_TRUE(InfraErrorOf(kOlderForm, "infrastructure:", "infrastructure: {}\nx:")
                  .find("found no components of choice xpu") != std::string::npos);
}

}  // namespace
}  // namespace etude
