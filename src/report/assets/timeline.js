// The timeline on a canvas. Events of a row (src/analysis/view/timeline.h) are ordered and do not
// overlap, so a frame's cost depends on its pixels, not on the number of events: events that share
// a pixel, and how much of it they fill, are found by bisection.

const kRowHeight = 15;
const kLaneGap = 5;
const kTrackHeight = 20;
const kRuler = 22;
const kGutter = 170;  // width of the lane names, in pixels
const kMostHeight = 560;
const kPaperHeight = 1000;
const kNarrow = 1.5;  // in pixels; narrower events share a pixel

// Kinds of nodes, grouped by color.
const kKindGroups = [
  { name: "operators", color: "--series-1", kinds: ["operator", "compute"] },
  { name: "labels", color: "--series-4", kinds: ["label", "process", "thread"], ink: "--text" },
  { name: "runtime calls", color: "--series-5", kinds: ["runtime"] },
  { name: "kernels", color: "--series-3", kinds: ["kernel"] },
  { name: "communication", color: "--series-2", kinds: ["collective", "send", "recv"] },
  { name: "copies and fills", color: "--series-7", kinds: ["memcpy", "memset", "mem_load", "mem_store"] },
  { name: "waits", color: "--series-6", kinds: ["sync"] },
  { name: "other", color: "--series-8", kinds: [] },
];
const kOtherGroup = kKindGroups.length - 1;

function groupOfKind(kind) {
  const found = kKindGroups.findIndex((group) => group.kinds.includes(kind));
  return found < 0 ? kOtherGroup : found;
}

// Decodes a row's events from base64 LEB128 numbers (src/report/page/timeline_data.h) into columns.
function decodeRow(row) {
  const bytes = atob(row.events);
  const count = row.count;
  const begins = new Float64Array(count);
  const ends = new Float64Array(count);
  const busy = new Float64Array(count + 1);  // total time of the earlier events
  const names = new Uint32Array(count);
  const nodes = new Float64Array(count);
  let at = 0;
  const number = () => {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = bytes.charCodeAt(at++);
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  };
  let end = 0;
  let node = 0;
  for (let i = 0; i < count; ++i) {
    begins[i] = end + number();
    const length = number();
    end = begins[i] + length;
    ends[i] = end;
    busy[i + 1] = busy[i] + length;
    names[i] = number();
    const step = number();
    node += step % 2 === 0 ? step / 2 : -(step + 1) / 2;
    nodes[i] = node;
  }
  return { begins, ends, busy, names, nodes, count, matches: null };
}

