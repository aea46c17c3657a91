// The demo is an app that signs a subscriber in and uses the fabric, with only the browser SDK.
// demo-view.js draws its steps. The page needs an element #demo with the server's URL and the app's
// client id.
"use strict";

const { server, issuer, client, fabricHost } = document.querySelector("#demo").dataset;
const here = location.origin + location.pathname;
const app = Selvage.createClient({
  issuer,
  clientId: client, // from `selvage client create --type spa`; such a client has no secret
  redirectUri: here,
  postLogoutRedirectUri: here,
  apiUrl: server,
  scope: "openid profile email offline_access Voice", // Voice: to list recordings
});

const steps = [
  {
    id: "signin",
    title: "Sign in",
    text: "The page goes to the server and comes back with a code, which only this tab can trade for tokens: PKCE, no secret.",
    button: "Sign in",
    needs: () => !app.isSignedIn,
    done: () => app.isSignedIn,
    async run() {
      await app.login(); // handleRedirect() continues after the login
    },
  },
  {
    id: "claims",
    title: "ID token",
    text: "Who signed in, when, and how. It came with the tokens; nothing is asked.",
    button: "Show the claims",
    async run() {
      return app.user;
    },
  },
  {
    id: "info",
    title: "Subscriber info",
    text: "What the fabric knows of the subscriber: the first call with the access token.",
    button: "Ask the fabric",
    async run() {
      return await app.me();
    },
  },
  {
    id: "addresses",
    title: "Addresses",
    text: "What the subscriber can call, page by page.",
    button: "List them",
    async run() {
      const found = [];
      for await (const address of app.addresses.list({ sortBy: "name" })) {
        found.push({ name: address.name, type: address.type, channels: address.channels });
      }
      return found;
    },
  },
  {
    id: "guest",
    title: "Guest link",
    text: "A token for somebody without an account, who reaches one address for an hour, or until the subscriber signs out. The subscriber's own token makes it, so that no API key is in the page; a backend does it with its key.",
    button: "Make a link",
    async run() {
      const { fabric_addresses: [mine] } = await app.me();
      const { token } = await app.guestToken([mine.id], new Date(Date.now() + 3600_000));
      return { link: `${here}#guest=${token}` }; // after the #, so it is not sent to a server
    },
  },
  {
    id: "recording",
    title: "Recording",
    text: "The subscriber's own recordings. This one plays as MP3, which the server makes while it is read.",
    button: "Play one",
    async run() {
      const [recording] = await app.recordings.list().all();
      return { audio: recording.url("mp3"), ...recording.info };
    },
  },
  {
    id: "signout",
    title: "Sign out",
    text: "Ends the login: its tokens are dead in every service within a second.",
    button: "Sign out",
    done: () => sessionStorage.getItem("demo-signed-out") !== null && !app.isSignedIn,
    async run() {
      sessionStorage.setItem("demo-signed-out", "");
      await app.logout(); // leaves the page, and returns
    },
  },
];

/** Shows a guest the addresses that can be reached with the link, and the chat with them. */
async function welcomeGuest(token) {
  const fabric = await Selvage.Fabric({ token, host: server });
  const addresses = await fabric.addresses.list().all();
  void startGuestChat(fabric, addresses).catch(complain);
  return addresses.map((a) => ({ name: a.name, type: a.type, channels: a.channels }));
}

async function start() {
  const guest = new URLSearchParams(location.hash.slice(1)).get("guest");
  if (guest) {
    history.replaceState(null, "", here);
    return view.guest(await welcomeGuest(guest));
  }
  const finished = await view.record("signin", () => app.handleRedirect());
  if (!finished) await app.loginSilently(); // after a reload, the browser still has the login
  if (app.isSignedIn) sessionStorage.removeItem("demo-signed-out");
  if (app.isSignedIn) void startChat().catch(complain);
  view.refresh();
}

const view = drawSteps(document.querySelector("#steps"), steps, () => app.isSignedIn);
app.on("signedout", view.refresh);
document.addEventListener("DOMContentLoaded", () => start().catch(view.fail)); // after the other scripts
