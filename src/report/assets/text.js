// Readable figures and names, in the format of src/report/text/format.cc and page_text.cc.

const kHidden =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e0fff}]/gu;

// Control and invisible characters become "\u{202e}"; long texts end in "…".
function visibleText(text, most = 200) {
  const points = Array.from(text.slice(0, 2 * most + 2));
  const cut = points.length > most ? points.slice(0, most).join("") + "…" : text;
  return cut.replace(kHidden, (mark) => "\\u{" + mark.codePointAt(0).toString(16) + "}");
}

function formatTime(ns) {
  const size = Math.abs(ns);
  if (size < 1e3) return Math.round(ns) + " ns";
  if (size < 1e6) return (ns / 1e3).toFixed(1) + " µs";
  if (size < 1e9) return (ns / 1e6).toFixed(3) + " ms";
  return (ns / 1e9).toFixed(3) + " s";
}

// Omits insignificant digits, for axes.
function formatTick(ns) {
  const [scale, unit] = Math.abs(ns) < 1e3 ? [1, "ns"] : Math.abs(ns) < 1e6 ? [1e3, "µs"]
    : Math.abs(ns) < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  return parseFloat((ns / scale).toPrecision(6)) + " " + unit;
}

function formatBytes(bytes) {
  return formatScaled(bytes, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
}

// Bytes per second.
function formatRate(rate) {
  return formatScaled(Math.round(rate), 1000, ["B/s", "KB/s", "MB/s", "GB/s", "TB/s", "PB/s"]);
}

function formatScaled(number, step, units) {
  let unit = 0;
  let value = number;
  while (Math.abs(value) >= step && unit + 1 < units.length) {
    value /= step;
    ++unit;
  }
  return (unit === 0 ? value : value.toFixed(2)) + " " + units[unit];
}

const formatCount = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ",");

function formatFigure(value, unit) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return visibleText(value);
  switch (unit) {
    case "time": return formatTime(value);
    case "bytes": return formatBytes(value);
    case "count": return formatCount(value);
    case "rate": return formatRate(value);
    case "share": return (100 * value).toFixed(1) + " %";
    case "change": return (value < 0 ? "" : "+") + (100 * value).toFixed(1) + " %";
    default: return String(parseFloat(value.toPrecision(4)) === value || Number.isInteger(value)
      ? value : parseFloat(value.toPrecision(4)));
  }
}

// Makes an element with a class and a text, which is never parsed as HTML.
function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

function button(text, title, onClick) {
  const made = element("button", "", text);
  made.type = "button";
  made.title = title;
  made.addEventListener("click", onClick);
  return made;
}

function readData(id) {
  const found = document.getElementById(id);
  return found ? JSON.parse(found.textContent) : null;
}

const cssColor = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();
