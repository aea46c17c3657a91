// Each form is sent once, however often its button is clicked. A form that downloads a file does not
// leave the page, so it may be sent again.
for (const form of document.querySelectorAll("form[method=post]:not([data-download])")) {
  form.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
}
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// A form that was sent after the session ended, or without a recent confirmation, leads to the page
// for that and back, where it is filled in again.
const door = document.getElementById("unsent-signin");
if (door) {
  sessionStorage.setItem("unsent", "yes");
  location.replace(door.dataset.return);
}

// What was typed comes back after an expired session or with the back button. Secrets are not kept.
// The account page shows a draft until something was saved. Drafts belong to one subscriber or operator.
const main = document.querySelector("main[data-restored]");
if (main) {
  const forms = [...main.querySelectorAll("form[method=post]")];
  const rows = ["embed", "factor", "id", "project"]; // hidden fields that tell the forms of a list apart
  const name = (form) => [form.getAttribute("action"),
    ...[...form.elements].filter((e) => e.type === "hidden" && rows.includes(e.name)).map((e) => e.value)].join(" ");
  const page = main.dataset.drafts ?? `${main.dataset.owner} ${location.pathname}`;
  const key = (form) => {
    const same = forms.filter((other) => name(other) === name(form));
    return `draft ${page} ${name(form)} ${same.indexOf(form)}`;
  };
  const isKept = (e) => e.name && !["hidden", "password", "file", "submit", "button"].includes(e.type)
    && e.autocomplete !== "one-time-code" && !("secret" in e.dataset);
  const fields = (form) => [...form.elements].filter(isKept);
  const isChoice = (e) => e.type === "checkbox" || e.type === "radio";
  const state = (form) => fields(form).map((e) => (isChoice(e) ? e.checked : e.value));
  const doors = /^\/dashboard\/(login|confirm|factor|enrol)/;
  let isRestored = false;
  const from = document.referrer && new URL(document.referrer);
  const again = main.dataset.drafts
    ? !new URLSearchParams(location.search).has("done")
    : performance.getEntriesByType("navigation")[0]?.type === "back_forward"
      || from && from.origin === location.origin && doors.test(from.pathname);
  for (const form of forms) {
    const kept = sessionStorage.getItem(key(form));
    if (kept && again && !document.getElementById("faults") && kept !== JSON.stringify(state(form))) {
      const values = JSON.parse(kept);
      const all = fields(form);
      if (values.length === all.length) {
        all.forEach((e, i) => {
          if (isChoice(e)) e.checked = values[i];
          else e.value = values[i];
        });
        isRestored = true;
      }
    } else if (!again) sessionStorage.removeItem(key(form));
    form.addEventListener("input", () => sessionStorage.setItem(key(form), JSON.stringify(state(form))));
  }
  const isUnsent = again && sessionStorage.getItem("unsent");
  sessionStorage.removeItem("unsent");
  const text = isRestored ? main.dataset.restored : isUnsent && main.dataset.unsent;
  if (text) {
    const told = Object.assign(document.createElement("p"), { className: "notice", role: "status", textContent: text });
    main.querySelector(".head") ? main.querySelector(".head").after(told) : main.prepend(told);
  }
  for (const out of document.querySelectorAll("form[action='/dashboard/logout']")) {
    out.addEventListener("submit", () => sessionStorage.clear());
  }
}
