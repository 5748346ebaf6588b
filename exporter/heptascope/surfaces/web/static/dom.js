// Elements from calls, and one tree made to look like another without losing focus, selection or what is open.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "path", "line", "rect", "circle", "g", "text", "title", "polygon", "defs", "pattern", "marker"]);

/** Returns an element. Attributes that are null, undefined or false are left out; children may be nested lists, texts, or nothing. */
export function h(tag, attributes, ...children) {
  const svg = SVG_TAGS.has(tag) && !(tag === "title" && attributes?.html);
  const element = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** Makes `old` look like `wanted`; nodes that stay keep their identity. */
export function morph(old, wanted) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== wanted.data) old.data = wanted.data;
    return;
  }
  if (old.dataset?.own !== undefined) return; // what the reader handles is his
  attributes(old, wanted);
  children(old, wanted);
}

function attributes(old, wanted) {
  for (const { name, value } of [...wanted.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) {
    if (!wanted.hasAttribute(name) && !(name === "open" && old.localName === "details")) old.removeAttribute(name);
  }
}

const keyOf = (node) => node.nodeType === Node.ELEMENT_NODE ? node.dataset?.key : undefined;
const alike = (a, b) => a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

function children(old, wanted) {
  const keyed = new Map();
  for (const node of old.childNodes) if (keyOf(node) !== undefined) keyed.set(keyOf(node), node);
  let at = old.firstChild;
  for (const fresh of [...wanted.childNodes]) {
    const known = keyed.get(keyOf(fresh));
    if (known && known !== at && alike(known, fresh)) old.insertBefore(known, at);
    else if (!at || !alike(at, fresh)) {
      old.insertBefore(fresh, at);
      continue;
    }
    const kept = known && alike(known, fresh) ? known : at;
    at = kept.nextSibling;
    morph(kept, fresh);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}
