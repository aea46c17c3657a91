// Tells apps that frame this page whether the browser's login has changed since they got their
// session_state (OpenID Connect Session Management 1.0, section 3.2).
addEventListener("message", async ({ data, origin, source }) => {
  if (source && origin !== "null") source.postMessage(await judge(String(data), origin), origin);
});

async function judge(message, origin) {
  const [, client, state] = /^(\S+) (\S+)$/.exec(message) ?? [];
  const salt = state?.split(".")[1];
  const browser = /(?:^|; )(?:__Host-)?selvage-state=([^;]*)/.exec(document.cookie)?.[1];
  if (!salt || !browser || !crypto.subtle) return "error"; // the browser may block our cookies here
  const text = new TextEncoder().encode(`${client} ${origin} ${browser} ${salt}`);
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", text));
  const digest = Array.from(sum, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${digest}.${salt}` === state ? "unchanged" : "changed";
}