// Returns the first index from `from` on with a value of at least `value`; `values` ascend.
function lowerBound(values, value, from, to) {
  let step = 1;
  while (from < to && values[Math.min(from + step, to) - 1] < value) {
    from = Math.min(from + step, to);
    step *= 2;
  }
  let low = from;
  let high = Math.min(from + step, to);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

class Timeline {
  constructor(place, data) {
    this.data = data;
    this.span = Math.max(data.span_ns, 1);
    this.groups = data.names.map(([, kind]) => groupOfKind(kind));
    this.lower = data.names.map(([text]) => text.toLowerCase());
    this.begin = 0;  // visible range, ns
    this.end = this.span;
    this.scroll = 0;
    this.picked = null;  // {lane, row, index}
    this.wanted = null;  // by name: whether it matches the search
    this.decode();
    this.makeElements(place);
    this.listen();
    this.recolor();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    this.resize();
  }

  decode() {
    this.lanes = [];
    for (const track of this.data.tracks) {
      track.lanes.forEach((lane, i) => {
        this.lanes.push({
          track: i === 0 ? track.title : null, owner: track.title, title: lane.title,
          rows: lane.rows.map(decodeRow), folded: false,
        });
      });
    }
    this.events = 0;
    for (const lane of this.lanes) for (const row of lane.rows) this.events += row.count;
    this.layOut();
  }

  // Positions lanes and rows, from the top of the first.
  layOut() {
    let y = 0;
    for (const lane of this.lanes) {
      if (lane.track !== null) y += kTrackHeight;
      lane.y = y;
      lane.shown = lane.folded ? Math.min(1, lane.rows.length) : lane.rows.length;
      y += Math.max(1, lane.shown) * kRowHeight + kLaneGap;
    }
    this.contentHeight = y;
  }

  makeElements(place) {
    const bar = element("div", "bar");
    this.search = element("input", "search");
    this.search.type = "search";
    this.search.placeholder = "Search names";
    this.search.setAttribute("aria-label", "Search names in the timeline");
    this.found = element("span", "found");
    this.found.setAttribute("role", "status");
    bar.append(this.search, button("◂", "Previous match (P)", () => this.step(-1)),
      button("▸", "Next match (N)", () => this.step(1)),
      button("+", "Zoom in (W)", () => this.zoom(0.6)),
      button("−", "Zoom out (S)", () => this.zoom(1 / 0.6)),
      button("All", "Show everything (0)", () => this.show(0, this.span)), this.found);
    const view = element("div", "view");
    this.canvas = element("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", "Timeline of " + formatCount(this.events) +
      " events; the keys are listed below");
    this.tip = element("div", "tip");
    this.tip.hidden = true;
    view.append(this.canvas, this.tip);
    this.detail = element("p", "picked");
    this.detail.setAttribute("aria-live", "polite");
    place.append(bar, view, this.detail, this.makeLegend(), this.makeKeys());
    this.context = this.canvas.getContext("2d");
    this.view = view;
  }

  makeLegend() {
    const used = new Set(this.groups);
    const legend = element("div", "legend");
    kKindGroups.forEach((group, i) => {
      if (!used.has(i)) return;
      const entry = element("span");
      const color = element("i");
      color.style.background = "var(" + group.color + ")";
      entry.append(color, group.name);
      legend.append(entry);
    });
    return legend;
  }

  makeKeys() {
    const keys = element("p", "note keys");
    const say = (names, what) => {
      names.forEach((name) => keys.append(element("kbd", "", name), " "));
      keys.append(what + " · ");
    };
    say(["W", "S"], "zoom");
    say(["A", "D"], "left, right");
    say(["↑", "↓"], "lanes");
    say(["←", "→"], "previous, next event in the row");
    say(["N", "P"], "next, previous match");
    say(["F"], "zoom to the event");
    say(["0"], "show everything");
    say(["Enter"], "fold the event's lane");
    keys.append("wheel: zoom, after a click on the timeline or with Ctrl · drag: move · " +
      "Shift and drag: zoom to a range · click on a lane's name: fold it");
    return keys;
  }

  recolor() {
    this.colors = kKindGroups.map((group) => cssColor(group.color));
    this.inks = kKindGroups.map((group) => cssColor(group.ink || "--card"));
    this.ink = cssColor("--text");
    this.muted = cssColor("--muted");
    this.line = cssColor("--line");
    this.accent = cssColor("--accent");
    this.draw();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const most = this.paper ? kPaperHeight : kMostHeight;
    const height = Math.min(Math.max(this.contentHeight + kRuler, 120), most);
    this.canvas.style.height = height + "px";
    this.width = this.canvas.clientWidth;
    this.height = height;
    this.canvas.width = Math.max(1, Math.round(this.width * ratio));
    this.canvas.height = Math.round(height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.draw();
  }

  // On paper nothing scrolls.
  setPaper(paper) {
    this.paper = paper;
    this.resize();
  }

  get scale() { return Math.max(1, this.width - kGutter) / (this.end - this.begin); }
  timeAt(x) { return this.begin + (x - kGutter) / this.scale; }

  // Schedules a frame; at most one for any number of changes.
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  show(begin, end) {
    const length = Math.min(Math.max(end - begin, 10), this.span);
    this.begin = Math.min(Math.max(begin, 0), this.span - length);
    this.end = this.begin + length;
    this.redraw();
  }

  // `factor` below 1 zooms in; the time at `x` stays in place.
  zoom(factor, x = kGutter + (this.width - kGutter) / 2) {
    const still = this.timeAt(Math.max(x, kGutter));
    this.show(still - (still - this.begin) * factor, still + (this.end - still) * factor);
  }

  move(pixels) {
    const time = pixels / this.scale;
    this.show(this.begin + time, this.end + time);
  }

  scrollBy(pixels) {
    const most = Math.max(0, this.contentHeight + kRuler - this.height);
    this.scroll = Math.min(Math.max(this.scroll + pixels, 0), most);
    this.redraw();
  }

  draw() {
    if (!this.width || !this.colors) return;
    const began = performance.now();
    const g = this.context;
    g.clearRect(0, 0, this.width, this.height);
    g.font = "11px system-ui, sans-serif";
    g.textBaseline = "middle";
    this.drawRuler(g);
    g.save();
    g.beginPath();
    g.rect(0, kRuler, this.width, this.height - kRuler);
    g.clip();
    for (const lane of this.lanes) this.drawLane(g, lane);
    this.drawMarks(g);
    this.drawScroll(g);
    g.restore();
    this.canvas.dataset.frameMs = (performance.now() - began).toFixed(2);
  }

  drawRuler(g) {
    const rough = 110 / this.scale;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = Math.max(1, [1, 2, 5, 10].find((times) => times * power >= rough) * power);
    g.fillStyle = this.muted;
    g.strokeStyle = this.line;
    g.beginPath();
    for (let time = Math.ceil(this.begin / step) * step; time <= this.end; time += step) {
      const x = Math.round(kGutter + (time - this.begin) * this.scale) + 0.5;
      g.moveTo(x, kRuler - 5);
      g.lineTo(x, this.height);
      if (x < this.width - 40) g.fillText(formatTick(time), x + 4, kRuler / 2);
    }
    g.stroke();
  }

  drawLane(g, lane) {
    const top = kRuler + lane.y - this.scroll;
    const height = Math.max(1, lane.shown) * kRowHeight;
    if (lane.track !== null && top > kRuler && top - kTrackHeight < this.height) {
      g.fillStyle = this.ink;
      g.font = "600 12px system-ui, sans-serif";
      g.fillText(lane.track, 8, top - kTrackHeight / 2, kGutter * 3);
      g.font = "11px system-ui, sans-serif";
    }
    if (top > this.height || top + height < kRuler) return;
    g.fillStyle = this.muted;
    g.fillText((lane.folded ? "▸ " : "▾ ") + lane.title, 8, top + kRowHeight / 2, kGutter - 14);
    g.save();
    g.beginPath();
    g.rect(kGutter, Math.max(top, kRuler), this.width - kGutter, height);
    g.clip();
    for (let i = 0; i < lane.shown; ++i) {
      const y = top + i * kRowHeight;
      if (y + kRowHeight < kRuler || y > this.height) continue;
      const row = lane.rows[i];
      if (!this.wanted) {
        this.drawEvents(g, row, y, 1);
      } else {
        this.drawEvents(g, row, y, 0.22);
        this.drawMatches(g, row, y);
      }
    }
    g.restore();
  }

  drawEvents(g, row, y, strength) {
    const { begins, ends, busy, names, count } = row;
    const scale = this.scale;
    const begin = this.begin;
    const width = this.width;
    let runX = 0;  // adjacent pixels of equal style, painted at once
    let runEnd = 0;
    let runColor = -1;
    let runAlpha = 0;
    const paintRun = () => {
      if (runColor < 0) return;
      g.globalAlpha = runAlpha * strength;
      g.fillStyle = this.colors[runColor];
      g.fillRect(runX, y + 1, runEnd - runX, kRowHeight - 2);
      runColor = -1;
    };
    for (let i = lowerBound(ends, begin, 0, count); i < count; ) {
      const x = kGutter + (begins[i] - begin) * scale;
      if (x > width) break;
      if ((ends[i] - begins[i]) * scale >= kNarrow) {
        paintRun();
        this.drawEvent(g, row, i, x, y, strength);
        ++i;
        continue;
      }
      const pixel = Math.floor(x);
      const pixelEnd = begin + (pixel + 1 - kGutter) / scale;
      let next = lowerBound(begins, pixelEnd, i + 1, count);
      if (next - 1 > i && (ends[next - 1] - begins[next - 1]) * scale >= kNarrow) --next;
      const fill = (busy[next] - busy[i]) * scale;
      const alpha = fill > 0.6 ? 1 : fill > 0.3 ? 0.75 : fill > 0.1 ? 0.55 : 0.4;
      const color = this.groups[names[(i + next - 1) >> 1]];
      if (color !== runColor || alpha !== runAlpha || pixel !== runEnd) {
        paintRun();
        runX = pixel;
        runColor = color;
        runAlpha = alpha;
      }
      runEnd = pixel + 1;
      i = next;
    }
    paintRun();
    g.globalAlpha = 1;
  }

  drawEvent(g, row, i, x, y, strength) {
    const left = Math.max(x, kGutter - 2);
    const right = Math.min(kGutter + (row.ends[i] - this.begin) * this.scale, this.width + 2);
    g.globalAlpha = strength;
    g.fillStyle = this.colors[this.groups[row.names[i]]];
    g.fillRect(left, y + 1, Math.max(right - left - (right - left > 3 ? 0.7 : 0), 1), kRowHeight - 2);
    if (right - left > 34) {
      g.fillStyle = this.inks[this.groups[row.names[i]]];
      const most = Math.floor((right - left - 6) / 5.8);
      const text = this.data.names[row.names[i]][0];
      g.fillText(text.length > most ? text.slice(0, most - 1) + "…" : text, left + 3,
        y + kRowHeight / 2 + 0.5, right - left - 4);
    }
  }

  drawMatches(g, row, y) {
    const matches = row.matches;
    if (!matches) return;
    let from = 0;
    for (let high = matches.length; from < high; ) {
      const middle = (from + high) >> 1;
      if (row.ends[matches[middle]] < this.begin) from = middle + 1;
      else high = middle;
    }
    let painted = -1;
    for (let i = from; i < matches.length; ) {
      const x = kGutter + (row.begins[matches[i]] - this.begin) * this.scale;
      if (x > this.width) break;
      if (Math.floor(x) !== painted) this.drawEvent(g, row, matches[i], x, y, 1);
      painted = Math.floor(x);
      // The next match that begins outside of this pixel.
      const pixelEnd = this.begin + (painted + 1 - kGutter) / this.scale;
      let step = 1;
      let low = i + 1;
      while (low < matches.length &&
             row.begins[matches[Math.min(low + step, matches.length) - 1]] < pixelEnd) {
        low = Math.min(low + step, matches.length);
        step *= 2;
      }
      let high = Math.min(low + step, matches.length);
      while (low < high) {
        const middle = (low + high) >> 1;
        if (row.begins[matches[middle]] < pixelEnd) low = middle + 1;
        else high = middle;
      }
      i = low;
    }
    g.globalAlpha = 1;
  }

  // Draws the selected event and the range being chosen.
  drawMarks(g) {
    if (this.picked) {
      const { lane, row, index } = this.picked;
      const line = lane.rows.indexOf(row);
      if (line < lane.shown) {
        const x = kGutter + (row.begins[index] - this.begin) * this.scale;
        const right = kGutter + (row.ends[index] - this.begin) * this.scale;
        const left = Math.max(x, kGutter);
        g.strokeStyle = this.accent;
        g.lineWidth = 2;
        if (right >= kGutter) {
          g.strokeRect(left, kRuler + lane.y - this.scroll + line * kRowHeight + 1,
            Math.max(Math.min(right, this.width + 4) - left, 2), kRowHeight - 2);
        }
        g.lineWidth = 1;
      }
    }
    if (this.stretch) {
      const [a, b] = this.stretch;
      g.globalAlpha = 0.25;
      g.fillStyle = this.accent;
      g.fillRect(Math.min(a, b), kRuler, Math.abs(b - a), this.height);
      g.globalAlpha = 1;
    }
  }

  // Draws the visible part of the lanes at the right edge.
  drawScroll(g) {
    const room = this.height - kRuler;
    if (this.contentHeight <= room) return;
    const part = room / this.contentHeight;
    g.fillStyle = this.muted;
    g.fillRect(this.width - 5, kRuler + this.scroll * part, 4, room * part);
  }

  laneAt(y) {
    const inside = y - kRuler + this.scroll;
    if (y < kRuler) return null;
    return this.lanes.find((lane) =>
      inside >= lane.y && inside < lane.y + Math.max(1, lane.shown) * kRowHeight) || null;
  }

  // Returns the event at a pixel, or the nearest one within two pixels.
  eventAt(x, y) {
    const lane = this.laneAt(y);
    if (!lane || x < kGutter) return null;
    const row = lane.rows[Math.floor((y - kRuler + this.scroll - lane.y) / kRowHeight)];
    if (!row || lane.rows.indexOf(row) >= lane.shown) return null;
    const slack = 2 / this.scale;
    const index = lowerBound(row.ends, this.timeAt(x) - slack, 0, row.count);
    if (index >= row.count || row.begins[index] > this.timeAt(x) + slack) return null;
    return { lane, row, index };
  }

  textOf({ lane, row, index }) {
    const [name, kind] = this.data.names[row.names[index]];
    return [name, kind + ", " + formatTime(row.ends[index] - row.begins[index]) + " at " +
      formatTime(row.begins[index]), lane.owner + ", " + lane.title + ", node " + row.nodes[index]];
  }

  pick(event, reveal = false) {
    this.picked = event;
    this.detail.textContent = event ? this.textOf(event).join(" · ") : "";
    if (event && reveal) this.reveal(event);
    this.redraw();
  }

  // Scrolls an event into view.
  reveal({ lane, row, index }) {
    if (lane.folded) {
      lane.folded = false;
      this.layOut();
    }
    const y = lane.y + lane.rows.indexOf(row) * kRowHeight;
    if (y < this.scroll || y + 2 * kRowHeight > this.scroll + this.height - kRuler) {
      this.scroll = 0;
      this.scrollBy(y - (this.height - kRuler) / 2);
    }
    const middle = (row.begins[index] + row.ends[index]) / 2;
    if (middle < this.begin || middle > this.end) {
      const half = (this.end - this.begin) / 2;
      this.show(middle - half, middle + half);
    }
  }

  find(text) {
    const wanted = text.trim().toLowerCase();
    this.wanted = wanted ? this.lower.map((name) => name.includes(wanted)) : null;
    this.matchCount = 0;
    for (const lane of this.lanes) {
      for (const row of lane.rows) {
        if (!this.wanted) {
          row.matches = null;
          continue;
        }
        const matches = [];
        for (let i = 0; i < row.count; ++i) if (this.wanted[row.names[i]]) matches.push(i);
        row.matches = Uint32Array.from(matches);
        this.matchCount += matches.length;
      }
    }
    this.found.textContent = this.wanted ? formatCount(this.matchCount) + " found" : "";
    this.redraw();
  }

  // Moves to the next (1) or previous (-1) match, row by row.
  step(direction) {
    if (!this.wanted || !this.matchCount) return;
    const rows = [];
    for (const lane of this.lanes) for (const row of lane.rows) rows.push({ lane, row });
    const here = this.picked ? rows.findIndex(({ row }) => row === this.picked.row)
      : direction > 0 ? 0 : rows.length - 1;
    const after = this.picked ? this.picked.index : direction > 0 ? -1 : Infinity;
    for (let i = 0; i <= rows.length; ++i) {
      const at = ((here + direction * i) % rows.length + rows.length) % rows.length;
      const matches = Array.from(rows[at].row.matches);
      const inOrder = direction > 0 ? matches : matches.reverse();
      const index = inOrder.find((match) =>
        i > 0 || (direction > 0 ? match > after : match < after));
      if (index !== undefined) {
        this.pick({ lane: rows[at].lane, row: rows[at].row, index }, true);
        return;
      }
    }
  }

  // Moves to the next or previous event in the row; to the first visible one if none is selected.
  stepInRow(direction) {
    if (this.picked) {
      const { lane, row, index } = this.picked;
      if (index + direction >= 0 && index + direction < row.count) {
        this.pick({ lane, row, index: index + direction }, true);
      }
      return;
    }
    for (const lane of this.lanes) {
      for (const row of lane.rows) {
        const index = lowerBound(row.begins, this.begin, 0, row.count);
        if (index < row.count && row.begins[index] <= this.end) {
          this.pick({ lane, row, index }, true);
          return;
        }
      }
    }
  }

  listen() {
    this.canvas.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.onDown(event));
    this.canvas.addEventListener("pointermove", (event) => this.onMove(event));
    this.canvas.addEventListener("pointerup", (event) => this.onUp(event));
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
    });
  }

  onWheel(event) {
    if (document.activeElement !== this.canvas && !event.ctrlKey) return;
    event.preventDefault();
    if (event.shiftKey) this.move(event.deltaY || event.deltaX);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.move(event.deltaX);
    else this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 250))), event.offsetX);
  }

  onDown(event) {
    this.drag = { x: event.offsetX, y: event.offsetY, moved: false, choosing: event.shiftKey };
    this.canvas.setPointerCapture(event.pointerId);
  }

  onMove(event) {
    if (!this.drag) {
      this.showTip(event);
      return;
    }
    const dx = event.offsetX - this.drag.x;
    const dy = event.offsetY - this.drag.y;
    if (!this.drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    this.drag.moved = true;
    this.tip.hidden = true;
    this.canvas.classList.add("dragging");
    if (this.drag.choosing) {
      this.stretch = [this.drag.x, event.offsetX];
      this.redraw();
      return;
    }
    this.drag.x = event.offsetX;
    this.drag.y = event.offsetY;
    this.move(-dx);
    this.scrollBy(-dy);
  }

  onUp(event) {
    const drag = this.drag;
    this.drag = null;
    this.canvas.classList.remove("dragging");
    if (this.stretch) {
      const times = this.stretch.map((x) => this.timeAt(Math.max(x, kGutter)));
      this.stretch = null;
      this.show(Math.min(...times), Math.max(...times));
    } else if (drag && !drag.moved) {
      this.onClick(event.offsetX, event.offsetY);
    }
  }

  fold(lane) {
    lane.folded = !lane.folded;
    this.layOut();
    this.scrollBy(0);
  }

  onClick(x, y) {
    const lane = this.laneAt(y);
    if (x < kGutter && lane) {
      this.fold(lane);
    } else {
      this.pick(this.eventAt(x, y));
    }
  }

  showTip(event) {
    const found = this.eventAt(event.offsetX, event.offsetY);
    this.tip.hidden = !found;
    if (!found) return;
    this.tip.textContent = this.textOf(found).join("\n");
    const left = Math.min(event.offsetX + 14, this.width - this.tip.offsetWidth - 6);
    const below = event.offsetY + 16;
    const top = below + this.tip.offsetHeight > this.height
      ? event.offsetY - this.tip.offsetHeight - 10 : below;
    this.tip.style.left = Math.max(0, left) + "px";
    this.tip.style.top = Math.max(0, top) + "px";
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = (this.width - kGutter) / 5;
    const actions = {
      w: () => this.zoom(0.6), "+": () => this.zoom(0.6), "=": () => this.zoom(0.6),
      s: () => this.zoom(1 / 0.6), "-": () => this.zoom(1 / 0.6),
      a: () => this.move(-page), d: () => this.move(page),
      arrowup: () => this.scrollBy(-3 * kRowHeight), arrowdown: () => this.scrollBy(3 * kRowHeight),
      arrowleft: () => this.stepInRow(-1), arrowright: () => this.stepInRow(1),
      n: () => this.step(1), p: () => this.step(-1),
      0: () => this.show(0, this.span), home: () => this.show(0, this.span),
      escape: () => this.pick(null),
      enter: () => { if (this.picked) this.fold(this.picked.lane); },
      f: () => {
        if (!this.picked) return;
        const { row, index } = this.picked;
        const length = row.ends[index] - row.begins[index];
        this.show(row.begins[index] - length / 2, row.ends[index] + length / 2);
      },
    };
    const action = actions[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    action();
  }
}

function showTimelines(data) {
  if (!data) return [];
  return Array.from(document.querySelectorAll("[data-timeline]"), (place) => new Timeline(place, data));
}
