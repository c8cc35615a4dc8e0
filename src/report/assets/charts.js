// Charts by Apache ECharts, drawn on canvases: names are painted, never parsed as HTML.

const kBarHeight = 22;  // pixels
const kLineHeight = 14;
const kWideParallel = 600;

// Colors by meaning, the same in all charts. Other names get the remaining colors in turn.
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

// `most`: maximum value; `room`: pixels. Bytes have ticks at powers of two.
function valueAxis(unit, most, room = 400) {
  const splits = Math.max(1, Math.min(4, Math.floor(room / 80)));
  const interval = unit === "bytes" && most > 0
    ? Math.pow(2, Math.ceil(Math.log2(most / (splits + 1)))) : undefined;
  return {
    type: "value",
    splitNumber: splits,
    interval,
    max: interval && Math.ceil(most / interval) * interval,
    axisLabel: {
      color: cssColor("--muted"), hideOverlap: true,
      formatter: (value) => unit === "time" ? formatTick(value) : formatFigure(value, unit),
    },
    splitLine: { lineStyle: { color: cssColor("--line") } },
  };
}

// Replaces characters that ECharts would parse as rich text.
const plain = (text) => text.replace(/[{}|]/g, (mark) => mark === "{" ? "(" : mark === "}" ? ")" : "¦");

const kCharWidth = 6.7;  // average, in pixels

// Same as BareFunctionName in src/base/text/function_name.h.
function bareFunctionName(name) {
  let end = name.length;
  for (let i = name.length - 1, depth = 0; name.endsWith(")") && i > 0; --i) {
    if (name[i] === ")") ++depth;
    if (name[i] !== "(" || --depth !== 0) continue;
    if (/[\w>]/.test(name[i - 1])) end = i;
    break;
  }
  if (end === name.length && !/^void |</.test(name)) return name;
  return name.slice(0, end).replace(/^void /, "").replaceAll("(anonymous namespace)::", "")
    .replace(/\b[A-Za-z_]\w*::(?=\w)/g, "");
}

// Shortens a name: functions keep the beginning of their own name, others keep beginning and end,
// which distinguishes paths.
function shorten(name, most) {
  const points = Array.from(name);
  if (points.length <= most) return plain(points.join(""));
  const bare = bareFunctionName(name);
  if (bare !== name) {
    const own = Array.from(bare);
    return plain(own.length <= most ? bare : own.slice(0, most - 1).join("") + "…");
  }
  const tail = Math.floor((most - 1) / 3);
  return plain(points.slice(0, most - 1 - tail).join("") + "…" + points.slice(points.length - tail).join(""));
}

// Breaks the whole name into lines.
function wrap(name, length) {
  const points = Array.from(name);
  const lines = [];
  for (let i = 0; i < points.length; i += length) lines.push(points.slice(i, i + length).join(""));
  return plain(lines.join("\n"));
}

// Returns the height in pixels of a legend with these names above a chart of this width.
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
      borderColor: cssColor("--line"), textStyle: { ...chartText(), lineHeight: 18 },
    },
  };
}

const kMostLabel = 42;  // characters per line beside a bar

// Returns the space for names beside the bars: pixels, and characters per line. If one line is too
// short, all bars get two.
function labelRoom(chart, width) {
  const longest = Math.max(...chart.categories.map((name) => name.length));
  const left = Math.min(14 + kCharWidth * Math.min(longest, kMostLabel), width * 0.45);
  const most = Math.max(4, Math.floor((left - 13) / kCharWidth));
  return { left, most, lines: longest > most ? 2 : 1 };
}

