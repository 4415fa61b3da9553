// The playground: what is written on the page becomes questions of `anygram batch`, and their answers are
// shown. Nothing here knows what a grammar means; everything that is asked and answered is JSON that a
// program could send as well.
//
//   1  small helpers, and places in texts
//   2  asking: the newest question wins
//   3  what the page is about, saved and opened
//   4  editors with marks
//   5  lists of tokens
//   6  the grammar
//   7  the text: mask, counts, parse tree
//   8  the canvas
//   9  the beginning
"use strict";

// ---------------------------------------------------------------- 1. helpers

const $ = (id) => document.getElementById(id);

/** An element with classes and content; texts are never read as HTML. */
function element(tag, className = "", ...content) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...content);
  return made;
}

function button(label, act, className = "") {
  const made = element("button", className, label);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

const encoder = new TextEncoder();
const number = (value) => value.toLocaleString("en");
const plural = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;

/** Bytes of UTF-8 before an index of a string, and back: answers count bytes, a page counts UTF-16. */
const toBytes = (text, index) => encoder.encode(text.slice(0, index)).length;

function fromBytes(text, bytes) {
  let index = 0;
  for (const character of text) {
    if (bytes <= 0) break;
    bytes -= encoder.encode(character).length;
    index += character.length;
  }
  return index;
}

let n_working = 0;

/** Counts what the page is about to ask or to show; who looks at it, or hears it read, can wait for the end. */
function working(change) {
  n_working += change;
  document.body.setAttribute("aria-busy", n_working > 0);
}

/** Calls once nothing has happened for a while. */
function later(milliseconds, act) {
  let timer = null;
  return () => {
    if (timer === null) working(1);
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = null;
      act();
      working(-1);
    }, milliseconds);
  };
}

function notice(text) {
  $("notice").textContent = text;
  setTimeout(() => {
    if ($("notice").textContent === text) $("notice").textContent = "";
  }, 4000);
}

/** The text of a token as the vocabulary displays it; null if it is special or no whole characters. */
function spelled(shown) {
  if (!shown.startsWith('"') || /(^|[^\\])(\\\\)*\\x/.test(shown)) return null;
  const escapes = { n: "\n", r: "\r", t: "\t", 0: "\0" };
  return shown
    .slice(1, -1)
    .replace(/\\u\{([0-9a-f]+)\}|\\(.)/gs, (_, code, plain) =>
      code ? String.fromCodePoint(parseInt(code, 16)) : (escapes[plain] ?? plain),
    );
}

/** What is shown of a token: without quotes, with blanks that can be seen. */
function visible(shown) {
  if (!shown.startsWith('"')) return [shown];
  const inner = shown.slice(1, -1).replaceAll('\\"', '"');
  if (inner === "") return ["(empty)"];
  return inner
    .split(/( +)/)
    .filter(Boolean)
    .map((part) => (part.trim() ? part : element("span", "space", "␣".repeat(part.length))));
}

// ---------------------------------------------------------------- 2. asking

