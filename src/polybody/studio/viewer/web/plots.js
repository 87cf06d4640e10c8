// Plots of any quantity: by joint, by frame, of every run; the cursor is the time shown.
pb.Plots = class {
  constructor(app, host) {
    const { h } = pb;
    this.app = app;
    this.charts = [];
    this.frameKeys = { "frame position": "m", "frame speed": "m/s", "frame orientation": "rad" };
    const titles = [
      ...app.data.channels.map(c => [c.key, c.title]),
      ...Object.keys(this.frameKeys).map(k => [k, k[0].toUpperCase() + k.slice(1)]),
    ];
    this.choice = h(
      "select",
      {
        id: "quantity",
        onchange: () => {
          this.items = null;
          this.rebuild();
        },
      },
      ...titles.map(([key, title]) => h("option", { value: key }, title)),
    );
    if (app.data.live) this.choice.value = "energy";
    this.chips = h("div", { class: "chips" });
    this.area = h("div", { id: "charts" });
    this.zero = h("p", { class: "note" });
    const save = kind =>
      h(
        "button",
        {
          "data-export": kind,
          onclick: () => pb.exportCharts(this.charts, kind, `${app.data.name} ${this.choice.value}`),
        },
        kind.toUpperCase(),
      );
    host.append(
      pb.section(
        "Plots",
        app.data.mode !== "pose",
        h("div", { class: "row two" }, h("span", {}, "quantity"), this.choice),
        this.chips,
        this.area,
        this.zero,
        h("div", { class: "buttons" }, ...["png", "svg", "csv"].map(save)),
      ),
    );
    this.items = null;
    this.path = h(
      "select",
      { id: "path-frame", onchange: () => this.drawPath() },
      h("option", { value: "" }, "no path"),
      ...app.data.frames
        .filter(f => f.body < app.data.bodies.length - 1)
        .map((f, k) => h("option", { value: f.name }, f.name)),
    );
    host.lastChild.append(h("div", { class: "row two" }, h("span", {}, "path of frame"), this.path));
  }

  sources() {
    const { app } = this;
    if (app.player)
      return app.player.runs
        .map((run, k) => ({ run, k, name: app.player.runs.length > 1 ? run.name : "" }))
        .filter(({ k }) => app.player.visible[k]);
    return app.recorder ? [{ run: app.recorder, k: 0, name: "" }] : [];
  }

  names() {
    if (this.choice.value in this.frameKeys)
      return this.app.data.frames.filter(f => f.body < this.app.data.bodies.length - 1).map(f => f.name);
    return this.app.data.channels.find(c => c.key === this.choice.value).items.map(i => i.label);
  }

  curves() {
    const key = this.choice.value,
      { data } = this.app,
      found = [];
    for (const { run, k, name } of this.sources()) {
      const t = run.t,
        add = (label, unit, y) => found.push({ key: `${label} ${k}`, label, unit, t, y, run: k, runName: name });
      if (key in this.frameKeys) {
        for (const frame of data.frames) if (this.items.has(frame.name)) this.frameCurves(run, frame, key, add);
      } else {
        const channel = data.channels.find(c => c.key === key);
        if (run.series ? !run.series[key] : !run.has(key)) continue;
        channel.items.forEach((item, c) => {
          if (this.items.has(item.label)) add(item.label, item.unit, run.column(key, c));
        });
      }
    }
    return found;
  }

  frameCurves(run, frame, key, add) {
    const t = run.t,
      unit = this.frameKeys[key],
      place = run.path(frame.body, frame.pose.slice(0, 3));
    const names = ["x", "y", "z"],
      n = place.length;
    if (key === "frame position")
      names.forEach((axis, c) =>
        add(
          `${frame.name}.${axis}`,
          unit,
          Float32Array.from(place, p => p[c]),
        ),
      );
    else if (key === "frame speed") {
      names.forEach((axis, c) =>
        add(
          `${frame.name}.${axis}`,
          unit,
          Float32Array.from(place, (_, k) => {
            const a = Math.max(0, k - 1),
              b = Math.min(n - 1, k + 1);
            return b > a ? (place[b][c] - place[a][c]) / (t[b] - t[a]) : 0;
          }),
        ),
      );
    } else {
      const turns = [];
      for (let k = 0; k < n; k++) {
        const source = run.series ? run.series.poses : run.states[k].poses,
          at = run.series ? 7 * (k * run.bodies + frame.body) : 7 * frame.body;
        turns.push(pb.math.angles(source, at + 3));
      }
      ["roll", "pitch", "yaw"].forEach((axis, c) =>
        add(
          `${frame.name}.${axis}`,
          unit,
          Float32Array.from(turns, a => a[c]),
        ),
      );
    }
  }

  rebuild() {
    const names = this.names(),
      { h } = pb;
    if (!this.items) {
      const named = this.app.data.frames.filter(f => f.named).map(f => f.name);
      const first = this.choice.value in this.frameKeys ? (named.length ? named.slice(0, 1) : names.slice(-1)) : names;
      this.items = new Set(first);
    }
    this.chips.replaceChildren(
      h(
        "button",
        {
          "data-item": "all",
          onclick: () => {
            this.items = new Set(this.items.size === names.length ? [] : names);
            this.rebuild();
          },
        },
        "all / none",
      ),
      ...names.map(name =>
        h(
          "button",
          {
            "data-item": name,
            class: this.items.has(name) ? "on" : "",
            onclick: () => {
              if (!this.items.delete(name)) this.items.add(name);
              this.rebuild();
            },
          },
          name,
        ),
      ),
    );
    this.draw();
  }

  draw() {
    const { panels, zero } = pb.panels(this.curves());
    const events = this.app.player ? this.app.player.runs[this.app.player.main].events : [];
    this.area.replaceChildren();
    this.charts = panels.map(
      panel =>
        new pb.Chart(this.area, {
          ...panel,
          events,
          onSeek: t => {
            if (this.app.player) {
              this.app.player.pause();
              this.app.player.go(t);
            }
          },
        }),
    );
    this.zero.textContent = zero.length
      ? `zero throughout: ${[...new Set(zero)].join(", ")}`
      : panels.length
        ? ""
        : "nothing to plot yet";
    if (this.app.player) this.cursor(this.app.player.time);
    this.drawPath();
  }

  drawPath() {
    const frame = this.app.data.frames.find(f => f.name === this.path.value);
    for (const key of [...this.app.scene.paths.keys()]) this.app.scene.setPath(key, null);
    if (frame)
      for (const { run, k } of this.sources()) {
        const points = run.path(frame.body, frame.pose.slice(0, 3)),
          stride = Math.max(1, Math.floor(points.length / 800));
        this.app.scene.setPath(
          `${frame.name} ${k}`,
          points.filter((_, i) => i % stride === 0 || i === points.length - 1),
          this.sources().length === 1 ? [0.92, 0.42, 0.08] : pb.runTints[k % pb.runTints.length],
        );
      }
    this.app.redraw();
  }

  cursor(t) {
    for (const chart of this.charts) chart.cursor(t);
  }
};

