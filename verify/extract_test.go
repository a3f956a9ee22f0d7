package verify

import "testing"

func TestDescribeTitle(t *testing.T) {
	for text, want := range map[string]string{
		"# One line.\n# proves: box\nstatus 0 true\n":                      "One line.",
		"# A sentence of\n# two lines. And more.\n# proves: box\n":         "A sentence of two lines.",
		"# Ends. (owner/name#3)\n":                                         "Ends.",
		"# No full stop\n\n# What a later part does.\nstatus 0 true\n":     "No full stop.",
		"# Version 0.8 is enough.\n# proves: box\n# Not part of it either": "Version 0.8 is enough.",
		"status 0 true\n": "",
	} {
		if got := Describe("x.txtar", []byte(text)).Title; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
