// In low windows, the links of the rail scroll. The link of the current page is visible at first.
const places = document.querySelector(".rail .places");
const here = places?.querySelector("[aria-current]");
if (here) {
  const below = here.getBoundingClientRect().bottom - places.getBoundingClientRect().bottom;
  if (below > 0) places.scrollTop = below + 60; // with the next links
}

// Escape closes a menu.
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && event.target.closest("details.menu[open], details.switch[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

// Copy buttons. Everything else works without scripts.
const copy = async (button) => {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    return true;
  } catch { // without HTTPS, or if the browser refuses
    return false;
  }
};
for (const button of document.querySelectorAll("button[data-copy]")) {
  const usual = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const copied = await copy(button);
    button.textContent = copied ? document.body.dataset.copied : document.body.dataset.uncopied;
    if (!copied) getSelection().selectAllChildren(button.previousElementSibling);
    setTimeout(() => { button.textContent = usual; }, copied ? 1500 : 5000);
  });
}

// A new secret or link is copied when its page opens. Browsers that only copy after a click leave the
// button, which then has the focus.
const made = document.querySelector("button[data-now]");
if (made) {
  made.focus({ preventScroll: true });
  copy(made).then((copied) => { if (copied) made.textContent = document.body.dataset.copied; });
}

// Items in a list ordered by preference can be moved up.
for (const button of document.querySelectorAll("button[data-up]")) {
  button.hidden = false;
  button.addEventListener("click", (event) => {
    event.preventDefault();
    const row = button.closest(".choice");
    if (row.previousElementSibling?.matches(".choice")) {
      row.previousElementSibling.before(row);
      button.focus();
    }
  });
}

