// What a reader does in Firefox, over WebDriver BiDi: node firefox.mjs PUPPETEER FIREFOX ADDRESS prints what was seen.

import { pathToFileURL } from "node:url";

const [library, program, address] = process.argv.slice(2);
const { default: puppeteer } = await import(pathToFileURL(library).href);
const browser = await puppeteer.launch({ browser: "firefox", executablePath: program, headless: true });
const seen = { troubles: [] };
try {
  const page = await browser.newPage();
  page.on("pageerror", (error) => seen.troubles.push(String(error)));
  page.on("console", (message) => message.type() === "error" && seen.troubles.push(message.text()));
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${address}#sample=2&element=30`);
  for (const name of ["aggregate", "embedding", "calibration", "individual", "input", "detail"])
    await page.waitForSelector(`.section.${name}[data-state=ready]`, { timeout: 60000 });
  seen.heading = await page.$eval(".one h2", (el) => el.textContent);

  await page.focus(".individual [role=slider]");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => !location.hash.includes("element=30"));
  seen.moved = await page.evaluate(() => location.hash);

  await page.keyboard.press("f");
  await page.waitForSelector(".one.staged");
  seen.stage = await page.$eval(".staged", (el) => {
    const { x, y, width, height } = el.getBoundingClientRect();
    return [x, y, width, height];
  });
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.querySelector(".staged"));

  await page.click(".section.input > header > .enlarge");
  await page.waitForSelector(".one.staged[data-stage=input]");
  await page.keyboard.press("+");
  seen.zoom = await page.$eval(".section.input .look", (el) => el.firstChild.offsetWidth / el.clientWidth);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.querySelector(".staged"));

  const before = await page.$eval(".orbical", (el) => el.dataset.theme);
  await page.keyboard.press("d");
  seen.themes = [before, await page.$eval(".orbical", (el) => el.dataset.theme)];
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
