// Starts the page: tables, charts, timeline, colors, download, printing.

function download(data) {
  const text = JSON.stringify(data, null, 1) + "\n";
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = (data.title.replace(/[^\w.-]+/g, "_").slice(0, 80) || "report") + ".json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen) return chosen === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function startPage() {
  const data = readData("etude-data");
  showTables(data);
  const redrawCharts = showCharts(readData("etude-charts"));
  const timelines = showTimelines(readData("etude-timeline"));
  const redraw = () => {
    redrawCharts();
    timelines.forEach((timeline) => timeline.recolor());
  };
  const theme = button("", "Switch between light and dark", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
    redraw();
  });
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  nameTheme();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    nameTheme();
    redraw();
  });
  const controls = document.getElementById("controls");
  controls.append(theme, button("Download data", "All figures as JSON", () => download(data)),
    button("Print", "Print", () => window.print()));
  controls.hidden = false;
  preparePrint(redraw, timelines);
}

// Print layout: light colors, everything unfolded except licences, timelines of page height.
function preparePrint(redraw, timelines) {
  let before = null;
  let opened = [];
  window.addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = "light";
    opened = Array.from(document.querySelectorAll("details:not([open]):not(.licence)"));
    opened.forEach((details) => { details.open = true; });
    timelines.forEach((timeline) => timeline.setPaper(true));
    redraw();
  });
  window.addEventListener("afterprint", () => {
    if (before) document.documentElement.dataset.theme = before;
    else delete document.documentElement.dataset.theme;
    opened.forEach((details) => { details.open = false; });
    timelines.forEach((timeline) => timeline.setPaper(false));
    redraw();
  });
}

startPage();
