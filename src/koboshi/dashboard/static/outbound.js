// What was typed and is not known to be stored. It is kept in this browser with its key, and sent
// again with the same key until the gateway says that it has it: so it arrives, and once.

import { Refused, post } from "./session.js";

const WAIT_MS = 700;
const name = (chat) => `koboshi.unsent.${chat}`;

export class Outbound {
  constructor(chat, onChange) {
    this.chat = chat;
    this.onChange = onChange;
    this.items = read(chat);
    this.isSending = false;
    this.isOver = false;
    this.keepSending();
  }

  send(words) {
    this.items.push({ key: crypto.randomUUID(), words, message: null, failure: null });
    this.save();
    this.keepSending();
  }

  // The gateway has told of a message: if it is one of ours it is no longer ours to show.
  seen(message, text) {
    const found = this.items.find((item) => item.message === message)
      ?? this.items.find((item) => item.message === null && item.failure === null && item.words.text === text);
    if (!found) return;
    if (found.message === null) found.isShown = true;
    else this.items.splice(this.items.indexOf(found), 1);
    this.save();
  }

  // What was refused is tried once more, as a message of its own.
  again(key) {
    const item = this.items.find((each) => each.key === key);
    if (!item) return;
    Object.assign(item, { key: crypto.randomUUID(), failure: null });
    this.save();
    this.keepSending();
  }

  discard(key) {
    this.items = this.items.filter((item) => item.key !== key);
    this.save();
  }

  end() {
    this.isOver = true;
  }

  async keepSending() {
    if (this.isSending) return;
    this.isSending = true;
    for (let item; !this.isOver && (item = this.items.find((each) => each.message === null && !each.failure)); ) {
      await this.sendOne(item);
    }
    this.isSending = false;
  }

  async sendOne(item) {
    try {
      const path = `sessions/${encodeURIComponent(this.chat)}/messages`;
      const { message } = await post(path, { ...item.words, zone: zoneHere() }, { "Idempotency-Key": item.key });
      item.message = message;
      if (item.isShown) this.items.splice(this.items.indexOf(item), 1);
    } catch (error) {
      const isFinal = error instanceof Refused && ![401, 408, 429, 503].includes(error.status);
      if (isFinal) item.failure = error.message;
      else await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    }
    this.save();
  }

  save() {
    const kept = this.items.filter((item) => item.message === null).map(({ key, words }) => ({ key, words }));
    if (kept.length) localStorage.setItem(name(this.chat), JSON.stringify(kept));
    else localStorage.removeItem(name(this.chat));
    this.onChange();
  }
}

// So that "tomorrow at 9" means the clock of the person.
function zoneHere() {
  return Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
}

function read(chat) {
  const kept = JSON.parse(localStorage.getItem(name(chat)) ?? "[]");
  return kept.map((item) => ({ ...item, message: null, failure: null }));
}
