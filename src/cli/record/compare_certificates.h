#pragma once

#include <string>
#include <vector>

#include "src/cli/app/command.h"
#include "src/report/certificate/certificate.h"

namespace etude {

struct CompareCertificatesOptions {
  std::vector<std::string> paths;    // one or two certificates
  std::vector<std::string> outputs;  // passed to WriteCertificate
  bool json = false;
};

// Prints a certificate, or a comparison of two. kNo if a bar is not met.
Result<ExitCode> CompareCertificates(const CompareCertificatesOptions& options,
                                     const Console& console);

// Writes a page if `path` ends in .html, otherwise JSON.
Status WriteCertificate(const Certificate& certificate, const std::string& path);

}  // namespace etude
