"use strict";

// Scenarios by strategies; each cell leads to the tale of its play.
(() => {
  const { el } = report;

  const tale = (play) => {
    const facts = play.evidence.map(([name, value]) => el("tr", {}, el("td", {}, name), el("td", { class: "words" }, value)));
    const events = play.timeline.map(([t, who, what]) => el("tr", {},
      el("td", {}, t === null ? "–" : t.toFixed(3) + " s"), el("td", { class: "words" }, who), el("td", { class: "words" }, what)));
    const box = el("div", { class: "tale" });
    if (play.reason) box.append(el("p", {}, play.reason));
    if (events.length > 0) {
      box.append(el("table", {}, el("caption", {}, "What happened"), el("tbody", {}, ...events)));
    }
    if (facts.length > 0) {
      box.append(el("table", {}, el("caption", {}, "Evidence"), el("tbody", {}, ...facts)));
    }
    return box;
  };

  const play_details = (play, strategy) => report.folded(
    [el("b", { class: play.tone }, play.outcome), " — " + strategy], "play", () => tale(play));

  // "3 double, 12 safe": what a scenario came to.
  const summed = (plays) => {
    const counts = new Map();
    for (const play of plays) counts.set(play.word, (counts.get(play.word) ?? 0) + 1);
    counts.delete("·");
    return [...counts].sort((a, b) => b[1] - a[1]).map(([word, times]) => `${times} ${word}`).join(", ");
  };

  report.matrix = (block) => {
    const places = new Map();
    const tales = el("div", { class: "plays" });
    block.scenarios.forEach((scenario, row) => {
      const plays = block.plays.filter((play) => play.scenario === row);
      const group = el("details", {}, el("summary", {}, `${scenario}: ${summed(plays) || "does not concern these"}`));
      for (const play of plays) {
        if (play.word === "·" && play.timeline.length === 0) continue;
        const details = play_details(play, block.strategies[play.strategy]);
        places.set(`${row} ${play.strategy}`, [group, details]);
        group.append(details);
      }
      tales.append(group);
    });
    const show = (place) => {
      const [group, details] = place;
      group.open = true;
      details.open = true;
      details.fill();
      details.scrollIntoView({ block: "center" });
      details.querySelector("summary").focus({ preventScroll: true });
    };
    const cells = new Map(block.plays.map((play) => [`${play.scenario} ${play.strategy}`, play]));
    const cell = (row, column) => {
      const key = `${row} ${column}`, play = cells.get(key), place = places.get(key);
      if (!play) return el("td");
      if (!place) return el("td", { title: play.outcome }, play.word);
      const label = `${block.scenarios[row]}, ${block.strategies[column]}: ${play.outcome}`;
      return el("td", {}, el("button", { type: "button", class: play.tone, title: label, "aria-label": label,
        on: { click: () => show(place) } }, play.word));
    };
    const table = el("table", { class: "matrix" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "scenario"),
        ...block.strategies.map((name) => el("th", { scope: "col" }, el("span", {}, name))))),
      el("tbody", {}, ...block.scenarios.map((name, row) => el("tr", {}, el("th", { scope: "row" }, name),
        ...block.strategies.map((_, column) => cell(row, column))))));
    return el("div", { class: "block" },
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Scenarios by strategies" }, table),
      report.remarks(block.legend, "legend"), el("h4", {}, "Play by play"), tales);
  };
})();
