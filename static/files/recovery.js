// Copies all recovery codes, one per line, if the browser permits access to the clipboard. Otherwise
// it selects the codes, so that the user can copy them.
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
