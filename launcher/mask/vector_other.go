//go:build !amd64

package mask

// fast is only on processors that there is a look for.
var fast = false

func lookAVX2(*vector, *byte, int, *uint32) { panic("no such look on this processor") }
