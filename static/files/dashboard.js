// Copy buttons: all else works without.
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    const was = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = was; }, 1500);
  });
}

// What is in an order of preference can be moved up.
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
