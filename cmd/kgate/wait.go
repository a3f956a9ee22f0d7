package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// quiet is how long a command may say nothing before it says what it is at.
var quiet = time.Second

// waiting tells a terminal what takes long, and since when; done takes the line
// away again. Nothing is written where w is no terminal, or to what ends soon.
func waiting(w io.Writer, what string) (done func()) {
	if !isTerminal(w) {
		return func() {}
	}
	stop := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		from := time.Now()
		every := time.NewTicker(quiet)
		defer every.Stop()
		shown := false
		for {
			select {
			case <-stop:
				if shown {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			case <-every.C:
				shown = true
				fmt.Fprintf(w, "\r\x1b[K%s, %.0f s", what, time.Since(from).Seconds())
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		ended.Wait()
	})
}
