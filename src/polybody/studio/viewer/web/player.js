// Runs: states between samples, the time line, and what is played.
pb.Run = class {
  constructor(packed, bodies) {
    Object.assign(this, packed);
    this.bodies = bodies;
    this.columns = {};
    for (const [key, values] of Object.entries(this.series))
      this.columns[key] = this.t.length ? values.length / this.t.length : 0;
    this.largest = {};
    for (const key of Object.keys(this.series))
      if (key.startsWith("layer:")) {
        let most = 0;
        const v = this.series[key];
        for (let k = 0; k < v.length; k += 6) most = Math.max(most, Math.hypot(v[k + 3], v[k + 4], v[k + 5]) || 0);
        this.largest[key.slice(6)] = most;
      }
  }

  get start() {
    return this.t[0];
  }
  get end() {
    return this.t[this.t.length - 1];
  }

  at(time) {
    const n = this.t.length,
      k = n > 1 ? pb.indexAt(this.t, time) : 0,
      j = Math.min(k + 1, n - 1);
    const s = j > k ? Math.min(1, Math.max(0, (time - this.t[k]) / (this.t[j] - this.t[k]))) : 0;
    const poses = new Float32Array(7 * this.bodies),
      values = {},
      layers = {};
    for (let b = 0; b < this.bodies; b++)
      pb.math.between(
        this.series.poses,
        7 * (k * this.bodies + b),
        this.series.poses,
        7 * (j * this.bodies + b),
        s,
        poses,
        7 * b,
      );
    for (const [key, series] of Object.entries(this.series)) {
      if (key === "poses") continue;
      const w = this.columns[key],
        row = new Float32Array(w);
      for (let c = 0; c < w; c++) row[c] = (1 - s) * series[k * w + c] + s * series[j * w + c];
      if (key.startsWith("layer:")) layers[key.slice(6)] = row;
      else values[key] = row;
    }
    return { t: time, poses, values, layers, largest: this.largest };
  }

  column(key, c) {
    const w = this.columns[key],
      series = this.series[key],
      found = new Float32Array(this.t.length);
    for (let k = 0; k < found.length; k++) found[k] = series[k * w + c];
    return found;
  }

  // Path of a point of a body, per sample.
  path(body, local) {
    const found = [];
    for (let k = 0; k < this.t.length; k++) {
      found.push(
        body < this.bodies
          ? pb.math.point(pb.math.fromPose(this.series.poses, 7 * (k * this.bodies + body)), local)
          : local,
      );
    }
    return found;
  }
};

// The last seconds of a live simulation, kept as a run.
pb.Recorder = class {
  constructor(bodies, seconds = 30) {
    this.bodies = bodies;
    this.seconds = seconds;
    this.clear();
  }
  clear() {
    this.states = [];
    this.start = 0;
  }
  add(state) {
    const last = this.states[this.states.length - 1];
    if (last && state.t < last.t) this.clear();
    if (last && state.t - last.t < 1e-9) {
      this.states[this.states.length - 1] = state;
      return;
    }
    this.states.push(state);
    while (this.states.length > 2 && state.t - this.states[0].t > this.seconds) this.states.shift();
  }
  get t() {
    return Float32Array.from(this.states, s => s.t);
  }
  has(key) {
    return this.states.length > 0 && this.states[this.states.length - 1].values[key];
  }
  column(key, c) {
    return Float32Array.from(this.states, s => (s.values[key] ? s.values[key][c] : NaN));
  }
  path(body, local) {
    return this.states.map(s =>
      body < this.bodies ? pb.math.point(pb.math.fromPose(s.poses, 7 * body), local) : local,
    );
  }
};

