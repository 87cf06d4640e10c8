// Start of the page: data within it, or from the program that serves it.
pb.begin = async () => {
  const text = document.getElementById("data").textContent.trim();
  let bytes,
    online = null;
  try {
    if (text) bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
    else {
      const answer = await fetch("scene.bin");
      if (!answer.ok) throw new Error(`the scene could not be loaded (${answer.status})`);
      bytes = await answer.arrayBuffer();
      online =
        location.href
          .replace(/^http/, "ws")
          .replace(/[?#].*$/, "")
          .replace(/\/$/, "") + "/socket";
    }
    window.polybody = new pb.App(await pb.unpack(bytes), online);
  } catch (error) {
    const box = document.getElementById("notice");
    box.hidden = false;
    box.textContent = `the page could not be displayed: ${error.message}`;
    throw error;
  }
};
pb.begin();
