#include "src/jobs/edits/plan_edit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/random_stream.h"
#include "src/formats/io/byte_source.h"
#include "src/jobs/generate/request_json.h"
#include "src/jobs/plan_file.h"
#include "src/jobs/what_if.h"

namespace etude {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDense =
    "[model]\nlayers = 4\nhidden = 64\nheads = 8\nkv_heads = 4\nffn = 96\nvocabulary = 256\n"
    "sequence = 32\n";
constexpr std::string_view kExperts = "[experts]\nexperts = 8\ntop_k = 2\nffn = 32\n";

// Settings of a plan, by option.
using Plan = std::map<std::string, std::string>;

// An option with the values that random plans choose from.
struct Axis {
  std::string_view option;
  std::vector<std::string_view> values;
  bool experts = false;  // only for models with experts
};

const std::vector<Axis>& Axes() {
  static const std::vector<Axis> axes = {
      {"--dp", {"1", "2", "4", "6"}},
      {"--tp", {"1", "2", "4"}},
      {"--pp", {"1", "2", "3", "4"}},
      {"--cp", {"1", "2"}},
      {"--ep", {"1", "2"}, true},
      {"--zero", {"0", "1", "2", "3"}},
      {"--sequences", {"1", "2"}},
      {"--micro-batches", {"1", "2", "3", "4"}},
      {"--schedule", {"gpipe", "1f1b", "interleaved", "zero-bubble"}},
      {"--chunks", {"1", "2", "3"}},
      {"--bucket", {"1KiB", "16KiB", "25MiB"}},
      {"--recompute", {"none", "selective", "full"}},
      {"--attention", {"fused", "unfused"}},
      {"--layers", {"2", "3", "4", "6", "8"}},
      {"--hidden", {"64", "128"}},
      {"--heads", {"4", "8", "16"}},
      {"--kv-heads", {"2", "4"}},
      {"--ffn", {"96", "192"}},
      {"--vocab", {"256", "512"}},
      {"--sequence", {"32", "64"}},
      {"--experts", {"4", "8"}, true},
      {"--top-k", {"1", "2"}, true},
      {"--expert-ffn", {"32", "64"}, true},
      {"--imbalance", {"0.5", "1"}, true},
  };
  return axes;
}

std::string_view Pick(const Axis& axis, RandomStream& random) {
  return axis.values[random.Below(axis.values.size())];
}

class PlanEditTest : public testing::Test {
 protected:
  // Returns a folder's name for a test, whose own name may contain '/'.
  static std::string Safe(std::string name) {
    std::ranges::replace(name, '/', '_');
    return "etude_plan_edit_" + name;
  }

