#include "src/cli/record/compare_certificates.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "src/formats/io/atomic_file.h"
#include "src/formats/job/capture_folder.h"
#include "src/jobs/file_endings.h"
#include "src/report/certificate/certificate_comparison.h"
#include "src/report/certificate/certificate_page.h"
#include "src/report/text/json_output.h"

namespace etude {
namespace {

template <typename Document>
Status WriteDocument(const Document& document, const std::string& path) {
  const std::string ending = FormatEnding(path);
  const bool page = ending == ".html" || ending == ".htm";
  return WriteFile(path,
                   page ? ToHtml(MakeCertificatePage(document)) : JsonText(ToJson(document), 1));
}

template <typename Document>
Status Show(const Document& document, const CompareCertificatesOptions& options,
            const Console& console) {
  bool printed = false;
  for (const std::string& path : options.outputs) {
    ETUDE_RETURN_IF_ERROR(WriteDocument(document, path));
    printed = printed || path == "-";
  }
  if (!printed) console.Print(options.json ? JsonText(ToJson(document), 1) : ToText(document));
  return {};
}

Result<Certificate> Read(const std::string& path, const Console& console) {
  if (IsFolder(path)) {
    return BadInput(
        path + ": found a folder, expected a certificate; --run makes a certificate of a capture");
  }
  Result<Certificate> certificate = ReadCertificate(path, console.context());
  std::error_code error;
  if (certificate || path == "-" || std::filesystem::exists(path, error)) return certificate;
  return MakeError(certificate.error().code,
                   certificate.error().message + "; --run makes a certificate of a capture");
}

}  // namespace

Status WriteCertificate(const Certificate& certificate, const std::string& path) {
  return WriteDocument(certificate, path);
}

Result<ExitCode> CompareCertificates(const CompareCertificatesOptions& options,
                                     const Console& console) {
  const std::vector<std::string>& paths = options.paths;
  if (paths.size() > 2) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("compare: found {} certificates, expected one or two", paths.size()));
  }
  if (paths.size() == 2 && paths.front() == "-" && paths.back() == "-") {
    return MakeError(ErrorCode::kUsage, "compare: standard input was given twice");
  }
  for (const std::string& output : options.outputs) {
    ETUDE_RETURN_IF_ERROR(CheckOutput(output, {paths.front(), paths.back()}));
    if (output == "-" && options.json) {
      return MakeError(ErrorCode::kUsage, "compare: -o - and --json both write to standard output");
    }
  }
  ETUDE_ASSIGN_OR_RETURN(Certificate first, Read(paths.front(), console));
  if (paths.size() == 1) {
    ETUDE_RETURN_IF_ERROR(Show(first, options, console));
    return first.run.all_met() ? ExitCode::kOk : ExitCode::kNo;
  }
  ETUDE_ASSIGN_OR_RETURN(Certificate second, Read(paths.back(), console));
  ETUDE_ASSIGN_OR_RETURN(
      const CertificateComparison comparison,
      CompareCertificates(paths.front(), std::move(first), paths.back(), std::move(second)));
  ETUDE_RETURN_IF_ERROR(Show(comparison, options, console));
  return AllMet(comparison.ratios) ? ExitCode::kOk : ExitCode::kNo;
}

}  // namespace etude
