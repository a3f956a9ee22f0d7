//go:build !mutant

package hostfilter

func omitted() []string { return nil }
