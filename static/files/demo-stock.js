// The second tab: the stock @signalwire/js, unmodified, against this server. Our SDK
// (app, in demo.js) passes it a token, whose host leads it to the server.
"use strict";

let stock; // the client that SignalWire() returns

const stockSteps = [
  {
    id: "certificate",
    title: "Certificate",
    text: "That SDK speaks HTTPS and WSS only. Does this browser trust the server's certificate there?",
    button: "Look",
    free: true, // needs no login
    async run() {
      const address = `https://fabric.${fabricHost.slice(fabricHost.indexOf(".") + 1)}`;
      try {
        const answer = await fetch(`${address}/.well-known/openid-configuration`);
        return { trusted: address, status: answer.status };
      } catch {
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
    id: "online",
    title: "Online",
    text: "Now the fabric knows that the subscriber can be reached: `selvage subscriber show` says so. Calls are not carried yet.",
    button: "online()",
    needs: () => stock,
    async run() {
      await stock.online({ incomingCallHandlers: { all() {} } });
      return { online: true };
    },
  },
  {
    id: "disconnect",
    title: "Disconnect",
    text: "Closes the socket. The login goes on.",
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

const stockView = drawSteps(document.querySelector("#stock-steps"), stockSteps, () => app.isSignedIn);
for (const event of ["signedin", "signedout"]) app.on(event, stockView.refresh);
