// Makes the directory page faster to use. Everything works without this script: it fetches the same URLs as the links and the form,
// and replaces the parts of the page that differ.
"use strict";
const SKELETONS_AFTER = 250, TYPING_PAUSE = 120, SCROLLING_PAUSE = 150;
/** The parameters of a list, in the order of its URL, and those that have several values. */
const PARAMETERS = ["q", "category", "network", "sort", "window", "page", "images"], MANY = ["category", "network"];
const byId = (id) => document.getElementById(id);
const form = byId("search"), query = byId("q"), isList = document.body.classList.contains("list");
const shownApps = () => document.querySelectorAll("#apps .app").length;
let request, showing, timer, scrolling, appending, typing = false, isWaiting = false;
// The server shows no pictures to visitors of a link from another site: then the choice is not theirs.
const address = new URL(location.href);
if (isList && address.searchParams.has("images") && !document.querySelector("#parameters [name=images]")) {
  address.searchParams.delete("images");
  history.replaceState(history.state, "", address);
}
/** The URL that was asked for last, and the parameters of the list in the document. */
let shown = location.pathname + location.search, rendered = new URLSearchParams(location.search);

document.querySelector(".keys").hidden = false;

/** Fetches a page of this server. */
async function load(url, signal) {
  const response = await fetch(url, { signal });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (!page.getElementById("results")) throw new Error("not a page: " + response.status);
  return page;
}

/** Shows the list of a URL of this page at a place, and gives up the request before it. */
function show(url, place) {
  return showing = fetchAndShow(url, place);
}
async function fetchAndShow(url, place) {
  more.disconnect();
  request?.abort();
  const mine = request = new AbortController(), results = byId("results");
  shown = location.pathname + location.search;
  isWaiting = true;
  const slow = setTimeout(() => wait(results, true), SKELETONS_AFTER);
  try {
    const page = await load(url, mine.signal);
    if (mine === request) {
      rendered = new URLSearchParams(new URL(url, location.href).search);
      appending = undefined;
      replace(page);
      scrollTo(0, 0);
    }
  } catch {
    if (mine === request) fail(results, () => show(url, place));
  }
  clearTimeout(slow);
  if (mine !== request) return;
  wait(results, false);
  await restore(place);
  if (mine === request) isWaiting = false;
}

/** Remembers in the history how far the list is scrolled, and how many apps it has. */
function remember() {
  clearTimeout(scrolling);
  if (!isWaiting) history.replaceState({ apps: shownApps(), y: scrollY }, "");
}

/** Loads as many apps as a remembered place needs, and scrolls there. */
async function restore(place) {
  const mine = request;
  if (!place?.y) return;
  // Not against a visitor who scrolls meanwhile.
  const moved = new AbortController();
  for (const event of ["wheel", "touchmove", "keydown"]) addEventListener(event, () => moved.abort(), { passive: true, signal: moved.signal });
  isWaiting = true;
  while (shownApps() < place.apps && mine === request && !moved.signal.aborted && await append());
  if (mine !== request) return;
  if (!moved.signal.aborted) scrollTo(0, place.y);
  moved.abort();
  isWaiting = false;
}

function wait(results, isSlow) {
  results.classList.toggle("waiting", isSlow);
  results.setAttribute("aria-busy", isSlow);
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
  if (focused) {
    const heading = byId("heading");
    heading.tabIndex = -1;
    ([...document.querySelectorAll("#filters a, #results a")].find((link) => nameOf(link) === focused) ?? heading).focus();
  }
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
  document.title = title.textContent;
}

/** The parameters of the URL, with the search as it is typed. */
function current() {
  const now = new URLSearchParams(location.search);
  if (query.value.trim()) now.set("q", query.value); else now.delete("q");
  return now;
}

/** The URL of a list. */
function urlOf(parameters) {
  const known = [...parameters].filter(([name]) => PARAMETERS.includes(name));
  known.sort(([one], [other]) => PARAMETERS.indexOf(one) - PARAMETERS.indexOf(other));
  const text = new URLSearchParams(known).toString();
  return location.pathname + (text && "?" + text);
}

/** The URL of a link, with what was typed and chosen since the list in the document was asked for. */
function chosen(link) {
  // Browsers before 2023 look at the names of parameters alone.
  if (new URLSearchParams("a=1").has("a", "2")) return link.href;
  const wanted = new URLSearchParams(new URL(link.href).search), now = current();
  for (const [name, value] of rendered) if (!wanted.has(name, value)) now.delete(name, value);
  for (const [name, value] of wanted) {
    if (rendered.has(name, value) || now.has(name, value)) continue;
    if (MANY.includes(name)) now.append(name, value); else now.set(name, value);
  }
  if (!wanted.has("page")) now.delete("page");
  return urlOf(now);
}

