// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Search in search-index.js, which is loaded when the field is used first. It has the pages, and the text of each of their sections.
(() => {
  "use strict";
  const own = document.currentScript;
  const base = own.src.slice(0, own.src.lastIndexOf("/") + 1);
  const most = 20;
  const box = document.querySelector(".search");
  const field = box.querySelector("input");
  const panel = box.querySelector(".results");
  const status = panel.querySelector("[role=status]");
  const list = panel.querySelector("ol");
  let sections;
  let loading;

  window.siteSearchIndex = (pages) => {
    sections = pages.flatMap((page) => page.sections.map(([anchor, heading, text]) => ({
      address: base + page.path + (anchor ? `#${anchor}` : ""), page: page.title, heading: heading || page.title, text,
      lower: { page: page.title.toLowerCase(), heading: (heading || page.title).toLowerCase(), text: text.toLowerCase() }, first: !anchor,
    })));
  };

  const load = () => {
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      Object.assign(script, { src: `${base}search-index.js`, onload: resolve, onerror: reject });
      document.head.append(script);
    });
    return loading;
  };

  const letter = /[\p{L}\p{N}]/u;
  // 0 if the word is absent, 1 inside of another word, 2 at the beginning of a word, 3 as a word.
  const match = (text, word) => {
    let best = 0;
    for (let at = text.indexOf(word); at >= 0 && best < 3; at = text.indexOf(word, at + 1)) {
      const begins = at === 0 || !letter.test(text[at - 1]);
      const ends = at + word.length === text.length || !letter.test(text[at + word.length]);
      best = Math.max(best, begins ? (ends ? 3 : 2) : 1);
    }
    return best;
  };

  const score = (section, words, phrase) => {
    let total = 0;
    for (const word of words) {
      const heading = match(section.lower.heading, word);
      const page = match(section.lower.page, word);
      const text = match(section.lower.text, word);
      if (heading + page + text === 0) return 0;
      total += heading * 12 + page * 6 + text * 2;
    }
    if (section.lower.heading === phrase) total += 60;
    else if (section.lower.heading.includes(phrase)) total += 20;
    else if (section.lower.text.includes(phrase)) total += 6;
    return total + (section.first ? 4 : 0);
  };

  const marked = (text, words) => {
    const expression = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "giu");
    return text.split(expression).map((part, i) => {
      if (i % 2 === 0) return part;
      const mark = document.createElement("mark");
      mark.textContent = part;
      return mark;
    });
  };

  const excerpt = (section, words) => {
    const places = words.map((word) => section.lower.text.indexOf(word)).filter((at) => at >= 0);
    const at = Math.max(0, Math.min(...places, section.text.length) - 60);
    const start = at === 0 || places.length === 0 ? 0 : section.text.indexOf(" ", at) + 1;
    const rest = section.text.slice(start, start + 180);
    const cut = start + 180 < section.text.length;
    return (start > 0 ? "… " : "") + (cut ? `${rest.slice(0, rest.lastIndexOf(" "))} …` : rest);
  };

  const entry = (section, words) => {
    const link = document.createElement("a");
    link.href = section.address;
    const heading = document.createElement("strong");
    heading.append(...marked(section.heading, words));
    link.append(heading);
    if (section.heading !== section.page) {
      const page = document.createElement("span");
      page.className = "page";
      page.textContent = ` · ${section.page}`;
      link.append(page);
    }
    const text = document.createElement("span");
    text.className = "excerpt";
    text.append(...marked(excerpt(section, words), words));
    link.append(text);
    const item = document.createElement("li");
    item.append(link);
    return item;
  };

  const show = (message, items) => {
    status.textContent = message;
    list.replaceChildren(...items);
    panel.hidden = false;
    panel.scrollTop = 0;
  };

  const search = async () => {
    const phrase = field.value.trim().toLowerCase().replace(/\s+/g, " ");
    if (phrase === "") {
      panel.hidden = true;
      return;
    }
    try {
      await load();
    } catch {
      show(`The search index ${base}search-index.js cannot be loaded.`, []);
      return;
    }
    if (phrase !== field.value.trim().toLowerCase().replace(/\s+/g, " ")) return;
    const words = phrase.split(" ");
    const found = sections.map((section) => [score(section, words, phrase), section]).filter(([points]) => points > 0);
    found.sort(([a], [b]) => b - a);
    const number = found.length === 0 ? `No section has ${words.length > 1 ? "all of these words" : "this word"}.`
      : `${found.length} ${found.length === 1 ? "section" : "sections"}${found.length > most ? `, the best ${most} are shown` : ""}`;
    show(number, found.slice(0, most).map(([, section]) => entry(section, words)));
  };

  field.disabled = false;
  field.addEventListener("focus", () => { load().catch(() => {}); });
  field.addEventListener("input", search);
  field.addEventListener("click", () => { if (field.value.trim() !== "") panel.hidden = false; });

  box.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    const go = { ArrowDown: links[at + 1], ArrowUp: at <= 0 ? field : links[at - 1] }[event.key];
    if (event.key === "Escape") {
      panel.hidden = true;
      field.focus();
    } else if (event.key === "Enter" && document.activeElement === field) {
      links[0]?.click();
    } else if (go && !panel.hidden) {
      go.focus();
    } else {
      return;
    }
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
    event.preventDefault();
    field.focus();
  });
  document.addEventListener("click", (event) => {
    if (!box.contains(event.target) || event.target.closest(".results a")) panel.hidden = true;
  });
})();
