// The chat, and beside it things to try, as long as the model is the one that needs no key.

import { Chat } from "./chat.js";
import { h, iconButton } from "./dom.js";
import { icon } from "./icons.js";
import { notifyButton } from "./notify.js";

const CLOSED = "koboshi.try-closed";
const LOOK_MS = 15000;

export class ChatPage {
  constructor(name, page, shell, onState, wanted = null) {
    this.name = name;
    this.shell = shell;
    this.wasLost = false;
    this.chat = new Chat(name, page, {
      onState: (state) => { onState(state); this.onState(state); },
      onDecided: () => this.tryMe?.refresh(),
      onTouched: (chat, text) => shell.chats.touched(chat, text),
      onTurn: () => shell.chats.refresh(),
      titleOf: () => shell.chats.titleOf(name),
    }, wanted);
    this.element = h("div", { class: "chat-page" }, this.chat.element);
    this.element.addEventListener("keydown", (event) => { if (event.key === "Escape" && matchMedia("(max-width: 1180px)").matches) this.closeTry(); });
    this.isDemo = page.model === "scripted";
    this.tools = [
      h("a", { class: "model", href: "#/settings", title: "What answers; open the settings" }, page.model),
      notifyButton(),
      this.isDemo ? iconButton(icon("flask"), "Try me", () => this.toggleTry(), { class: "round try-toggle" }) : null,
    ];
    shell.chats.onRefreshed = () => shell.rename(this.heading);
    if (this.isDemo) this.loadTry(page);
  }

  get heading() {
    return this.shell.chats.titleOf(this.name);
  }

  get title() {
    return this.heading;
  }

  async loadTry(page) {
    const { TryMe } = await import("./try-me.js");
    this.tryMe = new TryMe(page, (text) => { if (matchMedia("(max-width: 1180px)").matches) this.closeTry(); this.chat.say(text); }, () => this.closeTry(true));
    this.element.append(this.tryMe.element);
    const isWide = matchMedia("(min-width: 1181px)").matches;
    if (isWide && localStorage.getItem(CLOSED) === null) this.element.classList.add("show-try");
    this.timer = setInterval(() => this.tryMe.refresh(), LOOK_MS);
  }

  toggleTry() {
    const isShown = this.element.classList.toggle("show-try");
    if (isShown) localStorage.removeItem(CLOSED);
    else localStorage.setItem(CLOSED, "yes");
  }

  closeTry(isForGood = false) {
    this.element.classList.remove("show-try");
    if (isForGood) localStorage.setItem(CLOSED, "yes");
  }

  end() {
    clearInterval(this.timer);
    this.shell.chats.onRefreshed = null;
    this.chat.end();
  }

  focus() {
    this.chat.focus();
  }

  focusInput() {
    this.chat.composer.input.focus();
  }

  onState(state) {
    if (state === "live" && this.wasLost) {
      this.tryMe?.refresh();
      // A gateway is reached before it has looked around and said what it found.
      setTimeout(() => this.tryMe?.refresh(), 2000);
    }
    this.wasLost = state === "lost";
  }
}
