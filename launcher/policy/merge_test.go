package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func pathNames(paths []Path, home string) string {
	var out []string
	for _, p := range paths {
		if p.From.Kind == FromDefault {
			continue
		}
		s := strings.Replace(p.Name, home, "~", 1)
		if p.Write {
			s += ":rw"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func wordTexts(words []Word) string {
	var out []string
	for _, w := range words {
		if w.From.Kind != FromDefault {
			out = append(out, w.Text)
		}
	}
	return strings.Join(out, " ")
}

func TestMerge(t *testing.T) {
	type check func(w *world, p *Policy) string
	network := func(w *world, p *Policy) string { return string(p.Network.Value) + " " + p.Network.From.Key }
	effective := func(w *world, p *Policy) string { return string(p.Effective().Value) }
	hosts := func(w *world, p *Policy) string { return hostNames(p.Hosts) }
	paths := func(w *world, p *Policy) string { return pathNames(p.Paths, w.home) }
	denied := func(w *world, p *Policy) string { return pathNames(p.DenyRead, w.home) }
	exec := func(w *world, p *Policy) string { return strings.ReplaceAll(wordTexts(p.DenyExec), w.home, "~") }
	denies := func(name string) check {
		return func(w *world, p *Policy) string { return fmt.Sprint(hasWord(p.DenyExec, name)) }
	}
	hides := func(name string) check {
		return func(w *world, p *Policy) string { return fmt.Sprint(hasPath(p.DenyRead, w.home+name)) }
	}
	shows := func(name string) check {
		return func(w *world, p *Policy) string { return fmt.Sprint(hasPath(p.Paths, w.home+name)) }
	}
	tests := []struct {
		name, user, project string
		flags               Options
		check               check
		want                string
	}{
		{"network from the user", "network: open", "", Options{}, network, "open network"},
		{"project tightens", "network: open", "network: restricted", Options{}, network, "restricted network"},
		{"tightened to a list that is empty", "network: open", "network: restricted", Options{}, effective, "off"},
		{"project repeats", "network: off", "network: off", Options{}, network, "off network"},
		{"flag tightens", "network: open", "", Options{Network: "off"}, network, "off --network"},
		{"flag repeats", "network: open", "", Options{Network: "open"}, network, "open network"},
		{"ipv6 narrowed", "ipv6: true", "ipv6: false", Options{}, func(w *world, p *Policy) string { return fmt.Sprint(p.IPv6.Value) }, "false"},
		{"ipv6 stays", "ipv6: true", "version: 1", Options{}, func(w *world, p *Policy) string { return fmt.Sprint(p.IPv6.Value) }, "true"},
		{"mtu", "mtu: 1500", "", Options{}, func(w *world, p *Policy) string { return fmt.Sprint(p.MTU.Value, p.MTU.From.Key) }, "1500mtu"},
		{"mtu of itself", "", "version: 1", Options{}, func(w *world, p *Policy) string { return fmt.Sprint(p.MTU.Value, p.MTU.From.Kind == FromDefault) }, "65520 true"},
		{"nested", "allow: {nested: true}", "", Options{}, func(w *world, p *Policy) string { return fmt.Sprint(p.Nested.Value) }, "true"},

		{"hosts", `allow: {hosts: [b.test, a.test, B.test., "a.test:443"]}`, "", Options{}, hosts, "b.test a.test a.test:443"},
		{"with hosts it is restricted", "allow: {hosts: [b.test]}", "", Options{}, effective, "restricted"},
		{"host dropped", "allow: {hosts: [b.test, a.test]}", "drop: {hosts: [A.test]}", Options{}, hosts, "b.test"},
		{"all hosts dropped is off", "allow: {hosts: [a.test]}", "drop: {hosts: [a.test]}", Options{}, effective, "off"},
		{"drop of a port takes the host", "allow: {hosts: [a.test]}", `drop: {hosts: ["a.test:80"]}`, Options{}, hosts, ""},
		{"drop below a wildcard takes it", `allow: {hosts: ["*.a.test", b.test]}`, "drop: {hosts: [x.a.test]}", Options{}, hosts, "b.test"},
		{"drop by wildcard", `allow: {hosts: [x.a.test, a.test]}`, `drop: {hosts: ["*.a.test"]}`, Options{}, hosts, "a.test"},
		{"drop of what is not there", "allow: {hosts: [a.test]}", "drop: {hosts: [z.test], paths: [~/z]}", Options{}, hosts, "a.test"},
		{"flag adds a host", "allow: {hosts: [a.test]}", "", Options{AllowNets: []string{"b.test:443", "[::1]:443", "a.test"}}, hosts, "a.test b.test:443 [::1]:443"},
		{"flag adds one after a drop", "allow: {hosts: [a.test]}", "drop: {hosts: [a.test]}", Options{AllowNets: []string{"a.test"}}, hosts, "a.test"},
		{"flag makes it restricted", "", "", Options{AllowNets: []string{"a.test"}}, effective, "restricted"},
		{"flag with open", "network: open", "", Options{AllowNets: []string{"a.test"}}, effective, "open"},

		{"paths", "allow: {paths: [~/a, ~, b, /c/../d, {path: ~/w, write: true}]}", "", Options{}, paths, "~/a ~ ~/b /d ~/w:rw"},
		{"path twice, once writable", "allow: {paths: [~/a, {path: a/, write: true}]}", "", Options{}, paths, "~/a:rw"},
		{"path twice, first writable", "allow: {paths: [{path: ~/a, write: true}, ~/a]}", "", Options{}, paths, "~/a:rw"},
		{"spaces and letters", `allow: {paths: ["~/with space/é"]}`, "", Options{}, paths, "~/with space/é"},
		{"path dropped", "allow: {paths: [~/a, ~/b]}", "drop: {paths: [~/a]}", Options{}, paths, "~/b"},
		{"path dropped by what is above", "allow: {paths: [~/a/b, ~/ab]}", "drop: {paths: [~/a]}", Options{}, paths, "~/ab"},
		{"path dropped within one", "allow: {paths: [~/a]}", "drop: {paths: [~/a/b]}", Options{}, denied, "~/a/b"},
		{"default path dropped", "", "drop: {paths: [~/.gitconfig]}", Options{}, shows("/.gitconfig"), "false"},
		{"default path dropped by the user", "drop: {paths: [~/.gitconfig]}", "", Options{}, shows("/.gitconfig"), "false"},
		{"and allowed again", "drop: {paths: [~/.gitconfig]}\nallow: {paths: [~/.gitconfig]}", "", Options{}, shows("/.gitconfig"), "true"},
		{"flag path", "", "", Options{AllowPaths: []string{"x", "../y:rw", "~/z:ro", "/a b:rw", "w:rw:ro"}}, paths, "~/proj/x ~/y:rw ~/z /a b:rw ~/proj/w:rw"},
		{"bytes that are not UTF-8", "", "", Options{AllowPaths: []string{"/a\xff\xfe:rw"}}, paths, "/a\xff\xfe:rw"},

		{"denials add", "deny: {read: [~/a]}", "deny: {read: [b, /c, ~/d]}", Options{}, denied, "~/a ~/proj/b /c ~/d"},
		{"defaults stay", "deny: {read: [~/a], exec: [x]}", "", Options{}, hides("/.ssh"), "true"},
		{"a default taken off", "drop: {read: [~/.ssh]}", "", Options{}, hides("/.ssh"), "false"},
		{"and put back by the project", "drop: {read: [~/.ssh]}", "deny: {read: [~/.ssh]}", Options{}, hides("/.ssh"), "true"},
		{"flag does not lift a denial", "", "", Options{AllowPaths: []string{"~/.ssh"}}, hides("/.ssh"), "true"},
		{"programs", "deny: {exec: [npm, ~/bin/tool, tools/x]}", "deny: {exec: [./run, npm]}", Options{}, exec, "npm ~/bin/tool ~/tools/x ~/proj/run"},
		{"programs stay", "deny: {exec: [npm]}", "", Options{}, denies("curl"), "true"},
		{"a program taken off", "drop: {exec: [curl]}", "", Options{}, denies("curl"), "false"},
		{"a program taken off, and denied", "drop: {exec: [curl]}\ndeny: {exec: [curl]}", "", Options{}, denies("curl"), "true"},
		{"a program denied by the project", "drop: {exec: [curl]}", "deny: {exec: [curl]}", Options{}, denies("curl"), "true"},

		{"masks", "mask: {prefixes: [corp_], env: [A]}", "mask: {prefixes: [proj_, corp_], env: [B]}", Options{},
			func(w *world, p *Policy) string { return wordTexts(p.MaskPrefixes) + " " + wordTexts(p.MaskEnv) }, "corp_ proj_ A B"},
		{"variables", "env: {pass: [A], drop: [B]}", "env: {drop: [C]}", Options{EnvPass: []string{"D"}},
			func(w *world, p *Policy) string { return wordTexts(p.EnvPass) + " " + wordTexts(p.EnvDrop) }, "A D B C"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.user(tt.user)
			if tt.project != "" {
				w.proj(tt.project)
			}
			o := tt.flags
			o.Dir, o.Home, o.AccountHome = w.project, w.home, w.home
			p, err := Load(o)
			if err != nil {
				t.Fatal(err)
			}
			if got := tt.check(w, p); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			again, err := Load(o)
			if err != nil || !reflect.DeepEqual(stable(p), stable(again)) {
				t.Errorf("loading again gives something else: %v", err)
			}
		})
	}
}

// stable leaves out what holds times of access.
func stable(p *Policy) Policy {
	q := *p
	q.Programs = nil
	for _, prog := range p.Programs {
		prog.Info = nil
		q.Programs = append(q.Programs, prog)
	}
	return q
}

func TestFlagErrors(t *testing.T) {
	tests := []struct {
		name, user, project string
		flags               Options
		want                []string
	}{
		{"net with network off", "network: off", "", Options{AllowNets: []string{"a.test"}},
			[]string{"--allow-net: ", `"a.test"`, "network off", "config.yaml:1: network", "network: restricted"}},
		{"net with the project's off", "", "deny: {}\nnetwork: off", Options{AllowNets: []string{"a.test"}},
			[]string{"--allow-net: ", ".kgate.yaml:2: network"}},
		{"net with the flag's off", "network: open", "", Options{Network: "off", AllowNets: []string{"a.test"}},
			[]string{"--allow-net: ", "flag --network"}},
		{"network wider", "network: off", "", Options{Network: "open"}, []string{"--network: open is wider than off", "config.yaml:1: network", "kgate network open"}},
		{"network wider than the default", "", "", Options{Network: "open"}, []string{"wider than restricted", "default network"}},
		{"network unknown", "", "", Options{Network: "wide"}, []string{"--network: ", `"wide"`, "off, open or restricted"}},
		{"bad host", "", "", Options{AllowNets: []string{"https://a.test"}}, []string{"--allow-net: ", `write "a.test"`}},
		{"all of the machine", "", "", Options{AllowPaths: []string{"/:rw"}}, []string{"--allow-path: ", "whole machine"}},
		{"kgate's own", "", "", Options{AllowPaths: []string{"~/.kgate"}}, []string{"--allow-path: ", "kgate's own"}},
		{"empty path", "", "", Options{AllowPaths: []string{":rw"}}, []string{"--allow-path: ", "empty"}},
		{"NUL", "", "", Options{AllowPaths: []string{"a\x00b"}}, []string{"--allow-path: ", "NUL"}},
		{"bad variable", "", "", Options{EnvPass: []string{"A=b"}}, []string{"--env: ", `"A=b"`}},
		{"project wider", "network: off", "version: 1\n\nnetwork: restricted", Options{}, []string{".kgate.yaml:3: network: restricted is wider than off", "config.yaml:1: network"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.user(tt.user)
			if tt.project != "" {
				w.proj(tt.project)
			}
			o := tt.flags
			o.Dir, o.Home, o.AccountHome = w.project, w.home, w.home
			_, err := Load(o)
			var fe *FileError
			if !errors.As(err, &fe) {
				t.Fatalf("err = %v", err)
			}
			for _, words := range tt.want {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q lacks %q", err.Error(), words)
				}
			}
		})
	}
}

func TestOrigins(t *testing.T) {
	w := newWorld(t)
	user := w.user("version: 1\nallow:\n  hosts:\n    - a.test\n    - b.test\n  paths:\n    - ~/x\n    - path: ~/y\n      write: true\n    - ~/x\n")
	project := w.proj("deny:\n  exec: [npm,\n    make]\n")
	o := w.options()
	o.AllowNets, o.AllowPaths = []string{"c.test"}, []string{"/d"}
	p, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	origins := map[string]string{}
	for _, h := range p.Hosts {
		origins[h.String()] = h.From.String()
	}
	for _, a := range p.Paths {
		origins[filepath.Base(a.Name)] = a.From.String()
	}
	for _, x := range p.DenyExec {
		origins[x.Text] = x.From.String()
	}
	for value, want := range map[string]string{
		"a.test": user + ":4: allow.hosts[0]", "b.test": user + ":5: allow.hosts[1]", "c.test": "flag --allow-net",
		"x": user + ":7: allow.paths[0]", "y": user + ":8: allow.paths[1]", "d": "flag --allow-path",
		"npm": project + ":2: deny.exec[0]", "make": project + ":3: deny.exec[1]",
		"curl": "default deny.exec", ".gitconfig": "default allow.paths",
	} {
		if origins[value] != want {
			t.Errorf("%s comes from %q, want %q", value, origins[value], want)
		}
	}
}

func TestShadowed(t *testing.T) {
	w := newWorld(t)
	o := w.options()
	o.AllowPaths = []string{"~/.ssh/known_hosts", "~/.sshx", "~"}
	p, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	got := p.Shadowed()
	if len(got) != 1 || got[0].Allowed.Name != w.home+"/.ssh/known_hosts" || got[0].By.Name != w.home+"/.ssh" {
		t.Errorf("Shadowed = %+v", got)
	}
}

// A name with every odd byte a file name can have works as working directory.
func TestOddDirectories(t *testing.T) {
	for _, name := range []string{"with space", "\xff\xfe", "new\nline", "-dash", "quote\"'", "$x", "~", "ünï", "*"} {
		w := newWorld(t)
		dir := w.mkdir(w.home, name)
		w.write(filepath.Join(dir, ".kgate.yaml"), "deny: {read: [.env]}\n")
		p, err := Load(Options{Dir: dir, Home: w.home, AccountHome: w.home})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if p.Project != dir || !hasPath(p.DenyRead, dir+"/.env") {
			t.Errorf("%q: project %q, %v", name, p.Project, pathNames(p.DenyRead, w.home))
		}
	}
}

func TestProjectFileIsNotFollowed(t *testing.T) {
	w := newWorld(t)
	secret := w.write(filepath.Join(w.home, ".netrc"), "machine-password\n")
	if err := os.Symlink(secret, filepath.Join(w.project, ".kgate.yaml")); err != nil {
		t.Fatal(err)
	}
	_, err := Load(w.options())
	if err == nil || strings.Contains(err.Error(), "machine-password") {
		t.Errorf("err = %v", err)
	}
}
