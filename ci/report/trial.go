package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// trial is what was tried on a page.
type trial struct {
	*browser
	out, page, name string
	scenarios       int
	held, failed    int
}

// is notes whether something held; err is why it could not even be tried.
func (t *trial) is(what string, ok bool, err error) {
	verdict := "ok    "
	if !ok || err != nil {
		verdict = "FAILED"
		t.failed++
	} else {
		t.held++
	}
	if err != nil {
		what += ": " + err.Error()
	}
	fmt.Printf("%s  %-8s %s\n", verdict, t.name, what)
}

// asks evaluates a condition on the page.
func (t *trial) asks(what, js string) {
	var said bool
	err := t.eval(js, &said)
	t.is(what, said, err)
}

// do is for what is no check itself and has to work all the same.
func (t *trial) do(what string, err error) {
	if err != nil {
		t.is(what, false, err)
	}
}

// requests lists what was asked for beside the page, and complaints what the
// console had to say.
func (t *trial) requests() (asked, complaints []string) {
	for _, e := range t.events {
		switch e.Method {
		case "Network.requestWillBeSent":
			var p struct{ Request struct{ URL string } }
			if json.Unmarshal(e.Params, &p) == nil && strings.SplitN(p.Request.URL, "#", 2)[0] != t.page {
				asked = append(asked, p.Request.URL)
			}
		case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
			complaints = append(complaints, string(e.Params))
		}
	}
	return asked, complaints
}

