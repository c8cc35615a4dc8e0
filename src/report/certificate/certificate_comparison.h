#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/report/certificate/certificate.h"

namespace etude {

// Two certificates side by side: of one benchmark measured twice, for example on two machines, or
// of two benchmarks on one machine.
struct CertificateComparison {
  // A fact that differs.
  struct Difference {
    std::string what;
    std::string first;
    std::string second;
  };

  std::string first_path;
  std::string second_path;
  Certificate first;
  Certificate second;
  // Whether both are of one benchmark. If so, `ratios` contains for each metric the second median
  // divided by the first, of original and replay, and whether the ratios agree. Otherwise `ratios`
  // is empty.
  bool one_benchmark = false;
  std::vector<MetricComparison> ratios;
  std::vector<Difference> differences;
  std::vector<std::string> notes;
};

// Compares two certificates. kBadInput if both are the same, or of different benchmarks on
// different machines.
Result<CertificateComparison> CompareCertificates(const std::string& first_path, Certificate first,
                                                  const std::string& second_path,
                                                  Certificate second);

// docs/formats/certificate.md.
nlohmann::ordered_json ToJson(const CertificateComparison& comparison);
// Returns a readable comparison.
std::string ToText(const CertificateComparison& comparison);

// Returns "×1.25" or "∞".
std::string RatioText(double ratio);

}  // namespace etude
