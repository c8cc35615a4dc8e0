#include "src/report/certificate/certificate_comparison.h"

#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "src/report/certificate/certificate_page.h"
#include "src/report/certificate/certificate_planted.h"

namespace etude {
namespace {

// Makes a certificate of a machine with another processor.
Certificate OnOtherMachine(double original, double replay) {
  Certificate certificate = PlantedCertificate(original, replay);
  certificate.run.machine.cpu = "faster processor";
  certificate.run.versions["torch"] = "2.10";
  return certificate;
}

Certificate OtherBenchmark(double original, double replay) {
  Certificate certificate = PlantedCertificate(original, replay);
  certificate.benchmark = "other";
  certificate.recording = "7777-1";
  return certificate;
}

const MetricComparison& RatioOf(const CertificateComparison& comparison, StepMetric metric) {
  return *std::ranges::find(comparison.ratios, metric, &MetricComparison::metric);
}

bool Differs(const CertificateComparison& comparison, const std::string& what) {
  return std::ranges::count(comparison.differences, what,
                            &CertificateComparison::Difference::what) != 0;
}

TEST(CertificateComparison, RatioOfTwoMachinesThatTheReplayTells) {
  const auto found =
      CompareCertificates("a", PlantedCertificate(100e6, 103e6), "b", OnOtherMachine(50e6, 51e6));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->one_benchmark);
  const MetricComparison& cpu = RatioOf(*found, StepMetric::kCpuTime);
  EXPECT_DOUBLE_EQ(cpu.figures->original->value, 0.5);
  EXPECT_DOUBLE_EQ(cpu.figures->replay->value, 51.0 / 103);
  EXPECT_NEAR(cpu.figures->error->value, 51.0 / 103 / 0.5 - 1, 1e-12);
  EXPECT_EQ(cpu.verdict, BarVerdict::kMet);
  // Zero on both sides, on both machines.
  EXPECT_EQ(RatioOf(*found, StepMetric::kPageFaults).verdict, BarVerdict::kMet);
  EXPECT_EQ(RatioOf(*found, StepMetric::kWallTime).reason, "nobody told");
  EXPECT_TRUE(AllMet(found->ratios));
  EXPECT_TRUE(Differs(*found, "processor") && Differs(*found, "torch"));
  EXPECT_FALSE(Differs(*found, "benchmark") || Differs(*found, "threads"));
  const std::string text = ToText(*found);
  EXPECT_NE(text.find("×0.500 [×0.500, ×0.500]"), std::string::npos) << text;
  EXPECT_NE(text.find("all bars are met"), std::string::npos);
  EXPECT_EQ(MakeCertificatePage(*found).sections.front().charts.size(), 2u);
  EXPECT_EQ(ToJson(*found)["all_met"], true);
}

TEST(CertificateComparison, RatioOfTwoMachinesThatTheReplayMisses) {
  const auto found =
      CompareCertificates("a", PlantedCertificate(100e6, 100e6), "b", OnOtherMachine(50e6, 60e6));
  ASSERT_TRUE(found);
  EXPECT_EQ(RatioOf(*found, StepMetric::kCpuTime).verdict, BarVerdict::kMissed);
  EXPECT_FALSE(AllMet(found->ratios));
  EXPECT_NE(ToText(*found).find("NOT all bars are met: CPU time missed"), std::string::npos);
}

TEST(CertificateComparison, FewPairsOnOneMachineDecideNothing) {
  Certificate few = PlantedCertificate(50e6, 50e6, 9);
  few.run.gaps = "none";
  few.run.environment.reset();
  const auto found = CompareCertificates("a", PlantedCertificate(100e6, 100e6), "b", few);
  ASSERT_TRUE(found);
  EXPECT_EQ(RatioOf(*found, StepMetric::kCpuTime).verdict, BarVerdict::kUndetermined);
  EXPECT_TRUE(Differs(*found, "gaps") && Differs(*found, "environment"));
  EXPECT_EQ(found->notes,
            std::vector<std::string>{
                "only one of the replays includes the program's gaps, so they are not comparable"});
}

TEST(CertificateComparison, TheNarrowerBarCounts) {
  Certificate second = OnOtherMachine(50e6, 51e6);
  second.run.metrics.front().bar = 0.01;
  const auto found = CompareCertificates("a", PlantedCertificate(100e6, 100e6), "b", second);
  ASSERT_TRUE(found);
  EXPECT_EQ(RatioOf(*found, StepMetric::kCpuTime).verdict, BarVerdict::kMissed);
  EXPECT_EQ(found->notes.front(), "the bars of CPU time differ; the stricter one is used");
}

TEST(CertificateComparison, TwoBenchmarksOfOneMachineStandSideBySide) {
  const auto found =
      CompareCertificates("a", PlantedCertificate(100e6, 103e6), "b", OtherBenchmark(7e6, 9e6));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->one_benchmark);
  EXPECT_TRUE(found->ratios.empty());
  EXPECT_TRUE(ToJson(*found)["all_met"].is_null());
  const std::string text = ToText(*found);
  EXPECT_NE(text.find("100.000 ms [100.000 ms, 100.000 ms]"), std::string::npos) << text;
  EXPECT_NE(text.find("second: NOT all bars are met: CPU time missed"), std::string::npos) << text;
  EXPECT_EQ(MakeCertificatePage(*found).sections.size(), 7u);
}

TEST(CertificateComparison, WhatHasNothingInCommonIsRefused) {
  Certificate other = OtherBenchmark(7e6, 9e6);
  other.run.machine.cpu = "another processor";
  const auto found = CompareCertificates("a", PlantedCertificate(1e6, 1e6), "b", other);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(found.error().message,
            "a and b: found different benchmarks (job rank 0, recording 18c0-4f2a, other rank 0, "
            "recording 7777-1) on different machines (processor: processor, another processor); "
            "expected the same benchmark or the same machine");
  const auto same =
      CompareCertificates("a", PlantedCertificate(1e6, 1e6), "b", PlantedCertificate(1e6, 1e6));
  ASSERT_FALSE(same);
  EXPECT_EQ(same.error().message, "b: the same certificate as a, expected another one");
}

TEST(CertificateComparison, AnUnknownRecordingIsNobodysTwin) {
  Certificate first = PlantedCertificate(1e6, 1e6), second = PlantedCertificate(2e6, 2e6);
  first.recording = second.recording = "";
  const auto found = CompareCertificates("a", std::move(first), "b", std::move(second));
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->one_benchmark);
  EXPECT_EQ(found->notes.front(),
            "it is unknown whether both are of the same recording; treated as two benchmarks");
}

}  // namespace
}  // namespace etude