pb.Player = class {
  constructor(app, runs) {
    this.app = app;
    this.runs = runs;
    this.start = Math.min(...runs.map(r => r.start));
    this.end = Math.max(...runs.map(r => r.end));
    this.time = this.start;
    this.speed = 1;
    this.playing = false;
    this.loop = false;
    this.visible = runs.map(() => true);
    this.main = 0;
    this.makeLine();
  }

  makeLine() {
    const h = pb.h,
      line = document.getElementById("line");
    document.body.classList.add("timed");
    line.hidden = false;
    this.button = h(
      "button",
      { id: "play", class: "icon", title: "play or pause (space)", onclick: () => this.toggle() },
      pb.icon("play"),
    );
    this.slider = h("input", {
      id: "time",
      type: "range",
      min: this.start,
      max: this.end,
      step: "any",
      value: this.start,
      "aria-label": "time, s",
      oninput: () => {
        this.pause();
        this.go(+this.slider.value);
      },
    });
    this.text = h("output", { id: "clock" });
    const speeds = [0.05, 0.1, 0.25, 0.5, 1, 2, 4];
    this.speedBox = h(
      "select",
      {
        id: "speed",
        title: "speed",
        onchange: () => {
          this.speed = +this.speedBox.value;
        },
      },
      ...speeds.map(x => h("option", { value: x, selected: x === 1 }, `${x}×`)),
    );
    this.loopBox = h(
      "button",
      {
        id: "loop",
        class: "icon",
        title: "repeat",
        onclick: () => {
          this.loop = !this.loop;
          this.loopBox.classList.toggle("on", this.loop);
        },
      },
      pb.icon("loop"),
    );
    const marks = this.runs[this.main].events.map(e =>
      h("i", {
        class: "mark",
        title: `${pb.show(e.time)} s: ${e.name} ${e.detail || ""}`,
        style: `left:${(100 * (e.time - this.start)) / (this.end - this.start || 1)}%`,
        onclick: () => {
          this.pause();
          this.go(e.time);
        },
      }),
    );
    line.replaceChildren(
      h(
        "button",
        {
          id: "first",
          class: "icon",
          title: "first sample (Home)",
          onclick: () => {
            this.pause();
            this.go(this.start);
          },
        },
        pb.icon("first"),
      ),
      h(
        "button",
        { id: "back", class: "icon", title: "previous sample (←)", onclick: () => this.step(-1) },
        pb.icon("back"),
      ),
      this.button,
      h(
        "button",
        { id: "forward", class: "icon", title: "next sample (→)", onclick: () => this.step(1) },
        pb.icon("next"),
      ),
      h("div", { class: "track" }, ...marks, this.slider),
      this.text,
      this.speedBox,
      this.loopBox,
    );
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }
  play() {
    if (this.time >= this.end) this.go(this.start);
    this.playing = true;
    this.before = performance.now();
    this.button.replaceChildren(pb.icon("pause"));
    this.app.wake();
  }
  pause() {
    this.playing = false;
    this.button.replaceChildren(pb.icon("play"));
  }

  step(by) {
    this.pause();
    const { t } = this.runs[this.main];
    let k = pb.indexAt(t, this.time + 1e-9);
    if (this.time >= t[t.length - 1] - 1e-9) k = t.length - 1;
    this.go(t[Math.max(0, Math.min(t.length - 1, k + by))]);
  }

  tick(now) {
    if (!this.playing) return;
    let time = this.time + ((now - this.before) / 1000) * this.speed;
    this.before = now;
    if (time >= this.end) {
      if (this.loop) time = this.start;
      else {
        time = this.end;
        this.pause();
      }
    }
    this.go(time);
  }

  go(time) {
    this.time = Math.max(this.start, Math.min(this.end, time));
    this.slider.value = this.time;
    this.text.textContent = `${this.time.toFixed(3)} / ${pb.show(this.end)} s`;
    const others = this.runs.map((run, k) => ({ run, k })).filter(({ k }) => k !== this.main && this.visible[k]);
    this.app.scene.placeGhosts(
      others.map(({ run, k }) => ({ poses: run.at(this.time).poses, tint: pb.runTints[k % pb.runTints.length] })),
    );
    this.app.showState(this.runs[this.main].at(this.time));
  }
};
