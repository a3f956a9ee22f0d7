package memory

import (
	"syscall"
	"unsafe"
)

const (
	page   = 2 << 20 // a large page of amd64, and of arm64 with small pages of 4 KiB
	advise = 25      // MADV_COLLAPSE of madvise(2), since Linux 6.1
)

// first is on the heap, where its first objects are.
var first = new([64]byte)

func init() {
	start := uintptr(unsafe.Pointer(first)) &^ (page - 1)
	syscall.RawSyscall(syscall.SYS_MADVISE, start, page, advise)
}
