// Charts by Apache ECharts, drawn on canvases: names are painted, never parsed as HTML.

const kBarHeight = 22;  // pixels

function seriesColors() {
  return [1, 2, 3, 4, 5, 6, 7, 8].map((i) => cssColor("--series-" + i));
}

function chartText() {
  return { color: cssColor("--text"), fontFamily: "system-ui, sans-serif", fontSize: 12 };
}

function valueAxis(unit) {
  return {
    type: "value",
    axisLabel: {
      color: cssColor("--muted"), hideOverlap: true,
      formatter: (value) => unit === "time" ? formatTick(value) : formatFigure(value, unit),
    },
    splitLine: { lineStyle: { color: cssColor("--line") } },
  };
}

// In text drawn on the canvas: what ECharts would take for marks of its rich text is broken up.
const plain = (text) => text.replace(/[{}|]/g, (mark) => mark === "{" ? "(" : mark === "}" ? ")" : "¦");

function commonOptions(chart) {
  const many = chart.series.length > 1;
  return {
    animation: false,
    color: seriesColors(),
    textStyle: chartText(),
    aria: { enabled: true },
    legend: {
      show: many, type: "scroll", top: 0, left: 0, itemWidth: 12, itemHeight: 12, icon: "roundRect",
      textStyle: { color: cssColor("--text"), fontSize: 12 },
      pageTextStyle: { color: cssColor("--text") }, pageIconColor: cssColor("--accent"),
      formatter: (name) => plain(name.length > 40 ? name.slice(0, 40) + "…" : name),
    },
    grid: { left: 8, right: 24, top: many ? 30 : 8, bottom: 4, containLabel: true },
    tooltip: {
      renderMode: "richText", confine: true, backgroundColor: cssColor("--card"),
      borderColor: cssColor("--line"), textStyle: { color: cssColor("--text"), fontSize: 12 },
    },
  };
}

function barOptions(chart) {
  const options = commonOptions(chart);
  options.tooltip.trigger = "axis";
  options.tooltip.axisPointer = { type: "shadow" };
  options.tooltip.formatter = (items) => plain(visibleText(chart.categories[items[0].dataIndex], 80)) +
    items.filter((item) => item.value !== null && item.value !== undefined).map((item) =>
      "\n" + plain(item.seriesName) + ": " + formatFigure(item.value, chart.unit)).join("");
  options.xAxis = valueAxis(chart.unit);
  options.yAxis = {
    type: "category", inverse: true, data: chart.categories,
    axisTick: { show: false }, axisLine: { lineStyle: { color: cssColor("--line") } },
    axisLabel: {
      color: cssColor("--text"), width: 230, overflow: "truncate", ellipsis: "…",
      formatter: (name) => plain(name),
    },
  };
  options.series = chart.series.map((series) => ({
    type: "bar", name: series.name, data: series.values, barMaxWidth: kBarHeight - 6,
    stack: chart.kind === "stacked" ? "all" : undefined,
  }));
  return options;
}

function stepOptions(chart) {
  const options = commonOptions(chart);
  options.tooltip.trigger = "axis";
  options.tooltip.formatter = (items) => formatTime(items[0].value[0]) + items.map((item) =>
    "\n" + plain(item.seriesName) + ": " + formatFigure(item.value[1], chart.unit)).join("");
  options.xAxis = valueAxis("time");
  options.xAxis.max = "dataMax";
  options.xAxis.splitLine.show = false;
  options.xAxis.axisLine = { lineStyle: { color: cssColor("--line") } };
  options.yAxis = valueAxis(chart.unit);
  options.series = chart.series.map((series) => ({
    type: "line", step: "end", name: series.name, showSymbol: false, lineStyle: { width: 1.5 },
    areaStyle: { opacity: 0.12 }, data: series.times.map((time, i) => [time, series.values[i]]),
  }));
  return options;
}

function chartHeight(chart) {
  if (chart.kind === "steps") return 260;
  const bars = chart.kind === "stacked" ? 1 : Math.max(1, chart.series.length * 0.7);
  return Math.min(720, 64 + chart.categories.length * bars * kBarHeight);
}

// Draws all charts; the function it returns draws them again in the colors that are now valid.
function showCharts(charts) {
  if (typeof echarts === "undefined" || !charts) return () => {};
  const drawn = [];
  for (const place of document.querySelectorAll("[data-chart]")) {
    const chart = charts[place.closest("[data-section]").dataset.section][place.dataset.chart];
    place.style.height = chartHeight(chart) + "px";
    const view = echarts.init(place, null, { renderer: "canvas" });
    drawn.push([view, chart]);
  }
  const draw = () => {
    for (const [view, chart] of drawn) {
      view.setOption(chart.kind === "steps" ? stepOptions(chart) : barOptions(chart), true);
    }
  };
  draw();
  new ResizeObserver(() => drawn.forEach(([view]) => view.resize())).observe(document.body);
  window.addEventListener("resize", () => drawn.forEach(([view]) => view.resize()));
  return draw;
}
