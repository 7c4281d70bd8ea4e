// Elements made of values. Text becomes text nodes, never markup: nothing here parses HTML.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  fill(element, children);
  return element;
}

// Marks that turn the direction of letters around could make a command look like another one.
const TURNING = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/g;

export function visible(text) {
  return text.replace(TURNING, (mark) => `<U+${mark.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`);
}

export function fill(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(visible(String(child))));
  }
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren();
  return fill(element, children);
}

export function button(words, act, attributes = {}) {
  return h("button", { type: "button", onclick: act, ...attributes }, words);
}

// Which <details> are open and which are closed, by their data-key: what is drawn anew stays as it was left.
export function openKeys(root) {
  return new Map([...root.querySelectorAll("details[data-key]:not(.auto)")].map((each) => [each.dataset.key, each.open]));
}

export function openAgain(root, keys) {
  for (const each of root.querySelectorAll("details[data-key]")) {
    if (!keys.has(each.dataset.key)) continue;
    each.open = keys.get(each.dataset.key);
    each.classList.remove("auto");
  }
}

// A button that is an icon; `words` are what it is called.
export function iconButton(drawing, words, act, attributes = {}) {
  return h("button", { type: "button", onclick: act, class: "round", "aria-label": words, title: words, ...attributes }, drawing);
}

// Asks in a dialog. Gives what `read` says when it was agreed to, and null when not.
export function ask({ title, body = [], yes, isDanger = false, read = () => true }) {
  return new Promise((resolve) => {
    let answer = null;
    const submit = (event) => {
      event.preventDefault();
      answer = read();
      box.close();
    };
    const box = h(
      "dialog", { "aria-label": title, onclose: () => { box.remove(); resolve(answer); } },
      h("form", { onsubmit: submit }, h("h2", {}, title), body,
        h("div", { class: "acts" }, button("Cancel", () => box.close()), h("button", { type: "submit", class: isDanger ? "danger" : "primary" }, yes))),
    );
    document.body.append(box);
    box.showModal();
  });
}
