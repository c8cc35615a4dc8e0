#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/analysis/health.h"
#include "src/analysis/view/timeline.h"
#include "src/report/page/chart.h"
#include "src/report/text/table.h"

namespace etude {

// Results on one HTML page, as written by `etude report` and other commands. Texts may be hostile.
struct Page {
  // A figure that is shown large.
  struct Fact {
    std::string name;
    Cell value;
    Unit unit = Unit::kText;
  };
  // Timeline lanes of one rank.
  struct Track {
    std::string title;
    Timeline timeline;
    Nanos clock_offset;  // subtracted from its times; 0 if clocks are not aligned
  };
  struct Section {
    std::string key;  // stable: key in the data, and anchor
    std::string title;
    std::string about;               // description, one or two sentences
    std::vector<std::string> notes;  // limitations of the figures, one line each
    std::vector<Fact> facts;
    std::vector<Chart> charts;
    std::vector<Table> tables;
    std::vector<Track> tracks;  // timeline, if not empty
  };
  // Additional text, collapsed by default: the method, a licence.
  struct Remark {
    std::string title;
    std::string text;
  };

  std::string title;
  std::vector<std::string> inputs;  // paths of the input files
  std::optional<Health> health;     // shown first
  std::vector<Section> sections;
  std::vector<Remark> remarks;  // at the end
};

// Maximum of table rows on a page; further rows are counted.
inline constexpr size_t kMostPageRows = 5000;

// Returns the page's downloadable data ({"format": "etude-report", "version": 1, …},
// docs/formats/report.md): all figures and texts. Charts and timeline are omitted, because they
// show the same figures.
nlohmann::ordered_json ToJson(const Page& page);

// Returns a self-contained HTML file that makes no requests. Without JavaScript it shows the
// verdict and the first rows of each table.
std::string ToHtml(const Page& page);

// Returns whether this build includes the chart library. Without it pages contain tables only.
bool HasCharts();

}  // namespace etude
