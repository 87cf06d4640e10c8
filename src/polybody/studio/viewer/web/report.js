// The report's plots: every channel of the run, interactive, with one cursor for all.
pb.report = async () => {
  const text = document.getElementById("data").textContent.trim();
  const data = await pb.unpack(Uint8Array.from(atob(text), c => c.charCodeAt(0)));
  const charts = [];
  const seek = t => charts.forEach(chart => chart.cursor(Math.max(data.t[0], Math.min(data.t[data.t.length - 1], t))));
  for (const channel of data.channels) {
    const table = data.tables[channel.key],
      width = channel.items.length;
    if (!table) continue;
    const curves = channel.items.map((item, c) => ({
      key: item.label,
      label: item.label,
      unit: item.unit,
      t: data.t,
      y: Float32Array.from(data.t, (_, k) => table[k * width + c]),
    }));
    const { panels, zero } = pb.panels(curves);
    if (!panels.length) continue; // nothing to see: the reader is not made to look
    const section = document.createElement("section");
    section.dataset.channel = channel.key;
    const title = document.createElement("h2");
    title.textContent = channel.title;
    section.append(title);
    document.getElementById("plots").append(section);
    const own = panels.map(
      panel => new pb.Chart(section, { ...panel, events: data.events, height: 210, onSeek: seek }),
    );
    charts.push(...own);
    const foot = document.createElement("p");
    foot.className = "foot";
    foot.textContent = zero.length ? `zero throughout: ${zero.join(", ")}` : "";
    for (const kind of ["svg", "png", "csv"]) {
      const button = document.createElement("button");
      button.textContent = kind.toUpperCase();
      button.dataset.export = kind;
      button.onclick = () => pb.exportCharts(own, kind, `${data.name} ${channel.key}`);
      foot.append(button);
    }
    section.append(foot);
  }
  addEventListener("resize", () => charts.forEach(chart => chart.draw()));
  seek(data.t[0]);
  window.charts = charts;
};
pb.report();
