// The frame: the places and the chats on the left, the name of what is shown on top.

import { ChatList } from "./chat-list.js";
import { button, h, iconButton, replace } from "./dom.js";
import { openHelp } from "./help.js";
import { icon } from "./icons.js";
import { leave } from "./session.js";

const PLACES = [
  ["#/", "Chats", "chat", ["", "chat"]],
  ["#/activity", "Activity", "activity", ["activity", "turns", "inbox", "outbox", "processes", "sessions"]],
  ["#/questions", "Questions", "question", ["questions"]],
  ["#/schedules", "Schedules and goals", "clock", ["schedules"]],
  ["#/health", "Health", "health", ["health"]],
];

export class Shell {
  constructor(side, bar, veil) {
    this.side = side;
    this.bar = bar;
    this.questions = 0;
    this.chats = new ChatList(() => this.close());
    this.link = h("div", { class: "link", role: "status", "aria-live": "polite" });
    this.counted = h("span", { class: "count", hidden: true });
    this.places = h("nav", { class: "places", "aria-label": "Places" });
    this.foot = h("div", { class: "side-foot" });
    veil.addEventListener("click", () => this.close());
    side.addEventListener("keydown", (event) => { if (event.key === "Escape") this.close(); });
  }

  hide() {
    this.close();
    this.side.replaceChildren();
    this.bar.replaceChildren();
  }

  draw(page, name, rest) {
    if (!this.side.hasChildNodes()) this.build();
    this.chats.here = !name || name === "chat" ? rest[0] || this.chats.first() : null;
    this.chats.draw();
    const link = ([target, words, drawing, names]) =>
      h("a", { href: target, "aria-current": names.includes(name ?? "") ? "page" : null, onclick: () => this.close() },
        icon(drawing), words, words === "Questions" ? this.counted : null);
    replace(this.places, PLACES.map(link));
    const settings = h("a", { href: "#/settings", "aria-current": name === "settings" ? "page" : null, onclick: () => this.close() }, icon("settings"), "Settings");
    replace(this.foot, settings,
      iconButton("?", "Keyboard help", () => openHelp()),
      iconButton(icon("out"), "Log out", () => leave().catch(() => {})));
    this.count(this.questions);
  }

  build() {
    const brand = h("a", { class: "brand", href: "#/" }, h("img", { src: "/static/koboshi.svg", alt: "", width: "28", height: "28", id: "doll" }), "Koboshi");
    const fresh = button([icon("plus"), "New chat"], () => this.newChat(), { class: "primary new" });
    this.side.append(brand, h("div", { class: "side-top" }, fresh, this.chats.search), this.places, this.chats.element, this.foot);
    this.chats.refresh();
  }

  newChat() {
    location.hash = `#/chat/${freshName()}`;
    this.close();
  }

  // `shown.tools` are buttons of what is shown; its title stands beside them.
  head(shown) {
    const open = iconButton(icon("menu"), "Menu", () => document.body.classList.add("show-side"), { class: "round open-side" });
    this.name = h("h1", {}, shown.heading ?? shown.title ?? "");
    replace(this.bar, open, this.name, this.link, shown.tools ?? null);
  }

  rename(title) {
    if (this.name) replace(this.name, title);
  }

  say(words) {
    replace(this.link, words);
  }

  count(questions) {
    this.questions = questions;
    this.counted.hidden = questions === 0;
    replace(this.counted, questions, h("span", { class: "unseen" }, " open"));
  }

  close() {
    document.body.classList.remove("show-side");
  }
}

function freshName() {
  const letters = "abcdefghjkmnpqrstuvwxyz23456789";
  const random = crypto.getRandomValues(new Uint8Array(5));
  return `chat-${[...random].map((each) => letters[each % letters.length]).join("")}`;
}