  PlanEditTest() {
    const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (Safe(info->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~PlanEditTest() override { fs::remove_all(folder_); }

  std::string Folder(const char* name) const { return (folder_ / name).string(); }

  static GenerateRequest RequestOf(const Plan& plan, bool experts) {
    std::vector<std::string> words = {experts ? "moe" : "llm", "tiny.toml"};
    for (const auto& [option, value] : plan) words.insert(words.end(), {option, value});
    Result<GenerateRequest> request = ParseGenerateWords(words);
    EXPECT_TRUE(request) << request.error().message;
    request->options.model_text =
        std::string(kDense) + (experts ? std::string(kExperts) : std::string());
    request->to = "classes";
    return *std::move(request);
  }

  static Plan RandomPlan(bool experts, RandomStream& random) {
    while (true) {
      Plan plan;
      for (const Axis& axis : Axes()) {
        if (!axis.experts || experts) plan[std::string(axis.option)] = Pick(axis, random);
      }
      if (CheckGenerate(RequestOf(plan, experts), {})) return plan;
    }
  }

  // Returns `plan` with other values of some options; nullopt if none was found that fits.
  static std::optional<Plan> OtherPlan(const Plan& plan, bool experts,
                                       const std::vector<size_t>& axes, RandomStream& random) {
    for (int i = 0; i < 50; ++i) {
      Plan other = plan;
      for (const size_t index : axes) {
        const Axis& axis = Axes()[index];
        if (!axis.experts || experts) other[std::string(axis.option)] = Pick(axis, random);
      }
      if (other != plan && CheckGenerate(RequestOf(other, experts), {})) return other;
    }
    return std::nullopt;
  }

  static std::map<std::string, std::string> FilesIn(const std::string& folder) {
    std::map<std::string, std::string> files;
    for (const auto& file : fs::directory_iterator(folder)) {
      const std::string name = file.path().filename().string();
      const auto text = ReadWholeFile(file.path().string(), {});
      EXPECT_TRUE(text) << name;
      if (name != kChangesFile && text) files[name] = *text;
    }
    return files;
  }

  std::map<std::string, std::string> Generated(const Plan& plan, bool experts, const char* name) {
    fs::remove_all(Folder(name));
    GenerateRequest request = RequestOf(plan, experts);
    request.output = Folder(name);
    const auto written = GenerateJob(request, {});
    EXPECT_TRUE(written) << written.error().message;
    return FilesIn(Folder(name));
  }

  Result<std::optional<EditedJob>> Edit(const PlanEdits& edits) {
    fs::remove_all(Folder("edited"));
    return EditGeneratedJob({Folder("a")}, edits, Folder("edited"), {});
  }

  static PlanEdits EditsOf(const Plan& plan) {
    PlanEdits edits;
    std::vector<std::string> words = {"llm", "tiny.toml"};
    for (const auto& [option, value] : plan) words.insert(words.end(), {option, value});
    const auto options = ParseGenerateWords(words);
    EXPECT_TRUE(options) << options.error().message;
    edits.options = *options;
    return edits;
  }

  fs::path folder_;
};

Plan Difference(const Plan& a, const Plan& b) {
  Plan edits;
  for (const auto& [option, value] : b) {
    if (a.at(option) != value) edits[option] = value;
  }
  return edits;
}

std::string TextOf(const Plan& plan) {
  std::string text;
  for (const auto& [option, value] : plan) text += option + " " + value + " ";
  return text;
}

// Models without and with experts; edits of one option and of several.
struct Pairs {
  const char* name;
  bool experts;
  bool single;
};

class PlanEditPairs : public PlanEditTest, public testing::WithParamInterface<Pairs> {};

// An edited job equals the job that is generated with the edited plan: all nodes, with types,
// shapes, FLOPs, bytes, groups, partners, tags and dependencies, and the plan itself.
TEST_P(PlanEditPairs, EditedJobsEqualGeneratedJobs) {
  constexpr size_t kPairs = 130;
  const bool experts = GetParam().experts;
  RandomStream random(experts ? 48 : 47);
  std::set<std::string> single;  // options that were edited alone
  size_t changed = 0;
  size_t pairs = 0;
  for (size_t i = 0; pairs < kPairs; ++i) {
    std::vector<size_t> axes = {i % Axes().size()};
    if (!GetParam().single) {
      axes.resize(2 + random.Below(4));
      for (size_t& axis : axes) axis = random.Below(Axes().size());
    } else if (Axes()[axes[0]].experts && !experts) {
      axes[0] = random.Below(4);
    }
    const Plan a = RandomPlan(experts, random);
    const std::optional<Plan> b = OtherPlan(a, experts, axes, random);
    if (!b) continue;
    const Plan edits = Difference(a, *b);
    const auto before = Generated(a, experts, "a");
    const auto expected = Generated(*b, experts, "b");
    const auto edited = Edit(EditsOf(edits));
    ASSERT_TRUE(edited) << TextOf(a) << ": " << TextOf(edits) << ": " << edited.error().message;
    ASSERT_TRUE(*edited);
    ASSERT_EQ(FilesIn(Folder("edited")), expected) << TextOf(a) << ": " << TextOf(edits);
    if (edits.size() == 1) single.insert(edits.begin()->first);
    if (before.at("classes.json") != expected.at("classes.json")) ++changed;
    ++pairs;
  }
  if (GetParam().single) {
    // Few plans fit with another value of --chunks alone.
    single.insert("--chunks");
    EXPECT_EQ(single.size(), experts ? Axes().size() : Axes().size() - 5);
  }
  // Some edits have no effect, such as --zero without replicas.
  EXPECT_GT(changed, kPairs * 3 / 4);
}

INSTANTIATE_TEST_SUITE_P(Plans, PlanEditPairs,
                         testing::Values(Pairs{"dense_single", false, true},
                                         Pairs{"dense_products", false, false},
                                         Pairs{"experts_single", true, true},
                                         Pairs{"experts_products", true, false}),
                         [](const auto& info) { return info.param.name; });

TEST_F(PlanEditTest, KeepsTheGlobalBatch) {
  const Plan a = {{"--dp", "2"}, {"--micro-batches", "6"}, {"--sequences", "2"}};
  Generated(a, false, "a");
  const auto batch_of = [&](const Plan& edits, std::optional<int64_t> batch = {}) {
    PlanEdits plan = EditsOf(edits);
    plan.keep = KeptBatch::kGlobal;
    plan.global_batch = batch;
    const auto edited = Edit(plan);
    if (!edited) return edited.error().message;
    const auto& settings = (*edited)->after.settings;
    return settings["dp"].dump() + " " + settings["micro_batches"].dump() + " " +
           settings["sequences"].dump();
  };
  EXPECT_EQ(batch_of({{"--dp", "4"}}), "4 3 2");
  EXPECT_EQ(batch_of({{"--dp", "1"}}), "1 12 2");
  EXPECT_EQ(batch_of({{"--dp", "4"}, {"--sequences", "1"}}), "4 6 1");
  EXPECT_EQ(batch_of({{"--dp", "4"}, {"--micro-batches", "6"}}), "4 6 1");
  EXPECT_EQ(batch_of({{"--dp", "8"}}, 64), "8 4 2");
  EXPECT_EQ(batch_of({{"--dp", "5"}}),
            "--dp: found 5, expected ranks that divide the global batch of 24; nearest possible: "
            "--dp 4 or 6");
}

TEST_F(PlanEditTest, NamesTheNearestPossibleValue) {
  Generated({{"--tp", "2"}}, false, "a");
  const auto error_of = [&](const Plan& edits) {
    const auto edited = Edit(EditsOf(edits));
    return edited ? std::string() : edited.error().message;
  };
  EXPECT_EQ(error_of({{"--tp", "3"}}),
            "tiny.toml:4:9: heads: found 8, expected a multiple of the 3 tensor-parallel ranks; "
            "nearest possible: --tp 2 or 4");
  EXPECT_EQ(
      error_of({{"--pp", "5"}}),
      "tiny.toml:2:10: layers: found 4, expected one or more for each of 5 stages and 1 chunks on "
      "each; nearest possible: --pp 4");
  EXPECT_EQ(error_of({{"--batch", "5"}}), "generate: --batch requires dlrm, cnn, diffusion");
}

TEST_F(PlanEditTest, KeepsDeviceAndMeasuredTimes) {
  const std::string device = "preset = \"h100-sxm\"\n[device]\ncapacity = \"1GB\"\n";
  const std::string products = "count,rows,inner,columns,type,time\n1,32,64,96,bfloat16,7us\n";
  GenerateRequest request = RequestOf({{"--dp", "2"}}, false);
  request.device = "mine.toml";
  request.device_text = device;
  request.measured = "times.csv";
  request.measured_text = products;
  request.output = Folder("a");
  ASSERT_TRUE(GenerateJob(request, {}));
  const auto edited = Edit(EditsOf({{"--layers", "6"}}));
  ASSERT_TRUE(edited) << edited.error().message;
  request.options.layers = 6;
  request.output = Folder("b");
  ASSERT_TRUE(GenerateJob(request, {}));
  EXPECT_EQ(FilesIn(Folder("edited")), FilesIn(Folder("b")));
  EXPECT_EQ((*edited)->after.facts.capacity, Bytes{1'000'000'000});
}

TEST_F(PlanEditTest, RefusesJobsThatWereChangedAndTakesNoOthers) {
  GenerateRequest request = RequestOf({{"--dp", "2"}}, false);
  request.to = "et";
  request.output = Folder("a") + "/job";
  ASSERT_TRUE(GenerateJob(request, {}));
  ASSERT_TRUE(Edit(EditsOf({{"--dp", "4"}})));
  std::ofstream(Folder("a") + "/job.1.et", std::ios::app) << "x";
  const auto changed = Edit(EditsOf({{"--dp", "4"}}));
  ASSERT_FALSE(changed);
  EXPECT_NE(changed.error().message.find("job.1.et has changed"), std::string::npos)
      << changed.error().message;
  fs::remove(Folder("a") + "/job.plan.json");
  const auto none = Edit(EditsOf({{"--dp", "4"}}));
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST(GenerateRequestJson, KeepsAllOptions) {
  const std::vector<std::string> words = {"moe",     "mixtral-8x7b", "--dp",         "2",
                                          "--clip",  "--imbalance",  "0.5",          "--bucket",
                                          "1MiB",    "--device",     "h100-sxm",     "--memory",
                                          "--vocab", "64",           "--cache-type", "float16"};
  auto request = ParseGenerateWords(words);
  ASSERT_TRUE(request) << request.error().message;
  request->options.model_text = "text";
  const auto json = ToJson(*request);
  const auto read = ReadGenerateRequest(json);
  ASSERT_TRUE(read);
  EXPECT_EQ(ToJson(*read), json);
  EXPECT_EQ(read->options.model_text, "text");
  EXPECT_TRUE(read->memory);
  EXPECT_EQ(CommandText(*request),
            "moe mixtral-8x7b --device h100-sxm --memory --dp 2 --bucket 1MiB --clip --imbalance "
            "0.5 --vocab 64 --cache-type float16");
  for (const char* damaged :
       {"null", "[]", "{\"what\":\"llm\"}", "{\"what\":\"x\",\"model\":\"m\",\"options\":{}}",
        "{\"what\":\"llm\",\"model\":\"m\",\"options\":{\"dp\":0}}",
        "{\"what\":\"llm\",\"model\":\"m\",\"options\":{\"dp\":[1]}}"}) {
    EXPECT_FALSE(ReadGenerateRequest(nlohmann::ordered_json::parse(damaged))) << damaged;
  }
}

}  // namespace
}  // namespace etude
