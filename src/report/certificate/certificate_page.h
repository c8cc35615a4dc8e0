#pragma once

#include "src/report/certificate/certificate.h"
#include "src/report/certificate/certificate_comparison.h"
#include "src/report/page/page.h"

namespace etude {

// A certificate, and two of them side by side, as pages.
Page MakeCertificatePage(const Certificate& certificate);
Page MakeCertificatePage(const CertificateComparison& comparison);

}  // namespace etude
