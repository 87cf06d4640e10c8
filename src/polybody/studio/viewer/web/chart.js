// Curves over time as SVG: panels for each unit and size, a cursor, legends below the drawing, export.
pb.palette = [
  "#2563eb",
  "#dc2626",
  "#16a34a",
  "#d97706",
  "#7c3aed",
  "#0891b2",
  "#db2777",
  "#65a30d",
  "#64748b",
  "#b45309",
];
pb.dashes = ["", "7 3", "2 2", "9 3 2 3", "4 2"];

// Curves {label, unit, t, y, run} in panels: one unit each, and within it sizes that differ by less than thirty times.
// What is zero throughout is not drawn; it is named.
pb.panels = curves => {
  const units = new Map(),
    zero = [],
    largest = new Map();
  const byLabel = new Map(); // one panel for a joint, whichever run it is of
  for (const curve of curves) {
    let size = byLabel.get(curve.label) || 0;
    for (const y of curve.y) if (isFinite(y) && Math.abs(y) > size) size = Math.abs(y);
    byLabel.set(curve.label, size);
    largest.set(curve.unit, Math.max(size, largest.get(curve.unit) || 0));
  }
  for (const curve of curves) {
    const size = byLabel.get(curve.label);
    if (!(size > Math.max(1e-9, 1e-7 * largest.get(curve.unit)))) {
      zero.push(curve.label);
      continue;
    }
    if (!units.has(curve.unit)) units.set(curve.unit, []);
    units.get(curve.unit).push({ ...curve, size });
  }
  const panels = [];
  for (const [unit, own] of units) {
    const sorted = [...own].sort((a, b) => b.size - a.size);
    let group = [],
      top = 0;
    for (const curve of sorted) {
      if (group.length && curve.size < top / 30) {
        panels.push({ unit, curves: group });
        group = [];
      }
      if (!group.length) top = curve.size;
      group.push(curve);
    }
    if (group.length) panels.push({ unit, curves: group });
  }
  for (const panel of panels) {
    const order = new Map(curves.map((c, k) => [c.key, k]));
    panel.curves.sort((a, b) => order.get(a.key) - order.get(b.key));
    const names = [...new Set(panel.curves.map(c => c.label))];
    panel.curves.forEach(curve => {
      const k = names.indexOf(curve.label);
      curve.color = pb.palette[k % pb.palette.length];
      curve.dash = pb.dashes[(Math.floor(k / pb.palette.length) + (curve.run || 0)) % pb.dashes.length];
    });
    pb.tellApart(panel.curves);
  }
  return { panels, zero };
};

// Curves that coincide are dashed over each other, so that both are seen.
pb.tellApart = curves => {
  const size = Math.max(...curves.map(c => c.size));
  curves.forEach((curve, k) => {
    const twins = curves
      .slice(0, k)
      .filter(
        other => other.y.length === curve.y.length && curve.y.every((y, i) => Math.abs(y - other.y[i]) < 2e-3 * size),
      ).length;
    if (twins) {
      curve.dash = `6 ${6 * twins}`;
      curve.twin = true;
    }
  });
};

pb.ticks = (low, high, count) => {
  const step = pb.math.round(((high - low) / count) * 1.999) || 1,
    found = [];
  for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + 1e-9 * step; x += step)
    found.push(Math.abs(x) < 1e-9 * step ? 0 : x);
  return { found, step };
};

