package bubblewrap

import (
	"os"
	"testing"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

func benchSite(b *testing.B) *site {
	s := newSite(b)
	s.git("init", "-q")
	for _, name := range []string{"~/.gitconfig", "~/.config/git/config", "~/.config/git/ignore"} {
		s.allow(name, false)
	}
	for _, name := range []string{"~/.ssh", "~/.aws", "~/.gnupg", "~/.netrc", "~/.docker", ".env", "secrets"} {
		s.deny(name)
	}
	for _, name := range []string{"/usr/bin/env", "/usr/bin/head", "/usr/bin/tail"} {
		info, err := os.Stat(name)
		if err != nil {
			b.Fatal(err)
		}
		s.policy.Programs = append(s.policy.Programs, policy.Program{Name: name, Path: name, Info: info})
	}
	return s
}

func BenchmarkPlan(b *testing.B) {
	s := benchSite(b)
	for b.Loop() {
		s.plan("true")
	}
}

// BenchmarkLaunch is plan, start and wait.
func BenchmarkLaunch(b *testing.B) {
	s := benchSite(b)
	for b.Loop() {
		p, err := s.backend.Start(s.plan("true"), backends.Stdio{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}
