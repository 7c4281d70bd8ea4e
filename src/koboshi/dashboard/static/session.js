// Requests to the gateway. The browser sends the cookie; the proof that belongs to it is ours to send.

import { isOurs } from "./identity.js";

const PROOF = "koboshi.proof";
const CHECK = "koboshi.check";

let isProven = false;

export class Refused extends Error {
  constructor(status, kind, message) {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

export class Unreachable extends Error {}

export const isLocked = () => localStorage.getItem(PROOF) === null;

export function headers(more = {}) {
  return { "X-Koboshi-Proof": localStorage.getItem(PROOF) ?? "", ...more };
}

export async function get(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(given).toString();
  return request("GET", search ? `${path}?${search}` : path);
}

export const post = (path, body = null, more = {}) => request("POST", path, body, more);

// A file as it is; the answer says that it is on disk.
export async function upload(path, name, file) {
  await proven();
  const answer = await fetch(address(`${path}?${new URLSearchParams({ name })}`), { method: "POST", headers: headers({ "Content-Type": "application/octet-stream" }), body: file });
  const told = await answer.json().catch(() => null);
  if (!answer.ok) throw new Refused(answer.status, told?.error?.type ?? "http", told?.error?.message ?? answer.statusText);
  return told;
}

export async function enter(code) {
  const { proof, browser, key } = await request("POST", "login", { code });
  localStorage.setItem(PROOF, proof);
  localStorage.setItem(CHECK, JSON.stringify({ browser, key }));
}

export async function leave() {
  await post("logout");
  lock();
}

export function lock() {
  localStorage.removeItem(PROOF);
  localStorage.removeItem(CHECK);
  doubt();
  window.dispatchEvent(new Event("koboshi-locked"));
}

// The gateway may have gone since: another program may listen where it did.
export function doubt() {
  isProven = false;
}

// Nothing is sent before the other side has proven to be the gateway that let this browser in.
export async function proven() {
  const kept = JSON.parse(localStorage.getItem(CHECK) ?? "null");
  if (isProven || kept === null) return;
  let isSure;
  try {
    isSure = await isOurs(address("identity"), kept);
  } catch (error) {
    throw new Unreachable(String(error));
  }
  if (!isSure) {
    lock();
    throw new Unreachable("what answers there is not the gateway that let this browser in");
  }
  isProven = true;
}

export const address = (path) => `/api/v1/${path}`;

async function request(method, path, body = null, more = {}) {
  if (path !== "login") await proven();
  let answer;
  try {
    answer = await fetch(address(path), {
      method,
      headers: headers(body === null ? more : { "Content-Type": "application/json", ...more }),
      body: body === null ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(15000),
    });
    if (answer.ok) return await answer.json();
  } catch (error) {
    doubt();
    throw new Unreachable(String(error));
  }
  const failure = await answer.json().catch(() => null);
  const { type = "http", message = answer.statusText } = failure?.error ?? {};
  if (answer.status === 401 && path !== "login") lock();
  throw new Refused(answer.status, type, message);
}
