// Draws the steps: the purpose of each step, its code, its requests and their results. The page shows
// the code that actually runs.
"use strict";

// Logins return to the server's own address, so the page moves there first.
const home = new URL(document.querySelector("#demo").dataset.server).origin;
if (location.origin !== home) location.replace(home + location.pathname + location.hash);

/** Returns a text in the language of the page. The server hands the page its translations. */
const said = JSON.parse(document.querySelector("#demo").dataset.words);
const say = (text) => said[text] ?? text;

/** Returns an element with the given tag, class and children. */
function el(tag, name, ...inside) {
  const e = document.createElement(tag);
  if (name) e.className = name;
  e.append(...inside);
  return e;
}

/** Returns text as nodes, with the parts between backticks as code. */
const rich = (text) => text.split("`").map((part, i) => (i % 2 ? el("code", "", part) : part));

// Requests are shown below the step that makes them.
let recording;
const send = window.fetch;
window.fetch = async (resource, init = {}) => {
  const seen = { method: init.method ?? "GET", url: String(resource), headers: init.headers, body: init.body };
  const told = recording;
  told?.push(seen);
  try {
    const answer = await send(resource, init);
    seen.status = `${answer.status} ${answer.statusText}`.trim();
    seen.answer = await answer.clone().text();
    return answer;
  } catch (err) {
    seen.status = "no answer";
    throw err;
  }
};

/** Shortens values that are long or secret. */
const short = (text) => String(text).replace(/[\w-]{24}[\w.-]{60,}/g, (long) => `${long.slice(0, 20)}… (${long.length} characters)`);

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function requestText({ method, url, headers, body }) {
  const lines = [`${method} ${url}`];
  for (const [name, value] of Object.entries(headers ?? {})) lines.push(`${name}: ${value}`);
  if (body) lines.push("", body instanceof URLSearchParams ? [...body].map(([n, v]) => `${n}=${v}`).join("\n&") : pretty(body));
  return short(lines.join("\n"));
}

/** Returns the code of a step: the body of its run(). */
function codeOf(run) {
  const lines = run.toString().split("\n").slice(1, -1);
  const indent = Math.min(...lines.filter((l) => l.trim()).map((l) => l.search(/\S/)));
  return lines.map((l) => l.slice(indent)).join("\n");
}

function copyable(title, text) {
  const pre = el("pre", "", el("code", "", text));
  pre.tabIndex = 0;
  const button = el("button", "copy plain", say("Copy"));
  button.type = "button";
  button.setAttribute("aria-label", `${say("Copy")}: ${title}`);
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = say("Copied");
    } catch {
      getSelection().selectAllChildren(pre);
      button.textContent = say("Selected");
    }
    setTimeout(() => (button.textContent = say("Copy")), 1500);
  };
  return el("figure", "", el("figcaption", "", title), button, pre);
}

function drawSteps(list, steps, signedIn) {
  const drawn = new Map();
  for (const step of steps) {
    const button = el("button", "", say(step.button));
    button.type = "button";
    button.id = `${step.id}-run`;
    const state = el("span", "state");
    const out = el("div", "out");
    out.setAttribute("aria-live", "polite");
    const item = el("li", "step", el("div", "head", el("h2", "", say(step.title)), state, button), el("p", "", ...rich(say(step.text))), copyable(say("Code"), codeOf(step.run)), out);
    item.id = `step-${step.id}`;
    const s = { step, item, button, state, out, seen: [] };
    button.onclick = () => run(s);
    drawn.set(step.id, s);
    list.append(item);
  }

  async function record(s, do_) {
    s.seen = recording = [];
    try {
      return await do_();
    } finally {
      recording = undefined;
    }
  }

  /** Runs a step, and gives up after the number of seconds that the step sets. */
  async function runInTime({ run, seconds }) {
    if (!seconds) return run();
    let timer;
    const late = new Promise((_, reject) => {
      const err = Object.assign(new Error("The server does not answer."), {
        hint: "Run `selvage doctor` on the server's machine. It checks the certificate and the addresses.",
      });
      timer = setTimeout(() => reject(err), 1000 * seconds);
    });
    try {
      return await Promise.race([run(), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async function run(s) {
    s.button.disabled = true;
    s.item.classList.remove("failed");
    s.state.textContent = say("running");
    try {
      const value = await record(s, () => runInTime(s.step));
      s.finished = true;
      show(s, value);
    } catch (err) {
      s.finished = false;
      s.item.classList.add("failed");
      show(s);
      s.out.prepend(el("p", "error", say(err.message), el("br"), el("span", "hint", ...rich(say(err.hint ?? "")))));
    }
    refresh();
  }

  function show(s, value) {
    s.out.replaceChildren();
    for (const seen of s.seen) {
      const { pathname } = new URL(seen.url);
      const summary = el("summary", "", el("span", "method", seen.method), ` ${pathname} `, el("span", "status", seen.status ?? ""));
      s.out.append(el("details", "call", summary, copyable(say("Request"), requestText(seen)), copyable(say("Response"), short(pretty(seen.answer ?? "")))));
    }
    if (value === undefined) return;
    s.out.append(copyable(say("Result"), short(JSON.stringify(value, null, 2))));
    if (value.audio) {
      const audio = el("audio");
      Object.assign(audio, { controls: true, preload: "metadata", src: value.audio });
      s.out.prepend(audio);
      audio.play().catch(() => {}); // some browsers require another click
    }
    if (value.link) {
      const link = el("a", "button", say("Open it as the guest"));
      Object.assign(link, { href: value.link, target: "_blank", rel: "noopener" });
      s.out.prepend(link);
    }
  }

  function refresh() {
    for (const s of drawn.values()) {
      const may = signedIn() || s.step.free;
      s.finished &&= may;
      const done = s.step.done ? s.step.done() : s.finished;
      s.item.classList.toggle("done", Boolean(done));
      s.state.textContent = s.item.classList.contains("failed") ? say("failed") : done ? say("done") : "";
      s.button.disabled = !(s.step.needs ? s.step.needs() : may);
    }
  }

  refresh();
  return {
    refresh,
    /** Shows requests below a step although they are made outside of its run(). */
    async record(id, do_) {
      const s = drawn.get(id);
      const value = await record(s, do_);
      if (s.seen.length > 1) show(s);
      return value;
    },
    fail(err) {
      const s = drawn.get(steps[0].id);
      s.item.classList.add("failed");
      s.out.prepend(el("p", "error", say(err.message), el("br"), el("span", "hint", ...rich(say(err.hint ?? "")))));
      refresh();
    },
    guest(addresses) {
      document.body.classList.add("guest");
      document.querySelector("#guest").hidden = false;
      document.querySelector("#guest-addresses").textContent = JSON.stringify(addresses, null, 2);
    },
  };
}

// The tabs, named after the #.
const tabs = document.querySelectorAll("[role=tab]");
function choose(tab) {
  for (const other of tabs) {
    other.setAttribute("aria-selected", String(other === tab));
    other.tabIndex = other === tab ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).hidden = other !== tab;
  }
  document.getElementById(tab.getAttribute("aria-controls")).dispatchEvent(new Event("opened"));
}
tabs.forEach((tab, i) => {
  tab.onclick = () => choose(tab);
  tab.onkeydown = (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    const next = tabs[(i + step + tabs.length) % tabs.length];
    choose(next);
    next.focus();
  };
});

// The page's source, loaded when the user opens it.
const source = document.querySelector("#source");
source.ontoggle = async () => {
  source.ontoggle = null;
  const text = await (await send(source.dataset.src)).text();
  source.append(copyable("demo.js", text));
};
