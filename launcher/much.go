package launcher

import (
	"io"
	"time"
)

// A command that prints more than much is read ahead of, and its pipes are made
// wide. Most commands print little, and how many wide pipes a user may have is
// limited.
const (
	much     = 1 << 20   // bytes
	widePipe = 1 << 20   // the most that an ordinary user may set (pipe(7))
	piece    = 256 << 10 // a larger one does not fit the caches
	pieces   = 3         // one being read, one waiting, one being written
)

// copyMuch is copy for a command that prints much: what comes is read while what
// came before is looked through and written.
func (s *stream) copyMuch() {
	widen(s.from, widePipe)
	widen(s.to, widePipe) // else kgate waits for its reader at each part of a piece
	type chunk struct {
		text []byte
		err  error
	}
	read, spare := make(chan chunk, pieces), make(chan []byte, pieces)
	defer close(spare)
	for range pieces {
		spare <- make([]byte, piece)
	}
	go func() {
		for buf := range spare {
			n, err := s.from.Read(buf)
			read <- chunk{buf[:n], err}
			if err != nil {
				return
			}
		}
	}()
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		var quiet <-chan time.Time
		if s.mask.Held() {
			timer.Reset(idle)
			quiet = timer.C
		}
		select {
		case <-quiet:
			if s.wrote(0, s.mask.Release()) {
				return
			}
		case c := <-read:
			if len(c.text) > 0 && s.wrote(s.mask.Write(c.text)) {
				return
			}
			if c.err != nil {
				if c.err != io.EOF {
					s.err = c.err
				}
				return
			}
			spare <- c.text[:piece]
		}
	}
}
