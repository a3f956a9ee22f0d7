package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	scripts "github.com/kgate-dev/kgate/testdata/scripts"
	"github.com/kgate-dev/kgate/verify"
)

func TestMain(m *testing.M) {
	// This test binary is kgate too, under that name and also when kgate starts
	// its own file as one of its inner programs, under whatever name.
	if status, ok := stage(os.Args); ok {
		os.Exit(status)
	}
	testscript.Main(m, map[string]func(){
		"kgate":   func() { os.Exit(Main()) },
		shellName: func() { os.Exit(Main()) },
	})
}

// TestScripts runs every scenario as the present user.
func TestScripts(t *testing.T) {
	kgate, err := exec.LookPath("kgate")
	if err != nil {
		t.Fatal(err)
	}
	o := verify.Options{Kgate: kgate, Pcap: os.Getenv("KGATE_PCAP")}
	if must := os.Getenv("KGATE_MUST"); must != "" {
		o.Must = strings.Split(must, ",")
	}
	if os.Getenv("UPDATE_SCRIPTS") != "" {
		o.Update = true
		o.Files, err = filepath.Glob("../../testdata/scripts/*.txtar")
	} else {
		o.Files, err = verify.Extract(scripts.Files, t.TempDir())
	}
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, verify.Params(o))
}

// needBox skips a test where no box can be made, and fails it where KGATE_MUST
// says that one can.
func needBox(t testing.TB) {
	t.Helper()
	if why := verify.Conditions()["userns"]; why != nil {
		if strings.Contains(os.Getenv("KGATE_MUST"), "userns") {
			t.Fatal(why)
		}
		t.Skip(why)
	}
}

// ordinary is the user whom root's test run becomes: one that no host has, so
// that nothing is his but what the scripts make.
const ordinary = 54321

// TestScriptsAsUser runs every scenario again as an ordinary user. A run by an
// ordinary user has done that already.
func TestScriptsAsUser(t *testing.T) {
	only := "^TestScripts$"
	for _, arg := range os.Args {
		if pattern, ok := strings.CutPrefix(arg, "-test.run="); ok {
			if _, sub, ok := strings.Cut(pattern, "/"); ok {
				only += "/" + sub
			}
		}
	}
	if out := asUser(t, only); !strings.Contains(out, "--- PASS: TestScripts") {
		t.Fatalf("no script ran as uid %d:\n%s", ordinary, out)
	}
}

// asUser runs tests of this file again as an ordinary user and returns what
// they print.
func asUser(t *testing.T, only string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the test ran as an ordinary user already")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: its parents may be closed to others.
	dir, err := os.MkdirTemp("/tmp", "kgate-user-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "kgate.test")
	if err := copyFile(self, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "tmp")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, ordinary, ordinary); err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command(binary, "-test.run="+only, "-test.v=true")
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home, "USER=ordinary", "LOGNAME=ordinary", "UPDATE_SCRIPTS=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	out, err := cmd.CombinedOutput()
	if err != nil || testing.Verbose() {
		t.Logf("as uid %d:\n%s", ordinary, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
