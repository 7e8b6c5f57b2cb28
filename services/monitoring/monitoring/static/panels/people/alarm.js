// Tells of those who lost contact while nobody looks: by a sound and a notification, once allowed.
/** @import { Person } from "../../rules/people/people_model.js" */
import { buttonById, inputById } from "../../page/dom.js";
import { remember, remembered } from "../../page/remembered.js";
import { peopleText, placeText } from "../../rules/words.js";

const KEY = "sound";
const TONES = [880, 660, 880]; // Hz
const TONE_SECONDS = 0.25;

/** @type {AudioContext | null} */
let audio = null;

/**
 * @returns {(people: Person[]) => void} what is called with those who are lost
 */
export function offerAlarm() {
  const box = inputById("lost-sound");
  box.checked = remembered(KEY) === "on";
  box.addEventListener("change", () => {
    remember(KEY, box.checked ? "on" : "off");
    if (box.checked) sound(); // that is how it will be
  });
  // Browsers let a page sound only after somebody has touched it.
  const allow = () => void (box.checked && heard().resume());
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, allow, { once: true });
  offerNotifications();
  return (people) => {
    if (box.checked) sound();
    notify(people);
  };
}

const heard = () => (audio ??= new AudioContext());

function sound() {
  const context = heard();
  void context.resume();
  TONES.forEach((frequency, index) => {
    const start = context.currentTime + index * TONE_SECONDS;
    const tone = new OscillatorNode(context, { frequency });
    tone.connect(new GainNode(context, { gain: 0.2 })).connect(context.destination);
    tone.start(start);
    tone.stop(start + TONE_SECONDS);
  });
}

/** Only where it can be asked for: browsers have them on https alone, and on this machine. */
function offerNotifications() {
  const button = buttonById("lost-notify");
  button.hidden = !("Notification" in window) || Notification.permission !== "default";
  button.addEventListener("click", async () => {
    button.hidden = (await Notification.requestPermission()) !== "default";
  });
}

/** @param {Person[]} people */
function notify(people) {
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  const body = people.map((person) => `${person.called}: last in ${placeText(person)}`).join("\n");
  try {
    new Notification(`${peopleText(people.length)} lost contact`, { body, tag: "lost" });
  } catch (error) {
    console.warn("This browser lets a page show no notification:", error); // on some phones
  }
}
