#include "src/report/page/page.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "src/base/version.h"
#include "src/report/page/page_assets.h"
#include "src/report/page/timeline_data.h"
#include "src/report/text/format.h"
#include "src/report/text/health_output.h"
#include "src/report/text/page_text.h"

namespace etude {
namespace {

using Json = nlohmann::ordered_json;
using page_assets::Asset;

constexpr size_t kShownRows = 12;  // rows of a table shown at first

Json TableJson(const Table& table) {
  Json columns = Json::array();
  for (const Table::Column& column : table.columns) {
    columns.push_back({{"key", column.key}, {"title", column.title}, {"unit", Name(column.unit)}});
  }
  Json rows = Json::array();
  const size_t shown = std::min(table.rows.size(), kMostPageRows);
  for (size_t i = 0; i < shown; ++i) {
    Json row = Json::array();
    for (const Cell& cell : table.rows[i]) row.push_back(ToJson(cell));
    rows.push_back(std::move(row));
  }
  return {{"key", table.key},
          {"title", table.title},
          {"columns", std::move(columns)},
          {"rows", std::move(rows)},
          {"left_out", table.left_out + table.rows.size() - shown}};
}

Json SectionJson(const Page::Section& section) {
  Json facts = Json::array();
  for (const Page::Fact& fact : section.facts) {
    facts.push_back(
        {{"name", fact.name}, {"value", ToJson(fact.value)}, {"unit", Name(fact.unit)}});
  }
  Json tables = Json::array();
  for (const Table& table : section.tables) tables.push_back(TableJson(table));
  return {{"key", section.key},
          {"title", section.title},
          {"notes", section.notes},
          {"facts", std::move(facts)},
          {"tables", std::move(tables)}};
}

// Writes the parts of a page in order.
class HtmlWriter {
 public:
  explicit HtmlWriter(const Page& page) : page_(page) {}

  std::string Write() {
    Head();
    Header();
    Verdict();
    for (const Page::Section& section : page_.sections) Section(section);
    Remarks();
    html_ += "</main>\n";
    Data("etude-data", ToJson(page_));
    Data("etude-charts", ChartsJson());
    Data("etude-timeline", TimelineOfPage());
    if (HasCharts()) Script(page_assets::kChartLibrary);
    Script(page_assets::kScript);
    html_ += "</body>\n</html>\n";
    return std::move(html_);
  }

 private:
  template <typename... Args>
  void Put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(html_), format, std::forward<Args>(args)...);
  }
  static std::string Text(std::string_view text, size_t most = 200) { return HtmlText(text, most); }

  void Head() {
    Put("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "style-src 'sha256-{}'; script-src 'sha256-{}'{}; base-uri 'none'; form-action 'none'\">\n",
        page_assets::kStyle.sha256, page_assets::kScript.sha256,
        HasCharts() ? fmt::format(" 'sha256-{}'", page_assets::kChartLibrary.sha256) : "");
    Put("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"generator\" content=\"etude {}\">\n<title>{}</title>\n<style>",
        Text(kVersion), Text(page_.title));
    html_ += page_assets::kStyle.text;
    html_ += "</style>\n</head>\n<body>\n";
  }

  void Header() {
    Put("<header>\n<div><h1>{}</h1>\n<p class=\"inputs\">", Text(page_.title));
    constexpr size_t kShownInputs = 4;
    for (size_t i = 0; i < std::min(kShownInputs, page_.inputs.size()); ++i) {
      Put("{}<code>{}</code>", i == 0 ? "" : " ", Text(page_.inputs[i], 120));
    }
    if (page_.inputs.size() > kShownInputs) {
      Put(" and {} more", page_.inputs.size() - kShownInputs);
    }
    html_ += "</p></div>\n<div class=\"controls\" id=\"controls\" hidden></div>\n</header>\n";
    html_ += "<nav aria-label=\"Sections\"><ul>";
    for (const Page::Section& section : page_.sections) {
      Put("<li><a href=\"#{}\">{}</a></li>", Text(section.key), Text(section.title));
    }
    html_ += "</ul></nav>\n<main>\n";
    html_ +=
        "<noscript><p class=\"note\">JavaScript is off: charts, the timeline and all but the first "
        "rows of long tables are hidden.</p></noscript>\n";
    if (!HasCharts()) {
      html_ +=
          "<p class=\"note\">This build of Etude has no chart library; figures are in tables "
          "only.</p>\n";
    }
  }

