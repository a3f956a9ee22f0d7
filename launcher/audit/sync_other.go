//go:build !linux

package audit

import "os"

// syncData waits until the file is on the disk; on macOS File.Sync asks for
// F_FULLFSYNC, which also empties the disk's own cache (fcntl(2)).
func syncData(f *os.File) error { return f.Sync() }
