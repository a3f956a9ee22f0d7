package mask

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
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
		{"a key where a user would be", "p://-----BEGIN PRIVATE KEY-----u:hunter2@h", "p://[masked: private-key]u:hunter2@h"},
		{"a value that ends a URL's authority", "p://xq\"\\\nz:hunter2@h p://corp_a/b:hunter2@h", "p://x[masked: Q]:hunter2@h p://[masked: corp_]:hunter2@h"},
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
		{"a token broken early", gh[:9] + "\x00" + gh[9:] + " " + gh[:9] + "\n" + gh[9:], gh[:9] + "\x00" + gh[9:] + " " + gh[:9] + "\n" + gh[9:]},
		{"a prefix twice", "ghp_" + gh, "ghp_[masked: github-token]"},
		{"a key in short lines", "-----BEGIN PRIVATE KEY-----\nMIIEowxx\nabcd\nefgh\nij\n-----END PRIVATE KEY-----\nb", "[masked: private-key]\nb"},
		{"a key in short lines with a prefix", "+-----BEGIN PRIVATE KEY-----\n+MIIEowxx\n+abcd\n+-----END PRIVATE KEY-----\nb", "+[masked: private-key]\nb"},
		{"a key in short lines with colours", "-----BEGIN PRIVATE KEY-----\n\x1b[32mMIIEowxx\x1b[m\nabcd\n-----END PRIVATE KEY-----\nb", "[masked: private-key]\nb"},
		{"a key in short lines after an unended one", "-----BEGIN PRIVATE KEY-----\nroot# x\n-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\nb", "[masked: private-key]\nroot# x\n[masked: private-key]\nb"},
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
	defer func(v bool) { fast = v }(fast)
	for _, tt := range tests {
		for n := 1; n < 70; n++ {
			fast = !fast
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

// Where values overlap, what only the second has stays visible; the package's
// comment says so.
func TestOverlap(t *testing.T) {
	r := compile(t, nil, Value{"A", "abcdefgh"}, Value{"B", "efghijkl"}, Value{"LONG", "abcdefghij"})
	const in, want = "abcdefghijkl abcdefgh efghijkl", "[masked: LONG]kl [masked: A] [masked: B]"
	for n := 1; n < len(in); n++ {
		if got := split(t, r, in, n); got != want {
			t.Errorf("in pieces of %d: %q, want %q", n, got, want)
		}
	}
}

func ExampleRules_String() {
	r, _ := Compile([]string{"corp_"}, []Value{{"DB_PASSWORD", "correct horse"}})
	fmt.Println(r.String("login corp_4711 with correct horse at https://me:secret@host.example/"))
	// Output: login [masked: corp_] with [masked: DB_PASSWORD] at https://me:[masked: url-password]@host.example/
}
