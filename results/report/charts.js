"use strict";

// Draws the page's charts. Their texts come from result files: they reach the page as pixels only.
(() => {
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const line_color = (i) => color("--c" + (i % 8));
  const dashes = [[], [7, 4], [2, 3], [10, 3, 2, 3], [5, 2], [1, 2], [12, 5], [3, 6]];

  // Three digits, like the tables.
  const digits = (value) => {
    const rounded = Number(value.toPrecision(3));
    return Math.abs(rounded) >= 100 ? rounded.toFixed(0) : String(rounded);
  };
  const units = {
    seconds: [[3600, " h"], [60, " min"], [1, " s"], [1e-3, " ms"], [1e-6, " µs"], [1e-9, " ns"]],
    number: [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]],
  };
  const shown = (value, axis) => {
    if (!Number.isFinite(value)) return "–";
    // 1 / (1 - p): 1000 is 99.9 %.
    if (axis.scale === "percentile") {
      return String(Number((100 - 100 / value).toPrecision(Math.max(2, Math.ceil(Math.log10(value)) + 1)))) + " %";
    }
    if (value === 0) return axis.seconds ? "0 s" : "0";
    const list = axis.seconds ? units.seconds : units.number, size = Math.abs(value);
    const [unit, name] = list.find(([least]) => size >= least * 0.9995) || list[list.length - 1];
    return digits(value / unit) + name;
  };

  // 1, 2 and 5 of each decade if there are few decades, else the decades alone.
  const log_ticks = (low, high) => {
    const steps = Math.log10(high / low) < 2.2 ? [1, 2, 5] : [1], ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const step of steps) {
        const value = Number((step * 10 ** power).toPrecision(1));
        if (value >= low * 0.999 && value <= high * 1.001) ticks.push({ value });
      }
    }
    return ticks;
  };

  // Bounds on the grid of 1, 2, 5: the step below the values and the step above.
  const log_bounds = (values) => {
    // Beyond these a step of the grid is 0 or infinite, and ticks would never end.
    const positive = values.filter((value) => value > 1e-300 && value < 1e300);
    if (positive.length === 0) return [1, 10];
    const grid = (value, up) => {
      const power = 10 ** Math.floor(Math.log10(value) + 1e-9), steps = [1, 2, 5, 10].map((step) => step * power);
      return up ? steps.find((step) => step >= value * 0.999) : steps.reverse().find((step) => step <= value * 1.001);
    };
    const low = grid(Math.min(...positive), false), high = grid(Math.max(...positive), true);
    return low < high ? [low, high] : [low / 2, high * 2];
  };

  const axis_of = (axis, values, narrow) => {
    const scale = {
      type: axis.scale === "linear" ? "linear" : "logarithmic",
      title: { display: true, text: axis.title, color: color("--soft") },
      grid: { color: color("--line"), borderColor: color("--line") },
      ticks: { color: color("--soft"), maxRotation: 0, font: { size: narrow ? 10 : 12 }, callback: (value) => shown(value, axis) },
    };
    if (axis.scale === "linear") return scale;
    const [low, high] = axis.scale === "log" ? log_bounds(values) : [1, Math.max(...values, 100)];
    const percentiles = [2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9].map((value) => ({ value }));
    const ticks = axis.scale === "log" ? log_ticks(low, high) : percentiles.filter((tick) => tick.value <= high);
    return { ...scale, min: low, max: high, afterBuildTicks: (built) => { built.ticks = ticks; } };
  };

  // Stretches of time with a name: faults, warm-up.
  const marks_plugin = (marks) => ({
    id: "marks",
    beforeDatasetsDraw({ ctx, chartArea: area, scales: { x } }) {
      ctx.save();
      ctx.font = "11px sans-serif";
      marks.forEach((mark, row) => {
        const from = Math.max(x.getPixelForValue(mark.from), area.left);
        const until = mark.until === null ? area.right : Math.min(x.getPixelForValue(mark.until), area.right);
        const fault = mark.label !== "warm-up", right = from > (area.left + area.right) / 2;
        ctx.fillStyle = color(fault ? "--bad-back" : "--panel");
        ctx.fillRect(from, area.top, Math.max(until - from, 2), area.bottom - area.top);
        ctx.fillStyle = color(fault ? "--bad" : "--soft");
        if (fault) ctx.fillRect(from, area.top, 1.5, area.bottom - area.top);
        ctx.textAlign = right ? "right" : "left";
        ctx.fillText(mark.label, from + (right ? -4 : 4), area.top + 12 + 14 * row);
      });
      ctx.restore();
    },
  });

  const config_of = (chart, narrow) => {
    const values = (place) => chart.lines.flatMap((line) => line.points.map((point) => point[place])).filter((value) => value !== null);
    return {
      type: "line",
      data: {
        datasets: chart.lines.map((line, i) => ({
          label: line.name, hidden: !line.shown, borderColor: line_color(i), backgroundColor: line_color(i),
          borderDash: dashes[Math.floor(i / 8) % dashes.length], borderWidth: 2,
          pointRadius: line.points.length > 30 ? 0 : 3, pointHitRadius: 8,
          // A value that a logarithmic axis cannot show is a gap: an outage must not look like a slope.
          data: line.points.map(([x, y]) => ({ x, y: y === null || (chart.y.scale === "log" && y <= 0) ? NaN : y })),
        })),
      },
      options: {
        animation: false, responsive: true, maintainAspectRatio: false, parsing: false,
        interaction: { mode: "nearest", intersect: false },
        scales: { x: axis_of(chart.x, values(0), narrow), y: axis_of(chart.y, values(1), narrow) },
        plugins: {
          // A click on a name hides its line or shows it.
          legend: { display: true, position: "bottom", align: "start", labels: { color: color("--ink"), boxHeight: 0 } },
          tooltip: { callbacks: {
            title: (items) => items.length ? `${shown(items[0].parsed.x, chart.x)} (${chart.x.title})` : "",
            label: (item) => `${item.dataset.label}: ${shown(item.parsed.y, chart.y)}`,
          } },
        },
      },
      plugins: [marks_plugin(chart.marks)],
    };
  };

  const given = JSON.parse(document.getElementById("charts").textContent);
  const drawn = [...document.querySelectorAll("[data-chart]")].map((figure) => {
    figure.hidden = false;
    return { canvas: figure.querySelector("canvas"), chart: given[Number(figure.dataset.chart)], shown: null };
  });
  const draw_all = () => drawn.forEach((one) => {
    if (one.shown) one.chart.lines.forEach((line, i) => { line.shown = one.shown.isDatasetVisible(i); });
    if (one.shown) one.shown.destroy();
    one.shown = new Chart(one.canvas, config_of(one.chart, one.canvas.parentNode.clientWidth < 520));
  });
  draw_all();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw_all);
  const print = (now) => {
    document.documentElement.classList.toggle("printing", now);
    draw_all();
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  document.documentElement.dataset.ready = "yes";  // the browser tests wait for it
})();