/** Answers to questions of `anygram batch`, in order. */
async function ask(questions) {
  const body = questions.map((question) => JSON.stringify(question)).join("\n");
  const response = await fetch("/batch", {
    method: "POST",
    headers: { "Content-Type": "application/x-ndjson" },
    body,
  });
  const text = await response.text();
  if (!response.ok) throw new Error(text.trim());
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/**
 * Questions about what is on the page now. While some are being answered, others wait, and of those that wait
 * only the newest are asked: so a slow grammar never has more than one request of a lane behind it.
 */
class Lane {
  #busy = false;
  #next = null;

  /** `make` says what to ask when its turn comes, or null for nothing; `show` gets the answers. */
  run(make, show) {
    this.#next = { make, show };
    if (!this.#busy) this.#work();
  }

  async #work() {
    this.#busy = true;
    working(1);
    while (this.#next) {
      const { make, show } = this.#next;
      this.#next = null;
      try {
        const questions = make();
        const answers = questions ? await ask(questions) : null;
        // What is outdated is not shown.
        if (answers && !this.#next) show(answers);
      } catch (error) {
        notice(`no answer: ${error.message}`);
      }
    }
    this.#busy = false;
    working(-1);
  }
}

const lanes = Object.fromEntries(
  ["grammar", "text", "mask", "tree", "random", "canvas", "sample", "gap"].map((name) => [name, new Lane()]),
);

/** An error of an answer as a sentence. */
const message = (error) => (typeof error === "string" ? error : error.message);

// ---------------------------------------------------------------- 3. what the page is about

/** All that can be saved. A slot is null (a hole), "*" (a gap) or [token, text]. */
const EMPTY = {
  format: "lark",
  grammar: "",
  lexer: "",
  start: "",
  options: "",
  text: "",
  canvas: "",
  slots: null,
  end: "sentence",
  tab: "text",
};
let state = { ...EMPTY };
let start = null;
let examples = [];

/** The fields of a question that bring the grammar. */
function subject() {
  const fields = { format: state.format, grammar: state.grammar };
  if (state.format === "json-schema") {
    if (state.options.trim()) fields.options = JSON.parse(state.options);
  } else {
    if (state.lexer) fields.lexer = state.lexer;
    if (state.start.trim()) fields.start = state.start.trim();
  }
  return fields;
}

/** The vocabulary, by which the tokens of slots are numbered. */
const vocabulary = () => `${start.vocabulary}, ${start.size}`;

/** All of it as JSON. */
const written = () => JSON.stringify({ anygram: "playground", vocabulary: vocabulary(), ...state }, null, 1);

const remember = later(200, () => {
  try {
    localStorage.setItem("anygram", written());
  } catch {
    // Without storage nothing is kept from one visit to the next.
  }
});

/** Only known fields of the right type: a file or an address can contain anything. */
function sound(given) {
  const clean = { ...EMPTY };
  for (const [name, otherwise] of Object.entries(EMPTY)) {
    if (otherwise !== null && typeof given?.[name] === typeof otherwise) clean[name] = given[name];
  }
  // With other tokens the text of the canvas is cut again.
  if (Array.isArray(given?.slots) && given.vocabulary === vocabulary()) {
    const isSlot = (slot) =>
      slot === null ||
      slot === "*" ||
      (Array.isArray(slot) && Number.isInteger(slot[0]) && typeof slot[1] === "string");
    if (given.slots.every(isSlot)) clean.slots = given.slots;
  }
  if (!start.formats.includes(clean.format)) clean.format = EMPTY.format;
  if (!["", ...start.lexers].includes(clean.lexer)) clean.lexer = "";
  if (!["sentence", "prefix"].includes(clean.end)) clean.end = EMPTY.end;
  return clean;
}

/** Shows something else. */
function open(given) {
  state = sound(given);
  $("example").value = given?.id ?? "";
  for (const name of ["format", "lexer", "start", "options", "end"]) $(name).value = state[name];
  editors.grammar.setText(state.grammar);
  editors.text.setText(state.text);
  canvas.open(state.canvas, state.slots);
  $("text").setSelectionRange(state.text.length, state.text.length);
  showFields();
  showTab(state.tab === "canvas" ? "canvas" : "text", false);
  grammarChanged();
}

/** The page in an address: JSON, compressed, in the letters that addresses may have. */
async function toFragment() {
  const stream = new Blob([written()]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return "page=" + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function fromFragment(fragment) {
  const MOST = 4 << 20;
  const [name, value] = fragment.split(/=(.*)/s);
  if (name === "example") return examples.find((example) => example.id === value) ?? null;
  if (name !== "page") return null;
  const bytes = Uint8Array.from(atob(value.replaceAll("-", "+").replaceAll("_", "/")), (character) =>
    character.charCodeAt(0),
  );
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts = [];
  // What is short in an address may be long when it is unpacked.
  for (let size = 0; ;) {
    const { done, value: part } = await reader.read();
    if (done) break;
    size += part.length;
    if (size > MOST) throw new Error("the page in this address is too large");
    parts.push(part);
  }
  return JSON.parse(await new Blob(parts).text());
}

async function openFragment() {
  try {
    const given = await fromFragment(location.hash.slice(1));
    if (given) open(given);
    return given !== null;
  } catch (error) {
    notice(`the address has no page that can be read: ${error.message}`);
    return false;
  }
}

function save() {
  const address = URL.createObjectURL(new Blob([written()], { type: "application/json" }));
  const link = element("a");
  [link.href, link.download] = [address, "playground.json"];
  link.click();
  URL.revokeObjectURL(address);
}

async function load() {
  const [file] = $("file").files;
  $("file").value = "";
  try {
    const given = JSON.parse(await file.text());
    if (given?.anygram !== "playground") throw new Error("it was not saved here");
    open(given);
    notice(`opened ${file.name}`);
  } catch (error) {
    notice(`${file.name} cannot be opened: ${error.message}`);
  }
}

async function copyLink() {
  const fragment = await toFragment();
  history.replaceState(null, "", "#" + fragment);
  try {
    await navigator.clipboard.writeText(location.href);
    notice("copied: the address opens this page");
  } catch {
    notice("the address of this window opens this page now");
  }
}

// ---------------------------------------------------------------- 4. editors

/** A text area over a copy of its text: the copy has the marks, since a text area cannot have any. */
class Editor {
  #marks = new Map();

  constructor(id, changed) {
    this.area = $(id);
    const editor = this.area.closest(".editor");
    this.layer = editor.querySelector(".marks");
    this.numbers = editor.querySelector(".numbers");
    this.area.addEventListener("input", () => {
      this.#marks.clear();
      this.draw();
      changed();
    });
    this.area.addEventListener("scroll", () => this.#scroll());
  }

  get text() {
    return this.area.value;
  }

  setText(text) {
    this.area.value = text;
    this.#marks.clear();
    this.draw();
  }

  /** Replaces a part as if it was typed, so that it can be undone. */
  insert(from, to, text) {
    this.area.focus();
    this.area.setSelectionRange(from, to);
    // Outdated by its definition, and the only way that keeps the history of what was typed.
    if (!document.execCommand("insertText", false, text)) {
      this.area.setRangeText(text, from, to, "end");
      this.area.dispatchEvent(new Event("input"));
    }
  }

  /** Marks of one kind, in place of those it had: lists of [from, to, class] in UTF-16. */
  mark(kind, ranges) {
    this.#marks.set(kind, ranges);
    this.draw();
  }

  select(from, to) {
    this.area.focus();
    this.area.setSelectionRange(from, Math.max(from, to));
    const line = this.text.slice(0, from).split("\n").length - 1;
    const height = parseFloat(getComputedStyle(this.area).lineHeight);
    if (this.numbers) this.area.scrollTop = Math.max(0, line * height - this.area.clientHeight / 2);
  }

  draw() {
    const text = this.text;
    const all = [...this.#marks.values()].flat().filter(([from, to]) => from < to);
    const cuts = [...new Set([0, text.length, ...all.flatMap(([from, to]) => [from, to])])];
    cuts.sort((a, b) => a - b);
    const parts = [];
    for (let at = 0; at + 1 < cuts.length; at += 1) {
      const part = text.slice(cuts[at], cuts[at + 1]);
      const names = all
        .filter(([from, to]) => from <= cuts[at] && cuts[at + 1] <= to)
        .map(([, , name]) => name);
      parts.push(names.length ? element("span", names.join(" "), part) : part);
    }
    // Marks behind the end, where something is missing.
    const atEnd = [...this.#marks.values()]
      .flat()
      .filter(([from, to]) => from === to && from === text.length);
    this.layer.replaceChildren(...parts, ...atEnd.map(([, , name]) => element("span", name, " ")), "\n");
    if (this.numbers) {
      const lines = text.split("\n").length;
      const marked = new Map(
        all
          .filter(([, , name]) => name !== "hint")
          .map(([from, , name]) => [
            text.slice(0, from).split("\n").length,
            name === "error" ? "no" : "maybe",
          ]),
      );
      const digits = Array.from({ length: lines }, (_, line) =>
        element("span", marked.get(line + 1) ?? "", `${line + 1}\n`),
      );
      this.numbers.replaceChildren(...digits);
    }
    this.#scroll();
  }

  #scroll() {
    [this.layer.scrollTop, this.layer.scrollLeft] = [this.area.scrollTop, this.area.scrollLeft];
    if (this.numbers) this.numbers.scrollTop = this.area.scrollTop;
  }
}

const editors = {};

// ---------------------------------------------------------------- 5. lists of tokens

const ORDERS = { varied: "varied", shortest: "shortest first", longest: "longest first", id: "by id" };
const MOST_SHOWN = 200;

/** Arrow keys move among the buttons of a container, which is one stop of the Tab key. */
function roving(container) {
  const all = () => [...container.querySelectorAll("button")];
  const choose = (target) =>
    all().forEach((each) => {
      each.tabIndex = each === target ? 0 : -1;
    });
  container.addEventListener("focusin", (event) => choose(event.target));
  container.addEventListener("keydown", (event) => {
    const buttons = all();
    const at = buttons.indexOf(document.activeElement);
    const moves = {
      ArrowRight: at + 1,
      ArrowDown: at + 1,
      ArrowLeft: at - 1,
      ArrowUp: at - 1,
      Home: 0,
      End: buttons.length - 1,
    };
    const target = buttons[moves[event.key]];
    if (at < 0 || !target) return;
    event.preventDefault();
    target.focus();
  });
  return () => choose(all().find((each) => each.tabIndex === 0) ?? all()[0]);
}

/** Tokens that can be chosen, with a search and an order. */
class Tokens {
  constructor({ list, search, order, changed, chosen }) {
    [this.list, this.search, this.order, this.chosen] = [$(list), $(search), $(order), chosen];
    for (const [name, label] of Object.entries(ORDERS)) this.order.append(new Option(label, name));
    this.search.addEventListener("input", later(120, changed));
    this.order.addEventListener("change", changed);
    this.search.addEventListener("keydown", (event) => {
      const first = this.list.querySelector("button:enabled");
      if (!first || !["Enter", "ArrowDown"].includes(event.key)) return;
      event.preventDefault();
      if (event.key === "Enter") first.click();
      else first.focus();
    });
    this.settle = roving(this.list);
  }

  /** What a question wants to be shown. */
  get show() {
    return { most: MOST_SHOWN, order: this.order.value, search: this.search.value };
  }

  /** Shows an answer of that, or a sentence in its place. */
  draw(answer) {
    if (typeof answer === "string") {
      this.list.replaceChildren(element("span", "faint", answer));
      return;
    }
    const buttons = answer.shown.map(([token, shown]) => {
      const made = button("", () => this.chosen(token, shown), shown.startsWith('"') ? "" : "special");
      made.append(...visible(shown));
      made.title = `token ${token}: ${shown}`;
      made.tabIndex = -1;
      return made;
    });
    const left = (answer.found ?? answer.count) - buttons.length;
    const found =
      answer.found === undefined
        ? []
        : [element("span", "faint", `${number(answer.found)} of ${number(answer.count)} found`)];
    const more =
      left > 0 ? [element("span", "faint", `and ${number(left)} more: search, or change the order`)] : [];
    this.list.replaceChildren(...found, ...buttons, ...more);
    this.settle();
  }
}

// ---------------------------------------------------------------- 6. the grammar

let compiles = false;

function showFields() {
  const isSchema = state.format === "json-schema";
  for (const each of document.querySelectorAll(".only-rules"))
    each.hidden = isSchema || state.format === "structural-tag";
  for (const each of document.querySelectorAll(".only-schemas")) each.hidden = !isSchema;
}

const grammarChanged = later(150, () => {
  remember();
  lanes.grammar.run(
    () => {
      try {
        // Of a large grammar more can be asked than is answered: then it compiles all the same.
        return [
          { op: "grammar", ...subject(), want: ["warnings", "hints", "facts"] },
          { op: "text", ...subject(), text: "" },
        ];
      } catch (error) {
        refuse({ message: `the options are no JSON: ${error.message}` });
        return null;
      }
    },
    ([answer, empty]) => {
      const { error } = answer;
      if (!error) accept(answer);
      else if (empty.error) refuse(typeof error === "string" ? { message: error } : error);
      else {
        accept({ warnings: [], hints: [], facts: [], compile_us: empty.compile_us });
        $("remarks").append(
          remark("warning", { message: `it was not looked at as a whole: ${message(error)}` }),
        );
      }
    },
  );
});

/** A remark about a place of the grammar, which can be gone to. */
function remark(kind, { message: text, help, span, line, column }) {
  const item = element("li", kind);
  if (span) {
    const [from, to] = span.map((bytes) => fromBytes(state.grammar, bytes));
    line ??= state.grammar.slice(0, from).split("\n").length;
    column ??= [...state.grammar.slice(state.grammar.lastIndexOf("\n", from - 1) + 1, from)].length + 1;
    item.append(
      button(`${line}:${column}`, () => editors.grammar.select(from, to)),
      " ",
    );
  }
  item.append(element("span", "kind", `${kind}: `), text);
  if (help) item.append(element("div", "help", help));
  return item;
}

/** The place of a span in UTF-16, on its first line, and at least one character. */
function place([start, end], name) {
  const [from, to] = [fromBytes(state.grammar, start), fromBytes(state.grammar, end)];
  const lineEnd = state.grammar.indexOf("\n", from);
  const last = Math.min(to, lineEnd < 0 ? to : lineEnd);
  return [from, Math.max(last, Math.min(from + 1, state.grammar.length)), name];
}

/** The lines of an error with a caret, as a terminal would show them. */
function excerpt(span) {
  const [from, to] = place(span, "");
  const begin = state.grammar.lastIndexOf("\n", from - 1) + 1;
  const end = state.grammar.indexOf("\n", from);
  const line = state.grammar.slice(begin, end < 0 ? undefined : end);
  const indent = line.slice(0, from - begin).replace(/[^\t]/gu, " ");
  return element("pre", "", `${line}\n${indent}${"^".repeat(Math.max(1, Math.min(to - from, 60)))}`);
}

function refuse(error) {
  compiles = false;
  const verdict = $("grammar-verdict");
  const kind =
    {
      syntax: "not a grammar",
      unsupported: "not supported",
      unsatisfiable: "no text is valid",
      limit: "too much work",
    }[error.kind] ?? "refused";
  verdict.className = "no";
  verdict.textContent = `✗ ${kind}`;
  const span = error.span ?? jsonPlace(error.message);
  const at = typeof error.at === "string" ? { line: undefined } : (error.at ?? {});
  // The message repeats the place and the help, which stand beside it.
  const text = error.message
    .replace(/^\d+:\d+: /, "")
    .replace(error.help ? ` (${error.help})` : "", "")
    .replace(error.help ? `; ${error.help}` : "", "");
  const item = remark("error", { message: text, help: error.help, span, ...at });
  if (span) item.append(excerpt(span));
  const items = [item];
  if (error.label) items.push(remark("hint", { message: error.label[2], span: error.label.slice(0, 2) }));
  $("remarks").replaceChildren(...items);
  const marks = span ? [place(span, "error")] : [];
  if (error.label) marks.push(place(error.label.slice(0, 2), "hint"));
  editors.grammar.mark("grammar", marks);
  $("facts").hidden = true;
  writing.noGrammar();
  canvas.noGrammar();
}

/** Where a text is no JSON, from the message: a pointer leads nowhere there. */
function jsonPlace(text) {
  const found = /byte (\d+)/.exec(text);
  if (!found || !["json-schema", "structural-tag"].includes(state.format)) return null;
  return [Number(found[1]), Number(found[1]) + 1];
}

function accept(answer) {
  compiles = true;
  const { warnings, hints, facts } = answer;
  const verdict = $("grammar-verdict");
  const known = Object.fromEntries(facts);
  const doubts = [
    [warnings, "warning"],
    [hints, "hint"],
  ]
    .filter(([list]) => list.length)
    .map(([list, word]) => plural(list.length, word));
  verdict.className = warnings.length ? "maybe" : "yes";
  const time =
    answer.compile_us >= 1000
      ? `${(answer.compile_us / 1000).toFixed(1)} ms`
      : `${Math.round(answer.compile_us)} µs`;
  verdict.textContent = `✓ compiled in ${time}${doubts.length ? ", " + doubts.join(", ") : ""}`;
  const items = [
    ...warnings.map((each) => remark("warning", each)),
    ...hints.map((each) => remark("hint", each)),
  ];
  $("remarks").replaceChildren(...items);
  const marks = [
    ["warning", warnings],
    ["hint", hints],
  ].flatMap(([name, list]) => list.filter(({ span }) => span).map(({ span }) => place(span, name)));
  editors.grammar.mark("grammar", marks);
  $("facts").hidden = false;
  $("facts")
    .querySelector("dl")
    .replaceChildren(
      ...Object.entries(known).flatMap(([name, value]) => [
        element("dt", "", name),
        element("dd", "", value),
      ]),
    );
  askTab();
}

/** Asks about what is to be seen. */
function askTab() {
  if (state.tab === "text") writing.ask();
  else canvas.ask();
}

// ---------------------------------------------------------------- 7. the text

/** Characters of a text after each of which it is counted; for each there is a mask to compute. */
const MOST_COUNTED = 300;
/** Characters of a text whose tree is asked for. */
const MOST_PARSED = 20_000;
/** Nodes of a tree that are there at once; others are made when they are unfolded. */
const OPEN_NODES = 120;

const writing = {
  /** What is known of which text: how far it is viable, in UTF-16, and what completes it. */
  known: null,
  /** Where the mask is. */
  at: 0,

  noGrammar() {
    this.known = null;
    [$("text-verdict").className, $("text-verdict").textContent] = [
      "faint",
      "The grammar is to be corrected first.",
    ];
    // What was known stays, pale: who types is without a grammar for a moment only.
    $("text-panel").classList.add("stale");
    $("notes").replaceChildren();
    $("forced").hidden = true;
    editors.text.mark("verdict", []);
  },

  /** Asks about the text, and then about the place of the caret. */
  ask() {
    if (!compiles || state.tab !== "text") return;
    const text = state.text;
    const wants = [
      { op: "text", ...subject(), text, want: text.length > MOST_PARSED ? ["explain"] : ["explain", "tree"] },
    ];
    const counted = text.slice(0, MOST_COUNTED);
    wants.push({ op: "mask", ...subject(), text: counted, want: ["counts"] });
    lanes.text.run(
      () => wants,
      async ([answer, counts]) => {
        if (answer.error) {
          $("text-verdict").className = "no";
          $("text-verdict").textContent = message(answer.error);
          return;
        }
        this.known = { text, stop: fromBytes(text, answer.explain.at), answer };
        this.drawVerdict();
        this.drawCounts(counted, counts, text.length > counted.length);
        this.drawTree();
        this.askMask();
      },
    );
  },

  /** Asks for the mask at the caret, or where the text stops being viable. */
  askMask() {
    if (!compiles || state.tab !== "text" || this.known?.text !== state.text) return;
    this.at = Math.min($("text").selectionStart, this.known.stop);
    const prefix = state.text.slice(0, this.at);
    const fields = { ...subject(), text: prefix };
    const questions = [
      { op: "mask", ...fields, want: ["allowed", "forced", "minimum"], show: maskTokens.show },
    ];
    if (this.at < state.text.length) questions.push({ op: "text", ...fields, want: ["explain"] });
    lanes.mask.run(
      () => questions,
      ([mask, before]) => this.drawMask(mask, before ?? this.known.answer),
    );
  },

  drawVerdict() {
    const {
      text,
      stop,
      answer: { sentence, viable, explain },
    } = this.known;
    $("text-panel").classList.remove("stale");
    const verdict = $("text-verdict");
    const [name, words] = sentence
      ? ["yes", "✓ a sentence"]
      : viable
        ? ["maybe", "… not a sentence yet: it can go on"]
        : ["no", `✗ not a sentence: it stops at ${explain.line}:${explain.column}`];
    [verdict.className, verdict.textContent] = [name, words];
    $("notes").replaceChildren(...explain.notes.map((note) => element("li", "", note)));
    const end = stop + ([...text.slice(stop)][0]?.length ?? 0);
    editors.text.mark("verdict", viable ? [] : [[stop, end, "error"]]);
  },

  drawMask(mask, { explain }) {
    const where = $("mask-where");
    const before = state.text.slice(Math.max(0, this.at - 24), this.at);
    where.textContent =
      this.at === 0
        ? "at the beginning"
        : `after “${before.length < this.at ? "…" : ""}${before.replaceAll("\n", "⏎")}”`;
    const expected = $("expected");
    expected.replaceChildren("Expected: ");
    if (explain?.expected.length) {
      const SHOWN = 24;
      expected.append(...explain.expected.slice(0, SHOWN).map((name) => element("span", "piece", name)));
      if (explain.expected.length > SHOWN) expected.append(` and ${explain.expected.length - SHOWN} more`);
    } else expected.append(mask.count ? "only what the grammar ignores" : "nothing");
    if (mask.error) {
      $("mask-facts").textContent = "";
      $("forced").hidden = true;
      maskTokens.draw(message(mask.error));
      return;
    }
    const end = mask.eos
      ? "The text may end here."
      : mask.minimum === null
        ? "No tokens of the vocabulary complete it."
        : `At least ${plural(mask.minimum, "token")} to a sentence.`;
    const size = start.size ? ` of ${number(start.size)}` : "";
    $("mask-facts").textContent = `${plural(mask.count, "token")}${size} may come next. ${end}`;
    const forced = $("forced");
    forced.hidden = mask.forced.text === "";
    forced.replaceChildren("forced: ", ...visible(JSON.stringify(mask.forced.text)));
    forced.dataset.text = mask.forced.text;
    maskTokens.draw(mask);
  },

  /** Inserts at the place of the mask, over what cannot stand there. */
  insert(text) {
    const area = $("text");
    const isRefused = this.at < area.selectionStart;
    editors.text.insert(this.at, isRefused ? area.value.length : Math.max(this.at, area.selectionEnd), text);
  },

  drawCounts(text, answer, isCut) {
    const strip = $("steps");
    if (answer.error) {
      strip.replaceChildren(element("span", "faint", message(answer.error)));
      return;
    }
    // By bytes, and what stands before each place.
    const counts = new Map(answer.counts);
    const most = Math.log1p(Math.max(1, ...answer.counts.map(([, count]) => count ?? 0)));
    const cells = [];
    let [bytes, index] = [0, 0];
    const cell = (shown, at, count) => {
      const made = element(
        "span",
        count === undefined ? "bad" : count === 1 ? "forced" : "",
        element("b", "", shown),
        element("i", "", count === undefined ? "✗" : count === null ? "?" : number(count)),
      );
      made.dataset.at = at;
      made.style.setProperty("--share", count ? Math.log1p(count) / most : 0);
      made.title = count === undefined ? "not viable" : `${number(count ?? 0)} tokens may come next`;
      cells.push(made);
    };
    cell("⊢", 0, counts.get(0));
    for (const character of text) {
      bytes += encoder.encode(character).length;
      index += character.length;
      const shown = { "\n": "⏎", "\t": "⇥", " ": "␣" }[character] ?? character;
      cell(shown, index, counts.get(bytes));
    }
    if (isCut) cells.push(element("span", "faint", element("b", "", "…")));
    strip.replaceChildren(...cells);
    this.markStep();
  },

  markStep() {
    const caret = $("text").selectionStart;
    for (const cell of $("steps").children) cell.classList.toggle("now", Number(cell.dataset.at) === caret);
  },

  /** The tree of the text, or of what it can become. */
  drawTree() {
    const { text, stop, answer } = this.known;
    const what = $("tree-what");
    what.textContent = "";
    if (answer.tree) {
      drawTree(answer.tree, text, text.length);
      return;
    }
    if (text.length > MOST_PARSED) {
      const words = `The text has more than ${number(MOST_PARSED)} characters: use anygram check --tree.`;
      $("tree").replaceChildren(element("span", "faint", words));
      return;
    }
    const completion = answer.explain.completion;
    if (completion === null) {
      $("tree").replaceChildren(element("span", "faint", "There is one when the text is a sentence."));
      return;
    }
    const whole = text.slice(0, stop) + completion;
    const question = { op: "text", ...subject(), text: whole, want: ["tree"] };
    lanes.tree.run(
      () => [question],
      ([completed]) => {
        if (!completed.tree) return;
        what.textContent = `with “${completion}” added`;
        drawTree(completed.tree, whole, stop);
      },
    );
  },
};

/** Nodes come as a list, each before those below it. From `length` on the text is not written yet. */
function drawTree(nodes, text, length) {
  const index = byteIndex(text);
  let n_open = 0;
  const pointAt = (made, from, to) => {
    const on = () => editors.text.mark("here", [[Math.min(from, length), Math.min(to, length), "here"]]);
    const off = () => editors.text.mark("here", []);
    for (const event of ["mouseenter", "focus"]) made.addEventListener(event, on);
    for (const event of ["mouseleave", "blur"]) made.addEventListener(event, off);
  };
  const branch = (at) => {
    const node = nodes[at];
    const [from, to] = [index(node.start), index(node.end)];
    const ghost = from >= length && to > from ? " ghost" : "";
    const span = element("span", "span", ` ${node.start}–${node.end}`);
    if (node.terminal !== undefined) {
      const leaf = element(
        "div",
        "leaf" + ghost,
        element("span", "terminal", node.terminal + " "),
        ...visible(JSON.stringify(text.slice(from, to))),
        span,
      );
      leaf.tabIndex = -1;
      pointAt(leaf, from, to);
      return leaf;
    }
    const fold = element("details", ghost.trim());
    const head = element("summary", "", node.rule, span);
    pointAt(head, from, to);
    fold.append(head);
    // What is below is made when it is first shown: a tree can have a hundred thousand nodes.
    const unfold = () => {
      if (fold.dataset.made) return;
      fold.dataset.made = "yes";
      for (let below = at + 1; below < nodes.length && nodes[below].depth > node.depth; below += 1) {
        if (nodes[below].depth === node.depth + 1) fold.append(branch(below));
      }
    };
    n_open += 1;
    if (n_open <= OPEN_NODES) {
      unfold();
      fold.open = true;
    }
    fold.addEventListener("toggle", () => {
      if (fold.open) unfold();
    });
    return fold;
  };
  $("tree").replaceChildren(branch(0));
}

/** Indexes of UTF-16 by bytes, for many places of one text. */
function byteIndex(text) {
  const indexes = [];
  let index = 0;
  for (const character of text) {
    const length = encoder.encode(character).length;
    for (let byte = 0; byte < length; byte += 1) indexes.push(index);
    index += character.length;
  }
  return (bytes) => indexes[bytes] ?? index;
}

// ---------------------------------------------------------------- 8. the canvas

const HOLE = "▢",
  GAP = "…";
/** Numbers of holes that are tried in the place of a gap. */
const MOST_HOLES = 8;

/** How many tokens are admissible, as far as that is known. */
function inShort({ count, isWhole }) {
  if (isWhole) return number(count);
  return count ? `≥ ${number(count)}` : "?";
}

const canvas = {
  /** As in `state`; null while the text is being cut into tokens. */
  slots: [],
  chosen: 0,
  answer: null,
  /** The slots with the completion in them that is shown. */
  filled: null,

  open(text, slots) {
    editors.canvas.setText(text);
    [this.slots, this.chosen, this.answer] = [slots, 0, null];
    $("slots").replaceChildren();
  },

  noGrammar() {
    this.answer = null;
    this.draw();
    this.drawSample();
  },

  /** The text was changed: it is cut into tokens again. */
  rewritten() {
    state.canvas = editors.canvas.text;
    [this.slots, state.slots] = [null, null];
    this.ask();
  },

  /** A slot was changed: the text follows. */
  changed(slots, chosen) {
    this.slots = slots;
    state.slots = slots;
    this.chosen = Math.max(0, Math.min(chosen, slots.length - 1));
    state.canvas = slots
      .map((slot) => (slot === null ? HOLE : slot === "*" ? GAP : (spelled(slot[1]) ?? `⟨${slot[1]}⟩`)))
      .join("");
    editors.canvas.setText(state.canvas);
    this.draw();
    this.ask();
    remember();
  },

  /** Cuts the text into tokens if that is to be done, then asks about the slots. */
  ask() {
    if (state.tab !== "canvas" || !compiles) return;
    if (this.slots) {
      this.askSlots();
      return;
    }
    const parts = state.canvas.split(/([▢…])/).filter((part) => part !== "");
    const fixed = parts.filter((part) => part !== HOLE && part !== GAP);
    lanes.canvas.run(
      () => fixed.map((text) => ({ op: "tokens", text })).concat({ op: "tokens" }),
      (answers) => {
        const error = answers.find((answer) => answer.error)?.error;
        if (error) {
          this.say("no", message(error));
          return;
        }
        const tokens = fixed.map((_, at) =>
          answers[at].tokens.map((token, index) => [token, answers[at].shown[index]]),
        );
        this.slots = parts.flatMap((part) =>
          part === HOLE ? [null] : part === GAP ? ["*"] : tokens.shift(),
        );
        this.chosen = Math.max(
          0,
          this.slots.findIndex((slot) => !Array.isArray(slot)),
        );
        this.answer = null;
        this.askSlots();
      },
    );
  },

  question(slots, want) {
    return {
      op: "canvas",
      ...subject(),
      slots: slots.map((slot) => (Array.isArray(slot) ? slot[0] : slot)),
      end: state.end,
      want,
    };
  },

  askSlots() {
    const slots = this.slots;
    this.draw();
    const question = {
      ...this.question(slots, ["completable", "witness", "minimum", "admissible"]),
      show: slotTokens.show,
    };
    lanes.canvas.run(
      () => [question],
      ([answer]) => {
        if (this.slots !== slots) return;
        this.answer = answer;
        this.draw();
        this.drawSample();
        this.askGap();
      },
    );
  },

  /** How many holes fit in the place of the gap that is chosen. */
  askGap() {
    const [slots, at] = [this.slots, this.chosen];
    $("gap-counts").replaceChildren();
    if (!slots || slots[at] !== "*") return;
    const filled = (n) => [...slots.slice(0, at), ...Array(n).fill(null), ...slots.slice(at + 1)];
    const questions = Array.from({ length: MOST_HOLES + 1 }, (_, n) =>
      this.question(filled(n), ["completable"]),
    );
    lanes.gap.run(
      () => questions,
      (answers) => {
        if (this.slots !== slots || this.chosen !== at) return;
        const buttons = answers.map((answer, n) => {
          const [name, mark, word] = { true: ["fits", "✓", "fit"], false: ["not", "✗", "do not fit"] }[
            answer.completable
          ] ?? ["", "?", "may fit: not decided"];
          const made = button(`${n} ${mark}`, () => this.changed(filled(n), at), name);
          made.title = `${plural(n, "hole")} in its place ${word}`;
          return made;
        });
        $("gap-counts").replaceChildren(element("span", "", "Holes that fit in its place: "), ...buttons);
      },
    );
  },

  say(name, text) {
    [$("canvas-verdict").className, $("canvas-verdict").textContent] = [name, text];
  },

  draw() {
    const slots = this.slots ?? [];
    const { answer } = this;
    if (!compiles) this.say("faint", "The grammar is to be corrected first.");
    else if (!answer) this.say("faint", "…");
    else if (answer.error) this.say("no", message(answer.error));
    else {
      const [name, words] = {
        true: ["yes", "✓ it can be completed"],
        false: ["no", "✗ no choice of tokens completes it"],
      }[answer.completable] ?? ["maybe", `? not decided: ${answer.why}`];
      const least = answer.minimum ? `; the shortest completion has ${plural(answer.minimum, "token")}` : "";
      this.say(name, words + least);
    }
    const rows = this.rows();
    const hadFocus = $("slots").contains(document.activeElement);
    const buttons = slots.map((slot, at) => this.drawSlot(slot, at, rows.get(at)));
    $("slots").replaceChildren(...buttons);
    if (hadFocus) buttons[this.chosen]?.focus();
    this.drawChosen(rows);
  },

  /** What is known of each hole, by its slot. */
  rows() {
    const rows = new Map();
    if (!this.slots || !this.answer || this.answer.error) return rows;
    const holes = this.slots.flatMap((slot, at) => (slot === null ? [at] : []));
    holes.forEach((at, hole) => {
      const row = this.answer.admissible?.[hole];
      const partly = this.answer.admissible_at_least?.[hole];
      if (row) rows.set(at, { ...row, isWhole: true });
      else if (partly) rows.set(at, { ...partly, isWhole: false });
    });
    return rows;
  },

  drawSlot(slot, at, row) {
    const made = button("", () => this.choose(at));
    const names = [];
    if (Array.isArray(slot)) {
      made.append(element("span", "", ...visible(slot[1])));
      if (slot[2]) names.push("chosen-token");
      made.title = `slot ${at}: token ${slot[0]}: ${slot[1]}`;
    } else {
      names.push(slot === null ? "hole" : "gap");
      made.append(element("span", "", slot === null ? HOLE : GAP));
      const filling = this.answer?.witness?.[at];
      const length = slot === "*" && Array.isArray(filling) ? plural(filling.length, "token") : "";
      const shown = row ? inShort(row) : length;
      made.append(element("small", "", shown || " "));
      if (row?.isWhole && row.count === 1) names.push("single");
      if (row?.isWhole && row.count === 0) names.push("none");
      made.title =
        slot === null
          ? `slot ${at}: a hole, one token${row ? `; ${shown} admissible` : ""}`
          : `slot ${at}: a gap, any number of tokens`;
    }
    made.className = names.join(" ");
    made.tabIndex = at === this.chosen ? 0 : -1;
    made.setAttribute("aria-pressed", at === this.chosen);
    made.setAttribute("aria-label", made.title);
    return made;
  },

  choose(at) {
    if (this.chosen === at) return;
    this.chosen = at;
    this.draw();
    this.askGap();
  },

  drawChosen(rows) {
    const slot = this.slots?.[this.chosen];
    for (const id of ["slot-before", "slot-after", "slot-hole", "slot-gap", "slot-remove"])
      $(id).disabled = !this.slots || (slot === undefined && !["slot-after"].includes(id));
    $("slot-hole").disabled ||= slot === null;
    $("slot-gap").disabled ||= slot === "*";
    $("slot-tokens").hidden = slot !== null;
    $("gap-counts").hidden = slot !== "*";
    const row = rows.get(this.chosen);
    const title = $("slot-title");
    if (slot === undefined) title.textContent = "No slot is chosen";
    else if (slot === "*") title.textContent = `Slot ${this.chosen}: a gap, any number of tokens`;
    else if (slot !== null) title.textContent = `Slot ${this.chosen}: token ${slot[0]}, ${slot[1]}`;
    else {
      const count = row && `${row.isWhole ? "" : "at least "}${plural(row.count, "admissible token")}`;
      title.textContent = `Slot ${this.chosen}: ${count ?? "a hole"}`;
      if (row && !row.isWhole)
        title.append(element("small", "", ` the others are not decided: ${this.answer.why}`));
    }
    slotTokens.draw(row ?? (this.answer && !this.answer.error ? "not known" : "…"));
  },

  /** The slots with some of them replaced. */
  spliced(at, count, ...slots) {
    const changed = [...(this.slots ?? [])];
    changed.splice(at, count, ...slots);
    return changed;
  },

  set(token, shown) {
    const slots = this.spliced(this.chosen, 1, [token, shown, true]);
    const next = slots.findIndex((slot, at) => slot === null && at > this.chosen);
    this.changed(slots, next < 0 ? this.chosen : next);
    $("slots").querySelectorAll("button")[this.chosen]?.focus();
  },

  /** Shows the completion that was found, as a text in which what was filled stands out. */
  drawSample() {
    this.filled = null;
    const [slots, witness] = [this.slots, this.answer?.witness];
    $("completion").hidden = !witness || !slots.some((slot) => !Array.isArray(slot));
    if ($("completion").hidden) return;
    lanes.sample.run(
      () => [{ op: "tokens", tokens: witness.flat() }],
      ([{ tokens, shown }]) => {
        if (this.slots !== slots || !tokens) return;
        const names = new Map(tokens.map((token, at) => [token, shown[at]]));
        const fillings = slots.map((slot, at) =>
          Array.isArray(slot) ? [slot] : [witness[at]].flat().map((token) => [token, names.get(token), true]),
        );
        this.filled = fillings.flat();
        const parts = fillings.map((filling, at) => {
          const text = filling.map(([, name]) => spelled(name) ?? visible(name)[0]).join("");
          return Array.isArray(slots[at]) ? text : element("b", "", text);
        });
        $("sample").replaceChildren(...parts);
      },
    );
  },

  fill() {
    if (this.filled) this.changed(this.filled, this.chosen);
  },
};

let maskTokens, slotTokens;

// ---------------------------------------------------------------- 9. the beginning

function showTab(name, isAsked = true) {
  state.tab = name;
  for (const tab of ["text", "canvas"]) {
    $(`${tab}-tab`).setAttribute("aria-selected", tab === name);
    $(`${tab}-tab`).tabIndex = tab === name ? 0 : -1;
    $(`${tab}-panel`).hidden = tab !== name;
  }
  for (const each of Object.values(editors)) each.draw();
  remember();
  if (isAsked) askTab();
}

function wire() {
  editors.grammar = new Editor("grammar", () => {
    state.grammar = editors.grammar.text;
    grammarChanged();
  });
  const askText = later(60, () => writing.ask());
  editors.text = new Editor("text", () => {
    state.text = editors.text.text;
    remember();
    askText();
  });
  const askCanvas = later(150, () => canvas.rewritten());
  editors.canvas = new Editor("canvas", () => {
    remember();
    askCanvas();
  });
  maskTokens = new Tokens({
    list: "mask",
    search: "mask-search",
    order: "mask-order",
    changed: () => writing.askMask(),
    chosen: (_, shown) => {
      const text = spelled(shown);
      if (text === null) notice("this token is no text that can be written here");
      else writing.insert(text);
    },
  });
  slotTokens = new Tokens({
    list: "admissible",
    search: "slot-search",
    order: "slot-order",
    changed: () => canvas.askSlots(),
    chosen: (token, shown) => canvas.set(token, shown),
  });

  for (const name of ["format", "lexer", "start", "options"]) {
    $(name).addEventListener("input", () => {
      state[name] = $(name).value;
      showFields();
      grammarChanged();
    });
  }
  $("end").addEventListener("change", () => {
    state.end = $("end").value;
    remember();
    canvas.ask();
  });
  $("example").addEventListener("change", () => {
    const chosen = examples.find(({ id }) => id === $("example").value);
    if (chosen) {
      history.replaceState(null, "", `#example=${chosen.id}`);
      open(chosen);
    }
  });
  $("save").addEventListener("click", save);
  $("load").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", load);
  $("link").addEventListener("click", copyLink);
  window.addEventListener("hashchange", openFragment);

  document.querySelector('[role="tablist"]').addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    showTab(state.tab === "text" ? "canvas" : "text");
    $(`${state.tab}-tab`).focus();
  });
  for (const tab of ["text", "canvas"]) $(`${tab}-tab`).addEventListener("click", () => showTab(tab));

  // The mask follows the caret.
  const caret = later(40, () => {
    writing.markStep();
    writing.askMask();
  });
  document.addEventListener("selectionchange", () => {
    if (document.activeElement === $("text")) caret();
  });
  $("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !$("forced").hidden) {
      event.preventDefault();
      $("forced").click();
    }
  });
  $("forced").addEventListener("click", () => writing.insert($("forced").dataset.text));
  $("steps").addEventListener("click", (event) => {
    const at = event.target.closest("[data-at]")?.dataset.at;
    if (at !== undefined) editors.text.select(Number(at), Number(at));
  });
  let seed = 0;
  $("random").addEventListener("click", () => {
    seed += 1;
    lanes.random.run(
      () => (compiles ? [{ op: "grammar", ...subject(), want: ["examples"], count: 8, seed }] : null),
      ([answer]) => {
        const sentence = answer.examples?.[seed % answer.examples.length];
        if (sentence === undefined) {
          notice("no sentence was found");
          return;
        }
        editors.text.insert(0, $("text").value.length, sentence);
      },
    );
  });

  roving($("slots"));
  $("slots").addEventListener("focusin", (event) => {
    const at = [...$("slots").children].indexOf(event.target);
    if (at >= 0) canvas.choose(at);
  });
  $("slots").addEventListener("keydown", (event) => {
    const slot = canvas.slots?.[canvas.chosen];
    if (event.key === "Enter" && slot === null) {
      event.preventDefault();
      $("slot-search").focus();
    } else if (["Delete", "Backspace"].includes(event.key) && slot !== undefined) {
      event.preventDefault();
      canvas.changed(canvas.spliced(canvas.chosen, 1, null), canvas.chosen);
    }
  });
  const edit = (id, change) =>
    $(id).addEventListener("click", () => canvas.changed(...change(canvas.chosen)));
  edit("slot-before", (at) => [canvas.spliced(at, 0, null), at]);
  edit("slot-after", (at) => [canvas.spliced(at + 1, 0, null), at + 1]);
  edit("slot-hole", (at) => [canvas.spliced(at, 1, null), at]);
  edit("slot-gap", (at) => [canvas.spliced(at, 1, "*"), at]);
  edit("slot-remove", (at) => [canvas.spliced(at, 1), at]);
  $("fill").addEventListener("click", () => canvas.fill());
  const put = (id, text) =>
    $(id).addEventListener("click", () =>
      editors.canvas.insert($("canvas").selectionStart, $("canvas").selectionEnd, text),
    );
  put("put-hole", HOLE);
  put("put-gap", GAP);
}

async function begin() {
  working(1);
  const get = async (path) => (await fetch(path)).json();
  [start, examples] = await Promise.all([get("/start.json"), get("/examples.json")]);
  for (const name of start.formats) $("format").append(new Option(name, name));
  $("lexer").append(new Option("default", ""));
  for (const name of start.lexers) $("lexer").append(new Option(name, name));
  if (start.opened) $("example").append(new Option("the file that was given", ""));
  else $("example").append(new Option("choose…", ""));
  for (const { id, name, about } of examples)
    $("example").append(Object.assign(new Option(name, id), { title: about }));
  wire();
  const [{ size }] = await ask([{ op: "tokens" }]);
  start.size = size;
  $("vocabulary").textContent = `vocabulary: ${start.vocabulary}, ${number(size)} tokens`;
  if (location.hash.length > 1 && (await openFragment())) return;
  let kept = null;
  try {
    kept = JSON.parse(localStorage.getItem("anygram"));
  } catch {
    // Nothing that can be read was kept.
  }
  open(start.opened ?? kept ?? examples[0]);
}

begin()
  .catch((error) => notice(`the page could not be started: ${error.message}`))
  .finally(() => working(-1));
