// The chat with its neighbours: the other conversations on the left, things to try on the right.

import { Chat } from "./chat.js";
import { button, h, replace } from "./dom.js";
import { ago, shorten } from "./format.js";
import { get } from "./session.js";
import { TryMe } from "./try-me.js";

const KNOWN = "koboshi.chats";
const KNOWN_MAX = 100;
const TOLD = new Set(["queued", "running", "waiting", "suspended", "failed"]);

export function firstChat() {
  return known()[0]?.chat ?? "main";
}

function known() {
  return JSON.parse(localStorage.getItem(KNOWN) ?? "[]");
}

export class ChatPage {
  constructor(name, page, onState) {
    this.name = name;
    this.chats = known();
    this.wasLost = false;
    this.side = h("nav", { class: "side", "aria-label": "Conversations" });
    this.chat = new Chat(name, {
      onState: (state) => { onState(state); this.onState(state); },
      onDecided: () => this.tryMe.refresh(),
      onTouched: (chat, text) => this.touched(chat, text),
    });
    this.tryMe = new TryMe(page, (text) => { this.say(text); });
    const onkeydown = (event) => { if (event.key === "Escape") this.close(); };
    this.element = h("div", { class: "chat-page", onkeydown }, this.side, this.middle(), this.tryMe.element);
    this.drawSide();
    this.refresh();
    this.timer = setInterval(() => { this.refresh(); this.tryMe.refresh(); }, 15000);
  }

  end() {
    clearInterval(this.timer);
    this.chat.end();
  }

  focus() {
    this.chat.focus();
  }

  say(text) {
    this.close();
    this.chat.say(text);
  }

  middle() {
    const toggle = (words, name) => button(words, () => this.element.classList.toggle(name), { class: `drawer ${name}` });
    const bar = h("div", { class: "chat-bar" }, toggle("Chats", "show-side"), h("h1", {}, this.name), toggle("Try me", "show-try"));
    return h("div", { class: "middle" }, bar, this.chat.element);
  }

  close() {
    this.element.classList.remove("show-side", "show-try");
  }

  onState(state) {
    if (state === "live" && this.wasLost) {
      this.tryMe.refresh();
      // A gateway is reached before it has looked around and said what it found.
      setTimeout(() => this.tryMe.refresh(), 2000);
      this.refresh();
    }
    this.wasLost = state === "lost";
  }

  async refresh() {
    try {
      const { chats } = await get("chats");
      const fresh = chats.filter((each) => each.thread === "");
      const names = new Set(fresh.map((each) => each.chat));
      this.chats = [...fresh, ...known().filter((each) => !names.has(each.chat))];
      this.keep();
    } catch {
      return; // what is shown stays until the gateway is back
    }
    this.drawSide();
  }

  touched(chat, text) {
    if (!this.chats.some((each) => each.chat === chat)) {
      this.chats.unshift({ chat, title: text, state: null, touched_ms: Date.now() });
      this.keep();
      this.drawSide();
    }
  }

  keep() {
    const kept = this.chats.slice(0, KNOWN_MAX).map(({ chat, title, touched_ms }) => ({ chat, title, touched_ms, state: null }));
    localStorage.setItem(KNOWN, JSON.stringify(kept));
  }

  drawSide() {
    const isThere = this.chats.some((each) => each.chat === this.name);
    const all = isThere ? this.chats : [{ chat: this.name, title: "", state: null, touched_ms: null }, ...this.chats];
    const fresh = button("+ New chat", () => { location.hash = `#/chat/${freshName()}`; }, { class: "primary new" });
    replace(this.side, fresh, h("ul", {}, all.map((each) => this.sideItem(each))));
  }

  sideItem(chat) {
    const isHere = chat.chat === this.name;
    const state = TOLD.has(chat.state) ? chat.stands : (chat.touched_ms ? ago(chat.touched_ms) : "new");
    const words = [h("b", {}, shorten(chat.title || chat.chat, 60)), h("small", { class: `state-${chat.stand}` }, `${chat.chat} · ${state}`)];
    const attributes = { href: `#/chat/${encodeURIComponent(chat.chat)}`, "aria-current": isHere ? "page" : null };
    return h("li", {}, h("a", { ...attributes, onclick: () => this.close() }, words));
  }
}

function freshName() {
  const letters = "abcdefghjkmnpqrstuvwxyz23456789";
  const random = crypto.getRandomValues(new Uint8Array(5));
  return `chat-${[...random].map((each) => letters[each % letters.length]).join("")}`;
}
