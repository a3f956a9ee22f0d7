package policy

import (
	"strings"
	"testing"
)

func TestParseHost(t *testing.T) {
	good := map[string]string{ // entry: as it is rendered
		"a.test":                  "a.test",
		"A.Test.":                 "a.test",
		"a.test:443":              "a.test:443",
		"a.test:65535":            "a.test:65535",
		"*.a.test":                "*.a.test",
		"*.A.test:8443":           "*.a.test:8443",
		"*.internal":              "*.internal",
		"intranet":                "intranet",
		"xn--bcher-kva.test":      "xn--bcher-kva.test",
		"_dns.a_b.test":           "_dns.a_b.test",
		"1.a.test":                "1.a.test",
		"203.0.113.9":             "203.0.113.9",
		"203.0.113.9:53":          "203.0.113.9:53",
		"::1":                     "::1",
		"[::1]":                   "::1",
		"[::1]:443":               "[::1]:443",
		"[2001:DB8::1]:443":       "[2001:db8::1]:443",
		"::ffff:203.0.113.9":      "203.0.113.9",
		strings.Repeat("a.", 126): strings.Repeat("a.", 125) + "a",
	}
	for in, want := range good {
		h, err := parseHost(in)
		if err != nil || h.String() != want {
			t.Errorf("parseHost(%q) = %q, %v; want %q", in, h.String(), err, want)
			continue
		}
		again, err := parseHost(h.String())
		if err != nil || again.key() != h.key() {
			t.Errorf("%q does not read back: %+v, %v", h.String(), again, err)
		}
	}
	bad := map[string]string{ // entry: words in the error
		"":                              "empty",
		"*":                             "network: open",
		"*:443":                         "network: open",
		"*.":                            "network: open",
		"**.a.test":                     "first",
		"*a.test":                       "first",
		"a.*":                           "first",
		"*.*.test":                      "first",
		".a.test":                       "empty part",
		"a..test":                       "empty part",
		".":                             "empty part",
		"a.test..":                      "empty part",
		"-a.test":                       "hyphen",
		"a-.test":                       "hyphen",
		"a b":                           "holds",
		"a\x00b":                        "holds",
		"a.test\n":                      "holds",
		"a.test ":                       "holds",
		"é.test":                        "xn--",
		"https://a.test":                `write "a.test"`,
		"https://u@a.test:1/x":          `write "a.test:1"`,
		"a.test/path":                   `write "a.test"`,
		"user@a.test":                   `write "a.test"`,
		"10.0.0.0/8":                    "range",
		"fd00::/8":                      "range",
		"https://":                      "not a host name",
		"a.test:":                       "no port",
		":443":                          "no host",
		"a.test:0":                      "65535",
		"a.test:+1":                     "65535",
		"a.test:-1":                     "65535",
		"a.test:65536":                  "65535",
		"a.test:1e3":                    "65535",
		"a.test:443:444":                "[ADDRESS]:PORT",
		"::1:x":                         "[ADDRESS]:PORT",
		"[::1":                          "bracket",
		"[::1]443":                      "colon and a port",
		"[::1]:":                        "colon and a port",
		"[a.test]:443":                  "brackets",
		"[203.0.113.9]:443":             "brackets",
		"fe80::1%eth0":                  "zone",
		"0.0.0.0":                       "one machine",
		"::":                            "one machine",
		"224.0.0.1":                     "one machine",
		"::ffff:0.0.0.0":                "one machine",
		"127.1":                         "complete address",
		"0x7f000001":                    "complete address",
		"2130706433":                    "complete address",
		"203.0.113.256":                 "complete address",
		"a.test.0x7f":                   "complete address",
		strings.Repeat("a", 64):         "63 bytes",
		strings.Repeat("a.", 127) + "a": "253 bytes",
	}
	for in, want := range bad {
		if h, err := parseHost(in); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 200 {
			t.Errorf("parseHost(%q) = %q, %v; want %q", in, h.String(), err, want)
		}
	}
}

func TestHostsOverlap(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"a.test", "a.test", true},
		{"a.test", "b.test", false},
		{"a.test", "a.test:443", true},
		{"a.test:80", "a.test:443", false},
		{"*.a.test", "x.a.test", true},
		{"*.a.test", "a.test", false},
		{"*.a.test", "xa.test", false},
		{"*.a.test", "*.x.a.test", true},
		{"*.a.test", "*.b.test", false},
		{"*.a.test:80", "x.a.test:443", false},
		{"203.0.113.1", "203.0.113.1:80", true},
		{"203.0.113.1", "203.0.113.2", false},
		{"203.0.113.1", "a.test", false},
	} {
		a, err := parseHost(tt.a)
		if err != nil {
			t.Fatal(err)
		}
		b, err := parseHost(tt.b)
		if err != nil {
			t.Fatal(err)
		}
		if a.overlaps(b) != tt.want || b.overlaps(a) != tt.want {
			t.Errorf("%s and %s: want %v", tt.a, tt.b, tt.want)
		}
	}
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"a.test", "*.a.test:443", "[::1]:443", "::1", "https://a/b", "203.0.113.9:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := parseHost(s)
		if err != nil {
			return
		}
		if again, err := parseHost(h.String()); err != nil || again.key() != h.key() {
			t.Errorf("%q becomes %q, which reads %+v, %v", s, h.String(), again, err)
		}
		if (h.Name == "") == !h.Addr.IsValid() {
			t.Errorf("%q has both or neither name and address: %+v", s, h)
		}
	})
}
