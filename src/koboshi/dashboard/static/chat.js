// The chat: what was said, what is under way, and what to say next.

import { dayElement, draftElement, itemElement, unsentElement, waitingElement } from "./chat-items.js";
import { ChatModel } from "./chat-model.js";
import { Composer } from "./composer.js";
import { button, h, openAgain, openKeys, replace } from "./dom.js";
import { day, shorten } from "./format.js";
import { icon } from "./icons.js";
import { turnEnded } from "./notify.js";
import { Outbound } from "./outbound.js";
import { get, post } from "./session.js";
import { follow } from "./stream.js";
import { sentence, withCode } from "./why.js";

const FOUND_MS = 4000;
const LOOK_MS = 50; // what happened in one moment is looked at once

export class Chat {
  // The hooks hear of the connection, of verdicts of recovery, of turns, and of what is said here. `wanted` is what
  // a search has found: the id of a message, or of the turn of an answer, and when it was said.
  constructor(name, page, hooks, wanted = null) {
    this.name = name;
    this.wanted = wanted;
    this.page = page;
    this.hooks = hooks;
    this.isDrawing = false;
    this.standing = null; // where the open turn stands, as the gateway tells it
    this.looks = 0;
    this.rounds = 0; // of following; what is left of an earlier one is not heard
    this.list = h("div", { class: "items", role: "log", "aria-live": "polite", "aria-label": "Conversation" });
    this.tail = h("div", { class: "tail" });
    this.queue = h("div", { class: "queue", role: "group", "aria-label": "Queued messages" }); // below what is under way
    this.scroller = h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Messages" }, this.list, this.tail, this.queue);
    this.down = button([icon("down"), h("span", { class: "unseen" }, "To the newest")], () => { this.isAtEnd = true; this.toEnd(); }, { class: "to-end", hidden: true });
    this.keepAtEnd();
    this.composer = new Composer(name, page, { say: (words) => this.say(words.text, words), stop: () => this.say("/stop") });
    this.element = h("section", { class: "chat", "aria-label": "Chat" }, this.scroller, h("div", { class: "below" }, this.down, this.composer.element));
    this.composer.takeDrops(this.element);
    this.outbound = new Outbound(name, () => this.draw());
    this.acts = {
      choose: (question, choice) => this.choose(question, choice),
      retry: (item) => this.retry(item, "retry"),
      again: (item) => this.retry(item, "again"),
      edit: (item) => this.composer.write(item.text),
      drop: (item) => post(`inbox/${item.message}/drop`).catch(() => {}),
    };
    this.follow("recent");
  }

  // From the newest events on, or from the very first.
  follow(from) {
    this.forget();
    const round = ++this.rounds;
    this.endFollowing = follow(`sessions/${encodeURIComponent(this.name)}/events?thread=&from=${from}`, {
      onEvent: (kind, line) => { if (round === this.rounds) this.take(kind, line); },
      onBegin: (place) => { this.hasBegun = true; if (place !== "0") this.offerEarlier(); this.draw(); },
      onState: (state) => { this.hooks.onState(state); this.isLive = state === "live"; this.look(); },
    });
  }

