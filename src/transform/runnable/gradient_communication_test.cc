#include "src/transform/runnable/gradient_communication.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/trace/trace_builder.h"

namespace etude {
namespace {

constexpr int64_t kGradientBytes = 4096;  // of a gradient

// A step on a device: two gradients arrive one after another, each by a kernel on stream 7, and an
// optimizer follows. Each is reduced on stream 20, during the pass or, in reverse order, after it.
// With `is_read`, the pass goes on with the first one.
class ReducedStep {
 public:
  explicit ReducedStep(bool is_late, bool is_read = false) {
    builder_.info().SetFormat(TraceFormat::kLinked);
    main_ = builder_.InternLane({.thread = builder_.Intern("main")});
    compute_ = builder_.InternLane({.device = 0, .stream = 7});
    communication_ = builder_.InternLane({.device = 0, .stream = 20});
    for (const int64_t storage : {1, 2}) {
      const uint64_t call =
          Host("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 10, 0);
      now_ = now_ - 10;
      Kernel("mm", Host("aten::mm", 2, call, is_read && storage == 2 ? 1 : 0));
      Host("torch::autograd::AccumulateGrad", 2, call, storage);
      if (!is_late) Reduce(storage, call);
      now_ += 6 - (is_late ? 0 : 2);
    }
    for (const int64_t storage : {2, 1}) {
      if (is_late) Reduce(storage, 0);
    }
    Kernel("add", Host("aten::add_", 2, 0));
  }

  Trace Read() { return builder_.Finish().value(); }

 private:
  // Adds a host node and returns its id.
  uint64_t Host(std::string_view name, int64_t micros, uint64_t parent, int64_t storage = 0) {
    NodeRow row{.source_id = ++last_, .place = Place::kHost};
    row.kind = name.starts_with("aten") || name.starts_with("c10d") ? NodeKind::kOperator
                                                                    : NodeKind::kLabel;
    row.name = builder_.Intern(name);
    row.lane = main_;
    row.parent = parent;
    row.start = Nanos{now_ * 1000};
    row.duration = Nanos{micros * 1000};
    now_ += micros;
    if (storage != 0) {
      const StringId type = builder_.Intern("Tensor(float)");
      const auto memory = static_cast<uint64_t>(storage);
      const std::vector values = {Value::Tensor(
          type,
          builder_.InternTensor({.tensor = memory,
                                 .storage = memory,
                                 .numel = kGradientBytes / 4,
                                 .element_bytes = 4,
                                 .type = type,
                                 .shape = builder_.InternInts(std::vector{kGradientBytes / 4})}))};
      row.inputs = builder_.InternValues(values);
    }
    builder_.AddNode(row);
    return last_;
  }

  NodeId Device(std::string_view name, NodeKind kind, LaneId lane, uint64_t launcher,
                uint64_t before) {
    NodeRow row{.source_id = ++last_, .kind = kind, .place = Place::kDevice};
    row.name = builder_.Intern(name);
    row.lane = lane;
    row.parent = launcher;
    row.start = Nanos{(100 + static_cast<int64_t>(last_) * 10) * 1000};
    row.duration = Nanos{10'000};
    const NodeId node = builder_.AddNode(row);
    if (before != 0) builder_.AddDep(node, before, DepKind::kSync);
    return node;
  }
  void Kernel(std::string_view name, uint64_t launcher) {
    Device(name, NodeKind::kKernel, compute_, launcher, kernel_);
    kernel_ = last_;
  }
  void Reduce(int64_t storage, uint64_t parent) {
    const uint64_t call = Host("c10d::allreduce_", 2, parent, storage);
    const NodeId node = Device("all_reduce" + std::to_string(storage), NodeKind::kCollective,
                               communication_, call, reduced_ == 0 ? kernel_ : reduced_);
    builder_.SetComm(node, {.type = CollectiveType::kAllReduce,
                            .dtype = DType::kFloat32,
                            .bytes = Bytes{kGradientBytes}});
    reduced_ = last_;
  }

  TraceBuilder builder_;
  LaneId main_;
  LaneId compute_;
  LaneId communication_;
  uint64_t last_ = 0;
  uint64_t kernel_ = 0;
  uint64_t reduced_ = 0;
  int64_t now_ = 0;
};

// Returns the names of what each reduction waits for: "all_reduce1: mm".
std::vector<std::string> WaitsOfReductions(const RunnableRank& rank) {
  std::vector<std::string> waits;
  std::vector<std::string> names;  // by node, kernels with their number
  int kernels = 0;
  for (uint32_t i = 0; i < rank.nodes.size(); ++i) {
    const std::string& name = rank.names[rank.nodes[i].name];
    const bool is_kernel = rank.nodes[i].kind == NodeKind::kKernel;
    names.push_back(is_kernel ? name + std::to_string(++kernels) : name);
    if (rank.nodes[i].kind != NodeKind::kCollective) continue;
    std::string& line = waits.emplace_back(name + ":");
    for (const uint32_t dep : rank.DepsOf(i)) line += " " + names[dep];
  }
  return waits;
}

TEST(GradientCommunication, IsThatDuringThePass) {
  const Trace trace = ReducedStep(/*is_late=*/false).Read();
  RunnableRank rank = MakeRunnableRank(trace, {}).value();
  const auto found = FindGradientCommunication(trace, rank).value();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].collectives.size(), 2u);
  EXPECT_TRUE(found[0].late.empty());
  EXPECT_EQ(RunBesideBackward(trace, rank), 0u) << "as recorded";
  EXPECT_EQ(WaitsOfReductions(rank),
            (std::vector<std::string>{"all_reduce1: mm1", "all_reduce2: all_reduce1"}));
  EXPECT_EQ(WaitForBackward(trace, rank), 2u);
  EXPECT_EQ(WaitsOfReductions(rank),
            (std::vector<std::string>{"all_reduce1: mm2", "all_reduce2: all_reduce1"}));
}

TEST(GradientCommunication, LeavesOutThatOfActivations) {
  const Trace plain = ReducedStep(/*is_late=*/false).Read();
  EXPECT_FALSE(FindActivationReduction(plain, MakeRunnableRank(plain, {}).value()));

  const Trace trace = ReducedStep(/*is_late=*/false, /*is_read=*/true).Read();
  const RunnableRank rank = MakeRunnableRank(trace, {}).value();
  const auto name_of = [&](uint32_t node) { return rank.names[rank.nodes[node].name]; };
  const auto activations = FindActivationReduction(trace, rank);
  ASSERT_TRUE(activations);
  EXPECT_EQ(name_of(*activations), "all_reduce1");
  const auto found = FindGradientCommunication(trace, rank).value();
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].collectives.size(), 1u);
  EXPECT_EQ(name_of(found[0].collectives[0]), "all_reduce2");
}

