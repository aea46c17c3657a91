// Forms that ask for a passkey. The script puts the browser's response into the field "credential" and
// submits the form. Without scripts these forms stay hidden.
"use strict";
const decode = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const encode = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const ids = (list) => (list || []).map((c) => ({ ...c, id: decode(c.id) }));

// ask makes the browser create or use a passkey, and returns the response as JSON.
async function ask(form, more) {
  const o = JSON.parse(form.dataset.options);
  const publicKey = { ...o, challenge: decode(o.challenge), allowCredentials: ids(o.allowCredentials), excludeCredentials: ids(o.excludeCredentials) };
  const making = form.dataset.passkey === "create";
  if (making) publicKey.user = { ...o.user, id: decode(o.user.id) };
  const made = await navigator.credentials[making ? "create" : "get"]({ publicKey, ...more });
  const response = {};
  for (const part of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (made.response[part]) response[part] = encode(made.response[part]);
  }
  if (making && made.response.getTransports) response.transports = made.response.getTransports();
  return JSON.stringify({ id: made.id, rawId: encode(made.rawId), type: made.type, response, clientExtensionResults: {} });
}

// sentence returns the page's message for an error, followed by the alternative to a passkey.
function sentence(error, form) {
  const words = JSON.parse(form.dataset.words);
  switch (error.name) {
    case "NotAllowedError":
      return words.cancelled;
    case "InvalidStateError":
      return words.known;
    case "SecurityError":
      return words.elsewhere;
    case "NotSupportedError":
    case "ConstraintError":
      return words.unsupported;
    default:
      return words.failed;
  }
}

function tell(form, text) {
  const place = form.querySelector("[role=alert]");
  place.textContent = text;
  place.hidden = !text;
}

let waiting; // for a passkey that autofill offers in the email field

function send(form, answer) {
  form.elements.credential.value = answer;
  form.submit();
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!window.PublicKeyCredential) {
    if (!form.hidden) {
      form.querySelector("button").disabled = true;
      tell(form, JSON.parse(form.dataset.words).none);
    }
    continue;
  }
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    waiting?.abort();
    tell(form, "");
    try {
      send(form, await ask(form));
    } catch (error) {
      tell(form, sentence(error, form));
    }
  });
  if ("conditional" in form.dataset && PublicKeyCredential.isConditionalMediationAvailable) {
    PublicKeyCredential.isConditionalMediationAvailable().then(async (can) => {
      if (!can) return;
      waiting = new AbortController();
      try {
        send(form, await ask(form, { mediation: "conditional", signal: waiting.signal }));
      } catch (error) {
        if (error.name === "SecurityError") tell(form, sentence(error, form)); // the user started nothing, so ignore other errors
      }
    });
  }
}
