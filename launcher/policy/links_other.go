//go:build !linux

package policy

func linksIn(dir string, programs []Program) map[int][]string { return linksInSlow(dir, programs) }
