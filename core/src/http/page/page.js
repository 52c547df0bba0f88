// Makes the directory page faster to use. Everything works without this script: it fetches the same URLs as the links and the form,
// and replaces the parts of the page that differ.
"use strict";
const SKELETONS_AFTER = 250, TYPING_PAUSE = 120;
const byId = (id) => document.getElementById(id);
const form = byId("search"), query = byId("q"), isList = document.body.classList.contains("list");
let request, timer, typing = false, shown = location.pathname + location.search;

document.querySelector(".keys").hidden = false;

/** Fetches a page of this server. */
async function load(url, signal) {
  const response = await fetch(url, { signal });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (!page.getElementById("results")) throw new Error("not a page: " + response.status);
  return page;
}

/** Shows the list of a URL of this page, and gives up the request before it. */
async function show(url) {
  more.disconnect();
  request?.abort();
  const mine = request = new AbortController(), results = byId("results");
  shown = location.pathname + location.search;
  const slow = setTimeout(() => wait(results, true), SKELETONS_AFTER);
  try {
    const page = await load(url, mine.signal);
    if (mine === request) replace(page);
  } catch {
    if (mine === request) fail(results, () => show(url));
  }
  clearTimeout(slow);
  if (mine === request) wait(results, false);
}

function wait(results, isWaiting) {
  results.classList.toggle("waiting", isWaiting);
  results.setAttribute("aria-busy", isWaiting);
}

function replace(page) {
  const nameOf = (link) => (link.querySelector(".name") ?? link).textContent;
  const focused = document.activeElement?.closest("#filters, #results") && nameOf(document.activeElement);
  const status = byId("status");
  for (const id of ["filters", "results", "parameters"]) {
    const made = page.getElementById(id), old = byId(id);
    if (!made || !old) continue;
    // The status stays in the document: a screen reader tells when its text changes.
    const next = id === "results" && status && made.querySelector("#status");
    if (next) { status.replaceChildren(...next.childNodes); next.replaceWith(status); }
    old.replaceWith(made);
  }
  document.title = page.title;
  if (focused) [...document.querySelectorAll("#filters a, #results a")].find((link) => nameOf(link) === focused)?.focus();
  watch();
}

/** Says that the server does not answer, in place of the results. */
function fail(results, again) {
  const made = (name, className, text) => Object.assign(document.createElement(name), { className, textContent: text });
  const message = made("div", "message failed", ""), title = made("h1", "", "The server does not answer");
  const text = made("p", "", "Check your connection."), actions = made("p", "actions", ""), button = made("button", "button", "Try again");
  title.id = "heading";
  button.addEventListener("click", again);
  actions.append(button);
  message.append(title, text, actions);
  message.setAttribute("role", "alert");
  const status = byId("status");
  status?.replaceChildren();
  results.replaceChildren(...(status ? [status, message] : [message]));
}

/** The URL of the list with the typed search, at its first page. */
function typed() {
  const values = new URLSearchParams(new FormData(form));
  if (!query.value.trim()) values.delete("q");
  const text = values.toString();
  return location.pathname + (text && "?" + text);
}

async function search() {
  clearTimeout(timer);
  const url = typed();
  if (url === shown) return;
  // One entry of the history for a search, and not one for each letter.
  history[typing ? "replaceState" : "pushState"](null, "", url);
  typing = true;
  await show(url);
}

function clear() {
  query.value = "";
  return search();
}

// More apps, when the end of the list comes into view.
const more = new IntersectionObserver((entries) => {
  if (entries.some((entry) => entry.isIntersecting)) append();
}, { rootMargin: "1200px" });
function watch() {
  const link = document.querySelector("#pages [rel=next]");
  if (link) more.observe(link);
}
async function append() {
  more.disconnect();
  const pages = byId("pages"), link = pages?.querySelector("[rel=next]");
  if (!link || pages.getAttribute("aria-busy") === "true") return;
  pages.setAttribute("aria-busy", true);
  try {
    const page = await load(link.href), apps = page.querySelector("#apps .apps");
    // A search may have replaced the list meanwhile.
    if (!apps || !pages.isConnected) throw new Error("no apps");
    byId("apps").append(apps);
    const next = page.querySelector("#pages [rel=next]");
    if (next) link.replaceWith(next); else link.remove();
    byId("status").querySelector(".of")?.remove();
    watch();
  } catch {
    link.textContent = "More apps could not be loaded. Try again";
  }
  pages.removeAttribute("aria-busy");
}

/** Moves the focus from one app to another. */
function move(key) {
  const links = [...document.querySelectorAll(".app h2 a")], at = links.indexOf(document.activeElement);
  if (!links.length || (at < 0 && document.activeElement !== query)) return false;
  if (at < 0) return key === "ArrowDown" && (links[0].focus(), true);
  const columns = getComputedStyle(document.querySelector(".apps")).gridTemplateColumns.split(" ").length;
  const next = at + { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key];
  if (next < 0 && key === "ArrowUp") query.focus();
  else links[Math.min(Math.max(next, 0), links.length - 1)].focus();
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const isInField = event.target.matches("input, textarea, select");
  if (event.key === "/" && !isInField) { query.focus(); query.select(); event.preventDefault(); }
  else if (event.key.startsWith("Arrow") && (!isInField || event.key === "ArrowDown") && move(event.key)) event.preventDefault();
  else if (event.key === "Escape") {
    const back = byId("back");
    if (back) back.click();
    else if (isList && query.value) { event.preventDefault(); query.focus(); clear(); }
  }
});

// A loaded icon may be transparent: then the letter below it is not seen. (The event does not bubble.)
const loaded = (picture) => picture.classList.add("loaded");
document.addEventListener("load", (event) => { if (event.target.matches?.(".tile img")) loaded(event.target); }, true);
document.querySelectorAll(".tile img").forEach((picture) => { if (picture.complete && picture.naturalWidth) loaded(picture); });

if (isList) {
  query.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, TYPING_PAUSE); });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await search();
    typing = false;
    document.querySelector(".app h2 a")?.focus();
  });
  // Links that change the list.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("#filters a, #results a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0) return;
    if (link.rel === "next") { event.preventDefault(); append(); return; }
    const url = new URL(link.href);
    // Pictures need another policy of the page, and an app is another page.
    if (link.closest(".app, .pictures") || url.pathname !== location.pathname) return;
    event.preventDefault();
    typing = false;
    history.pushState(null, "", url);
    query.value = url.searchParams.get("q") ?? "";
    show(url).then(() => scrollTo(0, 0));
  });
  addEventListener("popstate", () => {
    // A link to a part of the page changes the fragment alone.
    if (shown === location.pathname + location.search) return;
    typing = false;
    query.value = new URLSearchParams(location.search).get("q") ?? "";
    show(location.href);
  });
  watch();
}
