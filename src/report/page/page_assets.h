#pragma once

#include <string_view>

// Files of src/report/assets and the chart library, embedded by the build
// (cmake/EtudePageAssets.cmake).
namespace etude::page_assets {

struct Asset {
  std::string_view text;
  std::string_view sha256;  // base64, for a Content-Security-Policy
};

extern const Asset kStyle;
extern const Asset kScript;
extern const Asset kChartLibrary;             // empty if built without
extern const std::string_view kChartName;     // "Apache ECharts 6.0.0"
extern const std::string_view kChartLicence;  // licence text of the chart library

}  // namespace etude::page_assets
