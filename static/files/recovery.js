// Recovery codes can be copied at once, a line each, where the browser has a clipboard;
// where it refuses, they are marked, to be copied by hand.
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
