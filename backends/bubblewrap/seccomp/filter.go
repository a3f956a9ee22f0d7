package seccomp

import (
	"embed"
	"runtime"
	"strings"
)

//go:embed *.bpf
var programs embed.FS

// Filter is the program for this architecture, as bwrap's --seccomp reads it:
// an array of struct sock_filter in the machine's byte order (seccomp(2)). It is
// nil where there is none for the architecture.
func Filter(nested bool) []byte {
	data, err := programs.ReadFile(File(runtime.GOARCH, nested))
	if err != nil {
		return nil
	}
	return data
}

// File is the name of the program for an architecture, in this directory.
func File(arch string, nested bool) string {
	if nested {
		return arch + "-nested.bpf"
	}
	return arch + ".bpf"
}

// Text says what the filter refuses, a line a rule.
func Text(nested bool) []string {
	var lines []string
	for _, r := range For(nested) {
		lines = append(lines, r.Name+": "+strings.Join(r.Calls, ", ")+": "+r.Why)
	}
	return lines
}