  // What was shown is not kept any more as it was told; what was said comes again.
  forget() {
    this.model = new ChatModel();
    this.drawn = new Map();
    this.lastDay = "";
    this.list.replaceChildren();
    this.queue.replaceChildren();
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
      if (number !== this.looks) return;
      this.stand(told && { ...told.turn, name: turn.turn, reason: told.reason, heldUp: told.held_up });
      await this.lookAtQueued();
    }, LOOK_MS);
  }

  stand(standing) {
    this.standing = standing;
    if (standing) this.model.stand(standing.name, standing.stand);
    this.draw();
  }

  // Which of the newest messages wait behind a turn.
  async lookAtQueued() {
    for (const item of this.model.unsettled()) {
      const told = await get(`sessions/${encodeURIComponent(this.name)}/messages/${item.message}`).catch(() => null);
      if (told && this.model.place(item, told)) this.draw();
    }
  }

  offerEarlier() {
    this.earlier = button("Show earlier messages", () => this.showEarlier(), { class: "quiet earlier" });
    this.scroller.prepend(this.earlier);
  }

  showEarlier() {
    this.earlier.remove();
    this.earlier = null;
    this.endFollowing();
    this.follow("start");
  }

  // What was found is shown in the middle, and stands out for a moment.
  seek() {
    const item = this.wanted ? this.model.find(this.wanted.id) : null;
    const element = item ? this.drawn.get(item.key)?.element : null;
    if (!element) return;
    this.wanted = null;
    this.isAtEnd = false;
    element.scrollIntoView({ block: "center" });
    element.classList.add("found");
    setTimeout(() => element.classList.remove("found"), FOUND_MS);
  }

  end() {
    this.isLive = false;
    this.look();
    this.endFollowing();
    this.sizes.disconnect();
    this.outbound.end();
  }

  focus() {
    if (matchMedia("(min-width: 800px)").matches) this.composer.input.focus();
  }

  say(text, more = {}) {
    this.isAtEnd = true;
    this.outbound.send({ ...more, text });
    this.hooks.onTouched(this.name, text);
  }

  take(kind, line) {
    if (kind === "resync") this.forget();
    if (this.wanted && this.earlier && Date.parse(line.at) > this.wanted.ms) return this.showEarlier();
    if (kind === "message") this.outbound.seen(line.message, line.text);
    if (this.model.take(kind, line)) this.draw();
    if (kind === "message") this.look();
    if (kind !== "turn") return;
    this.look();
    if (line.rule) this.hooks.onDecided();
    if (this.isLive) this.hooks.onTurn();
    if (["done", "failed"].includes(line.state) && this.isLive) this.tellOfEnd(line);
  }

  tellOfEnd(line) {
    const opened = this.model.openedAt(line.turn);
    const words = this.model.lastWords(line.turn);
    turnEnded({ title: this.hooks.titleOf(), words, lasted: opened ? Date.parse(line.at) - opened : 0 });
  }

  choose(question, choice) {
    this.model.change(question, { isOpen: false });
    this.say(choice.label, { question: question.question, choice: choice.id });
  }

  // A turn is asked again by the message that it began with; a message by itself.
  async retry(item, word) {
    let message = item.message;
    if (!message) {
      const told = await get(`turns/${item.turn}`).catch(() => null);
      const said = told?.entries.find((entry) => entry.kind === "message");
      if (said) message = `m${said.entry_id}`;
    }
    try {
      if (!message) throw new Error("No message of a person began this turn, so there is nothing to ask again.");
      await post(`inbox/${message}/${word}`);
      this.model.change(item, { isRetried: true });
    } catch (error) {
      this.model.change(item, { trouble: error.message });
    }
    this.draw();
  }

  // A reader at the end stays at the end, whatever grows above it; a reader who has scrolled back
  // is not moved.
  keepAtEnd() {
    this.isAtEnd = true;
    this.scroller.addEventListener("scroll", () => {
      const { scrollTop, clientHeight, scrollHeight } = this.scroller;
      this.isAtEnd = scrollTop + clientHeight >= scrollHeight - 60;
      this.down.hidden = this.isAtEnd;
    }, { passive: true });
    this.sizes = new ResizeObserver(() => this.toEnd());
    for (const each of [this.list, this.tail, this.queue, this.scroller]) this.sizes.observe(each);
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
    this.composer.working(this.model.openTurn !== null);
    this.toEnd();
    this.seek();
  }

  drawItem(item) {
    const before = this.drawn.get(item.key);
    if (before?.version === item.version) return;
    const element = itemElement(item, this.acts);
    const isQueued = Boolean(item.isQueued);
    this.drawn.set(item.key, { version: item.version, element, isQueued });
    if (before) openAgain(element, openKeys(before.element));
    if (before?.isQueued === isQueued) return before.element.replaceWith(element);
    before?.element.remove();
    if (isQueued) return this.queue.append(element);
    if (before) return this.list.insertBefore(element, this.firstOf(item));
    const today = day(Date.parse(item.at));
    if (today !== this.lastDay) this.list.append(dayElement(today));
    this.lastDay = today;
    this.list.append(element);
  }

  // A message that was queued stands before what its turn has said since; null: nothing yet.
  firstOf({ key, turn }) {
    const { items } = this.model;
    const since = items.slice(items.findIndex((each) => each.key === key) + 1);
    const first = turn ? since.find((each) => each.turn === turn && each.type !== "message") : null;
    return this.drawn.get(first?.key)?.element ?? null;
  }

  standingElement() {
    const { stand, stands, reason, heldUp } = this.standing;
    if (stand === "held-back") {
      return h("aside", { class: "item notice held" }, h("p", {}, h("b", {}, "Paused. "), withCode(sentence(reason.words))), button("Resume", () => this.say("/resume")));
    }
    if (heldUp) return h("aside", { class: "item notice held" }, h("p", {}, h("b", {}, "Still trying. "), withCode(sentence(heldUp.words))));
    return stand === "running" ? waitingElement(stands) : h("p", { class: "aside stands" }, stands);
  }

  // What to begin with. The scripted model understands fewer words than a real one.
  emptyElement() {
    const isScripted = this.page.model === "scripted";
    const ideas = isScripted
      ? [["Tell me a story", "tell me a story", "A long answer, word by word"], ["Run a command", "run uname -a"], ["Ask me a question", "ask me What shall we drink? tea, coffee or water", "The agent waits for your answer"]]
      : [["What can you do?", "What can you do? Tell me briefly which tools you have."], ["Look around", "List the files in your working folder and tell me what they are."], ["Explain this machine", "Find out what kind of machine you run on, and tell me in three sentences."]];
    const idea = ([words, text, hint = text]) => button([h("b", {}, words), h("small", {}, shorten(hint, 60))], () => this.say(text), { class: "idea" });
    return h(
      "div", { class: "empty" },
      h("img", { src: "/static/koboshi.svg", alt: "", width: "64", height: "64" }),
      h("h2", {}, "What can I do for you?"),
      h("p", { class: "aside" }, "What you send is stored before it is acknowledged. It survives a crash of the gateway."),
      h("div", { class: "ideas" }, ideas.map(idea)),
    );
  }

  drawTail() {
    const drafts = [...this.model.drafts.values()];
    const unsent = this.outbound.items.filter((item) => !item.isShown);
    const isShown = this.standing && !drafts.length;
    const nothing = this.hasBegun && !this.model.items.length && !unsent.length;
    if (nothing && this.tail.firstChild?.className === "empty") return;
    replace(
      this.tail,
      nothing ? this.emptyElement() : null,
      unsent.map((item) => unsentElement(item, () => this.outbound.discard(item.key), () => this.outbound.again(item.key))),
      drafts.map(draftElement),
      isShown ? this.standingElement() : null,
    );
  }
}
