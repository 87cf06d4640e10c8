// The controls of a live simulation.
pb.liveSection = (app, host) => {
  const { h } = pb,
    s = app.data.live,
    send = (key, value) => app.command({ do: "option", key, value });
  const choice = (id, label, options) => {
    const box = h(
      "select",
      { id, onchange: () => send(id, box.value) },
      ...options.map(o => h("option", { value: o }, o)),
    );
    box.value = s[id];
    app.liveControls[id] = box;
    return h("div", { class: "row two" }, h("span", {}, label), box);
  };
  const slider = (id, label, unit, low, high, log = false) => {
    const to = x => (log ? Math.log10(Math.max(x, 10 ** low)) : x),
      from = x => (log ? 10 ** x : x);
    const value = h("output", {}),
      box = h("input", {
        type: "range",
        id,
        min: low,
        max: high,
        step: "any",
        "aria-label": `${label}, ${unit}`,
        oninput: () => {
          value.textContent = `${pb.show(from(+box.value), 3)} ${unit}`;
          app.command({ do: "option", key: id, value: from(+box.value) }, true);
        },
      });
    app.liveControls[id] = {
      set value(x) {
        if (document.activeElement !== box || !box.matches(":active")) {
          box.value = to(x);
          value.textContent = `${pb.show(x, 3)} ${unit}`;
        }
      },
    };
    app.liveControls[id].value = s[id];
    return h("div", { class: "row" }, h("span", { title: label }, label), box, value);
  };
  app.liveControls = {};
  const out = id => {
    const box = h("td", { id });
    return box;
  };
  const facts = h(
    "table",
    { class: "facts" },
    ...[
      ["time", "live-time"],
      ["energy: kinetic", "live-kinetic"],
      ["potential", "live-potential"],
      ["total", "live-total"],
      ["loop residual", "live-residual"],
      ["real-time factor", "live-factor"],
    ]
      .filter(([, id]) => id !== "live-residual" || app.data.looped)
      .map(([label, id]) => h("tr", {}, h("td", {}, label), out(id))),
  );
  app.runButton = h(
    "button",
    { id: "run", title: "run or pause (space)", onclick: () => send("running", !app.live.running) },
    "run",
  );
  host.append(
    pb.section(
      "Live simulation",
      true,
      h(
        "div",
        { class: "buttons" },
        app.runButton,
        h("button", { id: "step", title: "one step (→)", onclick: () => app.command({ do: "step" }) }, "step"),
        h(
          "button",
          { id: "restart", title: "reset to the initial state (R)", onclick: () => app.command({ do: "reset" }) },
          "reset",
        ),
        h(
          "button",
          {
            id: "goal-here",
            title: "the controller's goal becomes the configuration shown",
            onclick: () => app.command({ do: "goal" }),
          },
          "set goal here",
        ),
      ),
      slider("speed", "speed", "×", -2, 0.6, true),
      facts,
      choice("controller", "controller", s.controllers),
      slider("kp", "kp", "1/s²", 0, 4, true),
      slider("kd", "kd", "1/s", -1, 3, true),
      choice("method", "integrator", s.methods),
      choice("step_size", "step", s.steps),
      slider("gravity", "gravity", "m/s²", 0, 20),
      slider("stiffness", "pull stiffness", "N/m", 0, 5, true),
      ...(s.floating ? [choice("base", "base", ["pinned", "free"])] : []),
      ...(s.parameters.length
        ? [h("h3", {}, "Parameters"), ...s.parameters.map(p => slider(p.key, p.label, p.unit, p.low, p.high))]
        : []),
      h("p", { class: "note", id: "live-note" }),
    ),
  );
};
