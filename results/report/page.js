"use strict";

// Puts the view on the page. All that it says was decided before; here it only gets a place.
(() => {
  const { el } = report;
  const view = JSON.parse(document.getElementById("view").textContent);
  const makers = {
    remarks: (block) => report.remarks(block),
    table: (block) => el("div", { class: "block" }, report.table(block)),
    code: (block) => el("div", { class: "block" }, report.code(block)),
    lines: report.lines, bars: report.bars, matrix: report.matrix,
  };

  const section = (given, id, part) => el("section", { "aria-labelledby": id }, el("h3", { id }, given.title),
    ...(given.intro ? [el("p", { class: "soft" }, given.intro)] : []),
    ...given.blocks.map((block) => makers[block.kind](block, part)));

  // One choice of strategies for all lines of a part.
  const picker = (part) => {
    const buttons = new Map();
    const apply = () => {
      for (const [name, button] of buttons) button.setAttribute("aria-pressed", String(part.visible.has(name)));
      part.on_pick.forEach((act) => act());
    };
    const choose = (names) => {
      part.visible.clear();
      names.forEach((name) => part.visible.add(name));
      apply();
    };
    const toggle = (name) => {
      if (!part.visible.delete(name)) part.visible.add(name);
      apply();
    };
    const all = [...part.styles.keys()], first = [...part.visible];
    const tool = (text, names) => el("button", { type: "button", class: "tool", on: { click: () => choose(names) } }, text);
    const box = el("div", { class: "picker all", role: "group", "aria-label": "Strategies in the charts over percentiles and time" });
    if (first.length < all.length) box.append(tool("best of each store", first));
    box.append(tool("all", all), tool("none", []));
    for (const name of all) {
      const button = el("button", { type: "button", "aria-pressed": String(part.visible.has(name)), on: { click: () => toggle(name) } },
        report.swatch(part.styles.get(name)), name);
      buttons.set(name, button);
      box.append(button);
    }
    return box;
  };

  const has_lines = (given) => given.blocks.some((block) => block.kind === "lines" && block.lines.some((line) => line.strategy));

  const part_element = (given, p, alone) => {
    const part = { styles: new Map(given.strategies.map((one, i) => [one.name, i])), visible: null, on_pick: [] };
    if (given.strategies.length > 1) part.visible = new Set(given.strategies.filter((one) => one.shown).map((one) => one.name));
    const id = (s) => `part${p}-section${s}`;
    const links = given.sections.map((one, s) => el("li", {}, el("a", { href: "#" + id(s) }, one.title)));
    const box = el("article", { class: "part", id: "part" + p },
      el(alone ? "h1" : "h2", {}, alone ? view.title : given.title), el("p", { class: "soft" }, given.subtitle),
      report.remarks(given.headline, "headline"),
      el("nav", { "aria-label": "Sections of " + given.title }, el("ul", {}, ...links)));
    // Sections whose charts share the choice stand together, below it.
    let group = null;
    given.sections.forEach((one, s) => {
      if (!has_lines(one) || !part.visible) {
        group = null;
        box.append(section(one, id(s), part));
        return;
      }
      if (!group) {
        group = el("div", {}, picker(part));
        box.append(group);
      }
      group.append(section(one, id(s), part));
    });
    return box;
  };

  const main = document.getElementById("main");
  const alone = view.parts.length === 1;
  if (!alone) {
    const links = view.parts.map((part, p) => el("li", {}, el("a", { href: "#part" + p }, part.title)));
    main.append(el("h1", {}, view.title), el("nav", { "aria-label": "Results" }, el("ul", {}, ...links)));
    const part = { styles: new Map(), visible: null, on_pick: [] };
    view.overview.forEach((one, s) => main.append(section(one, "overview" + s, part)));
  }
  view.parts.forEach((part, p) => main.append(part_element(part, p, alone)));

  report.draw_all();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", report.draw_all);
  const print = (now) => {
    document.documentElement.classList.toggle("printing", now);
    report.draw_all();
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  document.documentElement.dataset.ready = "yes";  // for those who wait for it
})();
