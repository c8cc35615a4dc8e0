#include "src/formats/job/job_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "src/base/container/run_cache.h"
#include "src/formats/chakra/chakra_feeder.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/job/capture_folder.h"
#include "src/formats/read_trace.h"
#include "src/formats/test_support.h"
#include "src/trace/job/test_job.h"

namespace etude {
namespace {

using testing_job::TwoStages;

class JobFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/job_folder_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(WriteJobFolder(TwoStages(), folder_, {}).has_value());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::string& name) const { return folder_ + "/" + name; }
  std::string Fault() const {
    const auto job = ReadJobFolder(folder_, {});
    if (job) return "";
    const std::string& message = job.error().message;
    return message.starts_with(folder_) ? message.substr(folder_.size() + 1) : message;
  }
  // Returns the error of reading classes.json after a text replacement.
  std::string FaultWith(const std::string& from, const std::string& to) const {
    const std::string path = File(std::string(kClassesFile));
    const std::string text = testing_support::ReadFileBytes(path);
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    std::string changed = text;
    changed.replace(at, from.size(), to);
    EXPECT_TRUE(WriteFile(path, changed).has_value());
    const std::string fault = Fault();
    EXPECT_TRUE(WriteFile(path, text).has_value());
    return fault;
  }

  std::string folder_;
};

TEST_F(JobFolder, ComesBack) {
  const auto job = ReadJobFolder(folder_, {});
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->classes.size(), 2u);
  EXPECT_EQ(job->events.size(), 2u);
  EXPECT_EQ(job->mesh, TwoStages().mesh);
  // Writing it again gives the same files.
  const std::string again = folder_ + "/again";
  ASSERT_TRUE(WriteJobFolder(*job, again, {}).has_value());
  for (const std::string name : {"classes.json", "class.0.et", "class.1.et"}) {
    EXPECT_EQ(testing_support::ReadFileBytes(File(name)),
              testing_support::ReadFileBytes(again + "/" + name))
        << name;
  }
}

TEST_F(JobFolder, RanksAreFilesToReaders) {
  const auto listed = ListCaptureFolder(folder_, {});
  ASSERT_TRUE(listed.has_value()) << listed.error().message;
  ASSERT_EQ(listed->ranks.size(), 4u);
  EXPECT_EQ(listed->ranks[3].rank, 3);
  const auto trace = ReadTrace(listed->ranks[3].chakra, {}, {});
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  EXPECT_EQ(trace->info().rank, 3);
  EXPECT_EQ(trace->comm(NodeId(0))->src, 1);
  EXPECT_EQ(trace->name(NodeId(0)), "to 1");
  const auto none = ReadTrace(File("rank.7.et"), {}, {});
  EXPECT_EQ(none.error().message,
            File("classes.json") + ": found no trace of rank 7 in a job with traces of 4 ranks");
  EXPECT_EQ(ReadTrace(File("rank.x.et"), {}, {}).error().code, ErrorCode::kIo);
}

TEST_F(JobFolder, RanksAreFilesToTheFeeder) {
  auto feeder = chakra::Feeder::Open(File("rank.1.et"), {}, {});
  ASSERT_TRUE(feeder.has_value()) << feeder.error().message;
  std::vector<uint64_t> ids;
  while (true) {
    const auto next = feeder->Next();
    ASSERT_TRUE(next.has_value());
    if (!*next) break;
    ids.push_back((*next)->id());
    ASSERT_TRUE(feeder->Finish(ids.back()).has_value());
  }
  EXPECT_EQ(ids, (std::vector<uint64_t>{1, 2, 3}));
}

