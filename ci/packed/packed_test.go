package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What nix-hash --type sha256 --base32 says of these is in Nix's own tests and
// pages: a directory that is empty, and a file that is.
func TestNarHash(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	// The well-known hash of an empty directory, as fetchers report it.
	const want = "sha256-pQpattmS9VmO3ZIQUFn66az8GSmB4IvYhTTCFn6SUmo="
	if got, err := narHash(empty); err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	before, err := narHash(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{before: true}
	for _, change := range []func() error{
		func() error { return os.WriteFile(filepath.Join(dir, "a"), []byte("12345678"), 0o644) },
		func() error { return os.Chmod(filepath.Join(dir, "a"), 0o755) },
		func() error { return os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")) },
		func() error { return os.Symlink("b", filepath.Join(dir, "c")) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		got, err := narHash(dir)
		if err != nil || seen[got] {
			t.Errorf("%s, %v: as before", got, err)
		}
		seen[got] = true
	}
}

func TestNfpmConfig(t *testing.T) {
	text, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out, err := nfpmConfig(text, "bin/kgate", "1.2.3", "2026-12-01T00:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: kgate", "version: 1.2.3", "depends:", "dst: /usr/bin/kgate\n", "mtime: \"2026-12-01T00:00:00Z\"", "postinstall: bin/share/installed"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, not := range []string{"package_name", "dependencies", "bindir", "{{"} {
		if strings.Contains(string(out), not) {
			t.Errorf("%q in\n%s", not, out)
		}
	}
	for _, bad := range []string{"", "nfpms: []", "nfpms: [{bindir: /usr/bin}]", "nfpms: [{bindir: /usr/bin, contents: [{src: '{{ .Env.X }}', dst: /x}]}]"} {
		if _, err := nfpmConfig([]byte(bad), "b", "1", "d"); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// apk packs a package with one file; change spoils it.
func apk(t *testing.T, content string, spoil func(info, sum string) (string, string)) []byte {
	t.Helper()
	pack := func(h *tar.Header, body string, end bool) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		h.Size, h.Mode = int64(len(body)), 0o644
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if end {
			w.Close()
		}
		z.Close()
		return b.Bytes()
	}
	sum := fmt.Sprintf("%x", sha1.Sum([]byte(content)))
	info := "pkgname = x\ndatahash = %s\n"
	info, sum = spoil(info, sum)
	data := pack(&tar.Header{Name: "usr/bin/x", PAXRecords: map[string]string{"APK-TOOLS.checksum.SHA1": sum}}, content, true)
	hash := sha256.Sum256(data)
	return append(pack(&tar.Header{Name: ".PKGINFO"}, strings.Replace(info, "%s", fmt.Sprintf("%x", hash), 1), false), data...)
}

func TestAPK(t *testing.T) {
	same := func(info, sum string) (string, string) { return info, sum }
	var out strings.Builder
	if err := listAPK(&out, bytes.NewReader(apk(t, "text", same))); err != nil || !strings.HasSuffix(out.String(), "/usr/bin/x\n") {
		t.Errorf("%v %q", err, out.String())
	}
	for name, text := range map[string][]byte{
		"another hash": apk(t, "text", func(info, sum string) (string, string) {
			return strings.Replace(info, "%s", strings.Repeat("0", 64), 1), sum
		}),
		"another checksum": apk(t, "text", func(info, sum string) (string, string) { return info, strings.Repeat("0", 40) }),
		"no hash":          apk(t, "text", func(info, sum string) (string, string) { return "pkgname = x\n", sum }),
		"cut":              apk(t, "text", same)[:100],
		"nothing":          nil,
	} {
		if err := listAPK(&out, bytes.NewReader(text)); err == nil {
			t.Errorf("%s goes unseen", name)
		}
	}
}
