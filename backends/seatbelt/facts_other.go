//go:build !darwin

package seatbelt

// ThisHost are the facts of this machine, which is no Mac: [Elsewhere].
func ThisHost() Facts { return Elsewhere() }
