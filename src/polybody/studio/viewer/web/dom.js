// Elements of the page, icons on buttons, sections of the side panel.
pb.h = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made[name] = value;
    else if (typeof value === "boolean") {
      if (value) made.setAttribute(name, "");
    } else if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter(c => c !== null && c !== undefined));
  return made;
};

// Icons on buttons, drawn here because fonts differ between machines.
pb.icons = {
  frame: "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4M6 6h4v4H6z",
  hand: "M4 9V5.5a1 1 0 0 1 2 0V3a1 1 0 0 1 2 0v-.5a1 1 0 0 1 2 0V4a1 1 0 0 1 2 0v6c0 3-1.500 4.500-4 4.500S4.500 13 2.500 9.500c-.6-1.100.7-1.900 1.500-.500",
  theme: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 2v12M8 5h4.500M8 8h6M8 11h4.500",
  picture: "M8 2v8M4.500 7 8 10.500 11.500 7M2 11v3h12v-3",
  menu: "M2 4h12M2 8h12M2 12h12",
  help: "M5.500 6a2.500 2.500 0 1 1 3.500 2.300c-.7.400-1 .9-1 1.700M8 12.800v.400",
  play: "M4 2.500v11l9-5.500z",
  pause: "M4.500 3v10M11.500 3v10",
  first: "M3 3v10M13 3 6 8l7 5z",
  back: "M11 3 5 8l6 5z",
  next: "M5 3l6 5-6 5z",
  loop: "M3 8a5 5 0 0 1 9-3M13 2v3h-3M13 8a5 5 0 0 1-9 3M3 14v-3h3",
  close: "M4 4l8 8M12 4l-8 8",
};
pb.icon = name => {
  const span = document.createElement("span");
  const filled = ["play", "first", "back", "next"].includes(name);
  span.className = "glyph";
  span.innerHTML = `<svg width="15" height="15" viewBox="0 0 16 16" fill="${filled ? "currentColor" : "none"}" stroke="currentColor" stroke-width="${name === "pause" ? 3 : 1.5}" stroke-linejoin="round" stroke-linecap="round"><path d="${pb.icons[name]}"/></svg>`;
  return span;
};

pb.section = (title, open, ...children) =>
  pb.h("details", { open, "data-section": title }, pb.h("summary", {}, title), ...children);
