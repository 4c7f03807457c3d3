// What a page looks like, in figures: the value of this expression.
(() => {
  const width = document.documentElement.clientWidth;
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) =>
    0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const colour = (text) => text.match(/[\d.]+/g).map(Number);
  const solid = (parts) => parts.length < 4 || parts[3] === 1;

  // The nearest colour behind an element that lets nothing through.
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const parts = colour(getComputedStyle(at).backgroundColor);
      if (solid(parts) && parts.length >= 3) return luminance(parts);
    }
    return luminance([255, 255, 255]);
  };
  const contrast = (one, other) => (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);

  // Each piece of text with its box. Boxes of HTML are those of the letters, not of the element.
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest("title, style")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const svg = parent.closest("svg");
    texts.push({ text: node.data.trim(), parent, svg, box: range.getBoundingClientRect() });
  }

  // Tables and commands may scroll on their own; the page never does sideways.
  const scrolls = (element) => element.closest(".scroll, pre");
  const outside = document.documentElement.scrollWidth > width ? ["the page itself"] : [];
  for (const { text, parent, svg, box } of texts) {
    const frame = (svg || scrolls(parent) || parent.closest(".card") || document.body).getBoundingClientRect();
    const inPage = frame.left >= -1 && frame.right <= width + 1;
    const inside = box.left >= frame.left - 1 && box.right <= frame.right + 1
      && box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1;
    if (!inPage || (!inside && !scrolls(parent))) outside.push(text);
  }

  const overlapping = [];
  texts.forEach((one, index) => {
    for (const other of texts.slice(index + 1)) {
      if (!one.svg || one.svg !== other.svg) continue;
      const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
      const down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
      // Boxes are a little higher than their letters.
      if (across > 1 && down > 3) overlapping.push(`${one.text} / ${other.text}`);
    }
  });

  const faint = texts.map(({ text, parent, svg }) => {
    const style = getComputedStyle(parent);
    const ink = luminance(colour(svg ? style.fill : style.color));
    return { text, contrast: Math.round(100 * contrast(ink, behind(parent))) / 100 };
  }).filter(({ contrast: found }) => found < 7);

  return {
    width,
    outside,
    overlapping,
    faint,
    paper: luminance(colour(getComputedStyle(document.body).backgroundColor)),
    plots: [...document.querySelectorAll("svg")].map((svg) => svg.getBoundingClientRect().width),
  };
})()
