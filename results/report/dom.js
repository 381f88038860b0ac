"use strict";

// What all of the page uses. Texts reach the page as text nodes only, whatever they hold.
const report = {};

report.el = (name, properties = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") element.className = value;
    else if (key === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else element.setAttribute(key, value);
  }
  element.append(...children);  // strings become text nodes
  return element;
};

// Three digits, as the tables have them.
report.digits = (value) => {
  const text = Number(value.toPrecision(3));
  return Math.abs(text) >= 100 ? text.toFixed(0) : String(text);
};

report.in_units = (value, units) => {
  if (value === 0) return "0" + (units === report.time_units ? " s" : "");
  const size = Math.abs(value);
  const [unit, name] = units.find(([least]) => size >= least * 0.9995) || units[units.length - 1];
  return report.digits(value / unit) + name;
};
report.time_units = [[3600, " h"], [60, " min"], [1, " s"], [1e-3, " ms"], [1e-6, " µs"], [1e-9, " ns"]];
report.number_units = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];

report.shown = (value, measure) => {
  if (value === null || !Number.isFinite(value)) return "–";
  if (measure === "seconds") return report.in_units(value, report.time_units);
  if (measure === "share") return report.digits(100 * value) + " %";
  return report.in_units(value, report.number_units);
};

// 1 / (1 - p) as p: 1000 is 99.9 %.
report.shown_percentile = (x) => String(Number((100 - 100 / x).toPrecision(Math.max(2, Math.ceil(Math.log10(x)) + 1)))) + " %";

report.remarks = (block, style = "") => report.el("ul", { class: "remarks " + style },
  ...block.lines.map((line) => report.el("li", { class: line.tone }, line.text)));

report.table = (block) => {
  const { el } = report;
  const text_of = (given) => (Array.isArray(given) ? given[0] : given);
  // Columns of words stand to the left and may be folded.
  const words = block.titles.map((_, column) => block.titles.length === 2 ||
    block.rows.some((row) => text_of(row[column] ?? "").length > 32));
  const cell = (given, column) => el("td",
    { class: ((Array.isArray(given) ? given[1] : "") + (words[column + 1] ? " words" : "")).trim() }, text_of(given));
  const table = el("table", {},
    el("caption", {}, block.caption),
    el("thead", {}, el("tr", {}, ...block.titles.map((title, column) =>
      el("th", { scope: "col", class: words[column] ? "words" : "" }, title)))),
    el("tbody", {}, ...block.rows.map(([name, ...rest]) => el("tr", {},
      el("th", { scope: "row" }, text_of(name)), ...rest.map(cell)))));
  const box = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": block.caption }, table);
  if (block.left_out > 0) box.append(el("p", { class: "soft" }, `${block.left_out} more rows are in the file.`));
  return box;
};

report.code = (block) => report.el("div", {}, report.el("h4", {}, block.caption),
  report.el("pre", { tabindex: "0" }, report.el("code", {}, block.text)));

// Folded away, made when it is first asked for.
report.folded = (title, style, make) => {
  const summary = report.el("summary", {}, ...(Array.isArray(title) ? title : [title]));
  const details = report.el("details", { class: style }, summary);
  let made = false;
  details.fill = () => {
    if (!made) details.append(make());
    made = true;
  };
  details.addEventListener("toggle", () => { if (details.open) details.fill(); });
  return details;
};
