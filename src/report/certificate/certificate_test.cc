#include "src/report/certificate/certificate.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "src/report/certificate/certificate_page.h"
#include "src/report/certificate/certificate_planted.h"

namespace etude {
namespace {

std::string WrittenTo(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

std::string Complaint(const nlohmann::ordered_json& json) {
  const auto read = ParseCertificate("c", json.dump(), {});
  return read ? "" : read.error().message;
}

TEST(Certificate, IsReadBackAsItWasWritten) {
  const Certificate certificate = PlantedCertificate(100e6, 103e6);
  const std::string path = WrittenTo("etude_certificate.json", ToJson(certificate).dump());
  const auto read = ReadCertificate(path, {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(ToJson(*read), ToJson(certificate));
  EXPECT_EQ(ToText(*read), ToText(certificate));
  EXPECT_EQ(ToHtml(MakeCertificatePage(*read)), ToHtml(MakeCertificatePage(certificate)));
  std::filesystem::remove(path);
}

TEST(Certificate, SaysForWhichStepsItStands) {
  const std::string text = ToText(PlantedCertificate(100e6, 103e6));
  EXPECT_NE(text.find("steps of the program: 15 of 20 (75.0 %); recorded steps: 3 of 4 (75.0 %), "
                      "of their time 75.0 %"),
            std::string::npos);
  EXPECT_NE(text.find("9 of 10 operators, by time unknown; same kernels 90.0 %, by time unknown; "
                      "skipped 1 × my::op: no kernel"),
            std::string::npos);
}

TEST(Certificate, KeepsWhatIsUnknown) {
  nlohmann::ordered_json json = ToJson(PlantedCertificate(100e6, 103e6));
  for (const char* key : {"environment", "machine", "versions", "threads", "gaps", "measured"}) {
    json["comparison"].erase(key);
  }
  json["benchmark"] = nullptr;
  const auto read = ParseCertificate("c", json.dump(), {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(ToJson(*read)["comparison"]["environment"].is_null());
  EXPECT_TRUE(ToJson(*read)["benchmark"]["recording"].is_null());
  const std::string text = ToText(*read);
  for (const char* fact : {"recording", "step", "machine", "environment"}) {
    EXPECT_TRUE(std::regex_search(text, std::regex(fact + std::string(" +unknown\n")))) << fact;
  }
  EXPECT_NE(text.find("steps of the program: unknown"), std::string::npos);
}

TEST(Certificate, VerdictsFollowFromThePairs) {
  nlohmann::ordered_json json = ToJson(PlantedCertificate(100e6, 120e6));
  json["comparison"]["metrics"][0]["verdict"] = "met";
  const std::string path = WrittenTo("etude_certificate_edited.json", json.dump());
  const auto read = ReadCertificate(path, {});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(read.error().message,
            path + ": metric cpu_time: found figures that do not match its pairs");
  std::filesystem::remove(path);
}

TEST(Certificate, SaysWhereItIsWrong) {
  const nlohmann::ordered_json good = ToJson(PlantedCertificate(100e6, 103e6));
  EXPECT_EQ(Complaint(good), "");
  nlohmann::ordered_json json = good;
  json["version"] = 2;
  EXPECT_EQ(Complaint(json), "c: found version 2, expected at most 1");
  json = good;
  json["format"] = "etude-job";
  EXPECT_EQ(Complaint(json), "c: expected \"format\": \"etude-certificate\"");
  json = good;
  json.erase("comparison");
  EXPECT_EQ(Complaint(json), "c: certificate.comparison: found null, expected an object");
  json = good;
  json["benchmark"]["steps_seen"] = -1;
  EXPECT_EQ(Complaint(json),
            "c: certificate.benchmark.steps_seen: found -1, expected a whole number >= 0");
  json = good;
  json["comparison"]["samples"][3]["start"] = 2;
  EXPECT_EQ(Complaint(json),
            "c: certificate.comparison.samples[3].start: found 2, expected a whole number, 0 to 1");
  json = good;
  json["comparison"]["samples"][0]["original"]["cpu_time"] = "long";
  EXPECT_EQ(Complaint(json),
            "c: certificate.comparison.samples[0].original.cpu_time: found \"long\", expected a "
            "number");
  json["comparison"]["samples"][0]["original"]["cpu_time"] = 1e308;
  EXPECT_EQ(Complaint(json),
            "c: certificate.comparison.samples[0].original.cpu_time: found 1e+308, expected a "
            "figure of at most 1e18");
  json = good;
  json["comparison"]["metrics"][0]["verdict"] = "perhaps";
  EXPECT_EQ(Complaint(json),
            "c: certificate.comparison.metrics[0].verdict: found \"perhaps\", expected met, missed "
            "or undetermined");
  json = good;
  json["comparison"]["metrics"][1] = json["comparison"]["metrics"][0];
  EXPECT_EQ(Complaint(json),
            "c: certificate.comparison.metrics[1].name: found \"cpu_time\", expected each metric "
            "once");
  json = good;
  json["comparison"]["metrics"] = nlohmann::ordered_json::array();
  EXPECT_EQ(Complaint(json),
            "c: certificate.comparison.metrics: found [], expected metrics of a comparison");
  const auto cut = ParseCertificate("c", good.dump().substr(0, 500), {});
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().message, "c: not valid JSON, expected a certificate of etude compare");
}

TEST(Certificate, FoldersOfPathsAreLeftOut) {
  const auto shown = [](const char* text) { return WithoutFolders(std::string_view(text)); };
  EXPECT_EQ(shown("/home/me/env/bin/python"), "…/python");
  EXPECT_EQ(shown("--data=/home/me/set.bin"), "--data=…/set.bin");
  EXPECT_EQ(shown("-I/home/me/include/"), "-I…/include");
  EXPECT_EQ(shown("~/runs/a:/b/c"), "…/a:…/c");
  EXPECT_EQ(shown("cannot open '/x/y.txt'"), "cannot open '…/y.txt'");
  EXPECT_EQ(shown("s3://bucket/key"), "s3:…/key");
  EXPECT_EQ(shown("src/train.py --a/b 1/2 /"), "src/train.py --a/b 1/2 /");
  Certificate certificate = PlantedCertificate(1, 1);
  certificate.again = "etude compare /data/job --run";
  certificate.run.command = {"/usr/bin/python", "train.py"};
  certificate.run.notes = {"kernels in /tmp/me/cache"};
  certificate = WithoutFolders(std::move(certificate));
  EXPECT_EQ(certificate.again, "etude compare …/job --run");
  EXPECT_EQ(certificate.run.command.front(), "…/python");
  EXPECT_EQ(certificate.run.notes.front(), "kernels in …/cache");
}

TEST(Certificate, CommandsAreQuotedForAShell) {
  EXPECT_EQ(ShellLine({"python", "train.py", "--lr=0.1"}), "python train.py --lr=0.1");
  EXPECT_EQ(ShellLine({"a b", "it's", "", "$x"}), R"('a b' 'it'\''s' '' '$x')");
  EXPECT_EQ(ShellLine({"=ls", "a=b"}), "'=ls' a=b") << "zsh puts a path in its place";
}

}  // namespace
}  // namespace etude
