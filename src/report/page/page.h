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

// Results on one page: what `etude report` writes, and what other commands write that show theirs.
// Any text in it may be hostile.
struct Page {
  // One figure, shown large.
  struct Fact {
    std::string name;
    Cell value;
    Unit unit = Unit::kText;
  };
  // Lanes of one rank for the timeline.
  struct Track {
    std::string title;
    Timeline timeline;
    Nanos clock_offset;  // subtracted from its times; 0 if clocks are not compared
  };
  struct Section {
    std::string key;  // stable: in the data, and the section's anchor
    std::string title;
    std::string about;               // what it shows, in a sentence or two
    std::vector<std::string> notes;  // what the figures leave out, a line each
    std::vector<Fact> facts;
    std::vector<Chart> charts;
    std::vector<Table> tables;
    std::vector<Track> tracks;  // the timeline, if there are any
  };
  // Text to read on demand: the method, a licence.
  struct Remark {
    std::string title;
    std::string text;
  };

  std::string title;
  std::vector<std::string> inputs;  // paths that were read
  std::optional<Health> health;     // shown first
  std::vector<Section> sections;
  std::vector<Remark> remarks;  // at the end
};

// Rows of a table that the page holds; what is left out is counted.
inline constexpr size_t kMostPageRows = 5000;

// The data that the page offers as download ({"format": "etude-report", "version": 1, …},
// docs/formats/report.md): all figures and texts, without charts and timeline, which show the same.
nlohmann::ordered_json ToJson(const Page& page);

// The whole page: one file that needs no other and asks for none. Without JavaScript it shows the
// verdict and the first rows of the tables.
std::string ToHtml(const Page& page);

// Whether this build has the library that draws charts; without it the page has tables only.
bool HasCharts();

}  // namespace etude