pb.Chart = class {
  // options: {unit, curves, events, height, onSeek(t), time unit}
  constructor(host, options) {
    this.options = options;
    this.box = document.createElement("figure");
    this.box.className = "chart";
    this.box.dataset.unit = options.unit;
    host.append(this.box);
    this.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.legend = document.createElement("div");
    this.legend.className = "legend";
    this.box.append(this.svg, this.legend);
    this.range = null;
    this.svg.addEventListener("pointerdown", e => {
      this.svg.setPointerCapture(e.pointerId);
      this.seek(e);
    });
    this.svg.addEventListener("pointermove", e => {
      if (e.buttons & 1) this.seek(e);
    });
    this.svg.addEventListener(
      "wheel",
      e => {
        e.preventDefault();
        this.zoom(this.timeAt(e), Math.exp(e.deltaY * 0.002));
      },
      { passive: false },
    );
    this.svg.addEventListener("dblclick", () => {
      this.range = null;
      this.draw();
    });
    this.makeLegend();
    this.draw();
  }

  seek(e) {
    if (this.options.onSeek) this.options.onSeek(this.timeAt(e));
  }

  timeAt(e) {
    const r = this.svg.getBoundingClientRect(),
      x = ((e.clientX - r.left) / r.width) * this.width;
    return this.t0 + ((x - this.left) / (this.width - this.left - this.right)) * (this.t1 - this.t0);
  }

  zoom(at, factor) {
    const span = (this.t1 - this.t0) * factor,
      part = (at - this.t0) / (this.t1 - this.t0);
    const whole = this.extent();
    if (span >= whole[1] - whole[0]) this.range = null;
    else this.range = [at - part * span, at - part * span + span];
    this.draw();
  }

  extent() {
    let low = Infinity,
      high = -Infinity;
    for (const c of this.options.curves)
      if (c.t.length) {
        low = Math.min(low, c.t[0]);
        high = Math.max(high, c.t[c.t.length - 1]);
      }
    return isFinite(low) ? [low, high > low ? high : low + 1] : [0, 1];
  }

  makeLegend() {
    this.legend.replaceChildren();
    this.values = this.options.curves.map(curve => {
      const chip = document.createElement("span"),
        line = document.createElement("i"),
        name = document.createElement("span");
      const value = document.createElement("b");
      line.style.borderTopColor = curve.color;
      line.style.borderTopStyle = curve.dash ? "dashed" : "solid";
      name.textContent = curve.label + (curve.runName ? ` · ${curve.runName}` : "");
      chip.append(line, name, value);
      chip.title = "click to hide or show";
      chip.onclick = () => {
        curve.hidden = !curve.hidden;
        chip.classList.toggle("off", curve.hidden);
        this.draw();
      };
      this.legend.append(chip);
      return value;
    });
  }

  // A path through at most four points per column of pixels.
  path(curve, X, Y) {
    const { t, y } = curve,
      n = t.length;
    let text = "",
      pen = "M";
    const put = k => {
      if (!isFinite(y[k])) {
        pen = "M";
        return;
      }
      text += pen + X(t[k]).toFixed(1) + " " + Y(y[k]).toFixed(1);
      pen = "L";
    };
    const stride = Math.max(1, Math.floor(n / 700));
    if (stride === 1) {
      for (let k = 0; k < n; k++) put(k);
      return text;
    }
    for (let k = 0; k < n; k += stride) {
      let low = k,
        high = k;
      for (let j = k; j < Math.min(k + stride, n); j++) {
        if (y[j] < y[low]) low = j;
        if (y[j] > y[high]) high = j;
      }
      [...new Set([k, Math.min(low, high), Math.max(low, high)])].forEach(put);
    }
    put(n - 1);
    return text;
  }

  draw() {
    const { curves, unit, events = [], height = 150 } = this.options;
    this.width = Math.max(240, this.box.clientWidth || 300);
    this.height = height;
    [this.t0, this.t1] = this.range || this.extent();
    let low = Infinity,
      high = -Infinity;
    for (const c of curves) {
      if (c.hidden) continue;
      for (let k = 0; k < c.y.length; k++)
        if (c.t[k] >= this.t0 && c.t[k] <= this.t1 && isFinite(c.y[k])) {
          if (c.y[k] < low) low = c.y[k];
          if (c.y[k] > high) high = c.y[k];
        }
    }
    if (!isFinite(low)) {
      low = -1;
      high = 1;
    }
    const pad = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    low -= pad;
    high += pad;
    this.y0 = low;
    this.y1 = high;
    const ty = pb.ticks(low, high, 4),
      tx = pb.ticks(this.t0, this.t1, 5),
      texts = ty.found.map(y => pb.show(y));
    this.left = 14 + 6.2 * Math.max(...texts.map(s => s.length), 2);
    this.right = 10;
    const top = 20,
      bottom = 24,
      W = this.width,
      H = height;
    const X = t => this.left + ((t - this.t0) / (this.t1 - this.t0)) * (W - this.left - this.right);
    const Y = y => top + ((high - y) / (high - low)) * (H - top - bottom);
    this.X = X;
    const parts = [
      `<rect class="plate" x="${this.left}" y="${top}" width="${W - this.left - this.right}" height="${H - top - bottom}"/>`,
    ];
    ty.found.forEach((y, k) =>
      parts.push(
        `<line class="grid" x1="${this.left}" x2="${W - this.right}" y1="${Y(y)}" y2="${Y(y)}"/>`,
        `<text class="tick" text-anchor="end" x="${this.left - 5}" y="${Y(y) + 3.5}">${texts[k]}</text>`,
      ),
    );
    tx.found.forEach(t =>
      parts.push(
        `<line class="grid" y1="${top}" y2="${H - bottom}" x1="${X(t)}" x2="${X(t)}"/>`,
        `<text class="tick" text-anchor="middle" x="${Math.min(Math.max(X(t), 12), W - 14)}" y="${H - 9}">${pb.show(t)}${t === tx.found[tx.found.length - 1] ? " s" : ""}</text>`,
      ),
    );
    parts.push(`<text class="unit" x="${4}" y="12">${unit === "1" ? "dimensionless" : pb.escape(unit)}</text>`);
    events
      .filter(e => e.time >= this.t0 && e.time <= this.t1)
      .slice(0, 200)
      .forEach(e =>
        parts.push(
          `<line class="event" x1="${X(e.time)}" x2="${X(e.time)}" y1="${top}" y2="${H - bottom}"><title>${pb.escape(e.name)}</title></line>`,
        ),
      );
    parts.push(
      `<clipPath id="clip${this.number}"><rect x="${this.left}" y="${top - 1}" width="${W - this.left - this.right}" height="${H - top - bottom + 2}"/></clipPath>`,
    );
    curves.forEach(c => {
      if (!c.hidden)
        parts.push(
          `<path class="curve" clip-path="url(#clip${this.number})" fill="none" stroke="${c.color}" stroke-width="1.6" stroke-dasharray="${c.dash}" d="${this.path(c, X, Y)}"/>`,
        );
    });
    parts.push(`<line class="cursor" y1="${top}" y2="${H - bottom}"/>`);
    this.svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    this.svg.setAttribute("width", W);
    this.svg.setAttribute("height", H);
    this.svg.innerHTML = parts.join("");
    this.cursorLine = this.svg.querySelector(".cursor");
    if (this.at !== undefined) this.cursor(this.at);
  }

  // Mark a time, and show the values there.
  cursor(t) {
    this.at = t;
    const x = this.X(Math.min(Math.max(t, this.t0), this.t1));
    this.cursorLine.setAttribute("x1", x);
    this.cursorLine.setAttribute("x2", x);
    this.options.curves.forEach((curve, k) => {
      this.values[k].textContent = pb.show(pb.valueAt(curve.t, curve.y, t));
    });
  }
};
Object.defineProperty(pb.Chart.prototype, "number", {
  get() {
    return this._n ?? (this._n = pb.Chart.made = (pb.Chart.made || 0) + 1);
  },
});

