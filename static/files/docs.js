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
const contents = document.getElementById("contents");
if (contents && !find.value) {
  const note = document.createElement("p");
  note.className = "sub";
  note.id = "found";
  note.setAttribute("aria-live", "polite");
  note.hidden = true;
  contents.prepend(note);
  const narrow = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const area of contents.querySelectorAll(".area")) {
      const name = area.querySelector("h3").textContent.toLowerCase();
      let left = 0;
      for (const item of area.querySelectorAll("li")) {
        const text = name + " " + item.textContent.toLowerCase();
        item.hidden = !words.every((w) => text.includes(w));
        left += !item.hidden;
      }
      area.hidden = left === 0;
      found += left;
    }
    for (const heading of contents.querySelectorAll("h2")) {
      let next = heading.nextElementSibling;
      let any = false;
      for (; next && next.tagName !== "H2"; next = next.nextElementSibling) any ||= !next.hidden;
      heading.hidden = !any;
    }
    note.hidden = words.length === 0;
    note.textContent = found === 0 ? "Nothing has that in it." : found === 1 ? "One operation." : found + " operations.";
  };
  find.addEventListener("input", () => {
    narrow();
    if (find.value) contents.scrollIntoView({ block: "start" });
  });
  narrow();
}
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !e.ctrlKey && !e.metaKey && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    e.preventDefault();
    find.focus();
  }
});
