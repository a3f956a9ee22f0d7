package probe

import (
	"fmt"
	"runtime/debug"
	"syscall"
)

func int80(number uintptr) int32

// foreignCall asks for this process's number (getpid, 20) in i386's way.
func foreignCall() (err error) {
	// A kernel that has none of it ends the program, or would.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	if n := int80(20); n < 0 {
		return fmt.Errorf("getpid of i386: %w", syscall.Errno(-n))
	}
	return nil
}
