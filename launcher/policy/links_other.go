//go:build !linux

package policy

func linksIn(dir string, programs []Program) map[int][]string { return linksInSlow(dir, programs) }

// smallDir is for systems whose directory entries can be read cheaply.
func smallDir(string, map[string]int) ([]int, bool) { return nil, false }