TEST_F(JobFolder, RefusesWhatDoesNotFitTogether) {
  EXPECT_EQ(FaultWith("\"etude-classes\"", "\"other\""),
            "classes.json: expected \"format\": \"etude-classes\"");
  EXPECT_EQ(FaultWith("\"size\":2", "\"size\":0"),
            "classes.json.mesh[0].size: found 0, expected a whole number >= 1");
  EXPECT_EQ(FaultWith("\"axes\":[\"dp\"]", "\"axes\":[\"ep\"]"),
            "classes.json.group_kinds[0].axes: found [\"ep\"], expected axes of the mesh");
  EXPECT_EQ(FaultWith("\"shift\":{\"pp\":1}", "\"shift\":{\"pp\":\"x\"}"),
            "classes.json.routes[0].shift.pp: found \"x\", expected a whole number from "
            "-2147483648 on");
  EXPECT_EQ(FaultWith("[[2,[2,1]]]", "[[3,[2,1]]]"),
            "classes.json.classes[1].ranks: found [[3,[2,1]]], expected ranks of the mesh");
  EXPECT_EQ(FaultWith("\"type\":\"all_reduce\"", "\"type\":\"all\""),
            "classes.json.events[1].type: found \"all\", expected message, or a collective");
  EXPECT_EQ(FaultWith("\"node\":2", "\"node\":9"),
            "class.0.et: found no communication at node 9, expected one as in classes.json");
  EXPECT_EQ(FaultWith("\"file\":\"class.0.et\"", "\"file\":\"../x.et\""),
            "classes.json.classes[0].file: found \"../x.et\", expected the name of a file");
  EXPECT_EQ(FaultWith("\"shift\":{\"pp\":1}", "\"pairs\":[[0,2]]"),
            "classes.json: communication 0: found no partner of rank 1 on route 0");
}

TEST_F(JobFolder, RefusesOtherKeys) {
  EXPECT_EQ(FaultWith("\"states_rank\"", "\"state_rank\""),
            "classes.json.classes[0].state_rank: found an unknown key; did you mean "
            "'states_rank'?");
  EXPECT_EQ(FaultWith(",\"name_step\":1", ""),
            "classes.json.group_kinds[0].name_step: found none, expected one");
  EXPECT_EQ(FaultWith("\"facts\": []", "\"fact\": []"),
            "classes.json.fact: found an unknown key; did you mean 'facts'?");
  EXPECT_EQ(FaultWith("{\"class\":0,", "{\"class\":0,\"x\":1,"),
            "classes.json.events[0].parts[0].x: found an unknown key");
}

TEST_F(JobFolder, RefusesAKeyTwice) {
  EXPECT_EQ(FaultWith("\"states_rank\"", "\"file\":\"class.0.et\",\"states_rank\""),
            "classes.json.classes[0].file: found the key twice, expected it once");
  EXPECT_EQ(FaultWith("{\"class\":1,", "{\"class\":1,\"class\":0,"),
            "classes.json.events[0].parts[1].class: found the key twice, expected it once");
  EXPECT_EQ(FaultWith("\"facts\": []", "\"facts\": [],\"mesh\": []"),
            "classes.json.mesh: found the key twice, expected it once");
}

TEST_F(JobFolder, RefusesGroupsAndRoutesThatTellNothing) {
  const std::string kind = "{\"axes\":[\"dp\"],\"first_name\":7,\"name_step\":1}";
  EXPECT_EQ(FaultWith(kind, "{\"listed\":[[0,1],[1,2,3]],\"names\":[\"7\",\"8\"]}"),
            "classes.json.group_kinds[0].listed: found [[0,1],[1,2,3]], expected rank 1 in one "
            "group");
  EXPECT_EQ(FaultWith(kind, "{\"axes\":[\"dp\"],\"names\":[\"7\"]}"),
            "classes.json.group_kinds[0].names: found [\"7\"], expected 2 names, one for each "
            "group");
  EXPECT_EQ(FaultWith("\"shift\":{\"pp\":1}", "\"shift\":{\"pp\":0}"),
            "classes.json.routes[0].shift: found {\"pp\":0}, expected a route to another rank");
  EXPECT_EQ(FaultWith("\"shift\":{\"pp\":1}", "\"shift\":{}"),
            "classes.json.routes[0].shift: found {}, expected a route to another rank");
  EXPECT_EQ(FaultWith("\"shift\":{\"pp\":1}", "\"shift\":{\"pp\":2}"),
            "classes.json.routes[0].shift: found {\"pp\":2}, expected a route to another rank");
}

// The traces of the ranks do not list the members, so a name must identify the group.
TEST_F(JobFolder, RefusesNamesThatRepeat) {
  Job job = TwoStages();
  for (RankClass& one : job.classes) one.groups[0].listed = false;
  ASSERT_TRUE(WriteJobFolder(job, folder_, {}).has_value());
  EXPECT_EQ(Fault(), "");
  EXPECT_EQ(FaultWith("\"name_step\":1", "\"name_step\":0"),
            "classes.json.classes[0].groups[0].kind: found 0, expected a kind of groups with "
            "different names");
  EXPECT_EQ(FaultWith("\"first_name\":7,\"name_step\":1", "\"names\":[\"7\",\"7\"]"),
            "classes.json.classes[0].groups[0].kind: found 0, expected a kind of groups with "
            "different names");
}

