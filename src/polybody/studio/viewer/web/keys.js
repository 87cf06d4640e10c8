// Keyboard shortcuts, and the page that lists them.

pb.key = (app, e) => {
  if (e.target.matches("input[type=text], input[type=number], select") || e.altKey || e.metaKey || e.ctrlKey) return;
  const act = {
    " ": () => app.playOrPause(),
    ArrowRight: () => app.stepBy(1),
    ArrowLeft: () => app.stepBy(-1),
    r: () => app.reset(),
    f: () => app.frameView(),
    d: () => app.setTheme(app.theme === "dark" ? "light" : "dark"),
    l: () => app.toggle("labels"),
    a: () => app.toggle("frames"),
    j: () => app.toggle("joint axes"),
    m: () => app.toggle("centre of mass"),
    i: () => app.toggle("inertia ellipsoids"),
    g: () => app.toggle("grid"),
    t: () => app.toggle("transparent"),
    p: () => app.picture(),
    c: () => app.togglePanel(),
    h: () => app.online && app.toggleHand(),
    "?": () => pb.showHelp(app),
    Escape: () => {
      app.select(null);
      document.getElementById("help").hidden = true;
    },
    Home: () => app.player && (app.player.pause(), app.player.go(app.player.start)),
    End: () => app.player && (app.player.pause(), app.player.go(app.player.end)),
    "+": () => pb.faster(app, 2),
    "-": () => pb.faster(app, 0.5),
  }[e.key.length === 1 ? e.key.toLowerCase() : e.key];
  if (!act || (e.target.matches("input[type=range]") && e.key.startsWith("Arrow"))) return;
  e.preventDefault();
  act();
};

pb.faster = (app, factor) => {
  if (app.player) {
    const box = app.player.speedBox,
      k = Math.max(0, Math.min(box.options.length - 1, box.selectedIndex + (factor > 1 ? 1 : -1)));
    box.selectedIndex = k;
    app.player.speed = +box.value;
  } else if (app.live)
    app.command({ do: "option", key: "speed", value: Math.max(0.01, Math.min(4, app.live.speed * factor)) });
};

pb.showHelp = app => {
  const { h } = pb,
    box = document.getElementById("help"),
    rows = [
      ["drag", "rotate"],
      ["right or Shift drag, two fingers", "pan"],
      ["wheel, pinch", "zoom"],
      ["click", "select a body, joint or frame"],
      ["Ctrl drag, or hand", app.data.live ? "pull a body with a spring" : "drag a body: inverse kinematics"],
      ["space", "play or pause"],
      ["← →", "one step back or forward"],
      ["Home End", "first, last state"],
      ["R", "reset"],
      ["+ −", "faster, slower"],
      ["F", "fit the view"],
      ["A J M I L", "frames, joint axes, centre of mass, inertia ellipsoids, labels"],
      ["G T", "grid, transparent"],
      ["D", "dark or light theme"],
      ["C", "controls"],
      ["P", "save an image"],
      ["H", "hand"],
      ["Esc", "close"],
    ];
  box.replaceChildren(
    h(
      "div",
      {},
      h("h2", {}, "Keyboard and mouse"),
      h(
        "table",
        { class: "facts" },
        ...rows.map(([a, b]) => h("tr", {}, h("td", {}, h("kbd", {}, a)), h("td", {}, b))),
      ),
      h("p", { class: "note" }, "x red, y green, z blue. Lengths in m, angles in rad, forces in N, moments in N m."),
    ),
  );
  box.hidden = !box.hidden;
  box.onclick = () => {
    box.hidden = true;
  };
};
