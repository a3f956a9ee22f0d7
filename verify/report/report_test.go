package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/kgate-dev/kgate/verify"
	"github.com/kgate-dev/kgate/verify/capture"
)

// hostile is what a command may print, and evidence may quote.
const hostile = "<script>alert(1)</script>\x00\x1b[31m\xff\u202egnp.exe\u200b\"'>&amp;</pre></details><img src=x onerror=alert(1)>"

var noon = time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC)

func packet(link string, ms int, protos string, src, dst string, names ...string) capture.Packet {
	a, b := netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst)
	return capture.Packet{Time: noon.Add(time.Duration(ms) * time.Millisecond), Link: link, Protos: strings.Split(protos, "/"),
		Src: a.Addr(), Dst: b.Addr(), SrcPort: a.Port(), DstPort: b.Port(), Names: names, Len: 60}
}

func sample() *verify.Report {
	step := func(ms int, kind verify.StepKind, status int, words ...string) verify.Step {
		at := noon.Add(time.Duration(ms) * time.Millisecond)
		return verify.Step{From: at, To: at.Add(50 * time.Millisecond), Kind: kind, Words: words, Status: status, Watched: kind != verify.StepSeen}
	}
	return &verify.Report{
		Verdict: verify.Failed, Seconds: 12.34,
		Scenarios: []verify.Outcome{
			{Name: "good", Title: "A thing holds.", Proves: []string{"box"}, Result: verify.Pass, Evidence: []string{"3 of 9", hostile}, Seconds: 1,
				Trace: &verify.Trace{Labs: 1, Steps: []verify.Step{
					step(100, verify.StepControl, 0, "./kgate-probe", "tcp", "other.test", "9999"),
					step(200, verify.StepSeen, 0, hostile),
					step(300, verify.StepRun, 1, "kgate", "run", "--", "sh", "-c", hostile),
					step(500, verify.StepRun, 0, "kgate", "run", "--", "true"),
				}, Packets: []capture.Packet{
					packet("box", 50, "ip4/tcp", "10.0.2.100:4000", "203.0.113.20:9999"),
					packet("box", 150, "ip4/tcp", "203.0.113.20:9999", "10.0.2.100:4000"),
					packet("box", 310, "arp", "10.0.2.100:0", "10.0.2.2:0"),
					packet("box", 510, "ip4/udp/dns", "10.0.2.100:4001", "10.0.2.3:53", hostile),
					packet("outer", 160, "ip4/tcp", "203.0.113.2:5000", "203.0.113.20:9999"),
				}}},
			{Name: "gone", Title: "Another.", Result: verify.Skip, Reason: "no such kernel " + hostile},
			{Name: "bad", Title: hostile, Result: verify.Fail, Reason: "x.txtar:3: " + hostile, Log: "> status 1 true\n" + hostile},
		},
		Rows: []verify.Row{
			{Row: "box", Status: "READY", Reason: hostile, Proven: true, By: []string{"good"}},
			{Row: "net", Status: "READY", By: []string{"gone", "bad"}},
			{Row: "new", Status: "READY"},
			{Row: "open", Status: "DEGRADED", Reason: "the network box is gone"},
			{Row: "tun", Status: "BLOCKED", Reason: "no device"},
		},
	}
}

func write(t *testing.T, r *verify.Report, c Context) (string, *html.Node) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r, c); err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), doc
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// all returns the elements of a name below n.
func all(n *html.Node, name string) []*html.Node {
	var out []*html.Node
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name {
			out = append(out, d)
		}
	}
	return out
}