// Left by an interrupted run.
TEST_F(JobFolder, RefusesClassesWithoutTheirJob) {
  EXPECT_TRUE(ReadTrace(File("class.0.et"), {}, {}).has_value());
  std::filesystem::remove(File(std::string(kClassesFile)));
  const auto trace = ReadTrace(File("class.0.et"), {}, {});
  ASSERT_FALSE(trace.has_value());
  EXPECT_EQ(trace.error().message, File("class.0.et") +
                                       ": found the trace of a rank class, expected classes.json "
                                       "in the same folder; writing the job did not complete");
}

TEST_F(JobFolder, RefusesDamagedEvents) {
  const std::string path = File(std::string(kClassesFile));
  const std::string text = testing_support::ReadFileBytes(path);
  const size_t first = text.find("    {\"type\":\"message\"");
  const size_t second = text.find("    {\"type\":\"all_reduce\"");
  const size_t end = text.find("\n", second);
  ASSERT_NE(end, std::string::npos);
  const std::string message = text.substr(first, second - first - 2);
  const std::string reduce = text.substr(second, end - second);
  const std::string both = message + ",\n" + reduce;
  EXPECT_EQ(FaultWith("\"bytes\":1024", "\"bytes\":-1024"),
            "classes.json.events[1].bytes: found -1024, expected a whole number >= 0");
  EXPECT_EQ(FaultWith("\"tag\":5", "\"tag\":\"x\""),
            "classes.json.events[0].tag: found \"x\", expected a whole number");
  EXPECT_EQ(FaultWith("\"group\":0", "\"group\":5"),
            "classes.json.events[1].group: found 5, expected one of the kinds of groups");
  EXPECT_EQ(FaultWith(reduce, "{\"type\":\"all_reduce\",\"group\":5,\"parts\":[]}"),
            "classes.json.events[1].group: found 5, expected one of the kinds of groups");
  EXPECT_EQ(FaultWith(reduce, "{\"type\":\"all_reduce\",\"group\":0,\"parts\":[]}"),
            "classes.json.events[1].parts: found [], expected at least one part");
  EXPECT_EQ(FaultWith("\"bytes\":1024", "\"bytes\":1025"),
            "class.0.et: found 1024 bytes at node 2, for which classes.json has 1025");
  EXPECT_EQ(FaultWith("\"tag\":5", "\"tag\":6"),
            "class.0.et: found tag 5 at node 1, for which classes.json has 6");
  EXPECT_EQ(FaultWith("\"type\":\"all_reduce\"", "\"type\":\"all_gather\""),
            "class.0.et: found all_reduce at node 2, for which classes.json has all_gather");
  EXPECT_EQ(FaultWith("\"bytes\":1024", "\"bytes\":1024,\"root\":1"),
            "class.0.et: found no root at node 2, for which classes.json has 1");
  EXPECT_EQ(FaultWith("\"type\":\"all_reduce\"", "\"type\":\"message\""),
            "class.0.et: found a collective at node 2, for which classes.json has a message");
  EXPECT_EQ(FaultWith(both, reduce + ",\n" + message),
            "classes.json: class 0: node 3 of communication 0 waits for communication 1, expected "
            "those that come before");
  EXPECT_EQ(FaultWith(both, message),
            "classes.json: class 0: found node 3, a collective, in no communication");
  EXPECT_EQ(FaultWith(both, both + ",\n" + reduce),
            "classes.json: communication 2: found node 3 of class 0, which is part of "
            "communication 1 already");
}

// Also noticed when reading one rank.
TEST_F(JobFolder, RefusesARankInTwoClassesAndAMissingClass) {
  const std::string path = File(std::string(kClassesFile));
  const std::string text = testing_support::ReadFileBytes(path);
  std::string changed = text;
  changed.replace(changed.find("[[2,[2,1]]]"), 11, "[[1,[2,1]]]");
  ASSERT_TRUE(WriteFile(path, changed).has_value());
  const auto twice = ReadTrace(File("rank.1.et"), {}, {});
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().message, path + ": found rank 1 in two classes, expected it in one");
  ASSERT_TRUE(WriteFile(path, text).has_value());
  std::filesystem::remove(File("class.1.et"));
  const auto missing = ReadTrace(File("rank.3.et"), {}, {});
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(missing.error().message,
            File("class.1.et") + ": missing file (listed in classes.json)");
}

