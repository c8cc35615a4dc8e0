#include "src/synth/job/encode_job.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/formats/job/capture_folder.h"
#include "src/formats/job/job_folder.h"
#include "src/formats/read_trace.h"
#include "src/formats/test_support.h"
#include "src/synth/pattern/microbench.h"
#include "src/synth/transformer/transformer_job.h"
#include "src/trace/job/expect_layers.h"
#include "src/trace/job/packed_trace.h"
#include "src/trace/same_trace.h"
#include "src/transform/read_job.h"

namespace etude {
namespace {

using testing_same::SameTrace;

std::vector<Trace> MakeBench(const MicrobenchOptions& options) {
  std::vector<Trace> traces;
  for (int64_t rank = 0; rank < options.ranks; ++rank) {
    traces.push_back(MakeMicrobench(options, rank).value());
  }
  return traces;
}

Result<Job> Encode(const std::vector<Trace>& traces, const EncodeJobOptions& options = {}) {
  std::vector<RankOfJob> ranks;
  for (size_t i = 0; i < traces.size(); ++i) {
    ranks.push_back({.rank = static_cast<int64_t>(i), .trace = &traces[i]});
  }
  return EncodeJob(ranks, options);
}

void ExpectRanks(const Job& job, const std::vector<Trace>& traces, const std::string& what) {
  ASSERT_EQ(job.rank_count(), static_cast<int64_t>(traces.size())) << what;
  for (size_t i = 0; i < traces.size(); ++i) {
    const auto trace = TraceOfRank(job, static_cast<int64_t>(i));
    ASSERT_TRUE(trace.has_value()) << what << ": " << trace.error().message;
    EXPECT_TRUE(SameTrace(*trace, traces[i])) << what << ", rank " << i;
  }
}

TEST(EncodeJob, GivesGeneratedJobsBack) {
  std::map<Pattern, size_t> classes;
  for (const PatternInfo& info : Patterns()) {
    for (const int64_t ranks : {2, 4, 6}) {
      for (const bool native : {false, true}) {
        const MicrobenchOptions options = {
            .pattern = info.pattern, .ranks = ranks, .count = 3, .native = native};
        const std::vector<Trace> traces = MakeBench(options);
        const std::string what = std::string(info.name) + " of " + std::to_string(ranks);
        const auto job = Encode(traces);
        ASSERT_TRUE(job.has_value()) << what << ": " << job.error().message;
        ExpectRanks(*job, traces, what);
        if (!native) classes[info.pattern] = job->classes.size();
      }
    }
  }
  EXPECT_EQ(classes[Pattern::kAllReduce], 1u);
  EXPECT_EQ(classes[Pattern::kRing], 1u);
  EXPECT_EQ(classes[Pattern::kPairs], 2u) << "one begins, the other answers";
  EXPECT_EQ(classes[Pattern::kGather], 2u);
}

TEST(EncodeJob, FindsTheMeshOfGroups) {
  const std::vector<Trace> traces =
      MakeBench({.pattern = Pattern::kAllReduce, .ranks = 12, .group_size = 3});
  const Job job = Encode(traces).value();
  ASSERT_EQ(job.classes.size(), 1u);
  ASSERT_EQ(job.mesh.axes().size(), 2u);
  EXPECT_EQ(job.mesh.axes()[0].size, 3);
  EXPECT_EQ(job.mesh.axes()[1].size, 4);
  ASSERT_EQ(job.group_kinds.size(), 1u);
  EXPECT_EQ(job.group_kinds[0].axes, AxisSet{1});
  EXPECT_TRUE(job.group_kinds[0].names.empty()) << "1, 2, 3 … are not listed";
  EXPECT_EQ(job.group_kinds[0].first_name, 1);
  ASSERT_EQ(job.events.size(), 1u);
  EXPECT_EQ(job.events[0].type, CollectiveType::kAllReduce);
  EXPECT_EQ(job.events[0].bytes, Bytes{1 << 20});
  const Comm& comm = *job.classes[0].program.comm(job.events[0].parts[0].node);
  EXPECT_EQ(comm.bytes, std::nullopt) << "the event says it";
}

TEST(EncodeJob, TakesTheMeshItIsGiven) {
  const std::vector<Trace> traces = MakeBench({.pattern = Pattern::kRing, .ranks = 4});
  const Mesh mesh = Mesh::Make({{"pp", 4}}).value();
  const Job job = Encode(traces, {.mesh = mesh}).value();
  EXPECT_EQ(job.mesh, mesh);
  ASSERT_EQ(job.routes.size(), 1u);
  EXPECT_EQ(job.routes[0].shift, (std::vector<int64_t>{1}));
  const auto small = Encode(traces, {.mesh = Mesh::Make({{"pp", 3}}).value()});
  EXPECT_EQ(small.error().message, "found rank 3, expected ranks of a mesh of 3");
}

TEST(EncodeJob, TakesOneRankOfMany) {
  const Trace trace = MakeMicrobench({.pattern = Pattern::kRing, .ranks = 8}, 3).value();
  const RankOfJob rank = {.rank = 3, .trace = &trace};
  const Job job = EncodeJob({&rank, 1}).value();
  EXPECT_EQ(job.mesh.size(), 8);
  EXPECT_TRUE(SameTrace(TraceOfRank(job, 3).value(), trace));
}

// Ranks that all-reduce in the order of their names: "ab" first a, then b.
Trace Reduces(const std::string& order, int64_t bytes = 8) {
  TraceBuilder builder;
  for (const char name : order) {
    NodeRow row;
    row.source_id = builder.node_count() + 10;
    row.kind = NodeKind::kCollective;
    const size_t before = builder.node_count();
    const NodeId node = builder.AddNode(row);
    builder.SetComm(node, {.type = CollectiveType::kAllReduce,
                           .group = builder.Intern(std::string(1, name)),
                           .bytes = Bytes{bytes}});
    if (before > 0) builder.AddDep(node, NodeId::FromIndex(before - 1), DepKind::kControl);
  }
  return builder.Finish().value();
}

// Two ranks of a group of four: unknown members are not invented.
TEST(EncodeJob, LeavesMembersUnknown) {
  std::vector<Trace> traces =
      MakeBench({.pattern = Pattern::kOverlap, .ranks = 8, .count = 1, .group_size = 4});
  traces.resize(2);
  const auto unknown = Encode(traces);
  ASSERT_TRUE(unknown.has_value()) << unknown.error().message;
  ASSERT_EQ(unknown->group_kinds.size(), 1u);
  EXPECT_TRUE(unknown->group_kinds[0].callers_only);
  ExpectRanks(*unknown, traces, "unknown members");
  const auto known = Encode(traces, {.groups = {{"1", {0, 1, 2, 3}}}});
  ASSERT_TRUE(known.has_value()) << known.error().message;
  ASSERT_EQ(known->group_kinds.size(), 1u);
  const GroupKind& kind = known->group_kinds[0];
  EXPECT_FALSE(kind.callers_only);
  EXPECT_EQ(kind.RanksOf(known->mesh, 0), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(kind.NameOf(0), "1");
  EXPECT_EQ(kind.NameOf(1), "");
}

TEST(EncodeJob, RefusesAGroupWithoutItsCaller) {
  const std::vector<Trace> traces =
      MakeBench({.pattern = Pattern::kOverlap, .ranks = 4, .count = 1, .group_size = 4});
  const auto job = Encode(traces, {.groups = {{"1", {0, 1, 3}}}});
  ASSERT_FALSE(job.has_value());
  EXPECT_EQ(job.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(job.error().message, "group '1': found rank 2, which is not among its ranks (0-1, 3)");
}

TEST(EncodeJob, RefusesCommunicationsThatDoNotMeet) {
  std::vector<Trace> traces;
  traces.push_back(Reduces("a", 8));
  traces.push_back(Reduces("a", 16));
  EXPECT_EQ(
      Encode(traces).error().message,
      "rank 0 waits in all_reduce #0 of group 'a' (8 bytes) (node 10); rank 1 is in all_reduce #0 "
      "of group 'a' (16 bytes) (node 10); expected communications that match on all ranks");
}

TEST(EncodeJob, RefusesCommunicationsThatWaitForEachOther) {
  std::vector<Trace> traces;
  traces.push_back(Reduces("ab"));
  traces.push_back(Reduces("ba"));
  EXPECT_EQ(
      Encode(traces).error().message,
      "found a deadlock of 2 communications: rank 0 in all_reduce #0 of group 'a' (node 10), rank "
      "0 in all_reduce #0 of group 'b' (node 11); expected an order in which all can complete");
}

TEST(EncodeJob, RefusesARankTwice) {
  const Trace trace = Reduces("a");
  const std::vector<RankOfJob> ranks(2, RankOfJob{.rank = 1, .trace = &trace});
  EXPECT_EQ(EncodeJob(ranks).error().message, "found rank 1 twice, expected each rank once");
}

// A chain through ranks that all do the same, one after the other, is not a cycle.
TEST(EncodeJob, OrdersAPipeline) {
  std::vector<Trace> traces;
  for (int64_t rank = 0; rank < 5; ++rank) {
    TraceBuilder builder;
    NodeId before;
    const auto add = [&](NodeKind kind, Comm comm) {
      NodeRow row;
      row.source_id = builder.node_count();
      row.kind = kind;
      const NodeId node = builder.AddNode(row);
      builder.SetComm(node, comm);
      if (before) builder.AddDep(node, before, DepKind::kData);
      before = node;
    };
    if (rank > 0) add(NodeKind::kRecv, {.src = rank - 1});
    if (rank < 4) add(NodeKind::kSend, {.dst = rank + 1});
    traces.push_back(builder.Finish().value());
  }
  const auto job = Encode(traces);
  ASSERT_TRUE(job.has_value()) << job.error().message;
  ExpectRanks(*job, traces, "pipeline");
}

// Stages of a pipeline, generated rank by rank: each is one class, and the job equals the one that
// was made without expanding it.
TEST(EncodeJob, FindsTheStagesOfAPipeline) {
  const TransformerModel model = {.layers = 8,
                                  .hidden = 64,
                                  .heads = 8,
                                  .kv_heads = 4,
                                  .head_size = 8,
                                  .ffn = 192,
                                  .vocabulary = 320,
                                  .sequence = 32};
  const PipelinePlan interleaved = {
      .schedule = PipelineSchedule::kInterleaved, .stages = 4, .micro_batches = 4, .chunks = 2};
  for (const PipelinePlan& pipeline :
       {PipelinePlan{.stages = 4, .micro_batches = 3}, interleaved}) {
    const TransformerPlan plan{
        .layer = {.tensor = 2, .sequence_parallel = true}, .data = 2, .pipeline = pipeline};
    const StepJob made = MakeTransformerJob(model, plan).value();
    std::vector<Trace> traces;
    for (int64_t rank = 0; rank < made.ranks(); ++rank) {
      traces.push_back(made.TraceOf(rank).value());
    }
    EncodeJobOptions options;
    for (const auto& [id, ranks] : made.Groups()) options.groups[std::to_string(id)] = ranks;
    const auto job = Encode(traces, options);
    ASSERT_TRUE(job.has_value()) << job.error().message;
    EXPECT_EQ(job->classes.size(), 4u);
    ExpectRanks(*job, traces, "pipeline");
    const Job whole = made.AsJob().value();
    EXPECT_EQ(job->events.size(), whole.events.size());
    for (const RankClass& one : job->classes) {
      EXPECT_EQ(one.ranks.Ranks(), whole.classes[*whole.ClassOf(one.ranks.At(0))].ranks.Ranks());
    }
  }
}

// ---- Every trace and job at hand ------------------------------------------------------------

using Folders = std::set<std::string>;

Folders FoldersIn(std::initializer_list<const char*> parts) {
  Folders folders;
  for (const char* part : parts) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(part)) {
      if (entry.is_regular_file()) folders.insert(entry.path().parent_path().string());
    }
  }
  return folders;
}
Folders OwnFolders() {
  return FoldersIn({ETUDE_TEST_DATA "/cpu", ETUDE_TEST_DATA "/gpu/graph", ETUDE_UNPACKED_DATA});
}
Folders SharedFolders() {
  return FoldersIn({ETUDE_SHARED_DATA "/chakra", ETUDE_SHARED_DATA "/gpu"});
}

// Returns the number of classes of each job, by its folder.
std::map<std::string, size_t> ExpectJobsBack(const Folders& folders) {
  std::map<std::string, size_t> classes;
  for (const std::string& folder : folders) {
    const auto inputs = FindRanks(std::span(&folder, 1), {});
    if (!inputs || inputs->size() < 2 || !inputs->front().rank) continue;
    std::vector<Trace> traces;
    for (const RankInput& input : *inputs) traces.push_back(ReadRank(input, {}, {}).value());
    const auto job = Encode(traces);
    const bool trap = folder.find("trap_") != std::string::npos;
    if (!job) {
      EXPECT_TRUE(trap) << folder << ": " << job.error().message;
      EXPECT_NE(job.error().message.find("expected"), std::string::npos);
      continue;
    }
    ExpectRanks(*job, traces, folder);
    const std::string name = std::filesystem::path(folder).filename().string();
    classes[folder] = job->classes.size();
    if (folder.find("/stage/") != std::string::npos) {
      const size_t pp = name.find("_pp");
      const size_t stages = pp == std::string::npos ? 1 : static_cast<size_t>(name[pp + 3] - '0');
      EXPECT_EQ(job->classes.size(), stages) << name;
    }
    // Chakra's traces read from disk equal the written ones.
    if (traces.front().info().format != TraceFormat::kChakra) continue;
    const std::string written = testing::TempDir() + "/encoded_job";
    const ClassFiles files = classes.size() % 2 == 0 ? ClassFiles::kPacked : ClassFiles::kChakra;
    EXPECT_TRUE(WriteJobFolder(*job, written, {}, files).has_value());
    const auto read = ReadJobFolder(written, {});
    EXPECT_TRUE(read.has_value()) << folder << ": " << read.error().message;
    if (!read) continue;
    ExpectRanks(*read, traces, folder + " from disk");
    std::filesystem::remove_all(written);
  }
  return classes;
}

TEST(EncodeJob, GivesEveryJobBack) {
  std::map<std::string, size_t> classes = ExpectJobsBack(OwnFolders());
  EXPECT_GT(classes.size(), 100u);
  for (const auto& [name, count] : {std::pair("gpt_dp2_tp2_pp2_mb2_l4", 2u),
                                    {"llama_dp4_tp4_pp2_l2", 2u},
                                    {"gpt_pp4_mb4_l4", 4u}}) {
    EXPECT_EQ(classes[testing_support::DataPath(std::string("stage/") + name)], count) << name;
  }
}

// One rank of each job, whose others are above, and of each kind of file some large ones; returns
// how many. The largest take minutes under sanitizers and have nothing that others do not have.
size_t ExpectTracesBack(const Folders& folders) {
  constexpr uintmax_t kMostBytes = 300'000;  // compressed
  size_t traces = 0;
  for (const std::string& folder : folders) {
    // Simulators' inputs are the jobs above.
    if (folder.find("/astra-sim") != std::string::npos) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string path = entry.path().string();
      if (path.find(".et") == std::string::npos && path.find(".json") == std::string::npos)
        continue;
      const int64_t rank = RankFromName(entry.path().filename().string()).value_or(0);
      if (rank != 0 || entry.file_size() > kMostBytes) continue;
      const auto trace = ReadTrace(path, {}, {});
      if (!trace) continue;
      const RankOfJob only = {.rank = rank, .trace = &*trace};
      const auto job = EncodeJob({&only, 1});
      if (!job) {
        EXPECT_FALSE(trace->is_acyclic()) << path << ": " << job.error().message;
        continue;
      }
      ++traces;
      EXPECT_TRUE(SameTrace(TraceOfRank(*job, rank).value(), *trace)) << path;
      const PackedTrace packed = PackedTrace::Pack(*trace).value();
      EXPECT_TRUE(SameTrace(packed.Unpack().value(), *trace)) << path;
      const auto read = PackedTrace::FromBytes(packed.ToBytes());
      EXPECT_TRUE(read.has_value()) << path << ": " << read.error().message;
      if (!read) continue;
      EXPECT_TRUE(SameTrace(read->Unpack().value(), *trace)) << path;
      testing_layers::ExpectLayers(*trace, path);
    }
  }
  return traces;
}

TEST(EncodeJob, GivesEveryTraceBack) { EXPECT_GT(ExpectTracesBack(OwnFolders()), 50u); }

TEST(EncodeJob, GivesEverySharedJobAndTraceBack) {
  ETUDE_NEED_SHARED_DATA();
  EXPECT_GT(ExpectJobsBack(SharedFolders()).size(), 0u);
  EXPECT_GT(ExpectTracesBack(SharedFolders()), 30u);
}

}  // namespace
}  // namespace etude
