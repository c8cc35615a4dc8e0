#pragma once

#include <string>
#include <vector>

#include "src/cli/app/command.h"
#include "src/report/certificate/certificate.h"

namespace etude {

struct CompareCertificatesOptions {
  std::vector<std::string> paths;    // one or two certificates
  std::vector<std::string> outputs;  // as WriteCertificate takes them
  bool json = false;
};

// Prints a certificate, or how two of them compare. kNo if a bar is not met.
Result<ExitCode> CompareCertificates(const CompareCertificatesOptions& options,
                                     const Console& console);

// A page if `path` ends in .html, else JSON.
Status WriteCertificate(const Certificate& certificate, const std::string& path);

}  // namespace etude
