"use strict";

// Two kinds of charts: lines over an axis, and rows of bars or dots. Each stands with its figures as a table.
(() => {
  const { el, shown } = report;
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const line_color = (style) => color("--c" + (style % 8));
  const dashes = [[], [7, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 2], [12, 5], [3, 6]];
  const dash_of = (style) => dashes[Math.floor(style / 8) % dashes.length];

  report.swatch = (style) => {
    const made = (name, attributes) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      return element;
    };
    const svg = made("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" });
    const line = made("line", { x1: 0, y1: 5, x2: 26, y2: 5, "stroke-width": 3, "stroke-dasharray": dash_of(style).join(" ") });
    line.style.stroke = `var(--c${style % 8})`;
    svg.append(line);
    return svg;
  };

  // 1, 2 and 5 of each decade where there are few of them, else the decades alone.
  const log_ticks = (low, high) => {
    const decades = Math.log10(high / low);
    const steps = decades < 2.2 ? [1, 2, 5] : [1];
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const step of steps) {
        const value = Number((step * 10 ** power).toPrecision(1));
        if (value >= low * 0.999 && value <= high * 1.001) ticks.push({ value });
      }
    }
    return ticks;
  };

  // From the step of 1, 2, 5 below to the one above.
  const log_bounds = (values) => {
    // Beyond these a step of the grid is 0 or infinite, and ticks would never end.
    const positive = values.filter((value) => value > 1e-300 && value < 1e300);
    if (positive.length === 0) return [1, 10];
    const grid = (value, up) => {
      const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
      const steps = [1, 2, 5, 10].map((step) => step * power);
      return up ? steps.find((step) => step >= value * 0.999) : steps.reverse().find((step) => step <= value * 1.001);
    };
    const low = grid(Math.min(...positive), false), high = grid(Math.max(...positive), true);
    return low < high ? [low, high] : [low / 2, high * 2];
  };

  const axis = (given, values, narrow) => {
    const scale = {
      title: { display: true, text: given.title, color: color("--soft") },
      grid: { color: color("--line"), borderColor: color("--line") },
      ticks: { color: color("--soft"), maxRotation: 0, font: { size: narrow ? 10 : 12 } },
    };
    if (given.scale === "linear") {
      scale.type = "linear";
      if (given.measure === "share") Object.assign(scale, { min: Math.min(0, ...values), suggestedMax: Math.min(1, 1.2 * Math.max(...values)) || 1 });
      scale.ticks.callback = (value) => shown(value, given.measure);
      return scale;
    }
    const percentile = given.scale === "percentile";
    const [low, high] = percentile ? [1, Math.max(...values, 100)] : log_bounds(values);
    Object.assign(scale, { type: "logarithmic", min: low, max: high });
    scale.afterBuildTicks = (built) => { built.ticks = log_ticks(low, high); };
    if (percentile) scale.afterBuildTicks = (built) => { built.ticks = [{ value: 2 }, ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => ({ value: 10 ** n }))].filter((tick) => tick.value <= high); };
    scale.ticks.callback = (value) => (percentile ? report.shown_percentile(value) : shown(value, given.measure));
    return scale;
  };

  // What every chart has. `make` gives the configuration for the colours and the width of the moment.
  const charts = [];
  const place = (block, height, make) => {
    const canvas = el("canvas", { role: "img", "aria-label": `${block.title}. ${block.note} The figures stand in a table below.` });
    const box = el("div", { class: "chart" }, canvas);
    if (height) box.style.height = height + "px";
    const entry = { canvas, chart: null, shown: null };
    entry.draw = () => {
      if (typeof Chart === "undefined") return;
      if (entry.chart) entry.chart.destroy();
      const config = make(box.clientWidth < 520);
      config.options = { animation: false, responsive: true, maintainAspectRatio: false, ...config.options };
      entry.chart = new Chart(canvas, config);
    };
    charts.push(entry);
    return [box, entry];
  };
  report.draw_all = () => charts.forEach((entry) => entry.draw());

  const framed = (block, ...children) => el("figure", { class: "block" }, el("h4", {}, block.title),
    ...(block.note ? [el("p", { class: "soft" }, block.note)] : []), ...children);
  const as_table = (table) => report.folded("The same as a table", "as-table", () => report.table(table));

  // Stretches of time with a name: faults, warm-up. The same one of several strategies is drawn once.
  const marks_plugin = (marks) => ({
    id: "marks",
    beforeDatasetsDraw(chart) {
      const { ctx, chartArea: area, scales: { x } } = chart;
      const drawn = [];
      ctx.save();
      ctx.font = "11px sans-serif";
      for (const mark of marks()) {
        if (drawn.some((other) => other.label === mark.label && Math.abs(other.from - mark.from) < 0.5)) continue;
        drawn.push(mark);
        const from = Math.max(x.getPixelForValue(mark.from), area.left);
        const until = mark.until === null ? area.right : Math.min(x.getPixelForValue(mark.until), area.right);
        const warmup = mark.label === "warm-up";
        ctx.fillStyle = color(warmup ? "--panel" : "--bad-back");
        ctx.fillRect(from, area.top, Math.max(until - from, 2), area.bottom - area.top);
        if (warmup && until - from < 50) continue;
        ctx.fillStyle = color(warmup ? "--soft" : "--bad");
        if (!warmup) ctx.fillRect(from, area.top, 1.5, area.bottom - area.top);
        const right = from > (area.left + area.right) / 2;
        ctx.textAlign = right ? "right" : "left";
        ctx.fillText(mark.label, from + (right ? -4 : 4), area.top + 12 + 14 * (drawn.length - 1));
      }
      ctx.restore();
    },
  });

  // `styles`: the style of each strategy; `visible`: which are picked now.
  report.lines = (block, part) => {
    const style_of = (line, i) => (line.strategy ? part.styles.get(line.strategy) ?? i : i);
    const is_shown = (one) => !one.strategy || !part.visible || part.visible.has(one.strategy);
    const make = (narrow) => {
      const values = (axis_of) => block.lines.flatMap((line) => line.points.map(axis_of)).filter((value) => value !== null);
      return {
        type: "line",
        data: {
          datasets: block.lines.map((line, i) => ({
            label: line.name, hidden: !is_shown(line),
            // What a logarithmic axis cannot show is a gap: an outage must not look like a slope.
            data: line.points.map(([x, y]) => ({ x, y: y === null || (block.y.scale === "log" && y <= 0) ? NaN : y })),
            borderColor: line_color(style_of(line, i)), backgroundColor: line_color(style_of(line, i)),
            borderDash: line.dashed ? [4, 4] : dash_of(style_of(line, i)), borderWidth: 2, showLine: !line.dots,
            pointRadius: line.dots ? 4 : line.points.length > 30 ? 0 : 3, pointHitRadius: 8,
          })),
        },
        options: {
          parsing: false, interaction: { mode: "nearest", intersect: false },
          scales: { x: axis(block.x, values(([x]) => x), narrow), y: { ...axis(block.y, values(([, y]) => y), narrow), beginAtZero: true } },
          plugins: {
            legend: { display: false },
            tooltip: { callbacks: {
              title: (items) => items.length && (block.x.scale === "percentile" ? report.shown_percentile(items[0].parsed.x) : `${shown(items[0].parsed.x, block.x.measure)} (${block.x.title})`),
              label: (item) => `${item.dataset.label}: ${shown(item.parsed.y, block.y.measure)}`,
            } },
          },
        },
        plugins: [marks_plugin(() => block.marks.filter(is_shown))],
      };
    };
    const [box, entry] = place(block, 0, make);
    entry.pick = () => {
      if (!entry.chart) return;
      block.lines.forEach((line, i) => entry.chart.setDatasetVisibility(i, is_shown(line)));
      entry.chart.update();
    };
    const picked = block.lines.some((line) => line.strategy);
    if (picked && part.on_pick) part.on_pick.push(entry.pick);
    const keys = picked && part.visible ? [] : [el("div", { class: "picker" }, ...block.lines.map((line, i) =>
      el("span", { class: "key" }, report.swatch(style_of(line, i)), line.name)))];
    return framed(block, ...keys, box, ...(block.table ? [as_table(block.table)] : []));
  };

  // From the first dot of a row to its last.
  const spans_plugin = {
    id: "spans",
    beforeDatasetsDraw(chart) {
      const { ctx } = chart;
      ctx.save();
      ctx.strokeStyle = color("--line");
      ctx.lineWidth = 3;
      chart.data.labels.forEach((_, row) => {
        const dots = chart.data.datasets.map((_, i) => chart.getDatasetMeta(i).data[row])
          .filter((dot) => dot && Number.isFinite(dot.x) && Number.isFinite(dot.y) && !dot.skip);
        if (dots.length < 2) return;
        ctx.beginPath();
        ctx.moveTo(Math.min(...dots.map((dot) => dot.x)), dots[0].y);
        ctx.lineTo(Math.max(...dots.map((dot) => dot.x)), dots[0].y);
        ctx.stroke();
      });
      ctx.restore();
    },
  };

  report.bars = (block) => {
    const shapes = ["circle", "triangle", "rect", "rectRot", "star", "crossRot", "cross", "dash"];
    const dots = block.form === "dots", stacked = block.form === "stacked";
    const make = (narrow) => {
      const values = block.series.flatMap((one) => one.values).filter((value) => value !== null);
      const x = { ...axis(block.x, values, narrow), position: "bottom" };
      const cut = (label) => (narrow && label.length > 18 ? label.slice(0, 17) + "…" : label);
      if (stacked) Object.assign(x, { stacked: true, max: block.x.measure === "share" ? 1 : undefined });
      if (block.form === "bars") Object.assign(x, { min: 0 });
      return {
        type: dots ? "line" : "bar",
        data: {
          labels: block.categories,
          datasets: block.series.map((one, i) => ({
            label: one.name, data: one.values, backgroundColor: line_color(i), borderColor: line_color(i),
            showLine: false, pointRadius: 5, pointStyle: shapes[i % shapes.length], pointBorderWidth: 2, barPercentage: 0.85,
          })),
        },
        options: {
          indexAxis: "y", interaction: { mode: "index", axis: "y", intersect: false },
          scales: { x, y: { type: "category", offset: true, stacked, grid: { display: false },
            ticks: { color: color("--ink"), autoSkip: false, font: { size: narrow ? 10 : 12 },
              callback(value) { return cut(this.getLabelForValue(value)); } } } },
          plugins: {
            legend: { display: block.series.length > 1, position: "top", align: "start", labels: { color: color("--ink"), usePointStyle: dots } },
            tooltip: { callbacks: { label: (item) => `${item.dataset.label}: ${shown(item.parsed.x, block.x.measure)}` } },
          },
        },
        plugins: dots ? [spans_plugin] : [],
      };
    };
    const [box] = place(block, 22 * block.categories.length + 110, make);
    const table = {
      caption: block.title, left_out: 0, titles: ["", ...block.series.map((one) => one.name)],
      rows: block.categories.map((name, row) => [name, ...block.series.map((one) => shown(one.values[row], block.x.measure))]),
    };
    return framed(block, box, as_table(table));
  };
})();
