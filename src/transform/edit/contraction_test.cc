#include "src/transform/edit/contraction.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <vector>

namespace etude {
namespace {

using Lists = std::vector<std::vector<uint32_t>>;

Lists Contract(const Lists& deps, const std::vector<bool>& keep) {
  Contraction contraction;
  Lists out;
  for (size_t i = 0; i < deps.size(); ++i) {
    const auto now = contraction.Add(deps[i], keep[i]);
    out.emplace_back(now.begin(), now.end());
  }
  return out;
}

// Returns the direct and indirect kept dependencies of each node.
std::vector<std::set<uint32_t>> Reach(const Lists& deps, const std::vector<bool>& keep) {
  std::vector<std::set<uint32_t>> reach(deps.size());
  for (size_t i = 0; i < deps.size(); ++i) {
    for (const uint32_t dep : deps[i]) {
      if (keep[dep]) reach[i].insert(dep);
      reach[i].insert(reach[dep].begin(), reach[dep].end());
    }
  }
  return reach;
}

TEST(Contraction, DependenciesRunThroughWhatGoes) {
  // A host thread 0, 2, 4, 6 launches kernels 1 and 3, waits for 3 (at 4), launches 5 and 7.
  const Lists deps = {{}, {0}, {0}, {2, 1}, {2, 3}, {4}, {4}, {6, 5}};
  const std::vector<bool> keep = {false, true, false, true, false, true, false, true};
  const Lists now = Contract(deps, keep);
  EXPECT_EQ(now[1], (std::vector<uint32_t>{}));
  EXPECT_EQ(now[3], (std::vector<uint32_t>{1}));
  EXPECT_EQ(now[5], (std::vector<uint32_t>{3}));
  EXPECT_EQ(now[7], (std::vector<uint32_t>{5}));
}

TEST(Contraction, OfAChainTheLastIsEnough) {
  // Two streams 0-1-2 and 3-4; host node 5 waits for all of them, kernel 6 is launched after it.
  const Lists deps = {{}, {0}, {1}, {}, {3}, {0, 1, 2, 3, 4}, {5}};
  const std::vector<bool> keep = {true, true, true, true, true, false, true};
  EXPECT_EQ(Contract(deps, keep)[6], (std::vector<uint32_t>{2, 4}));
}

TEST(Contraction, AHostThreadCostsNothing) {
  Contraction contraction;
  contraction.Add({}, true);
  for (uint32_t i = 0; i < 1000; ++i) contraction.Add(std::vector<uint32_t>{i}, false);
  EXPECT_EQ(contraction.size(), 1u);
}

TEST(Contraction, WhatAnotherDependencyImpliesGoes) {
  // Kernel 2 on another stream waited for 0; host node 3 saw both and launches 4 there.
  const Lists deps = {{}, {0}, {0}, {0, 1}, {3, 2}};
  const std::vector<bool> keep = {true, false, true, false, true};
  EXPECT_EQ(Contract(deps, keep)[4], (std::vector<uint32_t>{2}));
}

// In any graph, kept nodes wait for the same kept nodes as before, and for no others.
TEST(Contraction, KeepsReachability) {
  const bool holds = rc::check("reachability", [] {
    const auto count = *rc::gen::inRange<uint32_t>(0, 40);
    Lists deps(count);
    std::vector<bool> keep(count);
    for (uint32_t i = 0; i < count; ++i) {
      keep[i] = *rc::gen::arbitrary<bool>();
      const auto edges = *rc::gen::inRange<uint32_t>(0, 4);
      for (uint32_t k = 0; k < edges && i > 0; ++k) {
        deps[i].push_back(*rc::gen::inRange<uint32_t>(0, i));
      }
    }
    Lists now = Contract(deps, keep);
    for (uint32_t i = 0; i < count; ++i) {
      if (!keep[i]) now[i].clear();
      for (const uint32_t dep : now[i]) RC_ASSERT(keep[dep] && dep < i);
    }
    const auto before = Reach(deps, keep);
    const auto after = Reach(now, keep);
    for (uint32_t i = 0; i < count; ++i) {
      if (keep[i]) RC_ASSERT(before[i] == after[i]);
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace etude
