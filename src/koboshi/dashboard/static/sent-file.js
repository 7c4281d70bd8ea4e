// A file that the agent sent. Its address wants the proof that only this page has, so the page fetches it
// and hands it to the browser to be saved. It is never shown: whoever made it could have written a page.

import { h } from "./dom.js";
import { size } from "./format.js";
import { headers } from "./session.js";

export function fileLink(file) {
  const trouble = h("span", { class: "bad", role: "status" });
  const fetchIt = async (event) => {
    event.preventDefault();
    trouble.textContent = "";
    try {
      save(await bytesOf(file), file.name);
    } catch (error) {
      trouble.textContent = ` not fetched: ${error.message}`;
    }
  };
  const link = h("a", { href: file.address, download: file.name, onclick: fetchIt }, file.name);
  return h("p", { class: "file" }, "📎 ", link, ` (${size(file.size)})`, trouble);
}

async function bytesOf(file) {
  const answer = await fetch(file.address, { headers: headers(), cache: "no-store" });
  if (answer.ok) return answer.blob();
  const failure = await answer.json().catch(() => null);
  throw new Error(failure?.error?.message ?? answer.statusText);
}

function save(bytes, name) {
  const address = URL.createObjectURL(bytes);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}
