package policy

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestSetNetworkChangesOnlyTheMode(t *testing.T) {
	tests := []struct{ name, in, mode, want string }{
		{"plain", "version: 1\nnetwork: restricted   # why\nallow:\n    hosts: [ a.test,b.test ]\n", "off",
			"version: 1\nnetwork: off   # why\nallow:\n    hosts: [ a.test,b.test ]\n"},
		{"same is untouched", "network:   off\n", "off", "network:   off\n"},
		{"double quotes", "network: \"open\" # x\n", "restricted", "network: \"restricted\" # x\n"},
		{"a number below it", "version: 1\nmtu: 1500\n", "off", "version: 1\nnetwork: off\nmtu: 1500\n"},
		{"single quotes", "network: 'open'\r\nipv6: true\r\n", "off", "network: 'off'\r\nipv6: true\r\n"},
		{"value on the next line", "network:\n  open\n", "off", "network:\n  off\n"},
		{"flow", "{version: 1, network: open}\n", "off", "{version: 1, network: off}\n"},
		{"absent in flow", "{version: 1}\n", "off", "{network: off, version: 1}\n"},
		{"absent in empty flow", "{}\n", "off", "{network: off}\n"},
		{"empty file", "", "open", "network: open\n"},
		{"comments alone", "# mine", "open", "# mine\nnetwork: open\n"},
		{"absent, version first", "# top\nversion: 1 # v\n\n# deny\ndeny:\n  exec: [x]\n", "off",
			"# top\nversion: 1 # v\nnetwork: off\n\n# deny\ndeny:\n  exec: [x]\n"},
		{"absent, no version", "# top\ndeny:\n  exec: [x]\n", "off", "# top\nnetwork: off\ndeny:\n  exec: [x]\n"},
		{"absent, indented", "  ipv6: true\n  deny: {}\n", "off", "  network: off\n  ipv6: true\n  deny: {}\n"},
		{"no newline at the end", "version: 1", "off", "version: 1\nnetwork: off\n"},
		{"document marks", "---\nversion: 1\n...\n", "open", "---\nversion: 1\nnetwork: open\n...\n"},
		{"carriage returns", "version: 1\r\nipv6: true\r\n", "open", "version: 1\r\nnetwork: open\r\nipv6: true\r\n"},
		{"word elsewhere", "# network: open\ndeny: {exec: [open, \"network: open\"]}\nnetwork: open\n", "off",
			""}, // a command line as a program's name is wrong: see below
		{"not ASCII before it", "{deny: {read: [/ünï]}, network: open}\n", "off", "{deny: {read: [/ünï]}, network: off}\n"},
		{"home as a path", "allow: {paths: [~/, \"~\"]}\nnetwork: open\n", "off", "allow: {paths: [~/, \"~\"]}\nnetwork: off\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			file := w.user(tt.in)
			before, _ := os.Stat(file)
			err := SetNetwork(file, Network(tt.mode))
			got, _ := os.ReadFile(file)
			if tt.want == "" {
				if err == nil || string(got) != tt.in {
					t.Fatalf("a wrong file was edited: %v\n%s", err, got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got\n%q\nwant\n%q", got, tt.want)
			}
			after, _ := os.Stat(file)
			if (tt.want == tt.in) != os.SameFile(before, after) {
				t.Errorf("replaced although nothing changed, or edited in place")
			}
			if m, err := ReadNetwork(file); err != nil || m.Value != Network(tt.mode) {
				t.Errorf("ReadNetwork = %v, %v", m, err)
			}
			noLitter(t, filepath.Dir(file), "config.yaml")
		})
	}
}

func TestSetNetworkRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"unknown key":  "network: open\nfoo: 1\n",
		"twice":        "network: open\nnetwork: open\n",
		"block scalar": "network: >-\n  open\n",
		"escaped":      "network: \"\\x6fpen\"\n",
		"not a map":    "- network\n",
		"tab":          "\tnetwork: open\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			file := w.user(text)
			if err := SetNetwork(file, Off); err == nil {
				t.Error("no error")
			}
			if got, _ := os.ReadFile(file); string(got) != text {
				t.Errorf("file changed to %q", got)
			}
			noLitter(t, filepath.Dir(file), "config.yaml")
		})
	}
	w := newWorld(t)
	missing := filepath.Join(w.home, ".kgate", "config.yaml")
	if err := SetNetwork(missing, Off); err == nil || !strings.Contains(err.Error(), "kgate init") {
		t.Errorf("missing file: %v", err)
	}
	noLitter(t, filepath.Dir(missing))
	file := w.user("network: open\n")
	if err := SetNetwork(file, "wide"); err == nil {
		t.Error("unknown mode accepted")
	}
}

func noLitter(t *testing.T, dir string, allowed ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
next:
	for _, e := range entries {
		for _, a := range allowed {
			if e.Name() == a {
				continue next
			}
		}
		t.Errorf("left behind: %s", e.Name())
	}
}

func TestSetNetworkKeepsSymlinkAndMode(t *testing.T) {
	w := newWorld(t)
	real := w.write(filepath.Join(w.home, "dotfiles", "kgate.yaml"), "network: open\n")
	if err := os.Chmod(real, 0o640); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.home, ".kgate", "config.yaml")
	if err := os.Symlink("../dotfiles/kgate.yaml", file); err != nil {
		t.Fatal(err)
	}
	if err := SetNetwork(file, Off); err != nil {
		t.Fatal(err)
	}
	if link, err := os.Readlink(file); err != nil || link != "../dotfiles/kgate.yaml" {
		t.Errorf("link = %q, %v", link, err)
	}
	info, err := os.Lstat(real)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
	if got, _ := os.ReadFile(real); string(got) != "network: off\n" {
		t.Errorf("content %q", got)
	}
}

func TestSetNetworkIsAtomic(t *testing.T) {
	w := newWorld(t)
	text := "version: 1\nnetwork: open\n" + strings.Repeat("# padding\n", 5000)
	file := w.user(text)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := SetNetwork(file, []Network{Off, Restricted, Open}[i%3]); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for i := 0; i < 200; i++ {
		got, err := os.ReadFile(file)
		if err != nil || !bytes.HasSuffix(got, []byte("# padding\n")) || len(got) < len(text)-1 {
			t.Errorf("half a file was seen: %d bytes, %v", len(got), err)
			break
		}
	}
	close(stop)
	wg.Wait()
}
