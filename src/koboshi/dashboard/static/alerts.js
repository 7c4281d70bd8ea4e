// What keeps messages from being answered now, on top of every page. Nothing, most of the time.

import { h, replace } from "./dom.js";
import { get, isLocked } from "./session.js";
import { withCode } from "./why.js";

const LOOK_MS = 10000;

export class Alerts {
  constructor(element) {
    this.element = element;
    this.shown = "[]";
    setInterval(() => this.look(), LOOK_MS);
  }

  async look() {
    if (isLocked()) {
      this.show([]);
      return;
    }
    try {
      this.show((await get("troubles")).troubles);
    } catch {
      return; // that the gateway does not answer is told elsewhere
    }
  }

  show(troubles) {
    const text = JSON.stringify(troubles);
    if (text === this.shown) return;
    this.shown = text;
    replace(this.element, troubles.map(({ words, remedy }) =>
      h("p", {}, h("b", {}, withCode(words)), remedy ? [": ", withCode(remedy)] : null, ".")));
  }
}
