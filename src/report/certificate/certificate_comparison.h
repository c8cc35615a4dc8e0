#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/report/certificate/certificate.h"

namespace etude {

// Two certificates, put side by side: of one benchmark measured twice, on two machines for example,
// or of two benchmarks on one machine.
struct CertificateComparison {
  // A fact in which they differ.
  struct Difference {
    std::string what;
    std::string first;
    std::string second;
  };

  std::string first_path;
  std::string second_path;
  Certificate first;
  Certificate second;
  // Whether both are of one benchmark. Then `ratios` says by each metric how many times the first's
  // median the second's is, of the original and of the replay, and whether the replay's ratio is
  // the original's; else it is empty.
  bool one_benchmark = false;
  std::vector<MetricComparison> ratios;
  std::vector<Difference> differences;
  std::vector<std::string> notes;
};

// kBadInput if both are the same certificate, or of different benchmarks on different machines.
Result<CertificateComparison> CompareCertificates(const std::string& first_path, Certificate first,
                                                  const std::string& second_path,
                                                  Certificate second);

// docs/formats/certificate.md.
nlohmann::ordered_json ToJson(const CertificateComparison& comparison);
// For people.
std::string ToText(const CertificateComparison& comparison);

// "×1.25" or "∞".
std::string RatioText(double ratio);

}  // namespace etude
