//go:build !mutant

package hostfilter

// omitted are the names that this build leaves out: none.
var omitted = func() []string { return nil }