// Each number of a communication is checked against the programs.
TEST_F(JobFolder, RefusesAnyOtherDigitInEvents) {
  const std::string path = File(std::string(kClassesFile));
  const std::string text = testing_support::ReadFileBytes(path);
  const size_t end = text.find("\"facts\"");
  size_t digits = 0;
  for (size_t at = text.find("\"events\""); at < end; ++at) {
    if (text[at] < '0' || text[at] > '9') continue;
    ++digits;
    std::string changed = text;
    changed[at] = text[at] == '9' ? '1' : static_cast<char>(text[at] + 1);
    ASSERT_TRUE(WriteFile(path, changed).has_value());
    const auto job = ReadJobFolder(folder_, {});
    ASSERT_FALSE(job.has_value()) << changed.substr(at - 20, 40);
    EXPECT_EQ(job.error().code, ErrorCode::kBadInput);
  }
  EXPECT_EQ(digits, 17u);
}

// Any bytes in classes.json give a job that can be written, or an error.
TEST_F(JobFolder, TakesAnyBytes) {
  const std::string path = File(std::string(kClassesFile));
  const std::string text = testing_support::ReadFileBytes(path);
  size_t refused = 0;
  for (size_t at = 0; at < text.size(); at += 7) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 7)));
    ASSERT_TRUE(WriteFile(path, changed).has_value());
    const auto job = ReadJobFolder(folder_, {});
    if (!job) {
      ++refused;
      continue;
    }
    EXPECT_TRUE(CheckJob(*job).has_value());
    for (const RankClass& one : job->classes) {
      EXPECT_TRUE(TraceOfRank(*job, one.ranks.At(0)).has_value());
    }
  }
  EXPECT_GT(refused, text.size() / 14);
}

// Data read for one rank is reused for the others.
TEST_F(JobFolder, IsReadOnceInARun) {
  RunCache cache;
  RunContext context;
  context.cache = &cache;
  const auto first = ReadTrace(File("rank.0.et"), {}, context);
  ASSERT_TRUE(first.has_value());
  std::filesystem::remove(File("class.0.et"));
  ASSERT_TRUE(WriteFile(File(std::string(kClassesFile)), "{}").has_value());
  const auto second = ReadTrace(File("rank.1.et"), {}, context);
  ASSERT_TRUE(second.has_value()) << second.error().message;
  EXPECT_EQ(second->info().rank, 1);
  EXPECT_FALSE(ReadTrace(File("rank.1.et"), {}, {}).has_value());
}

TEST_F(JobFolder, HoldsPackedClasses) {
  const std::string packed = folder_ + "/packed";
  ASSERT_TRUE(WriteJobFolder(TwoStages(), packed, {}, ClassFiles::kPacked).has_value());
  const auto job = ReadJobFolder(packed, {});
  ASSERT_TRUE(job.has_value()) << job.error().message;
  for (const int64_t rank : {0, 1, 2, 3}) {
    EXPECT_EQ(ReadJobRankBytes({.folder = packed, .rank = rank}, {}).value(),
              ReadJobRankBytes({.folder = folder_, .rank = rank}, {}).value())
        << rank;
  }
  EXPECT_TRUE(chakra::Feeder::Open(packed + "/rank.2.et", {}, {}).has_value());
  // Written as Chakra again, it is unchanged.
  const std::string again = folder_ + "/again";
  ASSERT_TRUE(WriteJobFolder(*job, again, {}).has_value());
  EXPECT_EQ(testing_support::ReadFileBytes(again + "/classes.json"),
            testing_support::ReadFileBytes(File("classes.json")));
}

// A job that replaces one with more classes, or with other files, leaves nothing of it; files that
// are not classes stay.
TEST_F(JobFolder, ReplacesAJob) {
  ASSERT_TRUE(WriteFile(File("class.9.et"), "mine").has_value());
  ASSERT_TRUE(WriteJobFolder(TwoStages(), folder_, {}, ClassFiles::kPacked).has_value());
  const auto files = [&] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  };
  EXPECT_EQ(files(), (std::set<std::string>{"class.0.packed", "class.1.packed", "class.9.et",
                                            "classes.json"}));
  EXPECT_EQ(Fault(), "");
}

TEST_F(JobFolder, SeesFilesOfAnotherJob) {
  std::filesystem::copy_file(File("class.1.et"), File("class.0.et"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(Fault().find(
                "class.0.et: found content that differs from the content listed in classes.json"),
            std::string::npos)
      << Fault();
}

}  // namespace
}  // namespace etude
