// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Search, the list of versions, and what makes pages easier to use. Every page can be read without it. What it needs are scripts beside it,
// not requests, so that it works from a file system, too.
(() => {
  "use strict";
  const own = document.currentScript;
  const base = own.src.slice(0, own.src.lastIndexOf("/") + 1);
  const find = (selector) => document.querySelector(selector);
  const make = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  const load = (address) => new Promise((resolve, reject) => {
    document.head.append(make("script", { src: address, onload: resolve, onerror: () => reject(new Error(address)) }));
  });

  document.documentElement.classList.add("js");

  // Pages on narrow screens.
  const menu = find(".menu");
  const pages = find("#pages");
  menu.hidden = false;
  menu.addEventListener("click", () => {
    const open = pages.classList.toggle("open");
    menu.setAttribute("aria-expanded", String(open));
    if (open) window.scrollTo(0, 0);
  });
  const current = pages.querySelector("[aria-current]");
  if (current && pages.scrollHeight > pages.clientHeight) {
    pages.scrollTop = current.offsetTop - pages.clientHeight / 2;
  }

  // What scrolls inside of itself can be scrolled with the keyboard.
  const reachable = () => {
    for (const element of document.querySelectorAll("pre, .table, .picture")) {
      if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
      else if (!element.matches("a")) element.removeAttribute("tabindex");
    }
  };
  reachable();
  window.addEventListener("resize", reachable);

  // Commands without their output and prompts, and everything else as it is.
  const commands = (text) => {
    const typed = text.split("\n").filter((line) => line.startsWith("$ "));
    return typed.length > 0 ? typed.map((line) => line.slice(2)).join("\n") + "\n" : text;
  };
  if (navigator.clipboard) {
    for (const block of document.querySelectorAll("article pre")) {
      const button = make("button", { type: "button", className: "copy", textContent: "Copy" });
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(commands(block.textContent));
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 2000);
      });
      const frame = make("div", { className: "code" });
      block.replaceWith(frame);
      frame.append(block, button);
    }
  }

  // The section of the page that is read.
  const entries = new Map([...document.querySelectorAll(".toc.wide a")].map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
  const headings = [...document.querySelectorAll("article :is(h2, h3)")].filter((heading) => entries.has(heading.id));
  if (headings.length > 0) {
    let shown;
    const top = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) + 8;
    const follow = () => {
      const passed = headings.filter((heading) => heading.getBoundingClientRect().top < top);
      const now = entries.get((passed.at(-1) ?? headings[0]).id);
      if (now === shown) return;
      shown?.classList.remove("current");
      now.classList.add("current");
      shown = now;
    };
    follow();
    window.addEventListener("scroll", follow, { passive: true });
  }

  // Versions: ../versions.js calls this with the newest version first, and with the pages of each.
  window.siteVersions = (versions, newest) => {
    const here = own.dataset.version;
    const page = location.pathname.slice(new URL(base).pathname.length).replace(/(^|\/)$/, "$1index.html");
    const address = (version) => `${base}../${version.name}/${version.pages.includes(page) ? page : "index.html"}`;
    const list = find(".versions ul");
    const links = versions.map((version) => {
      const link = make("a", { href: address(version), textContent: version.name });
      if (version.name === here) link.setAttribute("aria-current", "true");
      return make("li", {}, link);
    });
    list.prepend(...links);
    const latest = versions.find((version) => version.name === newest);
    if (latest && newest !== here && versions.findIndex((version) => version.name === here) > versions.indexOf(latest)) {
      const note = find(".outdated");
      note.append(`This page is about ${here}. The newest release is `, make("a", { href: address(latest), textContent: newest }), ".");
      note.hidden = false;
    }
  };
  load(`${base}../versions.js`).catch(() => {});
  const versions = find(".versions");
  document.addEventListener("click", (event) => {
    if (!versions.contains(event.target)) versions.open = false;
  });
  versions.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    versions.open = false;
    versions.querySelector("summary").focus();
  });
})();
