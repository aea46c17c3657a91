// Copy buttons, and a search whose results change as the user types. Without scripts the search is a
// form, and everything else works.
"use strict";
for (const pre of document.querySelectorAll("pre")) {
  const box = document.createElement("div");
  box.className = "copied";
  pre.replaceWith(box);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(pre);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  box.append(pre, button);
}

const find = document.getElementById("find");
if (location.pathname === "/docs") {
  const main = document.getElementById("content");
  const whole = [...main.childNodes];
  const asked = find.value;
  let last = find.value;
  let wait;
  const show = async () => {
    const query = find.value.trim();
    if (query === last) return;
    last = query;
    let shown = whole;
    if (query !== asked) {
      const answer = await fetch("/docs?q=" + encodeURIComponent(query)).catch(() => null);
      if (!answer?.ok) last = null; // so that typing the same query again sends it again
      if (!answer?.ok || find.value.trim() !== query) return;
      shown = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("content").childNodes;
    }
    main.replaceChildren(...shown);
    scrollTo(0, 0);
  };
  find.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(show, 150);
  });
}
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !e.ctrlKey && !e.metaKey && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    e.preventDefault();
    find.focus();
  }
});