  void Verdict() {
    if (!page_.health) return;
    const etude::Verdict verdict = page_.health->verdict();
    const std::string_view look = verdict == etude::Verdict::kGood     ? "good"
                                  : verdict == etude::Verdict::kUsable ? "usable"
                                                                       : "bad";
    const std::string_view means =
        verdict == etude::Verdict::kGood ? "The traces are complete."
        : verdict == etude::Verdict::kUsable
            ? "Some data are missing or estimated; read figures based on them with care."
            : "So many data are missing or contradictory that the figures are misleading.";
    Put("<section id=\"verdict\" class=\"verdict {}\" aria-label=\"Verdict\">\n"
        "<h2><span class=\"badge\">{}</span> <span class=\"means\">{}</span></h2>\n",
        look, Text(Name(verdict)), means);
    Reasons(page_.health->reasons);
    html_ += "</section>\n";
  }

  void Reasons(const std::vector<Health::Reason>& reasons) {
    constexpr size_t kShownReasons = 8;
    if (reasons.empty()) return;
    html_ += "<ul>\n";
    for (size_t i = 0; i < reasons.size(); ++i) {
      if (i == kShownReasons) {
        Put("</ul>\n<details><summary>{} more reasons</summary>\n<ul>\n", reasons.size() - i);
      }
      Put("<li><b>{}</b> {}</li>\n", Text(Name(reasons[i].verdict)), Text(reasons[i].text, 600));
    }
    html_ += reasons.size() > kShownReasons ? "</ul></details>\n" : "</ul>\n";
  }

  void Section(const Page::Section& section) {
    Put("<section id=\"{0}\" data-section=\"{0}\">\n<h2>{1}</h2>\n", Text(section.key),
        Text(section.title));
    if (!section.about.empty()) Put("<p class=\"about\">{}</p>\n", Text(section.about, 1000));
    Facts(section.facts);
    if (!section.tracks.empty()) {
      html_ += "<div class=\"timeline\" data-timeline></div>\n";
    }
    Charts(section);
    bool first = true;
    for (const Table& table : section.tables) {
      if (table.rows.empty()) continue;
      TableHtml(table, first);
      first = false;
    }
    for (const std::string& note : section.notes) {
      Put("<p class=\"note\">{}</p>\n", Text(note, 1000));
    }
    html_ += "</section>\n";
  }

  void Facts(const std::vector<Page::Fact>& facts) {
    if (facts.empty()) return;
    html_ += "<dl class=\"facts\">\n";
    for (const Page::Fact& fact : facts) {
      Put("<div><dt>{}</dt><dd>{}</dd></div>\n", Text(fact.name),
          Text(ToText(fact.value, fact.unit)));
    }
    html_ += "</dl>\n";
  }

  void Charts(const Page::Section& section) {
    if (!HasCharts()) return;
    bool open = false;
    for (size_t i = 0; i < section.charts.size(); ++i) {
      const Chart& chart = section.charts[i];
      if (chart.series.empty()) continue;
      if (!open) html_ += "<div class=\"charts\">\n";
      open = true;
      Put("<figure><figcaption>{}</figcaption><div class=\"chart\" data-chart=\"{}\"></div>",
          Text(chart.title), i);
      if (!chart.note.empty()) Put("<p class=\"note\">{}</p>", Text(chart.note));
      html_ += "</figure>\n";
    }
    if (open) html_ += "</div>\n";
  }

