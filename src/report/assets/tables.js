// Tables that can be sorted by their headings, searched and shown in full. Rows come from the
// page's data; unknown figures are sorted last.

const kRowsAtFirst = 12;
const kRowsMore = 200;

function compareCells(a, b) {
  if (a === b) return 0;
  if (a === null) return 1;
  if (b === null) return -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a) < String(b) ? -1 : 1;
}

// Figures are right-aligned. Only long texts are wrapped (also in page.cc).
function cellClass(unit, text) {
  if (unit !== "text") return "n";
  return text.length > 40 ? "long" : "";
}

class TableView {
  constructor(details, table) {
    this.table = table;
    this.body = details.querySelector("tbody");
    this.heads = Array.from(details.querySelectorAll("th"));
    this.more = details.querySelector(".more");
    this.shown = kRowsAtFirst;
    this.column = -1;  // original order
    this.descending = false;
    this.wanted = "";
    this.heads.forEach((head, column) => this.makeHead(head, column));
    if (table.rows.length > kRowsAtFirst) this.addSearch(details);
    if (this.more) this.update();
  }

  makeHead(head, column) {
    const sort = button(head.textContent, "Sort", () => this.sortBy(column));
    head.textContent = "";
    head.append(sort);
  }

  addSearch(details) {
    const search = element("input", "search");
    search.type = "search";
    search.placeholder = "Search rows";
    search.setAttribute("aria-label", "Search rows of " + this.table.title);
    search.addEventListener("input", () => {
      this.wanted = search.value.toLowerCase();
      this.update();
    });
    details.querySelector("summary").after(search);
  }

  // Figures start with the maximum, texts with the first. A second click reverses the order.
  sortBy(column) {
    if (this.column === column) {
      this.descending = !this.descending;
    } else {
      this.column = column;
      this.descending = this.table.columns[column].unit !== "text";
    }
    this.heads.forEach((head, i) => {
      if (i === column) head.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.update();
  }

  rows() {
    let rows = this.table.rows;
    if (this.wanted) {
      rows = rows.filter((row) => row.some((cell) =>
        typeof cell === "string" && cell.toLowerCase().includes(this.wanted)));
    }
    if (this.column < 0) return rows;
    const column = this.column;
    const sign = this.descending ? -1 : 1;
    return rows.slice().sort((a, b) => {
      if (a[column] === null || b[column] === null) return compareCells(a[column], b[column]);
      return sign * compareCells(a[column], b[column]);
    });
  }

  update() {
    const rows = this.rows();
    this.body.textContent = "";
    for (const row of rows.slice(0, this.shown)) {
      const line = element("tr");
      row.forEach((cell, i) => {
        const unit = this.table.columns[i].unit;
        const text = formatFigure(cell, unit);
        const box = element("td", cellClass(unit, text), text);
        if (typeof cell === "string" && text.endsWith("…")) box.title = visibleText(cell, 4000);
        line.append(box);
      });
      this.body.append(line);
    }
    if (this.more) this.sayMore(rows.length);
  }

  sayMore(count) {
    this.more.textContent = Math.min(this.shown, count) + " of " + formatCount(count) + " rows ";
    if (this.shown < count) {
      this.more.append(button("Show more", "Show more rows", () => {
        this.shown += kRowsMore;
        this.update();
      }));
    }
    if (this.table.left_out) {
      this.more.append(" (" + formatCount(this.table.left_out) + " more are not on this page)");
    }
  }
}

function showTables(data) {
  for (const section of data.sections) {
    for (const table of section.tables) {
      const details = document.querySelector(
        "[data-section=\"" + CSS.escape(section.key) + "\"] [data-table=\"" +
        CSS.escape(table.key) + "\"]");
      if (details) new TableView(details, table);
    }
  }
}
