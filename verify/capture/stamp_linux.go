package capture

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// timespec reads the time that a control message carries, in the machine's own
// layout.
func timespec(data []byte) time.Time {
	if len(data) < int(unsafe.Sizeof(unix.Timespec{})) {
		return time.Now()
	}
	ts := *(*unix.Timespec)(unsafe.Pointer(&data[0]))
	return time.Unix(ts.Unix())
}
