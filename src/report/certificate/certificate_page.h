#pragma once

#include "src/report/certificate/certificate.h"
#include "src/report/certificate/certificate_comparison.h"
#include "src/report/page/page.h"

namespace etude {

// Make the page of a certificate, or of two side by side.
Page MakeCertificatePage(const Certificate& certificate);
Page MakeCertificatePage(const CertificateComparison& comparison);

}  // namespace etude
