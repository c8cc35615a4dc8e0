#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/report/certificate/run_comparison.h"

namespace etude {

// Accuracy of a benchmark: a comparison with its original, its subject, and how to repeat it. File
// format: docs/formats/certificate.md.
struct Certificate {
  std::string benchmark;     // name of the capture folder
  std::string recording;     // identifier of the recording; "" if unknown
  std::string step;          // description of the recorded step, as in `etude record`
  uint64_t steps_seen = 0;   // steps of the program during recording
  uint64_t steps_alike = 0;  // steps with the signature of the recorded one
  std::string again;         // command that repeats it
  RunComparison run;
};

// Returns the certificate with folders removed from paths in its texts.
Certificate WithoutFolders(Certificate certificate);
// Replaces folders in a text: "--data=/home/me/set.bin" becomes "--data=…/set.bin". Relative paths
// are kept.
std::string WithoutFolders(std::string_view text);

// Returns "NAME=value NAME=value" or "none"; "" if unknown.
std::string VariablesText(const std::optional<NamedTexts>& variables);

// Returns the words as one shell line.
std::string ShellLine(const std::vector<std::string>& words);

nlohmann::ordered_json ToJson(const Certificate& certificate);
// Reads a certificate and checks that its figures match its pairs. kBadInput if they do not.
Result<Certificate> ReadCertificate(const std::string& path, const RunContext& context);
// Parses a certificate without that check; `path` appears in messages.
Result<Certificate> ParseCertificate(const std::string& path, std::string_view text,
                                     const RunContext& context);

// Returns a readable summary.
std::string ToText(const Certificate& certificate);

// Returns the subject and environment of the comparison, as name and text.
std::vector<std::pair<std::string, std::string>> FactsOf(const Certificate& certificate);

}  // namespace etude
