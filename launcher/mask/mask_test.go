package mask

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/url"
	"strings"
	"testing"
	"time"
)

func compile(t testing.TB, prefixes []string, values ...Value) *Rules {
	t.Helper()
	r, err := Compile(prefixes, values)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// split masks s in pieces of n bytes.
func split(t testing.TB, r *Rules, s string, n int) string {
	t.Helper()
	var b bytes.Buffer
	w := r.Writer(&b)
	for len(s) > 0 {
		k := min(n, len(s))
		if m, err := w.Write([]byte(s[:k])); m != k || err != nil {
			t.Fatalf("Write = %d, %v", m, err)
		}
		s = s[k:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// body is n characters that every kind's body accepts where it is hexadecimal,
// and upper is what the upper-case ones accept.
func body(k pattern) string {
	switch {
	case k.body == cUpper:
		return strings.Repeat("Q7", 40)
	default:
		return strings.Repeat("a1b2", 20)
	}
}

func TestKinds(t *testing.T) {
	r := compile(t, nil)
	for _, k := range kinds {
		if k.source == "" {
			t.Errorf("%s %q: no source", k.name, k.lit)
		}
		if k.form != formPrefix {
			continue
		}
		for _, before := range []string{"", " ", "key=", "\"", "x_", "-", "\xff", "é", `\n`, "%3D", "\x1b[01;31m\x1b[K", `\u003d`} {
			for _, after := range []string{"", " ", "\n", "\"", ",", "\x00", "\xff"} {
				want := before + "[masked: " + k.name + "]" + after
				if got := r.String(before + k.lit + body(k) + after); got != want {
					t.Fatalf("%s %q between %q and %q: %q, want %q", k.name, k.lit, before, after, got, want)
				}
			}
		}
		// Too little to be one, and in the middle of a word.
		for _, plain := range []string{
			k.lit, k.lit + " ", k.lit + body(k)[:k.min-1] + " ", k.lit + " " + body(k),
			"x" + k.lit + body(k), "7" + k.lit + body(k),
		} {
			// A shorter kind may start later in the same text.
			if got := r.String(plain); strings.Contains(got, "[masked: "+k.name) {
				t.Errorf("%q became %q", plain, got)
			}
		}
	}
}

func TestMask(t *testing.T) {
	const (
		jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLW9mLWl0"
		gh  = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	)
	pem := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("MIIE", 16)+"\n", 25) + "qw8=\n-----END RSA PRIVATE KEY-----\n"
	old := strings.Replace(pem, "\n", "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A\n\n", 1)
	unended := pem[:strings.Index(pem, "qw8=")]
	tests := []struct{ name, in, want string }{
		{"nothing", "hello world\n", "hello world\n"},
		{"empty", "", ""},
		{"words that look alike", "task-ant-hill sk-learn AKIA ghp_ sk-ant-hill risk-free disk-usage-of-the-whole-machine-today xoxo\n", "task-ant-hill sk-learn AKIA ghp_ sk-ant-hill risk-free disk-usage-of-the-whole-machine-today xoxo\n"},
		{"an access key", "id AKIAIOSFODNN7EXAMPLE.", "id [masked: aws-access-key]."},
		{"in lower case", "akiaiosfodnn7example", "akiaiosfodnn7example"},
		{"the longest wins", "sk-ant-" + strings.Repeat("ab", 20) + " sk-" + strings.Repeat("ab", 20), "[masked: anthropic-key] [masked: model-key]"},
		{"two in a row", gh + "," + gh, "[masked: github-token],[masked: github-token]"},
		{"within JSON", `{"a":"` + gh + `","b":"x\n` + gh + `"}`, `{"a":"[masked: github-token]","b":"x\n[masked: github-token]"}`},
		{"coloured by grep", "a \x1b[01;31m\x1b[Kghp_\x1b[m\x1b[K" + gh[4:] + " b", "a \x1b[01;31m\x1b[K[masked: github-token]\x1b[m\x1b[K b"},
		{"coloured in the prefix", "g\x1b[1mh\x1b[0mp_" + gh[4:], "[masked: github-token]\x1b[1m\x1b[0m"},
		{"coloured later", gh[:30] + "\x1b[1m" + gh[30:] + "\x1b[0m,", "[masked: github-token]\x1b[1m\x1b[0m,"},
		{"a cursor movement ends it", gh + "\x1b[5;1Hx", "[masked: github-token]\x1b[5;1Hx"},
		{"a JWT", "Bearer " + jwt + "\n", "Bearer [masked: jwt]\n"},
		{"base64 that is no JWT", "eyJ2ZXJzaW9uIjozfQ== eyJ2ZXJzaW9uIjozfQ.x eyJ.eyJ eyJhbGciOiJIUzI1NiJ9.txt", "eyJ2ZXJzaW9uIjozfQ== eyJ2ZXJzaW9uIjozfQ.x eyJ.eyJ eyJhbGciOiJIUzI1NiJ9.txt"},
		{"a URL with a password", "git clone https://u:hunter2@host.test/x", "git clone https://u:[masked: url-password]@host.test/x"},
		{"a URL without a user name", "redis://:hunter2@h:6379/0", "redis://:[masked: url-password]@h:6379/0"},
		{"an at sign in the password", "p://u:hun@ter2@h/", "p://u:[masked: url-password]@h/"},
		{"a colon in the password", "p://u:hun:ter2@h/", "p://u:[masked: url-password]@h/"},
		{"JSON's slashes", `"https:\/\/u:hunter2@h\/"`, `"https:\/\/u:[masked: url-password]@h\/"`},
		{"a URL with a port", "http://localhost:3000/a@b http://h:80 http://[::1]:80/ http://u@h:80/ http://u:@h/", "http://localhost:3000/a@b http://h:80 http://[::1]:80/ http://u@h:80/ http://u:@h/"},
		{"a URL with two hosts", "mongodb://u:pw12@a:1,b:2/db", "mongodb://u:[masked: url-password]@a:1,b:2/db"},
		{"no scheme", "://u:hunter2@h", "://u:hunter2@h"},
		{"a token as the user", "https://" + gh + ":x-oauth-basic@h/", "https://[masked: github-token]:[masked: url-password]@h/"},
		{"a token after a port", "http://h:" + gh + " x", "http://h:[masked: github-token] x"},
		{"a very long password", "p://u:" + strings.Repeat("x", 9000) + "@h/", "p://u:[masked: url-password]@h/"},
		{"a private key", "a\n" + pem + "b\n", "a\n[masked: private-key]\nb\n"},
		{"a private key of old", "a\n" + old + "b\n", "a\n[masked: private-key]\nb\n"},
		{"a private key on a terminal", strings.ReplaceAll("a\n"+pem+"b\n", "\n", "\r\n"), "a\r\n[masked: private-key]\r\nb\r\n"},
		{"a private key in JSON", `{"k": "` + strings.ReplaceAll(pem, "\n", `\n`) + `", "l": 1}`, `{"k": "[masked: private-key]\n", "l": 1}`},
		{"a private key with a prefix", "x| " + strings.ReplaceAll(pem, "\n", "\nx| "), "x| [masked: private-key]\nx| "},
		{"two private keys", pem + pem, "[masked: private-key]\n[masked: private-key]\n"},
		{"an unended private key", unended, "[masked: private-key]\n"},
		{"a cut private key", pem[:200], "[masked: private-key]"},
		{"what follows an unended one", unended + "root@h:~# ls\n", "[masked: private-key]\nroot@h:~# ls\n"},
		{"only its first line", "a:1:-----BEGIN RSA PRIVATE KEY-----\nb:2:-----BEGIN RSA PRIVATE KEY-----\nc: done.\n", "a:1:[masked: private-key]\nb:2:[masked: private-key]\nc: done.\n"},
		{"in a program", "if s == \"-----BEGIN PRIVATE KEY-----\" {\n", "if s == \"[masked: private-key]\" {\n"},
		{"short lines after it", "-----BEGIN PRIVATE KEY-----\nbin\ndev\netc\n", "[masked: private-key]\ndev\netc\n"},
		{"OpenPGP", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n" + strings.Repeat("lQOY", 16) + "\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----.", "[masked: private-key]."},
		{"a public key", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n"},
		{"dashes", strings.Repeat("-", 300) + "\n---BEGIN\n", strings.Repeat("-", 300) + "\n---BEGIN\n"},
		{"the person's prefix", "corp_x corp_ xcorp_y corp_a.b/c=d, e", "[masked: corp_] corp_ xcorp_y [masked: corp_], e"},
		{"the person's prefix over a kind", "sk-ant-corp-1", "[masked: sk-ant-corp-]"},
		{"a value", "a p&ss w%rd/1 b", "a [masked: PW] b"},
		{"a value within a word", "xp&ss w%rd/1x", "x[masked: PW]x"},
		{"a value percent-encoded", "p%26ss+w%25rd%2F1 p%26ss%20w%25rd%2f1 p%26ss%20w%25rd/1 p&ss+w%25rd/1", "[masked: PW] [masked: PW] [masked: PW] [masked: PW]"},
		{"a value in JSON", `p\u0026ss w%rd/1 q\"\\\nz`, `[masked: PW] [masked: Q]`},
		{"a value over lines on a terminal", "q\"\\\r\nz q\"\\\nz", "[masked: Q] [masked: Q]"},
		{"a value of slashes", "http:///usr/x1 a://b:/usr/x1 http://u:hunter2@h/usr/x1", "http://[masked: S] a://b:[masked: S] http://u:[masked: url-password]@h[masked: S]"},
		{"a value and a token", "ghp_known0123456789abcdefghi", "[masked: G]"},
		{"binary", "\x00\xff\xfe\x80ghp_\x00\x1b\x1b[\x1b[3", "\x00\xff\xfe\x80ghp_\x00\x1b\x1b[\x1b[3"},
	}
	r := compile(t, []string{"corp_", "sk-ant-corp-"}, Value{"PW", "p&ss w%rd/1"}, Value{"Q", "q\"\\\nz"}, Value{"G", "ghp_known0123"}, Value{"NONE", ""}, Value{"S", "/usr/x1"})
	for _, tt := range tests {
		for n := 1; n < 70; n++ {
			if got := split(t, r, tt.in, n); got != tt.want {
				t.Errorf("%s, in pieces of %d: %q\nbecame %q\nwant   %q", tt.name, n, tt.in, got, tt.want)
				break
			}
		}
		if got := r.String(tt.in); got != tt.want {
			t.Errorf("%s: %q\nbecame %q\nwant   %q", tt.name, tt.in, got, tt.want)
		}
	}
}

// A secret split over two writes, over 64 KiB of unbroken text, and across
// flushes: masked whole, once. The input of mcp-debugger#151.
func TestLongTokens(t *testing.T) {
	r := compile(t, nil)
	for _, n := range []int{1, 7, 4096, 65536, 1 << 20} {
		in := "a " + "ghp_" + strings.Repeat("x", 100_000) + " b"
		if got := split(t, r, in, n); got != "a [masked: github-token] b" {
			t.Errorf("in pieces of %d: %.80q", n, got)
		}
	}
	// The memory stays the same however long the token is.
	var b bytes.Buffer
	w := r.Writer(&b)
	chunk := []byte(strings.Repeat("x", 64<<10))
	io.WriteString(w, "ghp_")
	for range 100 {
		w.Write(chunk)
	}
	if cap(w.held) > 4096 || cap(w.out) > 4096 {
		t.Errorf("holds %d and gathers %d bytes", cap(w.held), cap(w.out))
	}
}

// Text that cannot be the start of a secret is there after the Write that
// brought it.
func TestNoDelay(t *testing.T) {
	r := compile(t, nil)
	for _, s := range []string{"qq", "Password: ", "root@host:~# ", "cd", "task", "a-", ">>> ", "http://h/", "50%", "x\r"} {
		var b bytes.Buffer
		w := r.Writer(&b)
		io.WriteString(w, "\n"+s)
		if s == "a-" { // may begin a key's first line
			w.Release()
		}
		if b.String() != "\n"+s {
			t.Errorf("%q: only %q is there", s, b.String())
		}
	}
}

func TestRelease(t *testing.T) {
	r := compile(t, nil, Value{"PW", "hunter2hunter2hunter2"})
	tests := []struct {
		in    []string // Release after each
		shown []string // after each
	}{
		{[]string{"sk"}, []string{"sk"}},
		{[]string{"sk", "i trip"}, []string{"sk", "ski trip"}},
		{[]string{"gh", "p_", "0123", "456789abcdefghij", "rest", "\n"}, []string{"gh", "ghp_", "ghp_0123", "ghp_0123[masked: github-token]", "ghp_0123[masked: github-token]", "ghp_0123[masked: github-token]\n"}},
		{[]string{"AKIA", "IOSFODNN7EXAMPL", "E"}, []string{"AKIA", "AKIAIOSF", "AKIAIOSF[masked: aws-access-key]"}},
		{[]string{"hun", "ter2", "x"}, []string{"hu", "hu", "hunter2x"}},
		{[]string{"hunter2hunter2", "hunter2"}, []string{"hu", "hu[masked: PW]"}},
		{[]string{"a://u:pa", "ss@", "h/"}, []string{"a://u:", "a://u:[masked: url-password]@", "a://u:[masked: url-password]@h/"}},
		{[]string{"a://h:30", "00"}, []string{"a://h:30", "a://h:3000"}},
		{[]string{"-----BEGIN PRIVATE KEY-----\nMIIE\nroot# "}, []string{"[masked: private-key]\nroot# "}},
		{[]string{"-----BEGIN PRIVATE KEY-----\nMIIE\nMII"}, []string{"[masked: private-key]"}},
		{[]string{"-----BEGIN PRIV", "ATE KEY-----\n"}, []string{"-----BEGIN PRIV", "-----BEGIN PRIV[masked: private-key]"}},
		{[]string{"ghp_0123456789abcdefghij\x1b[", "31mx"}, []string{"[masked: github-token]\x1b[", "[masked: github-token]\x1b[31m"}},
		{[]string{"eyJ", "hbGciOiJIUzI1NiJ9", ".eyJzdWIi", "OiIx"}, []string{"eyJ", "eyJ", "eyJ[masked: jwt]", "eyJ[masked: jwt]"}},
	}
	for _, tt := range tests {
		var b bytes.Buffer
		w := r.Writer(&b)
		for i, s := range tt.in {
			io.WriteString(w, s)
			if err := w.Release(); err != nil {
				t.Fatal(err)
			}
			if b.String() != tt.shown[i] {
				t.Errorf("%q, step %d: %q, want %q", tt.in, i, b.String(), tt.shown[i])
			}
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, p := range []string{"", "ab", "a b c", "abc\n"} {
		if _, err := Compile([]string{p}, nil); err == nil {
			t.Errorf("prefix %q was taken", p)
		}
	}
	if _, err := Compile(nil, []Value{{"X", "abc"}}); err == nil || !strings.Contains(err.Error(), `"X"`) || strings.Contains(err.Error(), "abc") {
		t.Errorf("short value: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestWriteError(t *testing.T) {
	w := compile(t, nil).Writer(failing{})
	if _, err := io.WriteString(w, "?"); err == nil {
		t.Error("the first error is lost")
	}
	if err := w.Close(); err == nil {
		t.Error("the error does not stay")
	}
}

// The caller's own slice reaches the writer behind when nothing is masked.
func TestNoCopy(t *testing.T) {
	p := bytes.Repeat([]byte("ordinary text, nothing else\n"), 2000)
	var got *byte
	w := compile(t, nil).Writer(writerFunc(func(b []byte) { got = &b[0] }))
	w.Write(p)
	if got != &p[0] {
		t.Error("the text was copied")
	}
	if n := testing.AllocsPerRun(20, func() { w.Write(p) }); n != 0 {
		t.Errorf("%v allocations a write", n)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// Every alignment of a value within base64, in both alphabets, padded or not,
// wrapped or not.
func TestBase64(t *testing.T) {
	for _, secret := range []string{"s3cr", "s3cr3", "s3cr3t", "\xff\xfe\xfd\xfc\xfb?>~~", strings.Repeat("long one ", 30)} {
		r := compile(t, nil, Value{"V", secret})
		for before := range 7 {
			for after := range 4 {
				plain := "abcdefg"[:before] + secret + "xyz!"[:after]
				for i, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
					text := enc.EncodeToString([]byte(plain))
					for _, width := range []int{0, 76, 64, 3} {
						in := text
						if width > 0 {
							in = wrap(text, width)
						}
						got := r.String(in)
						if strings.Count(got, "[masked: V]") != 1 {
							t.Fatalf("%q, encoding %d, width %d: %q became %q", plain, i, width, in, got)
						}
						// What stays decodes to nothing of the secret but its ends.
						rest := strings.Join(strings.Fields(strings.Replace(got, "[masked: V]", "", 1)), "")
						if len(text)-len(rest) < len(secret)*8/6-2 {
							t.Fatalf("%q became %q", in, got)
						}
					}
				}
			}
		}
	}
}

func wrap(s string, n int) string {
	var b strings.Builder
	for len(s) > n {
		b.WriteString(s[:n] + "\n")
		s = s[n:]
	}
	return b.String() + s
}

// noise is n bytes of what programs print, with many beginnings of secrets.
func noise(rnd *rand.Rand, n int) string {
	pieces := []string{" ", "\n", "a", "sk", "sk-", "gh", "ghp", "-----", "-----BEGIN ", "://", ":", "@", "/", "eyJ", ".", "x", "AK", "AKIA", "\x1b", "\x1b[", "\x1b[31m", "m", "\r\n", "%", "\\n", "\xff", "corp", "0", "word", "hun", "//@", "u:p@"}
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(pieces[rnd.Intn(len(pieces))])
	}
	return b.String()
}

// secrets are what the fuzz test plants, each a whole that must not come out.
func secrets(rnd *rand.Rand) (text, secret string) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	random := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[rnd.Intn(len(letters))]
		}
		return string(b)
	}
	switch rnd.Intn(7) {
	case 0:
		s := "ghp_" + random(36)
		return s, s[4:]
	case 1:
		s := "sk-ant-api03-" + random(20+rnd.Intn(300))
		return s, s[13:]
	case 2:
		s := random(40)
		return "https://user:" + s + "@host/", s
	case 3:
		s := random(64)
		return "-----BEGIN PRIVATE KEY-----\n" + s + "\n-----END PRIVATE KEY-----", s
	case 4:
		s := random(30)
		return "eyJ" + random(20) + ".eyJ" + random(20) + "." + s, s
	case 5:
		return planted, planted
	default:
		return url.QueryEscape(planted), url.QueryEscape(planted)
	}
}

const planted = "pl@nted/secret value+1"

// FuzzSplit: the same output for every split, with or without nothing planted
// in it; what is planted does not come out, whatever stands around it, and
// whenever Release is called.
func FuzzSplit(f *testing.F) {
	r := compile(f, []string{"corp_"}, Value{"P", planted}, Value{"S", "//@x"})
	for i := range int64(300) {
		f.Add(i, noise(rand.New(rand.NewSource(i)), 60), "")
	}
	f.Fuzz(func(t *testing.T, seed int64, before, after string) {
		rnd := rand.New(rand.NewSource(seed))
		if after == "" {
			after = noise(rnd, 40)
		}
		in := before + after
		text, secret := "", ""
		if rnd.Intn(4) > 0 {
			// A word boundary before, and a break after, as a token has.
			text, secret = secrets(rnd)
			in = before + "\n" + text + "\n" + after
		}
		want := r.String(in)
		if secret != "" && !strings.Contains(before, "\n"+text) && strings.Contains(want, secret) {
			t.Fatalf("%q came out of %q:\n%q", secret, in, want)
		}
		if !strings.Contains(want, "[masked: ") && want != in {
			t.Fatalf("%q became %q", in, want)
		}
		var b, c bytes.Buffer
		w, v := r.Writer(&b), r.Writer(&c)
		for rest := in; rest != ""; {
			k := min(len(rest), 1+rnd.Intn(1<<rnd.Intn(8)))
			io.WriteString(w, rest[:k])
			io.WriteString(v, rest[:k])
			if rnd.Intn(3) == 0 {
				v.Release()
			}
			rest = rest[k:]
		}
		w.Close()
		v.Close()
		if b.String() != want {
			t.Fatalf("%q split became %q, whole %q", in, b.String(), want)
		}
		if secret != "" && strings.Contains(c.String(), secret) {
			t.Fatalf("%q came out of %q with releases:\n%q", secret, in, c.String())
		}
	})
}

func BenchmarkMask(b *testing.B) {
	r := compile(b, nil)
	random := make([]byte, 64<<10)
	rand.New(rand.NewSource(1)).Read(random)
	for _, bb := range []struct {
		name string
		text []byte
	}{
		{"log", bytes.Repeat([]byte("2024-05-01T12:00:00Z INFO http://host:80/path?x=1 user_name=bob task-id=17 some text that a program prints -- ok\n"), 600)},
		{"go", bytes.Repeat([]byte("func (w *Writer) boundary(b []byte, i int) bool {\n\tc := w.before(b, i, 1)\n\tif !alnum(c) {\n\t\treturn true\n\t}\n"), 600)},
		{"zeros", make([]byte, 64<<10)},
		{"random", random},
		{"dashes", bytes.Repeat([]byte("-"), 64<<10)},
		{"base64", bytes.Repeat([]byte("MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn"), 2000)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.text)))
			w := r.Writer(io.Discard)
			for b.Loop() {
				w.Write(bb.text)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		Compile([]string{"corp_"}, []Value{{"V", "some-secret-value-0123456789"}})
	}
}

func ExampleRules_String() {
	r, _ := Compile([]string{"corp_"}, []Value{{"DB_PASSWORD", "correct horse"}})
	fmt.Println(r.String("login corp_4711 with correct horse at https://me:secret@host.example/"))
	// Output: login [masked: corp_] with [masked: DB_PASSWORD] at https://me:[masked: url-password]@host.example/
}

// Text made of beginnings costs what other text costs, in whatever pieces it
// comes: nothing is looked at again and again.
func TestNotQuadratic(t *testing.T) {
	r := compile(t, nil, Value{"V", strings.Repeat("ab", 500) + "c"})
	for _, s := range []string{"eyJ-", "a://b:", "-----BEGIN ", "sk-", "ab", "s\x1b[m", "ghp_0123456789 "} {
		text := strings.Repeat(s, 100_000/len(s))
		for _, n := range []int{1, len(text)} {
			start := time.Now()
			split(t, r, text, n)
			// Measured: under 0.1 s each, and 1.6 s for the value that repeats
			// itself, which costs its length for each byte; what is quadratic in
			// the text takes minutes.
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("%q in pieces of %d took %v", s, n, took)
			}
			if testing.Verbose() {
				t.Logf("%q in pieces of %d: %v", s, n, time.Since(start))
			}
		}
	}
}