  static std::string_view CellClass(Unit unit, std::string_view text) {
    constexpr size_t kLong = 40;
    return unit != Unit::kText ? " class=\"n\"" : text.size() > kLong ? " class=\"long\"" : "";
  }

  void TableHtml(const Table& table, bool open) {
    Put("<details class=\"table\" data-table=\"{}\"{}><summary>{} <small>{}</small></summary>\n",
        Text(table.key), open ? " open" : "", Text(table.title),
        FormatCount(table.rows.size() + table.left_out));
    html_ += "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>";
    for (const Table::Column& column : table.columns) {
      Put("<th scope=\"col\"{}>{}</th>", column.unit == Unit::kText ? "" : " class=\"n\"",
          Text(column.title));
    }
    html_ += "</tr></thead>\n<tbody>\n";
    const size_t shown = std::min(table.rows.size(), kShownRows);
    for (size_t i = 0; i < shown; ++i) {
      html_ += "<tr>";
      for (size_t j = 0; j < table.columns.size(); ++j) {
        const Unit unit = table.columns[j].unit;
        const std::string text = ToText(table.rows[i][j], unit);
        Put("<td{}>{}</td>", CellClass(unit, text), Text(text));
      }
      html_ += "</tr>\n";
    }
    html_ += "</tbody>\n</table></div>\n";
    if (shown < table.rows.size() + table.left_out) {
      Put("<p class=\"more\">{} of {} rows</p>\n", shown,
          FormatCount(table.rows.size() + table.left_out));
    }
    html_ += "</details>\n";
  }

  void Remarks() {
    html_ += "<section id=\"remarks\">\n<h2>Method</h2>\n";
    const auto remark = [&](std::string_view title, std::string_view text, std::string_view kind) {
      Put("<details class=\"{}\"><summary>{}</summary><pre class=\"remark\">", kind, Text(title));
      // Line by line: HtmlText would escape line ends.
      while (!text.empty()) {
        const size_t end = text.find('\n');
        Put("{}\n", Text(text.substr(0, end), 2000));
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
      }
      html_ += "</pre></details>\n";
    };
    for (const Page::Remark& one : page_.remarks) remark(one.title, one.text, "method");
    if (HasCharts()) {
      remark(fmt::format("Charts: {}", page_assets::kChartName), page_assets::kChartLicence,
             "licence");
    }
    Put("<p class=\"about\">Written by etude {}. This page requires no network and no other "
        "files.</p>\n</section>\n",
        Text(kVersion));
  }

  Json ChartsJson() const {
    Json json = Json::object();
    if (!HasCharts()) return json;
    for (const Page::Section& section : page_.sections) {
      Json charts = Json::array();
      for (const Chart& chart : section.charts) charts.push_back(ToJson(chart));
      if (!charts.empty()) json[section.key] = std::move(charts);
    }
    return json;
  }

  Json TimelineOfPage() const {
    for (const Page::Section& section : page_.sections) {
      if (!section.tracks.empty()) return TimelineJson(section.tracks);
    }
    return nullptr;
  }

  void Data(std::string_view id, const Json& json) {
    Put("<script type=\"application/json\" id=\"{}\">", id);
    html_ += ScriptJson(json);
    html_ += "</script>\n";
  }

  void Script(const Asset& asset) {
    html_ += "<script>";
    html_ += asset.text;
    html_ += "</script>\n";
  }

  const Page& page_;
  std::string html_;
};

}  // namespace

Json ToJson(const Page& page) {
  Json sections = Json::array();
  for (const Page::Section& section : page.sections) sections.push_back(SectionJson(section));
  Json json = {{"format", "etude-report"}, {"version", 1}, {"etude", kVersion}};
  json["title"] = page.title;
  json["inputs"] = page.inputs;
  json["trust"] = page.health ? ToJson(*page.health) : Json(nullptr);
  json["sections"] = std::move(sections);
  return json;
}

std::string ToHtml(const Page& page) { return HtmlWriter(page).Write(); }

bool HasCharts() { return !page_assets::kChartLibrary.text.empty(); }

}  // namespace etude