// The player replaces the browser's controls, which do not know the length before they load the file. It
// colors the played part. A click on the waveform seeks. A button copies a link to the time.
const player = document.getElementById("player");
if (player) {
  const sound = document.getElementById("sound");
  const length = Number(player.dataset.length);
  const played = player.querySelectorAll("clipPath rect");
  const clock = document.getElementById("clock");
  const time = (s) => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`;
  const show = () => {
    for (const rect of played) rect.setAttribute("width", String((480 * sound.currentTime) / length));
    clock.textContent = `${time(sound.currentTime)} / ${time(Math.round(length))}`;
    position.value = sound.currentTime;
    position.setAttribute("aria-valuetext", clock.textContent);
  };
  const toggle = () => { sound.paused ? sound.play() : sound.pause(); };
  const play = document.getElementById("play"), position = document.getElementById("position");
  const paused = play.textContent;
  sound.controls = false;
  play.addEventListener("click", toggle);
  for (const event of ["play", "pause"]) sound.addEventListener(event, () => { play.textContent = sound.paused ? paused : play.dataset.playing; });
  position.addEventListener("input", () => seek(Number(position.value)));
  const seek = (to) => {
    const at = Math.min(Math.max(to, 0), length);
    if (sound.readyState > 0) sound.currentTime = at;
    else {
      sound.addEventListener("loadedmetadata", () => { sound.currentTime = at; }, { once: true });
      sound.preload = "metadata";
      sound.load();
    }
  };
  for (const row of player.querySelectorAll(".controls")) row.hidden = false;
  for (const event of ["timeupdate", "seeked", "loadedmetadata"]) sound.addEventListener(event, show);
  for (const svg of player.querySelectorAll("svg")) {
    svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect();
      seek(((event.clientX - box.left) / box.width) * length);
    });
  }
  for (const button of player.querySelectorAll("[data-skip]")) {
    button.addEventListener("click", () => seek(sound.currentTime + Number(button.dataset.skip)));
  }
  const speed = document.getElementById("speed");
  speed.addEventListener("change", () => { sound.playbackRate = Number(speed.value); });
  const link = document.getElementById("copy-at");
  const named = link.textContent;
  link.hidden = !navigator.clipboard; // without HTTPS
  link.addEventListener("click", async () => {
    await navigator.clipboard.writeText(`${link.dataset.base}?t=${sound.currentTime.toFixed(1)}`);
    link.textContent = document.body.dataset.copied;
    setTimeout(() => { link.textContent = named; }, 1500);
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, textarea, button, a, summary, audio") || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 10 : 1;
    if (event.key === " ") toggle();
    else if (event.key === "ArrowLeft") seek(sound.currentTime - step);
    else if (event.key === "ArrowRight") seek(sound.currentTime + step);
    else return;
    event.preventDefault();
  });
}

// An upload shows its progress. The response is the page that a plain form would show next.
const upload = document.querySelector("form[data-upload]");
if (upload) {
  upload.addEventListener("submit", (event) => {
    event.preventDefault();
    const bar = document.getElementById("upload-progress");
    const button = document.getElementById("upload-submit");
    const ask = new XMLHttpRequest();
    const plainly = () => { bar.hidden = true; button.disabled = false; upload.submit(); };
    bar.hidden = false;
    button.disabled = true;
    ask.upload.addEventListener("progress", (e) => { if (e.lengthComputable) bar.value = e.loaded / e.total; });
    ask.addEventListener("load", () => {
      if (ask.status < 400) return location.assign(ask.responseURL);
      const main = new DOMParser().parseFromString(ask.responseText, "text/html").querySelector("main");
      if (!main) return plainly(); // a proxy has refused the upload: the browser shows its page
      document.querySelector("main").replaceWith(main);
      location.hash = "faults";
    });
    ask.addEventListener("error", plainly);
    ask.open("POST", upload.action);
    ask.send(new FormData(upload));
  });
}

// The form of a new resource shows the address that the resource will have. The server computes it.
for (const told of document.querySelectorAll("[data-tells]")) {
  const form = told.closest("form");
  const names = told.dataset.names.split(" ");
  const usual = told.textContent;
  let waiting = 0, asked = 0;
  form.addEventListener("input", (event) => {
    if (!names.includes(event.target.name)) return;
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const turn = ++asked;
      const said = new URLSearchParams({ form: form.elements.form.value });
      for (const name of names) if (form.elements[name]) said.set(name, form.elements[name].value);
      const answer = await fetch(told.dataset.tells, { method: "POST", body: said });
      const text = answer.ok ? await answer.text() : "";
      if (turn === asked) told.textContent = text || usual;
    }, 250);
  });
}

// Fields with suggestions ask the server for matches.
for (const typed of document.querySelectorAll("input[data-finds][list]")) {
  let waiting = 0, asked = 0;
  typed.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const turn = ++asked;
      const answer = await fetch(typed.dataset.finds, { method: "POST", body: new URLSearchParams({ form: typed.form.elements.form.value, text: typed.value }) });
      if (!answer.ok) return;
      const found = await answer.json();
      if (turn !== asked) return;
      typed.list.replaceChildren(...found.map(([value, title]) => Object.assign(new Option(title, value), { textContent: title })));
    }, 250);
  });
}

// An area of lines has a field with suggestions that adds a line.
for (const adder of document.querySelectorAll("[data-adds]")) {
  const area = document.getElementById(adder.dataset.adds), typed = adder.querySelector("input");
  const add = () => {
    const line = typed.value.trim();
    const lines = area.value.split("\n").map((l) => l.trim()).filter(Boolean);
    if (line && !lines.includes(line)) area.value = [...lines, line].join("\n");
    typed.value = "";
    typed.focus();
    area.dispatchEvent(new Event("input", { bubbles: true }));
  };
  adder.hidden = false;
  adder.querySelector("button").addEventListener("click", add);
  typed.addEventListener("keydown", (e) => {
    if (e.key !== "Enter") return;
    e.preventDefault();
    add();
  });
}

// A color is typed or picked; each input follows the other.
for (const picker of document.querySelectorAll("input[data-picks]")) {
  const typed = document.getElementById(picker.dataset.picks);
  const follow = () => {
    const text = typed.value.trim();
    picker.value = /^#[0-9a-f]{6}$/i.test(text) ? text : typed.placeholder;
  };
  picker.hidden = false;
  follow();
  typed.addEventListener("input", follow);
  picker.addEventListener("input", () => {
    typed.value = picker.value;
    typed.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

// The preview follows the form. The server draws it, because it decides which colors are readable.
const brand = document.querySelector("form[data-preview]");
if (brand) {
  let waiting = 0;
  brand.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const answer = await fetch(`${brand.action}/preview`, { method: "POST", body: new FormData(brand) });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.getElementById("preview").replaceWith(page.getElementById("preview"));
    }, 250);
  });
}

// When the server has newer data, a page offers to reload, or replaces the elements with the given ids.
const follow = (live) => {
  const stream = new EventSource(live.dataset.live);
  stream.addEventListener("new", async () => {
    stream.close();
    if (!live.dataset.replaces) {
      live.hidden = false;
      return;
    }
    const answer = await fetch(location.href).catch(() => null);
    if (answer?.redirected) return location.reload(); // the session has ended
    if (!answer?.ok) return setTimeout(() => follow(live), 10_000); // the server may be restarting
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const id of live.dataset.replaces.split(" ")) {
      document.getElementById(id)?.replaceChildren(...page.getElementById(id)?.childNodes ?? []);
    }
    live.dataset.live = page.querySelector("[data-live]")?.dataset.live ?? "";
    if (live.dataset.live) follow(live);
  });
  stream.addEventListener("end", () => { // also if the session has a new cookie; if it has ended, this fails
    stream.close();
    follow(live);
  });
};
const live = document.querySelector("[data-live]");
if (live) follow(live);

// The palette: "/" or Ctrl-K opens the search above any page. Its results are those of the search page.
const seek = document.querySelector("[data-seek]");
if (seek) {
  const palette = document.createElement("dialog");
  palette.className = "palette";
  const input = Object.assign(document.createElement("input"), { type: "search", autocomplete: "off", spellcheck: false });
  const results = Object.assign(document.createElement("div"), { className: "results" });
  palette.setAttribute("aria-label", seek.dataset.label);
  input.setAttribute("aria-label", seek.dataset.hint);
  input.placeholder = seek.dataset.hint;
  results.setAttribute("aria-live", "polite");
  palette.append(input, results);
  let waiting = 0, asked = 0;
  const find = async () => {
    const turn = ++asked;
    const answer = await fetch(`${seek.href}?${new URLSearchParams({ q: input.value })}`);
    if (!answer.ok || turn !== asked) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    results.replaceChildren(...page.querySelectorAll("#hits"));
  };
  const open = () => {
    if (!palette.isConnected) document.body.append(palette);
    if (!palette.open) palette.showModal();
    input.select();
    find();
  };
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(find, 150);
  });
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
  palette.addEventListener("keydown", (event) => {
    const links = [...results.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) (links[at + step] ?? (step < 0 ? input : links[0]))?.focus();
    else if (event.key === "Enter" && event.target === input) links[0]?.click();
    else if (event.key === "Escape") palette.close(); // Chromium's search fields keep this key
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea, [contenteditable]");
    const keys = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !typing
      || event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey;
    if (!keys || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    open();
  });
  for (const link of document.querySelectorAll("[data-seek]")) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      open();
    });
  }
}

// Actions on several rows appear once a row is selected, and a box selects all rows.
const bulk = document.getElementById("bulk");
if (bulk) {
  const boxes = [...document.querySelectorAll("input[form=bulk][type=checkbox]")];
  const head = document.querySelector("th.tick");
  const all = Object.assign(document.createElement("input"), { type: "checkbox" });
  all.setAttribute("aria-label", head.textContent);
  if (boxes.length > 0) head.replaceChildren(all);
  const show = () => {
    const n = boxes.filter((b) => b.checked).length;
    bulk.toggleAttribute("data-none", n === 0);
    all.checked = n > 0 && n === boxes.length;
    all.indeterminate = n > 0 && n < boxes.length;
  };
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    show();
  });
  for (const box of boxes) box.addEventListener("change", show);
  addEventListener("pageshow", show);
  show();
}
