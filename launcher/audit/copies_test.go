package audit

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	_ "unsafe" // for linkname
)

// journalSocket is the address that package journal sends to.
//
//go:linkname journalSocket github.com/coreos/go-systemd/v22/journal.journalSocket
var journalSocket string

// collectors are the ways of sending to a unix datagram socket at a path.
func collectors(path string) map[string]Sink {
	journalSocket = path
	return map[string]Sink{"journald": Journald(), "syslog": Syslog("unixgram", path)}
}

func socketAt(t *testing.T) (*net.UnixConn, string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "audit") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "log")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, path
}

func TestCopies(t *testing.T) {
	conn, path := socketAt(t)
	for name, sink := range collectors(path) {
		t.Run(name, func(t *testing.T) {
			file := newLog(t, 0, Options{})
			o := Options{Copies: []Sink{sink}, CopyWait: 10 * time.Second, Warn: func(err error) { t.Error(err) }}
			o.Mask = func(s string) string { return strings.ReplaceAll(s, "s3cret", "***") }
			e := launch("a\nb", "s3cret", "\xff")
			e.Kind = Block
			if err := Open(file, o).Append(e); err != nil {
				t.Fatal(err)
			}
			text, _ := os.ReadFile(file)
			line := strings.TrimSpace(string(text))
			buf := make([]byte, 1<<16)
			conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(buf[:n]); !strings.Contains(got, line) || !strings.Contains(got, "kgate") || strings.Contains(got, "s3cret") {
				t.Errorf("the collector got %q, want the line %q", got, line)
			}
		})
	}
}

// TestCopyTooLong: a line that syslog would cut is sent without what made it long.
func TestCopyTooLong(t *testing.T) {
	conn, path := socketAt(t)
	file := newLog(t, 0, Options{})
	o := Options{Copies: []Sink{Syslog("unixgram", path)}, CopyWait: 10 * time.Second, Warn: func(err error) { t.Error(err) }}
	if err := Open(file, o).Append(launch(strings.Repeat("x", 100000))); err != nil {
		t.Fatal(err)
	}
	hash := readAll(t, file)[0].Hash
	buf := make([]byte, 1<<16)
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := conn.Read(buf)
	if got := string(buf[:n]); err != nil || !strings.Contains(got, `{"cut":true,"seq":1,`) || !strings.Contains(got, hash) {
		t.Errorf("the collector got %q, %v", got, err)
	}
}

// TestCollectorDown: nobody there, somebody who never reads, and one who hangs:
// the line is in the log, Append has not waited, and a warning names them.
func TestCollectorDown(t *testing.T) {
	_, full := socketAt(t)
	addr := &net.UnixAddr{Name: full, Net: "unixgram"}
	for range 1000 { // until its queue is full
		c, err := net.DialUnix("unixgram", nil, addr)
		if err != nil {
			t.Fatal(err)
		}
		c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		_, err = c.Write([]byte("x"))
		c.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ENOBUFS) {
			break
		}
	}
	absent := filepath.Join(filepath.Dir(full), "absent")
	for _, path := range []string{full, absent} {
		for name, sink := range collectors(path) {
			t.Run(name+" "+filepath.Base(path), func(t *testing.T) { collectorDown(t, sink) })
		}
	}
	t.Run("hangs", func(t *testing.T) { collectorDown(t, hanging{}) })
}

type hanging struct{}

func (hanging) Name() string             { return "one that hangs" }
func (hanging) Send(Entry, []byte) error { select {} }

func collectorDown(t *testing.T, sink Sink) {
	file := newLog(t, 0, Options{})
	var warned []string
	o := Options{Copies: []Sink{sink}, Warn: func(err error) { warned = append(warned, err.Error()) }}
	for range 3 {
		start := time.Now()
		if err := Open(file, o).Append(launch("x")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("Append waited %v", took)
		}
	}
	whole(t, file, 3)
	if len(warned) != 3 || !strings.Contains(warned[0], sink.Name()) || !strings.Contains(warned[0], file) {
		t.Errorf("warnings %q", warned)
	}
}