TEST(GradientCommunication, IsThatOfGradientsAfterThePass) {
  const Trace trace = ReducedStep(/*is_late=*/true).Read();
  RunnableRank rank = MakeRunnableRank(trace, {}).value();
  const auto found = FindGradientCommunication(trace, rank).value();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].collectives.empty());
  ASSERT_EQ(found[0].late.size(), 2u);
  EXPECT_EQ(WaitForBackward(trace, rank), 0u) << "as recorded";
  EXPECT_EQ(WaitsOfReductions(rank),
            (std::vector<std::string>{"all_reduce2: mm2", "all_reduce1: all_reduce2"}));
  EXPECT_EQ(RunBesideBackward(trace, rank), 2u);
  EXPECT_EQ(WaitsOfReductions(rank),
            (std::vector<std::string>{"all_reduce1: mm1", "all_reduce2: mm2 all_reduce1"}));
}

TEST(GradientCommunication, IsCompressed) {
  const Trace trace = ReducedStep(/*is_late=*/false).Read();
  RunnableRank rank = MakeRunnableRank(trace, {}).value();
  // 4096 bytes at 1 GB/s.
  const auto compression = GradientCompression::Parse("3,1GB/s").value();
  EXPECT_EQ(CompressGradients(trace, compression, rank), 2u);
  std::vector<std::string> text;
  for (const RunnableNode& node : rank.nodes) {
    if (node.kind == NodeKind::kKernel) continue;
    text.push_back(rank.names[node.name] + " " +
                   std::to_string(node.kind == NodeKind::kCollective ? node.bytes_in.value()
                                                                     : node.duration->count));
  }
  EXPECT_EQ(text,
            (std::vector<std::string>{"compress 4096", "all_reduce1 1366", "decompress 4096",
                                      "compress 4096", "all_reduce2 1366", "decompress 4096"}));
}

TEST(GradientCommunication, IsMissingWithoutReductions) {
  const Trace trace = TraceBuilder().Finish().value();
  RunnableRank rank = MakeRunnableRank(trace, {}).value();
  EXPECT_FALSE(WaitForBackward(trace, rank));
  EXPECT_FALSE(RunBesideBackward(trace, rank));
  EXPECT_FALSE(CompressGradients(trace, {.factor = 2}, rank));
  EXPECT_FALSE(Rebucket(trace, {}, rank));
}

}  // namespace
}  // namespace etude