func content(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func byID(doc *html.Node, id string) *html.Node {
	for d := range doc.Descendants() {
		if d.Type == html.ElementNode && attr(d, "id") == id {
			return d
		}
	}
	return nil
}

// TestNothingIsMarkup puts hostile text everywhere and counts the elements that
// could act: the page's own and no other.
func TestNothingIsMarkup(t *testing.T) {
	text, doc := write(t, sample(), Context{When: noon, Machine: []Fact{{"system", hostile}}})
	for name, want := range map[string]int{"script": 1, "style": 1, "img": 0, "link": 0, "iframe": 0, "form": 0, "svg": 0, "base": 0, "details": 3} {
		if got := len(all(doc, name)); got != want {
			t.Errorf("%d elements %s, want %d", got, name, want)
		}
	}
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" || a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("attribute %s=%q of %s", a.Key, a.Val, n.Data)
			}
		}
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' || r == 0xfffd || r == 0x202e || r == 0x200b }); i >= 0 {
		t.Errorf("a control character on the page: %q", text[i:min(len(text), i+40)])
	}
	for _, want := range []string{`\x00`, `\x1b[31m`, `\xff`, `\u202egnp.exe`, `\u200b`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not shown", want)
		}
	}
}

func TestPolicyNamesWhatIsThere(t *testing.T) {
	_, doc := write(t, sample(), Context{When: noon})
	var policy string
	for _, m := range all(doc, "meta") {
		if attr(m, "http-equiv") == "Content-Security-Policy" {
			policy = attr(m, "content")
		}
	}
	for _, name := range []string{"style", "script"} {
		sum := sha256.Sum256([]byte(content(all(doc, name)[0])))
		if want := name + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %q", policy, want)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("the policy is %q", policy)
	}
	for _, s := range []string{style, script} {
		for _, bad := range []string{"http:", "https:", "//", "url(", "@import", "fetch(", "innerHTML", "</"} {
			if strings.Contains(s, bad) {
				t.Errorf("the page's own text has %q", bad)
			}
		}
	}
}

func TestTimeline(t *testing.T) {
	_, doc := write(t, sample(), Context{When: noon})
	good := byID(doc, "s-good")
	var steps []string
	for _, ol := range all(good, "ol") {
		for _, li := range all(ol, "li") {
			if li.Parent == ol {
				steps = append(steps, content(li))
			}
		}
	}
	if len(steps) != 4 {
		t.Fatalf("steps: %q", steps)
	}
	for i, wants := range [][]string{
		{"without a filter", "exit status 0 after 50 ms", "left the box TCP 10.0.2.100:4000 (the box) → 203.0.113.20:9999 (other.test)", "1 out, 1 back, 120 bytes",
			"left the machine TCP 203.0.113.2:5000 (the machine) → 203.0.113.20:9999 (other.test)", "1 out, 0 back"},
		{`\x1b[31m`},
		{"kgate", "exit status 1", "no packet left", "1 packet of the kernels' own"},
		{"kgate run -- true", `UDP 10.0.2.100:4001 (the box) → 10.0.2.3:53 (the box's name server)`, "asks for", "gnp.exe"},
	} {
		for _, want := range wants {
			if !strings.Contains(steps[i], want) {
				t.Errorf("step %d lacks %q: %q", i, want, steps[i])
			}
		}
	}
	if !strings.Contains(content(good), "Timeline: 3 things tried, 5 packets captured") {
		t.Error("no summary of the timeline")
	}
}

func TestWhatIsOpen(t *testing.T) {
	_, doc := write(t, sample(), Context{When: noon})
	var items []string
	for _, s := range all(doc, "section") {
		if attr(s, "aria-labelledby") == "open-head" {
			for _, li := range all(s, "li") {
				items = append(items, content(li))
			}
		}
	}
	wants := []string{"failed bad", "not proven gone", "not proven net", "not proven new", "DEGRADED open", "BLOCKED tun"}
	if len(items) != len(wants) {
		t.Fatalf("items: %q", items)
	}
	for i, want := range wants {
		if !strings.HasPrefix(items[i], want) {
			t.Errorf("item %d is %q, want %q", i, items[i], want)
		}
	}
	r := sample()
	r.Verdict, r.Scenarios, r.Rows = verify.Proven, r.Scenarios[:1], r.Rows[:1]
	for part, want := range map[bool]string{false: "Nothing: each scenario passed", true: "Nothing among the scenarios that were asked for"} {
		if text, _ := write(t, r, Context{Part: part}); !strings.Contains(text, want) {
			t.Errorf("part %v: no %q", part, want)
		}
	}
}