pb.escape = text =>
  String(text).replace(/[&<>"']/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[c]);

pb.indexAt = (t, at) => {
  let low = 0,
    high = t.length - 1;
  while (high - low > 1) {
    const mid = (low + high) >> 1;
    if (t[mid] <= at) low = mid;
    else high = mid;
  }
  return low;
};
pb.valueAt = (t, y, at) => {
  if (!t.length) return NaN;
  if (t.length === 1 || at <= t[0]) return y[0];
  const k = pb.indexAt(t, at),
    s = Math.min(1, (at - t[k]) / (t[k + 1] - t[k] || 1));
  return y[k] + s * (y[k + 1] - y[k]);
};

// Export of the charts to files.
pb.download = (name, blob) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  pb.lastDownload = { name, size: blob.size, type: blob.type, blob };
  setTimeout(() => URL.revokeObjectURL(link.href), 5000);
};

pb.chartStyle = `text{font:11px system-ui,sans-serif;fill:#475569}.unit{font-weight:600;fill:#0f172a}.plate{fill:none}.grid{stroke:#e2e8f0}.cursor,.event{stroke:#94a3b8}.event{stroke-dasharray:3 3}`;

pb.svgOf = charts => {
  const gap = 10;
  let y = 0;
  const parts = charts.map(chart => {
    const names = chart.options.curves
      .filter(c => !c.hidden)
      .map(
        (c, k) =>
          `<tspan fill="${c.color}" dx="${k ? 12 : 0}">— ${pb.escape(c.label + (c.runName ? " · " + c.runName : ""))}</tspan>`,
      );
    const rows = [];
    for (let k = 0; k < names.length; k += 4)
      rows.push(
        `<text x="${chart.left}" y="${chart.height + 12 + 15 * (k / 4)}">${names.slice(k, k + 4).join("")}</text>`,
      );
    const text = `<g transform="translate(0 ${y})">${chart.svg.innerHTML}${rows.join("")}</g>`;
    y += chart.height + 15 * rows.length + gap;
    return text;
  });
  const width = Math.max(...charts.map(c => c.width));
  return {
    text: `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}"><style>${pb.chartStyle}</style><rect width="100%" height="100%" fill="white"/>${parts.join("")}</svg>`,
    width,
    height: y,
  };
};

pb.csvOf = charts => {
  const curves = charts.flatMap(c => c.options.curves),
    quote = s => (/[",\n]/.test(s) ? `"${s.replace(/"/g, '""')}"` : s);
  const times = [...new Set(curves.flatMap(c => [...c.t]))].sort((a, b) => a - b);
  const rows = [
    ["t [s]", ...curves.map(c => quote(`${c.label}${c.runName ? " (" + c.runName + ")" : ""} [${c.unit}]`))].join(","),
  ];
  times.forEach(t => rows.push([t, ...curves.map(c => pb.valueAt(c.t, c.y, t))].join(",")));
  return rows.join("\n") + "\n";
};

pb.exportCharts = async (charts, kind, name) => {
  if (!charts.length) return;
  if (kind === "csv") {
    pb.download(`${name}.csv`, new Blob([pb.csvOf(charts)], { type: "text/csv" }));
    return;
  }
  const { text, width, height } = pb.svgOf(charts);
  const blob = new Blob([text], { type: "image/svg+xml" });
  if (kind === "svg") {
    pb.download(`${name}.svg`, blob);
    return;
  }
  const image = new Image();
  image.src = URL.createObjectURL(blob);
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * width;
  canvas.height = 2 * height;
  canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
  canvas.toBlob(png => pb.download(`${name}.png`, png), "image/png");
};
