// What the unit tests of the page share.

// A scale of round numbers: a letter is half as wide as it is high.
export const SCALE = {
  text: 8,
  small: 7,
  height: 15,
  glyph: 3,
  gap: 2,
  unit: 10,
  textWidth: (text, px) => (text.length * px) / 2,
};

// Somebody as the drawings need one.
export const figure = (id, spotKey, more = {}) => ({
  id,
  spotKey,
  fresh: "now",
  order: 0,
  title: `Staff ${id}`,
  picked: false,
  ...more,
});

export const overlap = (one, other) =>
  Math.abs(one.px - other.px) < (one.width + other.width) / 2 && one.py === other.py;
