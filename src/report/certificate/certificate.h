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

// How close a benchmark came to its original: a comparison, what it was of, and how to make it
// again. docs/formats/certificate.md describes the file.
struct Certificate {
  std::string benchmark;     // the name of the capture's folder
  std::string recording;     // which recording it is; "" if unknown
  std::string step;          // what the recorded step does, as `etude record` describes it
  uint64_t steps_seen = 0;   // of the program, when it was recorded
  uint64_t steps_alike = 0;  // of these, with the signature of the recorded one
  std::string again;         // the command that makes it again
  RunComparison run;
};

// The certificate without the folders of paths in its texts.
Certificate WithoutFolders(Certificate certificate);
// "--data=/home/me/set.bin" as "--data=…/set.bin"; paths that do not begin at a root stay.
std::string WithoutFolders(std::string_view text);

// "NAME=value NAME=value", "none"; "" if unknown.
std::string VariablesText(const std::optional<NamedTexts>& variables);

// As one line for a shell.
std::string ShellLine(const std::vector<std::string>& words);

nlohmann::ordered_json ToJson(const Certificate& certificate);
// Reads one and checks that its figures are those of its pairs. kBadInput if not.
Result<Certificate> ReadCertificate(const std::string& path, const RunContext& context);
// Takes it from its text, without that check; `path` appears in messages.
Result<Certificate> ParseCertificate(const std::string& path, std::string_view text,
                                     const RunContext& context);

// For people.
std::string ToText(const Certificate& certificate);

// What was compared and on what, a name and a text each.
std::vector<std::pair<std::string, std::string>> FactsOf(const Certificate& certificate);

}  // namespace etude
