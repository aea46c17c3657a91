// The second tab: the unmodified stock @signalwire/js with this server. Our SDK (app, in demo.js)
// passes it a token, which contains the server's host.
"use strict";

let trusted; // whether this browser trusts the server's certificate
let stock; // the client that SignalWire() returns
let invite; // a call that rings
let call; // the call in progress

/** Tells the steps when a call begins and ends. */
function follow(session) {
  call = session;
  call.once("destroy", () => {
    call = undefined;
    stockView.refresh();
  });
}

/** Returns how the audio of a call reaches the server, once it does. */
async function mediaPath(session) {
  for (const end = Date.now() + 5000; Date.now() < end; ) {
    const stats = await session.peer.instance.getStats();
    const pair = [...stats.values()].find((s) => s.type === "candidate-pair" && s.nominated && s.state === "succeeded");
    if (pair) {
      const { protocol, address, port } = stats.get(pair.remoteCandidateId);
      const relayed = stats.get(pair.localCandidateId).candidateType === "relay";
      return { transport: relayed ? "turn" : protocol, server: `${address}:${port}`, round_trip_ms: 1000 * (pair.currentRoundTripTime ?? 0) };
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw Object.assign(new Error("The server answered, but no audio reaches it."), {
    hint: "Run `selvage doctor` on the server's machine. It checks the addresses and the port of media.",
  });
}

const stockSteps = [
  {
    id: "certificate",
    title: "Certificate",
    text: "That SDK speaks HTTPS and WSS only. Does this browser trust the server's certificate there?",
    button: "Check it",
    free: true, // needs no login
    async run() {
      const address = `https://fabric.${fabricHost.slice(fabricHost.indexOf(".") + 1)}`;
      try {
        const answer = await fetch(`${address}/.well-known/openid-configuration`);
        trusted = true;
        return { trusted: address, status: answer.status };
      } catch {
        trusted = false;
        throw Object.assign(new Error(`This browser does not trust the certificate of ${address}.`), {
          hint: "Run `selvage ca install` on this machine, start the browser again, and look once more.",
        });
      }
    },
  },
  {
    id: "connect",
    title: "Connect",
    text: "SignalWire() opens a WebSocket and authenticates before it resolves.",
    button: "Connect",
    needs: () => trusted && app.isSignedIn && window.SignalWire,
    seconds: 10, // the SDK does not give up by itself
    async run() {
      const options = await app.signalwireOptions(); // { host, token, onRefreshToken }
      stock = await SignalWire.SignalWire(options);
      app.attach(stock); // passes each new token on before the old one expires
      return { connected: fabricHost };
    },
  },
  {
    id: "stock-info",
    title: "Subscriber info",
    text: "The same as in the first tab, by HTTPS to the host that begins with `fabric.`",
    button: "getSubscriberInfo()",
    needs: () => stock,
    async run() {
      return await stock.getSubscriberInfo();
    },
  },
  {
    id: "stock-addresses",
    title: "Addresses",
    text: "A page of them; it has nextPage().",
    button: "getAddresses()",
    needs: () => stock,
    async run() {
      const page = await stock.address.getAddresses({ sortBy: "name", sortOrder: "asc" });
      return page.data.map((a) => ({ name: a.name, type: a.type, channels: a.channels }));
    },
  },
  {
    id: "echo",
    title: "Echo call",
    text: "Each project has an address that sends back what it receives. Speak, and hear yourself; the browser asks for the microphone. The result shows how your audio reaches the server.",
    button: "Call it",
    needs: () => stock && !call,
    async run() {
      follow(await stock.dial({ to: "/public/echo", audio: true, video: false }));
      await call.start(); // resolves once the call is answered
      return { call: call.callId, state: "answered", media: await mediaPath(call) };
    },
  },
  {
    id: "hangup",
    title: "Hang up",
    text: "The call ends for both sides. The dashboard keeps its record: who, how long, and the quality.",
    button: "hangup()",
    needs: () => call,
    async run() {
      const id = call.callId;
      await call.hangup();
      return { call: id, state: "ended" };
    },
  },
  {
    id: "online",
    title: "Online",
    text: "Now the subscriber can be called. Open this page in a second tab, connect there, and call this one.",
    button: "online()",
    needs: () => stock,
    async run() {
      const ring = (notification) => {
        invite = notification.invite;
        stockView.refresh();
      };
      await stock.online({ incomingCallHandlers: { all: ring } });
      return { online: true };
    },
  },
  {
    id: "other",
    title: "Call the other tab",
    text: "Rings wherever this subscriber is online, for a minute.",
    button: "Call it",
    needs: () => stock && !call,
    async run() {
      const { fabric_addresses: [mine] } = await app.me();
      follow(await stock.dial({ to: mine.channels.audio, audio: true, video: false }));
      await call.start();
      return { call: call.callId, state: "answered" };
    },
  },
  {
    id: "answer",
    title: "Answer",
    text: "The first device that answers has the call; the others stop ringing.",
    button: "accept()",
    needs: () => invite && !call,
    async run() {
      follow(await invite.accept({ audio: true, video: false }));
      invite = undefined;
      return { call: call.callId, state: "answered" };
    },
  },
  {
    id: "disconnect",
    title: "Disconnect",
    text: "Closes the socket. The login continues.",
    button: "disconnect()",
    needs: () => stock,
    async run() {
      await stock.offline();
      await stock.disconnect();
      stock = undefined;
      return { connected: null };
    },
  },
];

// The page has this notice only if the server's media is on loopback.
const notice = document.querySelector("#firefox");
if (notice) notice.hidden = !navigator.userAgent.includes("Firefox/");

// The browser loads the SDK when the tab is first opened.
const panel = document.querySelector("#stock");
panel.addEventListener("opened", () => {
  const script = document.createElement("script");
  Object.assign(script, { src: panel.dataset.sdk, integrity: panel.dataset.integrity, crossOrigin: "anonymous" });
  script.onload = () => {
    document.querySelector("#stock-missing").hidden = Boolean(window.SignalWire);
    stockView.refresh();
  };
  script.onerror = () => (document.querySelector("#stock-missing").hidden = false);
  document.head.append(script);
}, { once: true });

const stockView = drawSteps(document.querySelector("#stock-steps"), stockSteps, () => app.isSignedIn);
for (const event of ["signedin", "signedout"]) app.on(event, stockView.refresh);
