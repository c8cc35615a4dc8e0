// Charts by Apache ECharts, drawn on canvases: names are painted, never parsed as HTML.

const kBarHeight = 22;  // pixels

// What means the same has the same color in all charts; the rest takes the colors in turn.
const kMeanings = {
  "compute": 1, "communication": 2, "exposed comm": 2, "copy": 7, "exposed copies": 7, "idle": 4,
  "host": 5, "host wait": 8, "kernel wait": 3, "other wait": 6, "launch delay": 3, "queue wait": 6,
  "sync return": 9, "outside": 10, "skew": 6, "transfer": 2, "original": 4, "replay": 1,
  "host time": 5, "device time": 3,
};

function seriesColor(name, index) {
  return cssColor("--series-" + (kMeanings[name] || index % 10 + 1));
}

function chartText() {
  return { color: cssColor("--text"), fontFamily: "system-ui, sans-serif", fontSize: 12 };
}

// `most`: the largest value. Bytes are marked at powers of two.
function valueAxis(unit, most) {
  return {
    type: "value",
    splitNumber: 4,
    interval: unit === "bytes" && most > 0 ? Math.pow(2, Math.ceil(Math.log2(most / 5))) : undefined,
    axisLabel: {
      color: cssColor("--muted"), hideOverlap: true,
      formatter: (value) => unit === "time" ? formatTick(value) : formatFigure(value, unit),
    },
    splitLine: { lineStyle: { color: cssColor("--line") } },
  };
}

// In text drawn on the canvas: what ECharts would take for marks of its rich text is broken up.
const plain = (text) => text.replace(/[{}|]/g, (mark) => mark === "{" ? "(" : mark === "}" ? ")" : "¦");

const kCharWidth = 6.7;  // pixels, of the text above on average
// Of a kernel's name the return type says least.
const shorten = (name, most, text = name.replace(/^void /, "")) => plain(text.length > most ? text.slice(0, most - 1) + "…" : text);

// Pixels that a legend of these names takes above a chart of this width.
function legendHeight(names, width) {
  let lines = 1;
  let used = 0;
  for (const name of names) {
    const own = 30 + kCharWidth * Math.min(name.length, 40);
    if (used > 0 && used + own > width) {
      ++lines;
      used = 0;
    }
    used += own;
  }
  return 20 * lines + 10;
}

function commonOptions(chart, width) {
  const many = chart.series.length > 1;
  const names = chart.series.map((series) => series.name);
  return {
    animation: false,
    color: names.map(seriesColor),
    textStyle: chartText(),
    aria: { enabled: true },
    legend: {
      show: many, top: 0, left: 0, itemWidth: 12, itemHeight: 12, icon: "roundRect",
      textStyle: { color: cssColor("--text"), fontSize: 12 },
      formatter: (name) => shorten(name, 40),
    },
    grid: { left: 8, right: 30, top: many ? legendHeight(names, width) : 8, bottom: 24,
      containLabel: false },
    tooltip: {
      renderMode: "richText", confine: true, backgroundColor: cssColor("--card"),
      borderColor: cssColor("--line"), textStyle: { color: cssColor("--text"), fontSize: 12 },
    },
  };
}

const kMostLabel = 40;  // characters of a bar's name

function barOptions(chart, width) {
  const options = commonOptions(chart, width);
  const longest = Math.max(...chart.categories.map((name) => Math.min(name.length, kMostLabel)));
  options.grid.left = Math.min(14 + kCharWidth * longest, width / 2);
  options.tooltip.trigger = "axis";
  options.tooltip.axisPointer = { type: "shadow" };
  options.tooltip.formatter = (items) => plain(visibleText(chart.categories[items[0].dataIndex], 80)) +
    items.filter((item) => item.value !== null && item.value !== undefined).map((item) =>
      "\n" + plain(item.seriesName) + ": " + formatFigure(item.value, chart.unit)).join("");
  options.xAxis = valueAxis(chart.unit, largest(chart));
  options.yAxis = {
    type: "category", inverse: true, data: chart.categories,
    axisTick: { show: false }, axisLine: { lineStyle: { color: cssColor("--line") } },
    axisLabel: {
      color: cssColor("--text"), interval: 0,
      formatter: (name) => shorten(name, Math.min(kMostLabel, Math.floor(options.grid.left / kCharWidth))),
    },
  };
  options.series = chart.series.map((series) => ({
    type: "bar", name: series.name, data: series.values, barMaxWidth: kBarHeight - 6,
    stack: chart.kind === "stacked" ? "all" : undefined,
  }));
  return options;
}

function stepOptions(chart, width) {
  const options = commonOptions(chart, width);
  options.grid.left = 74;
  options.tooltip.trigger = "axis";
  options.tooltip.formatter = (items) => formatTime(items[0].value[0]) + items.map((item) =>
    "\n" + plain(item.seriesName) + ": " + formatFigure(item.value[1], chart.unit)).join("");
  options.xAxis = valueAxis("time");
  options.xAxis.max = "dataMax";
  options.xAxis.axisLabel.showMaxLabel = false;
  options.xAxis.splitLine.show = false;
  options.xAxis.axisLine = { lineStyle: { color: cssColor("--line") } };
  options.yAxis = valueAxis(chart.unit, largest(chart));
  options.series = chart.series.map((series) => ({
    type: "line", step: "end", name: series.name, showSymbol: false, lineStyle: { width: 1.5 },
    areaStyle: { opacity: 0.12 }, data: series.times.map((time, i) => [time, series.values[i]]),
  }));
  return options;
}

function largest(chart) {
  return chart.series.reduce((most, series) =>
    series.values.reduce((one, value) => Math.max(one, value || 0), most), 0);
}

function chartHeight(chart, width) {
  if (chart.kind === "steps") return 260;
  const bars = chart.kind === "stacked" ? 1 : Math.max(1, chart.series.length * 0.7);
  const legend = chart.series.length > 1 ? legendHeight(chart.series.map((one) => one.name), width) : 8;
  return Math.min(760, legend + 30 + chart.categories.length * bars * kBarHeight);
}

class ChartView {
  constructor(place, chart) {
    this.place = place;
    this.chart = chart;
    this.fit();
    this.view = echarts.init(place, null, { renderer: "canvas" });
    this.draw();
  }

  fit() {
    this.width = this.place.clientWidth;
    this.place.style.height = chartHeight(this.chart, this.width) + "px";
  }

  draw() {
    const options = this.chart.kind === "steps" ? stepOptions : barOptions;
    this.view.setOption(options(this.chart, this.width), true);
  }

  resize() {
    if (this.place.clientWidth === this.width) return;
    this.fit();
    this.view.resize();
    this.draw();
  }
}

// Draws all charts; the function it returns draws them again in the colors that are now valid.
function showCharts(charts) {
  if (typeof echarts === "undefined" || !charts) return () => {};
  const views = Array.from(document.querySelectorAll("[data-chart]"), (place) =>
    new ChartView(place, charts[place.closest("[data-section]").dataset.section][place.dataset.chart]));
  window.addEventListener("resize", () => views.forEach((view) => view.resize()));
  return () => views.forEach((view) => view.draw());
}
