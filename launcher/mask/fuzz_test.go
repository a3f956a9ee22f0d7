package mask

import (
	"bytes"
	"io"
	"math/rand"
	"net/url"
	"strings"
	"testing"
)

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
		defer func(v bool) { fast = v }(fast)
		if fast = !fast; r.String(in) != want {
			t.Fatalf("%q became %q, by the other look %q", in, want, r.String(in))
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
