// The chat next to the steps: conversations of the subscriber, or of the guest of a link, with rooms and
// with people. It uses our SDK (app, in demo.js).
"use strict";

const chat = {
  panel: document.querySelector("#chat"),
  with: document.querySelector("#chat-with"),
  log: document.querySelector("#chat-log"),
  form: document.querySelector("#chat-form"),
  text: document.querySelector("#chat-text"),
  error: document.querySelector("#chat-error"),
};

/** Shows what went wrong, or nothing. */
function complain(err) {
  chat.error.hidden = !err;
  chat.error.textContent = err ? `${err.message} ${err.hint ?? ""}` : "";
}

/** Adds a conversation to the choice. */
function offer(id, name) {
  if ([...chat.with.options].some((o) => o.value === id)) return;
  chat.with.add(new Option(name, id));
}

/** Adds a message to the log, in the order in which they were sent. A message that is there is replaced. */
function add(message, me) {
  if (message.conversation_id !== chat.with.value) return;
  chat.log.querySelector(`[data-id="${message.id}"]`)?.remove();
  const at = new Date(message.ts).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const mine = message.user_id === me;
  const item = el("li", mine ? "mine" : "", el("span", "by", `${mine ? say("You") : message.user_name}, ${at}`), el("p", "", message.text));
  item.dataset.id = message.id;
  const later = [...chat.log.children].find((other) => other.dataset.id > message.id);
  chat.log.insertBefore(item, later ?? null);
  chat.log.scrollTop = chat.log.scrollHeight;
}

/** Opens the chat of a token's holder with its conversations. me is the holder's user_id; a guest learns it from its first message. */
async function openChat(messages, me, addresses) {
  for (const address of addresses) offer(address.id, address.display_name);
  for await (const conversation of messages.conversations()) offer(conversation.id, conversation.name || say("Guest"));
  if (!chat.with.options.length) return;

  const show = async () => {
    chat.log.replaceChildren();
    await messages.join(chat.with.value); // for rooms: receive what others write
    const latest = await messages.list(chat.with.value, 50).pages().next();
    for (const message of latest.value ?? []) add(message, me);
  };
  chat.with.onchange = () => show().then(() => complain(), complain);
  chat.form.onsubmit = async (e) => {
    e.preventDefault();
    try {
      const sent = await messages.send(chat.with.value, chat.text.value);
      me ??= sent.user_id;
      add(sent, me);
      chat.text.value = "";
      complain();
    } catch (err) {
      complain(err);
    }
  };
  messages.on((message) => {
    offer(message.conversation_id, message.user_name);
    add(message, me);
  });
  chat.panel.hidden = false;
  await show();
}

async function startChat() {
  const { id, fabric_addresses: own } = await app.me();
  const rooms = await app.addresses.list({ type: "room" }).all();
  const lobby = rooms.filter((room) => room.name === "lobby");
  const people = await app.addresses.list({ type: "subscriber" }).all();
  const others = people.filter((person) => !own.some((address) => address.id === person.id));
  await openChat(app.messages, id, [...lobby, ...others.slice(0, 20)]);
}

/** Opens the chat of a guest with the addresses of its token. */
async function startGuestChat(fabric, addresses) {
  await openChat(fabric.messages, undefined, addresses);
}

app.on("signedout", () => (chat.panel.hidden = true));
