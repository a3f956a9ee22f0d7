//go:build mutant

package verify

// A kgate that is built to leave something out is told what by this variable.
func init() { passed = append(passed, "KGATE_MUTANT") }
