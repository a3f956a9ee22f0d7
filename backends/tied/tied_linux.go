// Package tied starts children that end with this process.
package tied

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Do runs a function that starts a child with a death signal. The signal comes
// when the thread that started the child ends, not when the process does
// (prctl(2), PR_SET_PDEATHSIG), so it must be a thread that lives as long. The
// process's first thread does, and is there already.
func Do(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Gettid() == unix.Getpid() {
		f()
		return
	}
	done := make(chan struct{})
	starter() <- func() { f(); close(done) }
	<-done
}

// starter runs functions on another such thread.
var starter = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})
