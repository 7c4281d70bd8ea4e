// The chats of this gateway: pinned ones on top, archived ones put away; what was said in them can be searched.

import { openMenu } from "./chat-menu.js";
import { h, iconButton, replace } from "./dom.js";
import { ago, shorten } from "./format.js";
import { icon } from "./icons.js";
import { get, isLocked } from "./session.js";

const KNOWN = "koboshi.chats";
const KNOWN_MAX = 100;
const LOOK_MS = 15000;
const SEARCH_MS = 250;
const TOLD = new Set(["queued", "running", "waiting", "suspended", "failed"]);

function known() {
  return JSON.parse(localStorage.getItem(KNOWN) ?? "[]");
}

export class ChatList {
  constructor(onChosen) {
    this.onChosen = onChosen;
    this.here = null;
    this.all = known();
    this.hits = null;
    this.element = h("nav", { class: "chats", "aria-label": "Chats" });
    this.input = h("input", { type: "search", placeholder: "Search", "aria-label": "Search chats", autocomplete: "off", oninput: () => this.searchSoon() });
    this.search = h("div", { class: "find", role: "search", "aria-label": "Chats" }, icon("search"), this.input);
    setInterval(() => { if (!isLocked()) this.refresh(); }, LOOK_MS);
  }

  first() {
    return this.all.find((each) => !each.is_archived)?.chat ?? "main";
  }

  titleOf(chat) {
    return this.all.find((each) => each.chat === chat)?.title || "New chat";
  }

  focusSearch() {
    document.body.classList.add("show-side");
    this.input.focus();
  }

  async refresh() {
    if (isLocked()) return;
    try {
      const { chats } = await get("chats");
      this.all = chats.filter((each) => each.thread === "");
    } catch {
      return; // what is shown stays until the gateway is back
    }
    this.keep();
    this.draw();
    this.onRefreshed?.();
  }

  touched(chat, text) {
    if (this.all.some((each) => each.chat === chat)) return;
    this.all.unshift({ chat, title: text, state: null, touched_ms: Date.now() });
    this.keep();
    this.draw();
    this.onRefreshed?.();
  }

  keep() {
    const kept = this.all.slice(0, KNOWN_MAX).map(({ chat, title, touched_ms, is_archived }) => ({ chat, title, touched_ms, is_archived, state: null }));
    localStorage.setItem(KNOWN, JSON.stringify(kept));
  }

  searchSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.find(), SEARCH_MS);
  }

  async find() {
    const text = this.input.value.trim();
    if (!text) this.hits = null;
    else {
      const told = await get("search", { text }).catch(() => null);
      if (told === null || this.input.value.trim() !== text) return;
      this.hits = told.hits;
    }
    this.draw();
  }

  draw() {
    if (this.hits !== null) {
      replace(this.element, this.hits.length ? h("ul", { class: "hits" }, this.hits.map((each) => this.hit(each))) : h("p", { class: "aside" }, "Nothing found."));
      return;
    }
    const isThere = this.here === null || this.all.some((each) => each.chat === this.here);
    const all = isThere ? this.all : [{ chat: this.here, title: "", state: null, touched_ms: null }, ...this.all];
    const part = (name, found) => (found.length ? [name ? h("h2", {}, name) : null, h("ul", {}, found.map((each) => this.item(each)))] : null);
    const pinned = all.filter((each) => each.is_pinned && !each.is_archived);
    const archived = all.filter((each) => each.is_archived);
    const wasOpen = this.element.querySelector("details")?.open;
    replace(this.element,
      part("Pinned", pinned),
      part(pinned.length ? "Recent" : "", all.filter((each) => !each.is_pinned && !each.is_archived)),
      archived.length ? h("details", { open: wasOpen }, h("summary", {}, `Archived (${archived.length})`), part("", archived)) : null);
  }

  item(chat) {
    const isHere = chat.chat === this.here;
    const state = TOLD.has(chat.state) ? chat.stands[0].toUpperCase() + chat.stands.slice(1) : (chat.touched_ms ? ago(chat.touched_ms) : "New");
    const words = [h("b", {}, shorten(chat.title || "New chat", 80)), h("small", { class: `state-${chat.stand}` }, state)];
    const target = { href: `#/chat/${encodeURIComponent(chat.chat)}`, "aria-current": isHere ? "page" : null, onclick: this.onChosen, title: chat.chat };
    const more = chat.session_id
      ? iconButton(icon("more"), `More for ${shorten(chat.title || chat.chat, 40)}`, (event) => openMenu(event.currentTarget, chat, this), { class: "round more", "aria-haspopup": "menu" })
      : null;
    return h("li", { class: isHere ? "here" : null }, h("a", target, words), more);
  }

  hit({ chat, title, excerpt, at_ms, message, turn }) {
    const at = turn ? `?at=${message || turn}&ms=${at_ms}` : "";
    const marked = excerpt.split(/[\u0001\u0002]/).map((part, place) => (place % 2 ? h("mark", {}, part) : part));
    return h("li", {}, h("a", { href: `#/chat/${encodeURIComponent(chat)}${at}`, onclick: this.onChosen }, h("b", {}, shorten(title || this.all.find((each) => each.chat === chat)?.title || chat, 80)), h("small", { class: "hit" }, marked), h("small", {}, ago(at_ms))));
  }
}
