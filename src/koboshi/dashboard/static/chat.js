// The chat: what was said, what is under way, and what to say next.

import { draftElement, itemElement, unsentElement, waitingElement } from "./chat-items.js";
import { ChatModel } from "./chat-model.js";
import { button, h, openAgain, openKeys, replace } from "./dom.js";
import { Outbound } from "./outbound.js";
import { get } from "./session.js";
import { follow } from "./stream.js";
import { withCode } from "./why.js";

const LOOK_MS = 50; // what happened in one moment is looked at once

export class Chat {
  // The hooks hear of the connection, of verdicts of recovery, and of what is said here.
  constructor(name, { onState, onDecided, onTouched }) {
    this.name = name;
    this.hooks = { onState, onDecided, onTouched };
    this.isDrawing = false;
    this.standing = null; // where the open turn stands, as the gateway tells it
    this.looks = 0;
    this.list = h("div", { class: "items", role: "log", "aria-live": "polite", "aria-label": "Conversation" });
    this.tail = h("div", { class: "tail" });
    this.scroller = h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "What was said" }, this.list, this.tail);
    this.keepAtEnd();
    this.composer = this.makeComposer();
    this.element = h("section", { class: "chat", "aria-label": `Chat ${name}` }, this.scroller, this.composer);
    this.outbound = new Outbound(name, () => this.draw());
    this.follow("recent");
  }

  // From the newest events on, or from the very first.
  follow(from) {
    this.model = new ChatModel();
    this.drawn = new Map();
    this.list.replaceChildren();
    this.endFollowing = follow(`sessions/${encodeURIComponent(this.name)}/events?thread=&from=${from}`, {
      onEvent: (kind, line) => this.take(kind, line),
      onBegin: (place) => { if (place !== "0") this.offerEarlier(); },
      onState: (state) => { this.hooks.onState(state); this.isLive = state === "live"; this.look(); },
    });
    this.draw();
  }

  // What was shown is not kept any more as it was told; what was said comes again.
  forget() {
    this.model = new ChatModel();
    this.drawn = new Map();
    this.list.replaceChildren();
    this.draw();
  }

  // Events tell what happened, and not whether a worker holds a turn now: a gateway that died left it
  // as it was, and recovery may have decided to leave it alone. So the gateway is asked.
  look() {
    clearTimeout(this.lookTimer);
    const number = ++this.looks;
    if (this.standing) this.stand(null);
    if (!this.isLive) return;
    this.lookTimer = setTimeout(async () => {
      const turn = this.model.turnAtWork;
      const told = turn ? await get(`turns/${turn.turn}`).catch(() => null) : null;
      if (number === this.looks) this.stand(told && { ...told.turn, name: turn.turn, reason: told.reason });
    }, LOOK_MS);
  }

  stand(standing) {
    this.standing = standing;
    if (standing) this.model.stand(standing.name, standing.stand);
    this.draw();
  }

  offerEarlier() {
    const all = button("Show what came before", () => {
      all.remove();
      this.endFollowing();
      this.follow("start");
    }, { class: "quiet earlier" });
    this.scroller.prepend(all);
  }

  end() {
    this.isLive = false;
    this.look();
    this.endFollowing();
    this.sizes.disconnect();
    this.outbound.end();
  }

  focus() {
    if (matchMedia("(min-width: 800px)").matches) this.input.focus();
  }

  say(text, more = {}) {
    this.isAtEnd = true;
    this.outbound.send({ text, ...more });
    this.hooks.onTouched(this.name, text);
  }

  take(kind, line) {
    if (kind === "resync") this.forget();
    if (kind === "message") this.outbound.seen(line.message, line.text);
    if (this.model.take(kind, line)) this.draw();
    if (kind === "turn") this.look();
    if (kind === "turn" && line.rule) this.hooks.onDecided();
  }

  choose(question, choice) {
    this.model.change(question, { isOpen: false });
    this.say(choice.label, { question: question.question, choice: choice.id });
  }

  makeComposer() {
    this.input = h("textarea", {
      rows: "1", placeholder: "Write a message, or /help", "aria-label": "Message", autocomplete: "off",
      oninput: () => this.grow(),
      onkeydown: (event) => this.onKey(event),
    });
    this.stop = button("Stop", () => this.say("/stop"), { class: "stop", hidden: true, "aria-label": "Stop the turn" });
    const send = h("button", { type: "submit", class: "primary" }, "Send");
    const submit = (event) => {
      event.preventDefault();
      this.submit();
    };
    return h("form", { class: "composer", onsubmit: submit }, this.input, this.stop, send);
  }

  onKey(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.submit();
    }
    if (event.key === "Escape") this.input.blur();
  }

  submit() {
    const text = this.input.value.trim();
    if (!text) return;
    this.input.value = "";
    this.grow();
    this.say(text);
  }

  grow() {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight + 2, 200)}px`;
  }

  // A reader at the end stays at the end, whatever grows above it; a reader who has scrolled back
  // is not moved.
  keepAtEnd() {
    this.isAtEnd = true;
    this.scroller.addEventListener("scroll", () => {
      const { scrollTop, clientHeight, scrollHeight } = this.scroller;
      this.isAtEnd = scrollTop + clientHeight >= scrollHeight - 60;
    }, { passive: true });
    this.sizes = new ResizeObserver(() => this.toEnd());
    for (const each of [this.list, this.tail, this.scroller]) this.sizes.observe(each);
  }

  toEnd() {
    if (this.isAtEnd) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  // Many events of one moment are drawn at once.
  draw() {
    if (this.isDrawing) return;
    this.isDrawing = true;
    requestAnimationFrame(() => {
      this.isDrawing = false;
      this.drawNow();
    });
  }

  drawNow() {
    for (const item of this.model.items) this.drawItem(item);
    this.drawTail();
    this.stop.hidden = this.model.openTurn === null;
    this.toEnd();
  }

  drawItem(item) {
    const before = this.drawn.get(item.key);
    if (before?.version === item.version) return;
    const element = itemElement(item, (question, choice) => this.choose(question, choice));
    if (before) {
      openAgain(element, openKeys(before.element));
      before.element.replaceWith(element);
    } else {
      this.list.append(element);
    }
    this.drawn.set(item.key, { version: item.version, element });
  }

  standingElement() {
    const { stand, stands, reason } = this.standing;
    if (stand === "held-back") {
      return h("aside", { class: "item notice held" }, h("p", {}, "Not going on: ", withCode(reason.words), "."), button("Resume", () => this.say("/resume")));
    }
    return stand === "running" ? waitingElement(stands) : h("p", { class: "aside stands" }, stands);
  }

  drawTail() {
    const drafts = [...this.model.drafts.values()];
    const unsent = this.outbound.items.filter((item) => !item.isShown);
    const isShown = this.standing && !drafts.length;
    const nothing = !this.model.items.length && !unsent.length;
    replace(
      this.tail,
      nothing ? h("p", { class: "lonely" }, "Say something. Nothing you send here is lost, whatever happens to the gateway.") : null,
      unsent.map((item) => unsentElement(item, () => this.outbound.discard(item.key))),
      drafts.map(draftElement),
      isShown ? this.standingElement() : null,
    );
  }
}
