// The page for guests with a link. It joins a room, or calls another address, from the browser. The token is
// in the fragment of the URL, which browsers send to no server.
"use strict";

const page = document.querySelector("#join");
const at = (name) => document.querySelector(`#join-${name}`);
const link = new URLSearchParams(location.hash.slice(1));
const token = link.get("token") ?? "";
const patience = 15_000; // how long to wait for the server, in milliseconds
let call; // the current call: its id, node, socket, peer connection and tracks

/** Returns a random UUID. Browsers offer crypto.randomUUID() only to pages on https or on localhost. */
function newID() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40; // version 4
  bytes[8] = (bytes[8] & 0x3f) | 0x80; // the variant of RFC 9562
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Shows a problem, or none. It is the name of a text of the page. */
function complain(problem, detail = "") {
  at("error").hidden = !problem;
  at("error").textContent = problem ? `${page.dataset[problem]} ${detail}`.trim() : "";
}

/** An error with the name of the text that explains it. */
const failure = (problem, detail) => Object.assign(new Error(problem), { problem, detail });

/** Shows how long the link is valid. */
function showExpiry() {
  const until = new Date(Number(link.get("until")) * 1000);
  if (!link.has("until") || Number.isNaN(until.getTime())) return;
  const text = until.toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
  at("until").textContent = page.dataset.until.replace("{}", text);
  at("until").hidden = false;
}

/** Reads the addresses that the token may call, and shows the form. */
async function open() {
  if (!token) return complain("missing");
  showExpiry();
  const answer = await fetch("/api/fabric/addresses", { headers: { Authorization: `Bearer ${token}` } });
  if (answer.status === 401) return complain("over");
  if (!answer.ok) return complain("unreachable");
  const { data } = await answer.json();
  if (!data.length) return complain("over");
  for (const a of data) {
    const [channel] = Object.values(a.channels ?? {});
    if (channel) at("address").add(new Option(a.display_name, channel.split("?")[0]));
  }
  at("addresses").hidden = data.length < 2;
  at("name").textContent = data.length < 2 ? data[0].display_name : page.dataset.choose;
  await listDevices().catch(() => {}); // the form works without the names
  at("form").hidden = false;
}

/** Offers the devices. Their names are known only once the person has permitted their use. */
async function listDevices() {
  const all = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  if (!all.some((d) => d.kind === "audioinput")) at("microphone").value = "none";
  for (const [kind, select] of [["audioinput", at("microphone")], ["videoinput", at("camera")]]) {
    for (const d of all.filter((d) => d.kind === kind && d.deviceId && d.deviceId !== "default" && d.label)) {
      if (![...select.options].some((o) => o.value === d.deviceId)) select.add(new Option(d.label, d.deviceId));
    }
  }
}

/** Opens the chosen microphone and camera. */
async function openDevices() {
  const chosen = ({ value }) => (value === "none" ? false : value === "any" ? true : { deviceId: { exact: value } });
  const audio = chosen(at("microphone"));
  const video = chosen(at("camera"));
  if (!audio && !video) return [];
  if (!navigator.mediaDevices) throw failure("insecure");
  try {
    return (await navigator.mediaDevices.getUserMedia({ audio, video })).getTracks();
  } catch (err) {
    await listDevices();
    throw failure(err.name === "NotAllowedError" ? "denied" : "absent");
  }
}

/** Opens the socket, and returns a function that sends a request and waits for its result. */
async function connect(heard, seen, closed) {
  const socket = new WebSocket(location.origin.replace(/^http/, "ws"));
  const waiting = new Map();
  socket.onmessage = ({ data }) => {
    const { id, method, params, result, error } = JSON.parse(data);
    if (!method) {
      waiting.get(id)?.({ result, error });
      return void waiting.delete(id);
    }
    socket.send(JSON.stringify({ jsonrpc: "2.0", id, result: params?.timestamp ? { timestamp: params.timestamp } : {} }));
    if (params?.event_type === "webrtc.message") heard(params.params, params.node_id);
    else seen(params?.event_type, params?.params);
  };
  socket.onclose = closed;
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(failure("unreachable"));
  });
  const ask = (method, params) =>
    new Promise((resolve, reject) => {
      const id = newID();
      const timer = setTimeout(() => reject(failure("unreachable")), patience);
      waiting.set(id, ({ result, error }) => {
        clearTimeout(timer);
        if (error) reject(failure(error.code === -32002 ? "over" : "unreachable", error.message));
        else resolve(result);
      });
      socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    });
  return { socket, ask };
}

