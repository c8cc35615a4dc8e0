#include <cstdint>

#include "src/formats/fuzz_support.h"
#include "src/report/certificate/certificate_comparison.h"
#include "src/report/certificate/certificate_page.h"

// Fuzzes certificates. Skips the slow check that figures match the pairs.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto certificate =
      etude::ParseCertificate("fuzz", etude::fuzz::Bytes(data, size), etude::fuzz::SmallLimits());
  if (!certificate) return 0;
  (void)ToText(*certificate);
  (void)ToJson(*certificate).dump();
  (void)ToJson(etude::MakeCertificatePage(*certificate));
  return 0;
}