pb.runsSection = (app, host) => {
  const { h } = pb,
    { player } = app;
  const rows = player.runs.map((run, k) => {
    const box = h("input", {
      type: "checkbox",
      "data-run": k,
      checked: true,
      onchange: () => {
        player.visible[k] = box.checked;
        player.go(player.time);
        app.plots.draw();
      },
    });
    const main = h("input", {
      type: "radio",
      name: "main-run",
      "data-main": k,
      checked: k === 0,
      title: "shown in full colour",
      onchange: () => {
        player.main = k;
        player.makeLine();
        player.go(player.time);
      },
    });
    return h(
      "label",
      { style: "display:flex;gap:7px;align-items:center" },
      main,
      box,
      h("span", { class: "swatch", style: `background:rgb(${pb.runTints[k % pb.runTints.length].map(x => 255 * x)})` }),
      run.name,
    );
  });
  const facts = player.runs[0].facts.map(([a, b]) => h("tr", {}, h("td", {}, a), h("td", {}, b)));
  const events = player.runs[0].events.slice(0, 60).map(e =>
    h(
      "tr",
      {},
      h(
        "td",
        {},
        h(
          "button",
          {
            onclick: () => {
              player.pause();
              player.go(e.time);
            },
          },
          `${pb.show(e.time)} s`,
        ),
      ),
      h("td", {}, `${e.name} ${e.detail || ""}`),
    ),
  );
  host.append(
    pb.section(
      "Run",
      player.runs.length > 1,
      ...(player.runs.length > 1 ? rows : []),
      h("table", { class: "facts" }, ...facts),
      events.length ? h("h3", {}, "Events") : null,
      h("table", { class: "facts" }, ...events),
    ),
  );
};