/** Returns the description of a connection that sends the tracks, with all candidates. */
async function describe(peer, tracks) {
  for (const kind of ["audio", "video"]) {
    const track = tracks.find((t) => t.kind === kind);
    peer.addTransceiver(track ?? kind, { direction: track ? "sendrecv" : "recvonly" });
  }
  await peer.setLocalDescription();
  await new Promise((resolve) => {
    const check = () => peer.iceGatheringState === "complete" && resolve();
    peer.addEventListener("icegatheringstatechange", check);
    setTimeout(resolve, 3000); // some networks keep a server waiting
    check();
  });
  return peer.localDescription.sdp;
}

/** Sends a message about the call. */
function verto(c, method, params) {
  const dialogParams = { callID: c.id, destination_number: c.to, audio: true, video: true };
  const message = { jsonrpc: "2.0", id: newID(), method, params: { dialogParams, ...params } };
  return c.ask("webrtc.verto", { callID: c.id, node_id: c.node, message });
}

/** Handles a message of the server about the call. */
async function heard(c, { method, params }, node) {
  if (params?.callID !== c.id) return;
  c.node = node ?? c.node;
  if (method === "verto.bye") return end(c, "ended");
  if (params.sdp && !c.peer.currentRemoteDescription) {
    await c.peer.setRemoteDescription({ type: "answer", sdp: params.sdp });
  }
  if (method === "verto.answer" && call === c) at("status").textContent = page.dataset.joined;
}

/** Handles an event about the members of the room. */
function seen(c, event, about) {
  if (event === "call.joined") c.members = new Set(about.room_session.members.map((m) => m.member_id));
  else if (event === "member.joined") c.members?.add(about.member.member_id);
  else if (event === "member.left") c.members?.delete(about.member.member_id);
  if (call === c) at("alone").hidden = c.members?.size !== 1;
}

async function join() {
  const c = { id: newID(), node: "", to: at("address").value, tracks: [] };
  call = c;
  at("submit").disabled = true;
  at("over").hidden = true;
  complain();
  try {
    c.tracks = await openDevices();
    await listDevices();
    Object.assign(c, await connect(
      (message, node) => heard(c, message, node),
      (event, about) => seen(c, event, about),
      () => end(c, "lost"),
    ));
    const version = { major: 4, minor: 0, revision: 0 };
    const { ice_servers } = await c.ask("signalwire.connect", { version, authentication: { jwt_token: token } });
    c.peer = new RTCPeerConnection({ iceServers: ice_servers ?? [] });
    const shown = new MediaStream();
    at("video").srcObject = shown;
    c.peer.ontrack = ({ track }) => shown.addTrack(track);
    c.peer.onconnectionstatechange = () => c.peer.connectionState === "failed" && end(c, "lost");
    const { code, message, node_id } = await verto(c, "verto.invite", { sdp: await describe(c.peer, c.tracks) });
    if (code !== "200") throw failure("refused", message);
    c.node = node_id;
    showCall(c);
  } catch (err) {
    end(c, err.problem ?? "unreachable", err.detail);
  }
}

/** Shows the call, or the form if there is none. */
function showCall(c) {
  at("form").hidden = Boolean(c);
  at("call").hidden = !c;
  at("submit").disabled = false;
  if (!c) return at("submit").focus();
  const microphone = c.tracks.some((t) => t.kind === "audio");
  at("mute").hidden = !microphone;
  showMute(false);
  if (at("status").textContent !== page.dataset.joined) at("status").textContent = page.dataset.joining;
  at("leave").focus();
}

function showMute(muted) {
  at("mute").textContent = muted ? page.dataset.unmute : page.dataset.mute;
}

/** Ends the call, and shows why it ended. */
function end(c, problem, detail) {
  if (c.over) return;
  c.over = true;
  c.tracks.forEach((t) => t.stop());
  c.peer?.close();
  c.socket?.close();
  if (call !== c) return;
  call = undefined;
  at("video").srcObject = null;
  at("video").classList.remove("shown");
  at("alone").hidden = true;
  at("status").textContent = "";
  showCall();
  at("over").hidden = problem !== "ended";
  if (problem !== "ended") complain(problem, detail);
}

/** Leaves the call. */
async function leave() {
  const c = call;
  await verto(c, "verto.bye", { cause: "NORMAL_CLEARING", causeCode: "16" }).catch(() => {});
  end(c);
}

at("video").onresize = () => at("video").classList.toggle("shown", at("video").videoWidth > 0);
at("form").onsubmit = (e) => {
  e.preventDefault();
  if (!call) void join();
};
at("leave").onclick = () => call && void leave();
at("mute").onclick = () => {
  const track = call.tracks.find((t) => t.kind === "audio");
  track.enabled = !track.enabled;
  showMute(!track.enabled);
};
addEventListener("pagehide", () => call && void leave());
addEventListener("hashchange", () => location.reload()); // another link was opened in this tab
open().catch(() => complain("unreachable"));
