// Copies all recovery codes, one a line, if the browser has a clipboard. If the browser
// refuses, the codes are selected, to be copied manually.
"use strict";
const copy = document.getElementById("codes-copy");
const list = document.getElementById("recovery-codes");
copy.hidden = !navigator.clipboard;
copy.addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText([...list.children].map((li) => li.textContent + "\n").join(""));
    copy.textContent = copy.dataset.copied;
  } catch {
    getSelection().selectAllChildren(list);
  }
});
