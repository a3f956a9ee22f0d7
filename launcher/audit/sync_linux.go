package audit

import (
	"os"
	"syscall"
)

// syncData waits until the file's content and its size are on the disk;
// fdatasync(2) leaves out the times, which nothing here reads.
func syncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err != syscall.EINTR {
			return err
		}
	}
}