// TestReadable holds what a screen reader and a keyboard rely on.
func TestReadable(t *testing.T) {
	_, doc := write(t, sample(), Context{When: noon})
	ids := map[string]bool{}
	for n := range doc.Descendants() {
		if id := attr(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("two elements are %q", id)
			}
			ids[id] = true
		}
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if to, ok := strings.CutPrefix(attr(n, "href"), "#"); ok && !ids[to] {
			t.Errorf("a link to %q, which is not there", to)
		}
		if by := attr(n, "aria-labelledby"); by != "" && !ids[by] {
			t.Errorf("labelled by %q, which is not there", by)
		}
		switch n.Data {
		case "button":
			if strings.TrimSpace(content(n)) == "" || attr(n, "type") != "button" {
				t.Error("a button without a name or a type")
			}
		case "input":
			if attr(n, "aria-label") == "" {
				t.Error("an input without a label")
			}
		case "html":
			if attr(n, "lang") != "en" {
				t.Error("the page does not say its language")
			}
		}
	}
	level := 0
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' {
			if l := int(n.Data[1] - '0'); l > level+1 {
				t.Errorf("a heading of level %d below one of level %d: %q", l, level, content(n))
			} else {
				level = l
			}
		}
	}
	for _, name := range []string{"header", "main", "footer", "h1", "title"} {
		if len(all(doc, name)) != 1 {
			t.Errorf("%d elements %s", len(all(doc, name)), name)
		}
	}
}

func TestBounds(t *testing.T) {
	r := sample()
	o := &r.Scenarios[0]
	for range 300 {
		o.Evidence = append(o.Evidence, strings.Repeat("e", 3000))
		o.Trace.Steps = append(o.Trace.Steps, o.Trace.Steps[3])
	}
	last := o.Trace.Steps[len(o.Trace.Steps)-1].From
	o.Trace.Steps = slices.Concat(o.Trace.Steps[:2], []verify.Step{o.Trace.Steps[2]})
	for i := range 400 {
		o.Trace.Packets = append(o.Trace.Packets, packet("box", int(last.Sub(noon).Milliseconds()), "ip4/udp", fmt.Sprintf("10.0.2.100:%d", 10000+i), "203.0.113.10:5000"))
	}
	o.Trace.More = 7
	r.Scenarios[2].Log = strings.Repeat("l", 1<<20)
	text, _ := write(t, r, Context{})
	if len(text) > 700000 {
		t.Errorf("%d bytes", len(text))
	}
	for _, want := range []string{"102 more lines", "(1000 more bytes)", "more conversations", "7 packets of this run are only there", "more bytes)</pre>"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "r.html")
	say := func(text string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	if err := errors.Join(Check(file), Save(file, say("one"))); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	broken := errors.New("broken")
	if err := Save(file, func(w io.Writer) error { io.WriteString(w, "half"); return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if text, _ := os.ReadFile(file); string(text) != "one" {
		t.Errorf("after a failure the file holds %q", text)
	}
	link := filepath.Join(dir, "link.html")
	if err := errors.Join(os.Symlink("r.html", link), Save(link, say("two"))); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(file); string(text) != "two" {
		t.Errorf("through a link: %q", text)
	}
	dangling := filepath.Join(dir, "dangling")
	os.Symlink("nowhere", dangling)
	for name, want := range map[string]string{
		filepath.Join(dir, "no", "r.html"): "first: mkdir -p " + filepath.Join(dir, "no"),
		dir:                                "not a file",
		os.DevNull:                         "not a file",
		dangling:                           "a link to nothing",
	} {
		for _, err := range []error{Check(name), Save(name, say("x"))} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
	}
	names, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if len(names) > 0 {
		t.Errorf("left behind: %q", names)
	}
}

func TestMachine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kgate")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, f := range Machine(file) {
		said[f.Name] = f.Value
	}
	if want := fmt.Sprintf("SHA-256 %x", sha256.Sum256([]byte("x"))); said["kgate's file"] != want {
		t.Errorf("got %q", said["kgate's file"])
	}
	if !strings.Contains(said["kgate"], "go1.") || said["system"] == "" {
		t.Errorf("got %q", said)
	}
}
