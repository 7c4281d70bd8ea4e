// A chat as its events tell it: a list of items, each with a key and a version that grows when it
// changes. Events come once and in order, so nothing here has to be taken back.

import { parsed } from "./format.js";

const AT_WORK = new Set(["queued", "running"]);
const UNSETTLED_MAX = 5;
const HIDDEN_TOOLS = new Set(["ask"]); // the question itself is shown

function commandOf(call) {
  return parsed(call.arguments)?.command;
}

export class ChatModel {
  constructor() {
    this.items = [];
    this.byKey = new Map();
    this.turns = new Map();
    this.opened = new Map();
    this.drafts = new Map();
    this.workUnder = new Map();
  }

  // Returns whether something is to be drawn anew.
  take(kind, line) {
    switch (kind) {
      case "message": return this.add(`message:${line.message}`, { type: "message", ...line });
      case "entry": return this.takeEntry(line);
      case "turn": return this.takeTurn(line);
      case "step": return this.takeStep(line);
      case "answer": return this.takeAnswer(line);
      case "question": return this.add(`delivery:${line.delivery}`, { type: "question", isOpen: true, ...line });
      case "notice": return this.takeNotice(line);
      case "progress": return this.add(`delivery:${line.delivery}`, { type: kind, ...line });
      case "process": return this.takeProcess(line);
      case "draft": return this.takeDraft(line);
      default: return false;
    }
  }

  // The turn that is worked on or waited for, if there is one.
  get openTurn() {
    return [...this.turns.values()].findLast((turn) => AT_WORK.has(turn.state) || turn.state === "waiting") ?? null;
  }

  // The one that was worked on, or waited for that, when its last event was told.
  get turnAtWork() {
    return [...this.turns.values()].findLast((turn) => AT_WORK.has(turn.state)) ?? null;
  }

  // The gateway told where a turn stands now: its calls are not under way if no worker holds it.
  stand(turn, stand) {
    const work = this.byKey.get(this.workUnder.get(turn));
    if (work && work.turnState !== stand) this.change(work, { turnState: stand });
  }

  takeEntry(line) {
    if (line.event !== "dropped") return false;
    const message = this.byKey.get(`message:${line.message}`);
    return message ? this.change(message, { dropped: line.reason, isQueued: false, isSettled: true }) : false;
  }

  // Messages that may wait behind a turn: the newest ones, of which nothing else is known.
  unsettled() {
    return this.items.filter((item) => item.type === "message" && !item.isSettled).slice(-UNSETTLED_MAX);
  }

  // The gateway told what has become of a message. Returns whether it looks different now.
  place(item, { state, turn }) {
    const isQueued = state === "waiting";
    item.isSettled = !isQueued;
    if (item.isQueued === isQueued && item.turn === turn) return false;
    return this.change(item, { isQueued, turn: turn ?? null });
  }

  // A message by its id, or the answer of a turn.
  find(id) {
    return this.byKey.get(`message:${id}`) ?? this.items.findLast((item) => item.type === "answer" && item.turn === id) ?? null;
  }

  openedAt(turn) {
    return this.opened.get(turn) ?? null;
  }

  lastWords(turn) {
    return this.items.findLast((item) => item.turn === turn && ["answer", "failure"].includes(item.type))?.text ?? "";
  }

  // What the gateway says about a turn that failed stands with the failure.
  takeNotice(line) {
    const failure = this.byKey.get(`failure:${line.turn}`);
    if (failure && !line.file && !failure.isTold) return this.change(failure, { text: line.text, isTold: true });
    return this.add(`delivery:${line.delivery}`, { type: "notice", ...line });
  }

  takeTurn(line) {
    this.turns.set(line.turn, line);
    if (!this.opened.has(line.turn)) this.opened.set(line.turn, Date.parse(line.at));
    if (line.state !== "running") this.drafts.delete(line.turn);
    if (line.before === "waiting") {
      for (const item of this.items) {
        if (item.type === "question" && item.turn === line.turn && item.isOpen) this.change(item, { isOpen: false });
      }
    }
    const work = this.byKey.get(this.workUnder.get(line.turn));
    if (work) this.change(work, { turnState: line.state });
    if (line.state === "failed") this.add(`failure:${line.turn}`, { type: "failure", turn: line.turn, at: line.at, text: line.words });
    if (line.rule && line.state !== "failed") this.add(`turn:${line.turn}:${line.at}`, { type: "verdict", ...line });
    return true;
  }

  takeStep(line) {
    if (line.kind === "reply") {
      this.drafts.delete(line.turn);
      const calls = line.calls.filter((call) => !HIDDEN_TOOLS.has(call.tool));
      if (!calls.length && !line.text) return true;
      return this.addWork(line, calls.map((call) => ({ ...call, turn: line.turn, status: null, result: null })));
    }
    if (line.kind !== "result") return false;
    const item = this.items.find((each) => each.type === "work" && each.calls.some((call) => call.call === line.call));
    if (!item) return false;
    const calls = item.calls.map((call) => (call.call === line.call ? { ...call, status: line.status, result: line.text, took: line.took_ms } : call));
    return this.change(item, { calls });
  }

  // A command has begun: its output is shown under the call that runs it, which names it alike.
  takeProcess(line) {
    if (line.event !== "begun") return false;
    const runs = (call) => call.turn === line.turn && call.status === null && !call.process && commandOf(call) === line.command;
    const item = this.items.find((each) => each.type === "work" && each.calls.some(runs));
    if (!item) return false;
    const found = item.calls.find(runs);
    return this.change(item, { calls: item.calls.map((call) => (call === found ? { ...call, process: line.process } : call)) });
  }

  // Calls that follow each other stand together, as long as nothing was said in between.
  addWork(line, calls) {
    const last = this.items.at(-1);
    if (last?.type === "work" && last.turn === line.turn) {
      const said = line.text ? [...last.said, { text: line.text, before: last.calls.length }] : last.said;
      return this.change(last, { calls: [...last.calls, ...calls], said });
    }
    const key = `work:${calls[0]?.call ?? line.at}`;
    this.workUnder.set(line.turn, key);
    const said = line.text ? [{ text: line.text, before: 0 }] : [];
    return this.add(key, { type: "work", turn: line.turn, at: line.at, turnState: "running", calls, said });
  }

  takeAnswer(line) {
    this.drafts.delete(line.turn);
    return this.add(`delivery:${line.delivery}`, { type: "answer", ...line });
  }

  takeDraft(line) {
    if (!AT_WORK.has(this.turns.get(line.turn)?.state ?? "running")) return false;
    this.drafts.set(line.turn, line);
    return true;
  }

  add(key, item) {
    if (this.byKey.has(key)) return false;
    const made = { ...item, key, version: 1 };
    this.items.push(made);
    this.byKey.set(key, made);
    return true;
  }

  change(item, values) {
    Object.assign(item, values);
    item.version += 1;
    return true;
  }
}
