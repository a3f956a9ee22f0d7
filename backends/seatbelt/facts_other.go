//go:build !darwin

package seatbelt

// Here are the facts of this machine, which is no Mac: [Elsewhere].
func Here() Facts { return Elsewhere() }
