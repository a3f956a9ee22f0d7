package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestShellArgv(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, mode := range map[string]os.FileMode{"script": 0o644, "tool": 0o755, "my tool": 0o755} {
		if err := os.WriteFile(name, []byte("echo"), mode); err != nil {
			t.Fatal(err)
		}
	}
	const b = "/bin/bash"
	through := func(words ...string) []string { // options, then the program's words after them
		return append([]string{b}, words...)
	}
	for _, tt := range []struct {
		name  string
		args  []string
		login bool
		want  []string
	}{
		{"text", []string{"-c", "echo a; echo b"}, false, through("-c", "echo a; echo b")},
		{"text of a login shell", []string{"-lc", "echo a"}, false, through("-lc", "echo a")},
		{"apart", []string{"-l", "-c", "echo a"}, false, through("-l", "-c", "echo a")},
		{"with $0 and arguments", []string{"-c", "echo $0 $1", "zero", "one"}, false, through("-c", "echo $0 $1", "zero", "one")},
		{"text after --", []string{"-c", "--", "echo a"}, false, through("-c", "--", "echo a")},
		{"an option's own argument", []string{"-o", "pipefail", "-c", "true"}, false, through("-o", "pipefail", "-c", "true")},
		{"clustered", []string{"-eo", "pipefail", "-c", "true"}, false, through("-eo", "pipefail", "-c", "true")},
		{"start-up file", []string{"--rcfile", "x", "-i"}, false, through("--rcfile", "x", "-i")},
		{"interactive", nil, false, through()},
		{"login", []string{"-l"}, false, through("-l")},
		{"login by name", nil, true, through("-l")},
		{"standard input", []string{"-s", "one", "two"}, false, through("-s", "one", "two")},
		{"version", []string{"--version"}, false, through("--version")},
		{"one argument", []string{"cd src && ls"}, false, through("-c", "cd src && ls")},
		{"one word", []string{"ls"}, false, through("-c", "ls")},
		{"one argument of a login shell", []string{"-l", "ls | wc"}, false, through("-l", "-c", "ls | wc")},
		{"one argument after --", []string{"--", "ls -l"}, false, through("-c", "ls -l")},
		{"nothing after --", []string{"--"}, false, through("--")},
		{"several", []string{"git", "status", "-s"}, false, []string{"git", "status", "-s"}},
		{"several with options", []string{"-l", "git", "status"}, false, through("-l", "-c", `exec "$@"`, b, "git", "status")},
		{"several after --", []string{"--", "git", "status"}, false, []string{"git", "status"}},
		{"a script", []string{"script", "a b"}, false, through("script", "a b")},
		{"a script alone", []string{"./script"}, false, through("./script")},
		{"a script of a login shell", []string{"-l", "./script"}, false, through("-l", "./script")},
		{"a program alone", []string{"./tool"}, false, []string{"./tool"}},
		{"a program with a space", []string{"./my tool"}, false, []string{"./my tool"}},
		{"a program with a space and arguments", []string{"./my tool", "x"}, false, []string{"./my tool", "x"}},
		{"no such path", []string{"./none --flag"}, false, through("-c", "./none --flag")},
		{"the name of an inner program", []string{"verify-bare", "--", "x"}, false, []string{"verify-bare", "--", "x"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := shellArgv(b, tt.args, tt.login); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("shellArgv(%q) = %q, want %q", tt.args, got, tt.want)
			}
		})
	}
}

func TestRealShell(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"link", "home/bin", "plain", "onlysh"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"home/bin/bash", "plain/bash", "plain/sh", "onlysh/sh"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(self, filepath.Join(dir, "link/bash")); err != nil {
		t.Fatal(err)
	}
	in := func(names ...string) (path string) {
		for i, n := range names {
			if i > 0 {
				path += ":"
			}
			path += filepath.Join(dir, n)
		}
		return path
	}
	for _, tt := range []struct{ name, path, want string }{
		{"the person's", in("plain"), in("plain/bash")},
		{"not kgate itself", in("link", "plain"), in("plain/bash")},
		{"not one that the box hides", in("home/bin", "plain"), in("plain/bash")},
		{"bash before sh", in("onlysh", "plain"), in("plain/bash")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := realShell(tt.path, filepath.Join(dir, "home"))
			if err != nil || got != tt.want {
				t.Errorf("realShell = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestCalledShell(t *testing.T) {
	for name, want := range map[string]bool{
		"kgate-sh": true, "/usr/local/bin/kgate-sh": true, "-kgate-sh": true,
		"kgate": false, "/opt/kgate-sh/kgate": false, "/proc/self/fd/9": false,
	} {
		if got := calledShell([]string{name, "verify-bare"}); got != want {
			t.Errorf("calledShell(%q) = %v", name, got)
		}
	}
}