// watchman shows that the witnesses see a page that does ask, before their
// silence means anything.
func (t *trial) watchman(work string) {
	t.name = "control"
	file := filepath.Join(work, "control.html")
	text := `<!doctype html><title>x</title><img src="http://127.0.0.1:9/x.png"><script>console.error("heard"); document.title = "ran"</script>
<div style="width:900px">wide</div><p style="color:#999;background:#aaa">faint</p>`
	t.do("write", os.WriteFile(file, []byte(text), 0o644))
	t.page = "file://" + file
	// The address is answered by nobody and asked by nobody: the browser says so itself.
	t.do("offline", t.call("Network.emulateNetworkConditions", map[string]any{"offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}, nil))
	t.do("screen", t.screen(390, 844, true))
	t.do("visit", t.visit(t.page))
	asked, complaints := t.requests()
	t.is("a request would be seen", len(asked) == 1, nil)
	t.is("a complaint on the console would be seen", len(complaints) > 0, nil)
	t.asks("a page too wide for a telephone would be seen", `document.documentElement.scrollWidth > 390`)
	var faint []string
	err := t.eval(contrast, &faint)
	t.is("faint text would be seen", len(faint) == 1, err)
}

func (t *trial) everything() {
	t.do("screen", t.screen(1100, 900, false))
	t.do("light", t.media("", "light"))
	t.do("visit", t.visit(t.page))
	t.do("picture", t.shot(filepath.Join(t.out, t.name+"-wide.png"), true))
	t.mouse()
	t.keyboard()
	t.tree()
	t.policy()
	t.do("visit", t.visit(t.page))
	t.telephone()
	t.colours()
	t.paper()
	asked, complaints := t.requests()
	t.is(fmt.Sprintf("no request but for the page: %q", asked), len(asked) == 0, nil)
	t.is(fmt.Sprintf("nothing on the console: %q", complaints), len(complaints) == 0, nil)
	t.asks("what evidence quotes has not run", `window.hit === undefined && document.images.length === 0`)
}

const visible = `[...document.querySelectorAll("details.scenario")].filter(d => d.checkVisibility())`

func (t *trial) mouse() {
	t.asks("all scenarios are shown", fmt.Sprintf(`%s.length === %d`, visible, t.scenarios))
	for _, result := range []string{"fail", "pass", "skip"} {
		t.do("click", t.click(`button[data-show="`+result+`"]`))
		t.asks("the button shows those alone: "+result, fmt.Sprintf(
			`%s.every(d => d.dataset.result === %q) && %s.length === document.querySelectorAll('details[data-result=%s]').length &&
			document.getElementById("shown").textContent.startsWith(%s.length + " of %d ")`, visible, result, visible, result, visible, t.scenarios))
		t.asks("the button says that it is pressed: "+result, fmt.Sprintf(
			`[...document.querySelectorAll("button[aria-pressed=true]")].map(b => b.dataset.show).join() === %q`, result))
	}
	t.do("click", t.click(`button[data-show="all"]`))
	t.do("click", t.click("#open"))
	t.asks("open all opens all", `[...document.querySelectorAll("details.scenario")].every(d => d.open)`)
	t.do("picture", t.shot(filepath.Join(t.out, t.name+"-open.png"), true))
	t.do("click", t.click("#close"))
	t.asks("close all closes all", `[...document.querySelectorAll("details.scenario")].every(d => !d.open)`)
	t.do("click", t.click("details.scenario > summary"))
	t.asks("a click opens a scenario", `document.querySelector("details.scenario").open`)
	t.do("click", t.click("#find"))
	t.do("type", t.write("no such words"))
	t.asks("words that are nowhere show nothing", visible+`.length === 0`)
	t.do("clear", t.eval(`document.getElementById("find").select()`, nil))
	var name string
	t.do("name", t.eval(`document.querySelector("details.scenario:last-of-type .name").textContent`, &name))
	t.do("type", t.write(name))
	t.asks("a name shows its scenario", visible+`.some(d => d.id === "s-`+name+`")`)
	t.do("click", t.click(".claims a"))
	t.asks("a link from a row opens its scenario, even one that the filter hid",
		`(d => d.open && d.checkVisibility() && d.contains(document.activeElement))(document.getElementById(document.querySelector(".claims a").hash.slice(1)))`)
}

func (t *trial) keyboard() {
	t.do("visit", t.visit(t.page))
	t.do("key", t.key("Tab", 9))
	t.asks("the first Tab comes to the way past the head, and it is seen",
		`document.activeElement.className === "skip-link" && document.activeElement.getBoundingClientRect().left >= 0`)
	t.do("key", t.key("Enter", 13))
	t.asks("it leads to the findings", `document.activeElement.id === "main"`)
	found := false
	for range 60 {
		if err := t.key("Tab", 9); err != nil {
			t.is("Tab", false, err)
			return
		}
		t.do("focus", t.eval(`document.activeElement.parentElement.matches("details.scenario")`, &found))
		if found {
			break
		}
	}
	t.is("Tab comes to the scenarios", found, nil)
	t.asks("where the keyboard is can be seen", `getComputedStyle(document.activeElement).outlineStyle !== "none"`)
	var was bool
	t.do("open", t.eval(`document.activeElement.parentElement.open`, &was))
	t.do("key", t.key("Enter", 13))
	t.asks("Enter opens and closes it", fmt.Sprintf(`document.activeElement.parentElement.open === %v`, !was))
}

// tree looks at what a screen reader is given.
func (t *trial) tree() {
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
		}
	}
	err := t.call("Accessibility.getFullAXTree", nil, &tree)
	roles, nameless := map[string]int{}, []string{}
	for _, n := range tree.Nodes {
		role, _ := n.Role.Value.(string)
		name, _ := n.Name.Value.(string)
		if n.Ignored {
			continue
		}
		roles[role]++
		switch role {
		case "button", "link", "searchbox", "heading", "region", "DisclosureTriangle":
			if strings.TrimSpace(name) == "" {
				nameless = append(nameless, role)
			}
		}
	}
	t.is(fmt.Sprintf("everything that can be used has a name: %q", nameless), len(nameless) == 0, err)
	for _, role := range []string{"banner", "main", "contentinfo", "status", "searchbox", "region", "heading"} {
		t.is("a screen reader finds: "+role, roles[role] > 0, nil)
	}
	t.is("and each scenario as something to open", roles["DisclosureTriangle"] >= t.scenarios, nil)
}

// policy has the page try what its own policy forbids.
func (t *trial) policy() {
	var refused []string
	before, _ := t.requests()
	err := t.eval(`new Promise(done => {
		const seen = [];
		document.addEventListener("securitypolicyviolation", e => seen.push(e.effectiveDirective));
		document.body.append(Object.assign(new Image(), {src: "http://127.0.0.1:9/i"}));
		document.body.append(Object.assign(document.createElement("script"), {text: "window.hit = 2"}));
		fetch("http://127.0.0.1:9/f").catch(() => {});
		document.body.append(Object.assign(document.createElement("iframe"), {src: "http://127.0.0.1:9/d"}));
		setTimeout(() => done(seen.sort()), 300);
	})`, &refused)
	want := `["connect-src" "frame-src" "img-src" "script-src-elem"]`
	t.is(fmt.Sprintf("the page's policy refuses pictures, scripts, connections and frames: %q", refused), fmt.Sprintf("%q", refused) == want, err)
	after, _ := t.requests()
	// The browser announces a frame's request, blocks it, and shows a page of its
	// own (chrome-error:) in its place.
	sent := 0
	for _, url := range after[len(before):] {
		if strings.HasPrefix(url, "http") {
			sent++
		}
	}
	blocked := 0
	for _, e := range t.events {
		if e.Method == "Network.loadingFailed" && bytes.Contains(e.Params, []byte(`"blockedReason":"csp"`)) {
			blocked++
		}
	}
	t.is(fmt.Sprintf("and nothing is sent: %d announced, %d blocked", sent, blocked), sent == blocked, nil)
	t.asks("no script but the page's own ran", `window.hit === undefined`)
}

func (t *trial) telephone() {
	t.do("screen", t.screen(390, 844, true))
	t.asks("390 pixels are wide enough, closed", `document.documentElement.scrollWidth <= 390`)
	t.do("open", t.eval(`document.getElementById("open").click()`, nil))
	t.asks("390 pixels are wide enough, open", `document.documentElement.scrollWidth <= 390`)
	t.asks("no part of it is cut off", `[...document.body.querySelectorAll("*:not(.skip-link)")].every(e => e.getBoundingClientRect().right <= 391)`)
	t.asks("buttons are large enough for a finger", `[...document.querySelectorAll("button")].every(b => b.getBoundingClientRect().height >= 36)`)
	t.do("picture", t.shot(filepath.Join(t.out, t.name+"-telephone.png"), true))
	t.do("screen", t.screen(320, 640, true))
	t.asks("and so are 320", `document.documentElement.scrollWidth <= 320`)
}

// contrast lists texts that stand out less from what is behind them than WCAG 2.2
// asks of small text (1.4.3: 4.5 to 1).
const contrast = `(() => {
	const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length > 3 && m[3] === 0 ? null : m.slice(0, 3); };
	const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
	const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c) return c; }
		return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255]; };
	const bad = new Set();
	for (const e of document.body.querySelectorAll("*")) {
		if (!e.checkVisibility() || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
		const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
		if ((a + .05) / (b + .05) < 4.5) bad.add(e.tagName + "." + e.className + ": " + e.textContent.slice(0, 40));
	}
	return [...bad];
})()`

func (t *trial) colours() {
	t.do("screen", t.screen(1100, 900, false))
	for _, scheme := range []string{"light", "dark"} {
		t.do("scheme", t.media("", scheme))
		var faint []string
		err := t.eval(contrast, &faint)
		t.is(fmt.Sprintf("every text stands out, %s: %q", scheme, faint), len(faint) == 0, err)
	}
	t.do("close", t.eval(`document.getElementById("close").click()`, nil))
	t.do("picture", t.shot(filepath.Join(t.out, t.name+"-dark.png"), true))
	t.asks("the dark page is dark", `getComputedStyle(document.body).backgroundColor === "rgb(16, 20, 24)"`)
}

// paper prints with every scenario closed: on paper nobody can open them.
func (t *trial) paper() {
	t.do("close", t.eval(`document.getElementById("close").click()`, nil))
	var inside string
	t.do("inside", t.eval(`[...document.querySelectorAll("details.scenario")].at(-1).querySelector(".inside").textContent.trim().split(/\s+/).slice(0, 3).join(" ")`, &inside))
	var pdf struct{ Data []byte }
	err := t.call("Page.printToPDF", map[string]any{"printBackground": false, "paperWidth": 8.27, "paperHeight": 11.69}, &pdf)
	file := filepath.Join(t.out, t.name+".pdf")
	t.do("write", os.WriteFile(file, pdf.Data, 0o644))
	t.is(fmt.Sprintf("it prints: %d bytes", len(pdf.Data)), bytes.HasPrefix(pdf.Data, []byte("%PDF-")), err)
	text, err := exec.Command("pdftotext", "-layout", file, "-").Output()
	flat := strings.Join(strings.Fields(string(text)), " ")
	t.is(fmt.Sprintf("what is closed is on the paper all the same: %q", inside), inside != "" && strings.Contains(flat, inside), err)
	t.is("what can only be clicked is not", !strings.Contains(flat, "open all"), nil)
	t.asks("printed, closed ones are closed again", `[...document.querySelectorAll("details.scenario")].every(d => !d.open)`)
}