// Returns a name in at most two lines, broken at a word end if possible.
function labelText(name, most) {
  const text = shorten(name, Math.floor(1.8 * most));  // less than fits, to avoid breaking words
  if (text.length <= most) return text;
  let at = most;
  while (at > most / 2 && !/[\s:_,<.(/·…]/.test(text[at - 1])) --at;
  if (at <= most / 2 || text.length - at > most) at = most;
  return text.slice(0, at) + "\n" + text.slice(at);
}

// Returns the options of named rows over a value axis, without series.
function rowOptions(chart, width) {
  const options = commonOptions(chart, width);
  const { left, most } = labelRoom(chart, width);
  options.grid.left = left;
  const lineOfTip = Math.max(20, Math.min(72, Math.floor((width - 60) / kCharWidth)));
  options.tooltip.trigger = "axis";
  options.tooltip.axisPointer = { type: "shadow" };
  options.tooltip.formatter = (items) => wrap(chart.categories[items[0].dataIndex], lineOfTip) +
    items.filter((item) => item.value !== null && item.value !== undefined).map((item) =>
      "\n" + plain(item.seriesName) + ": " + formatFigure(item.value, chart.unit)).join("");
  options.xAxis = valueAxis(chart.unit, largest(chart), width - options.grid.left);
  options.yAxis = {
    type: "category", triggerEvent: true, inverse: true, data: chart.categories,
    axisTick: { show: false }, axisLine: { lineStyle: { color: cssColor("--line") } },
    axisLabel: {
      color: cssColor("--text"), interval: 0,
      lineHeight: kLineHeight, formatter: (name) => labelText(name, most),
    },
  };
  return options;
}

function barOptions(chart, width) {
  const options = rowOptions(chart, width);
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
  options.xAxis = valueAxis("time", 0, width - options.grid.left);
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

// Returns the range of drawn intervals. Much wider intervals are cut at the edge, so that bars
// remain visible.
function intervalReach(series) {
  const size = (value) => Math.abs(value || 0);
  const bar = Math.max(0, ...series.bars.map(size));
  const most = Math.max(...[series.values, series.lows, series.highs].map((list) => Math.max(...list.map(size))));
  return 1.1 * Math.max(bar, bar > 0 ? Math.min(most, 3 * bar) : most) || 1;
}

function intervalOptions(chart, width) {
  const options = rowOptions(chart, width);
  const series = chart.series[0];
  const reach = intervalReach(series);
  const percent = (value, open) => value === null ? open : formatFigure(value, chart.unit);
  options.tooltip.formatter = (items) => {
    const i = items[0].dataIndex;
    const bar = series.bars[i] === null ? "" : "\nbar: ±" + percent(series.bars[i]);
    return plain(chart.categories[i]) + "\n" + percent(series.values[i]) + " [" +
      percent(series.lows[i], "−∞") + ", " + percent(series.highs[i], "∞") + "]" + bar;
  };
  Object.assign(options.xAxis, { min: -reach, max: reach });
  Object.assign(options.xAxis.axisLabel, { showMinLabel: false, showMaxLabel: false });
  const draw = (params, api) => {
    const i = api.value(0);
    const x = (value, open) =>
      api.coord([Math.max(-reach, Math.min(reach, value === null ? open : value)), i])[0];
    const y = api.coord([0, i])[1];
    const box = (from, to, half, fill, opacity) =>
      ({ type: "rect", shape: { x: from, y: y - half, width: to - from, height: 2 * half },
        style: { fill, opacity } });
    const bar = series.bars[i];
    const [from, to] = [x(series.lows[i], -reach), x(series.highs[i], reach)];
    const [low, high] = [series.lows[i] ?? -Infinity, series.highs[i] ?? Infinity];
    const color = cssColor(bar === null ? "--series-1" : low > bar || high < -bar ? "--bad"
      : low >= -bar && high <= bar ? "--good" : "--usable");
    const children = bar === null ? [] : [box(x(-bar), x(bar), 8, cssColor("--good"), 0.25)];
    children.push(box(from, to, 1.5, color, 1));
    if (from === to && Math.abs(series.values[i]) > reach) {  // entirely beyond the edge
      const tip = Math.sign(series.values[i]) * 9;
      children.push({ type: "polygon", style: { fill: color },
        shape: { points: [[from, y], [from - tip, y - 5], [from - tip, y + 5]] } });
    }
    if (Math.abs(series.values[i]) <= reach) {
      children.push({ type: "circle", shape: { cx: x(series.values[i]), cy: y, r: 4 }, style: { fill: color } });
    }
    return { type: "group", children };
  };
  options.series = [{
    type: "custom", name: series.name, renderItem: draw, encode: { x: 1, y: 0 },
    data: series.values.map((value, i) => [i, Math.max(-reach, Math.min(reach, value))]),
  }];
  return options;
}

function pointOptions(chart, width) {
  const options = commonOptions(chart, width);
  options.grid.left = 74;
  options.tooltip.trigger = "item";
  options.tooltip.formatter = (item) => formatFigure(item.value[0], "count") + "\n" +
    plain(item.seriesName) + ": " + formatFigure(item.value[1], chart.unit);
  options.xAxis = valueAxis("count", 0, width - options.grid.left);
  Object.assign(options.xAxis, { min: 0, minInterval: 1 });
  options.yAxis = valueAxis(chart.unit, largest(chart));
  options.yAxis.scale = true;
  options.yAxis.axisLabel.formatter = (value) =>
    chart.unit === "time" ? formatTick(value) : formatFigure(value, chart.unit);
  options.series = chart.series.map((series) => ({
    type: "scatter", name: series.name, symbolSize: 6,
    data: series.times.map((time, i) => [time, series.values[i]]),
  }));
  return options;
}

function scatterOptions(chart, width) {
  const options = commonOptions(chart, width);
  Object.assign(options.grid, { left: 74, bottom: 44 });
  options.tooltip.trigger = "item";
  options.tooltip.formatter = (item) => wrap(item.value[2], 60) + "\n" + formatFigure(item.value[1], chart.unit) +
    "\n" + plain(chart.over_title) + ": " + formatFigure(item.value[0], chart.over_unit);
  options.xAxis = valueAxis(chart.over_unit, 0, width - options.grid.left);
  Object.assign(options.xAxis, { min: 0, name: plain(chart.over_title), nameLocation: "middle", nameGap: 26,
    nameTextStyle: { color: cssColor("--muted") } });
  options.yAxis = valueAxis(chart.unit, largest(chart));
  options.yAxis.min = 0;
  if (chart.is_log) {
    for (const axis of [options.xAxis, options.yAxis]) Object.assign(axis, { type: "log", min: undefined, max: undefined });
  }
  options.series = chart.series.map((series) => ({
    type: series.is_line ? "line" : "scatter", name: series.name, symbolSize: series.is_line ? 0 : 7,
    data: series.values.map((value, i) => [series.overs[i], value, series.names[i]]),
  }));
  return options;
}

// Returns the range of a parallel axis: whole powers of ten, or 0 to a round number.
function parallelRange(chart, dim) {
  const axis = chart.axes[dim];
  const values = chart.series.map((series) => series.values[dim]).filter((value) => value !== null);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const power = (base, value, round) => Math.pow(base, round(Math.log(value) / Math.log(base) + 1e-9 * (round === Math.floor ? 1 : -1)));
  if (axis.is_log) return { min: power(10, least, Math.floor), max: power(10, most, Math.ceil) };
  const size = Math.max(most, -least);
  if (!(size > 0)) return {};
  const unit = axis.unit === "bytes" ? power(2, size, Math.ceil) : power(10, size, Math.floor);
  const reach = unit * [1, 2, 5, 10].find((factor) => factor * unit >= size * (1 - 1e-9));
  const interval = reach / (axis.unit === "bytes" ? 4 : 5);
  return { min: least < 0 ? -reach : 0, max: most > 0 ? reach : 0, interval };
}

// Returns "20 M" for the label of a large number on an axis.
function parallelTick(value, unit) {
  if (unit === "time") return formatTick(value);
  const plainNumber = unit === "number" || unit === "count";
  const step = plainNumber ? Math.min(4, Math.floor(Math.log10(Math.abs(value) || 1) / 3 + 1e-9)) : 0;
  return step < 1 ? formatFigure(value, unit) : value / Math.pow(1000, step) + " " + "kMGT"[step - 1];
}

// Axes side by side; on narrow pages one below the other.
function parallelOptions(chart, width) {
  const options = commonOptions(chart, width);
  const wide = width >= kWideParallel;
  const lineOfName = Math.max(6, Math.floor(width / chart.axes.length / kCharWidth) - 2);
  const top = options.grid.top;
  options.parallel = wide
    ? { left: 70, right: 70, top: top + 40, bottom: 16, layout: "horizontal" }
    : { left: 24, right: 30, top: top + 16, bottom: 30, layout: "vertical" };
  options.parallelAxis = chart.axes.map((axis, dim) => ({
    dim, type: axis.is_log ? "log" : "value", ...parallelRange(chart, dim),
    name: wide ? labelText(axis.title, lineOfName) : plain(axis.title),
    nameLocation: wide ? "end" : "middle", nameGap: wide ? 12 : -16,
    nameTextStyle: { color: cssColor("--text") },
    axisLine: { lineStyle: { color: cssColor("--muted") } },
    axisLabel: { color: cssColor("--muted"), hideOverlap: true,
      formatter: (value) => parallelTick(value, axis.unit) },
  }));
  options.tooltip.trigger = "item";
  options.tooltip.formatter = (item) => wrap(item.name, 60) + chart.axes.map((axis, i) =>
    "\n" + plain(axis.title) + ": " +
    (item.value[i] === "-" ? "–" : formatFigure(item.value[i], axis.unit))).join("");
  options.series = chart.series.map((series) => ({
    type: "parallel", name: series.name, lineStyle: { width: 1.5, opacity: 0.8 },
    emphasis: { lineStyle: { width: 3, opacity: 1 } },
    data: [{ name: series.name, value: series.values.map((value) => value === null ? "-" : value) }],
  }));
  return options;
}

const kOptionsOf = {
  bars: barOptions, stacked: barOptions, steps: stepOptions, points: pointOptions, intervals: intervalOptions,
  scatter: scatterOptions, parallel: parallelOptions,
};

function largest(chart) {
  return chart.series.reduce((most, series) =>
    series.values.reduce((one, value) => Math.max(one, value || 0), most), 0);
}

function chartHeight(chart, width) {
  if (chart.kind === "steps" || chart.kind === "points") return 260;
  if (chart.kind === "scatter") return 320;
  if (chart.kind === "parallel") {
    const legend = legendHeight(chart.series.map((one) => one.name), width);
    return legend + (width >= kWideParallel ? 320 : 60 * chart.axes.length);
  }
  const bars = kBarHeight * (chart.kind === "stacked" ? 1 : Math.max(1, chart.series.length * 0.7));
  const names = labelRoom(chart, width).lines === 1 ? 0 : 2 * kLineHeight + 6;
  const legend = chart.series.length > 1 ? legendHeight(chart.series.map((one) => one.name), width) : 8;
  return Math.min(760, legend + 30 + chart.categories.length * Math.max(bars, names));
}

class ChartView {
  constructor(place, chart) {
    this.place = place;
    this.chart = chart;
    this.fit();
    this.view = echarts.init(place, null, { renderer: "canvas" });
    this.view.on("mouseover", (at) => this.showTip(at));
    this.draw();
  }

  // Shows the same tooltip for a name as for its bar.
  showTip(at) {
    if (at.componentType !== "yAxis" || at.targetType !== "axisLabel") return;
    this.view.dispatchAction({ type: "showTip", x: this.left + 1, y: at.event.offsetY });
  }

  fit() {
    this.width = this.place.clientWidth;
    this.place.style.height = chartHeight(this.chart, this.width) + "px";
  }

  draw() {
    const options = kOptionsOf[this.chart.kind](this.chart, this.width);
    this.left = options.grid.left;
    this.view.setOption(options, true);
  }

  resize() {
    if (this.place.clientWidth === this.width) return;
    this.fit();
    this.view.resize();
    this.draw();
  }
}

// Draws all charts. Returns a function that redraws them with the current colors.
function showCharts(charts) {
  if (typeof echarts === "undefined" || !charts) return () => {};
  const views = Array.from(document.querySelectorAll("[data-chart]"), (place) =>
    new ChartView(place, charts[place.closest("[data-section]").dataset.section][place.dataset.chart]));
  window.addEventListener("resize", () => views.forEach((view) => view.resize()));
  return () => views.forEach((view) => view.draw());
}