async function search() {
  clearTimeout(timer);
  const now = current();
  now.delete("page");
  const url = urlOf(now);
  if (url === shown) return showing;
  remember();
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
/** Appends the apps of the next page. Returns whether there were some. */
function append() {
  if (appending) return appending;
  const mine = appending = appendPage().finally(() => { if (appending === mine) appending = undefined; });
  return mine;
}
async function appendPage() {
  more.disconnect();
  const pages = byId("pages"), link = pages?.querySelector("[rel=next]");
  if (!link) return false;
  let isDone = false;
  pages.setAttribute("aria-busy", true);
  try {
    const page = await load(link.href), apps = page.querySelector("#apps .apps");
    // A search may have replaced the list meanwhile.
    if (!apps || !pages.isConnected) throw new Error("no apps");
    byId("apps").append(apps);
    const next = page.querySelector("#pages [rel=next]");
    if (next) link.replaceWith(next); else link.remove();
    byId("status").querySelector(".of")?.remove();
    isDone = true;
    watch();
  } catch {
    link.textContent = "More apps could not be loaded. Try again";
  }
  pages.removeAttribute("aria-busy");
  return isDone;
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
    if (isList && query.value) { event.preventDefault(); query.focus(); clear(); }
    else if (isInField && query.value) { event.preventDefault(); query.value = ""; }
    else byId("back")?.click();
  }
});

// The list that the visitor came from, and whether the page before was one. A browser may store nothing.
const stored = (name) => { try { return sessionStorage.getItem(name); } catch { return null; } };
const store = (name, value) => { try { sessionStorage.setItem(name, value); } catch { /* The link leads to all apps. */ } };
const isAfterList = history.state?.isAfterList ?? (stored("townsquare-before") === "list" && stored("townsquare-app") === location.href);
if (!isList) history.replaceState({ isAfterList }, "");
addEventListener("pagehide", () => {
  store("townsquare-before", document.body.className);
  if (isList) store("townsquare-list", location.href);
});
const back = byId("back"), list = URL.canParse?.(stored("townsquare-list")) && new URL(stored("townsquare-list"));
if (back && list && list.pathname === back.pathname && list.origin === location.origin) {
  const images = new URLSearchParams(back.search).get("images");
  if (images) list.searchParams.set("images", images); else list.searchParams.delete("images");
  back.href = list;
  back.textContent = "← Back to the list";
  back.addEventListener("click", (event) => {
    if (!isAfterList || history.length < 2 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.back();
  });
}

// A loaded icon may be transparent: then the letter below it is not seen. (The event does not bubble.)
const loaded = (picture) => picture.classList.add("loaded");
document.addEventListener("load", (event) => { if (event.target.matches?.(".tile img")) loaded(event.target); }, true);
document.querySelectorAll(".tile img").forEach((picture) => { if (picture.complete && picture.naturalWidth) loaded(picture); });
// A picture that cannot be loaded leaves the letter, and no screenshot.
const failed = (picture) => { (picture.closest(".screenshots li") ?? picture).hidden = true; };
document.addEventListener("error", (event) => { if (event.target.matches?.("main img")) failed(event.target); }, true);
document.querySelectorAll("main img").forEach((picture) => {
  if (picture.complete && !picture.naturalWidth) picture.decode().catch(() => failed(picture));
});

if (isList) {
  query.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, TYPING_PAUSE); });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await search();
    // The visitor may have gone on meanwhile.
    if (isWaiting || !form.contains(document.activeElement)) return;
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
    if (link.closest(".app, .pictures") || url.pathname !== location.pathname) {
      remember();
      if (link.closest(".app")) store("townsquare-app", link.href);
      return;
    }
    event.preventDefault();
    clearTimeout(timer);
    typing = false;
    const target = chosen(link);
    if (target === shown) return;
    remember();
    history.pushState(null, "", target);
    query.value = new URLSearchParams(location.search).get("q") ?? "";
    show(target);
  });
  addEventListener("popstate", (event) => {
    // A link to a part of the page changes the fragment alone.
    if (shown === location.pathname + location.search) return;
    typing = false;
    clearTimeout(timer);
    query.value = new URLSearchParams(location.search).get("q") ?? "";
    show(location.href, event.state);
  });
  addEventListener("scroll", () => { clearTimeout(scrolling); scrolling = setTimeout(remember, SCROLLING_PAUSE); }, { passive: true });
  history.scrollRestoration = "manual";
  watch();
  restore(history.state);
}
