// Small shapes: elements, and numbers as people read them.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

export function clear(place) {
  place.replaceChildren();
  return place;
}

export function seconds(value) {
  if (value < 1) return `${Math.round(1000 * value)} ms`;
  if (value < 100) return `${value.toFixed(value < 10 ? 2 : 1)} s`;
  return age(value);
}

export function age(value) {
  const whole = Math.max(0, Math.round(value));
  if (whole < 100) return `${whole} s`;
  if (whole < 6000) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 172800) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} days`;
}

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at === 0 ? value : value.toPrecision(3)} ${units[at]}`;
}

export function amount(count, name) {
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}
