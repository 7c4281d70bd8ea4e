// Where a message is written: words, files, and commands that are completed as they are typed.

import { h, iconButton, replace } from "./dom.js";
import { size } from "./format.js";
import { icon } from "./icons.js";
import { upload } from "./session.js";

const DRAFT = (chat) => `koboshi.draft.${chat}`;
const FILES_MAX = 10;

export class Composer {
  constructor(chat, page, { say, stop }) {
    this.chat = chat;
    this.page = page;
    this.say = say;
    this.files = [];
    this.chosen = 0;
    this.input = h("textarea", {
      rows: "1", placeholder: matchMedia("(max-width: 640px)").matches ? "Message" : "Message, or / for commands", "aria-label": "Message", autocomplete: "off",
      "aria-controls": "commands", "aria-autocomplete": "list",
      oninput: () => this.changed(), onkeydown: (event) => this.onKey(event), onpaste: (event) => this.onPaste(event),
    });
    this.commands = h("ul", { class: "commands", id: "commands", role: "listbox", "aria-label": "Commands", hidden: true });
    this.shelf = h("ul", { class: "shelf", "aria-label": "Files to send", hidden: true });
    const picker = h("input", { type: "file", multiple: true, hidden: true, tabindex: "-1", "aria-label": "Files", onchange: () => { this.add(picker.files); picker.value = ""; } });
    const clip = page.file_bytes_max ? iconButton(icon("clip"), "Attach files", () => picker.click()) : null;
    this.stop = iconButton(icon("stop"), "Stop the turn", stop, { class: "round stop", hidden: true });
    this.send = h("button", { type: "submit", class: "primary send", "aria-label": "Send", title: "Send" }, icon("send"));
    const submit = (event) => { event.preventDefault(); this.submit(); };
    this.element = h("form", { class: "composer", onsubmit: submit }, this.commands, this.shelf, h("div", { class: "row" }, clip, picker, this.input, this.stop, this.send));
    this.input.value = localStorage.getItem(DRAFT(chat)) ?? "";
    this.ready();
    requestAnimationFrame(() => this.grow());
  }

  // Words to begin with. What was typed already is kept behind them.
  write(text) {
    const typed = this.input.value.trim();
    this.input.value = typed && typed !== text ? `${text}\n${typed}` : text;
    this.changed();
    this.input.focus();
    this.input.setSelectionRange(text.length, text.length);
  }

  working(isWorking) {
    this.stop.hidden = !isWorking;
  }

  changed() {
    if (this.input.value) localStorage.setItem(DRAFT(this.chat), this.input.value);
    else localStorage.removeItem(DRAFT(this.chat));
    this.grow();
    this.complete();
    this.ready();
  }

  ready() {
    const isLoading = this.files.some((each) => each.progress !== null);
    const hasFiles = this.files.some((each) => each.stored);
    this.send.disabled = isLoading || !(this.input.value.trim() || hasFiles);
  }

  grow() {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight + 2, 240)}px`;
  }

  // Commands that begin as what is typed.
  complete() {
    const typed = /^\/([\w-]*)$/.exec(this.input.value);
    this.offered = typed ? this.page.commands.filter((each) => each.name.startsWith(typed[1].toLowerCase())) : [];
    this.chosen = 0;
    this.drawCommands();
  }

  drawCommands() {
    const option = (each, place) =>
      h("li", { role: "option", id: `command-${place}`, "aria-selected": String(place === this.chosen), onpointerdown: (event) => { event.preventDefault(); this.pick(place); } }, h("code", {}, `/${each.name}`), " ", h("span", {}, each.words));
    replace(this.commands, this.offered.map(option));
    this.commands.hidden = !this.offered.length;
    if (this.offered.length) this.input.setAttribute("aria-activedescendant", `command-${this.chosen}`);
    else this.input.removeAttribute("aria-activedescendant");
    this.commands.children[this.chosen]?.scrollIntoView({ block: "nearest" });
  }

  pick(place) {
    this.input.value = `/${this.offered[place].name} `;
    this.offered = [];
    this.drawCommands();
    this.input.focus();
    this.ready();
  }

  onKey(event) {
    if (event.isComposing) return;
    const count = this.offered?.length ?? 0;
    if (count && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      this.chosen = (this.chosen + (event.key === "ArrowDown" ? 1 : count - 1)) % count;
      this.drawCommands();
    } else if (count && (event.key === "Tab" || (event.key === "Enter" && this.input.value !== `/${this.offered[this.chosen].name}`))) {
      event.preventDefault();
      this.pick(this.chosen);
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit();
    } else if (event.key === "Escape") {
      if (count) { this.offered = []; this.drawCommands(); event.stopPropagation(); }
      else this.input.blur();
    }
  }

  onPaste(event) {
    if (!event.clipboardData?.files.length) return;
    event.preventDefault();
    this.add(event.clipboardData.files);
  }

  takeDrops(element) {
    if (!this.page.file_bytes_max) return;
    const over = (is) => (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      element.classList.toggle("dropping", is);
      if (event.type === "drop") this.add(event.dataTransfer.files);
    };
    element.addEventListener("dragover", over(true));
    element.addEventListener("dragleave", over(false));
    element.addEventListener("drop", over(false));
  }

  add(files) {
    for (const file of files) {
      if (this.files.length >= FILES_MAX) break;
      const item = { name: file.name || "pasted.png", size: file.size, progress: 0, stored: null, trouble: "" };
      this.files.push(item);
      if (file.size > this.page.file_bytes_max) Object.assign(item, { progress: null, trouble: `larger than ${size(this.page.file_bytes_max)}` });
      else this.store(item, file);
    }
    this.drawShelf();
  }

  async store(item, file) {
    try {
      const told = await upload(`sessions/${encodeURIComponent(this.chat)}/uploads`, item.name, file);
      item.stored = told.file;
    } catch (error) {
      item.trouble = error.message;
    }
    item.progress = null;
    this.drawShelf();
  }

  drawShelf() {
    const row = (item) => {
      const remove = () => { this.files = this.files.filter((each) => each !== item); this.drawShelf(); };
      const state = item.trouble ? h("span", { class: "bad", role: "alert" }, item.trouble) : item.stored ? size(item.size) : "uploading…";
      return h("li", {}, icon("file"), h("b", {}, item.name), h("small", {}, state), iconButton(icon("close"), `Remove ${item.name}`, remove));
    };
    replace(this.shelf, this.files.map(row));
    this.shelf.hidden = !this.files.length;
    this.ready();
  }

  submit() {
    this.ready();
    if (this.send.disabled) return;
    const files = this.files.filter((each) => each.stored).map(({ stored, name }) => ({ file: stored, name }));
    const text = this.input.value.trim();
    this.input.value = "";
    this.files = [];
    this.changed();
    this.drawShelf();
    this.say(files.length ? { text, files } : { text });
  }
}
