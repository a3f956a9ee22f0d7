package capture

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/gopacket"
	"golang.org/x/sys/unix"
)

// Socket reads the packets of every interface of a network namespace but the
// loopback, or of one of them. It is a gopacket.PacketDataSource.
type Socket struct {
	file *os.File
	raw  syscall.RawConn
	lost atomic.Uint64

	mu  sync.Mutex // held from a packet's leaving the kernel until it was handed on
	buf []byte
}

// outgoing is on packets that the side sent which is listened at: packet(7).
var outgoing = []any{Outgoing{}}

// snap is how much of a packet is kept: any name server's message over UDP, and
// the start of everything else.
const snap = 4096

// Open opens a socket in the network namespace of the calling thread, on the
// interface with that index, or with 0 on all, those that come later too. It
// needs CAP_NET_RAW over the namespace. See packet(7).
func Open(index int) (*Socket, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket AF_PACKET", err)
	}
	steps := []struct {
		name string
		do   func() error
	}{
		// The person's limit caps this one; losses are counted.
		{"setsockopt SO_RCVBUF", func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 8<<20) }},
		// Binding starts the capture, with the protocol in network byte order.
		{"bind AF_PACKET", func() error {
			return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8, Ifindex: index})
		}},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			unix.Close(fd)
			return nil, os.NewSyscallError(step.name, err)
		}
	}
	s := &Socket{file: os.NewFile(uintptr(fd), "AF_PACKET"), buf: make([]byte, snap)}
	if s.raw, err = s.file.SyscallConn(); err != nil {
		s.file.Close()
		return nil, err
	}
	return s, nil
}

// ReadPacketData waits for a packet of an Ethernet interface. After Close the
// error is os.ErrClosed.
func (s *Socket) ReadPacketData() (data []byte, ci gopacket.CaptureInfo, err error) {
	closed := s.raw.Read(func(fd uintptr) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		data, ci, err = s.receive(int(fd))
		return err != unix.EAGAIN
	})
	if closed != nil {
		return nil, ci, os.ErrClosed
	}
	return data, ci, err
}

// Run hands each packet to f until Close, then returns nil.
func (s *Socket) Run(f func(data []byte, ci gopacket.CaptureInfo)) error {
	var err error
	for err == nil {
		closed := s.raw.Read(func(fd uintptr) bool {
			err = s.pass(int(fd), f)
			if err != unix.EAGAIN {
				return true
			}
			err = nil
			return false
		})
		if closed != nil {
			return nil
		}
	}
	return err
}

// Drain hands on all that was captured before the call. When it returns, Run
// has handed on the rest of it.
func (s *Socket) Drain(f func(data []byte, ci gopacket.CaptureInfo)) error {
	var err error
	if e := s.raw.Control(func(fd uintptr) {
		for err == nil {
			err = s.pass(int(fd), f)
		}
	}); e != nil {
		return os.ErrClosed
	}
	if err == unix.EAGAIN {
		return nil
	}
	return err
}

func (s *Socket) pass(fd int, f func([]byte, gopacket.CaptureInfo)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ci, err := s.receive(fd)
	if err == nil {
		f(data, ci)
	}
	return err
}

// receive takes the next packet from the kernel, or returns EAGAIN.
func (s *Socket) receive(fd int) ([]byte, gopacket.CaptureInfo, error) {
	for {
		n, from, err := unix.Recvfrom(fd, s.buf, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR, err == unix.ENETDOWN: // one interface of many went down
			continue
		case err == unix.EAGAIN:
			return nil, gopacket.CaptureInfo{}, err
		case err != nil:
			return nil, gopacket.CaptureInfo{}, os.NewSyscallError("recvfrom", err)
		}
		ll, ok := from.(*unix.SockaddrLinklayer)
		if !ok || ll.Hatype != unix.ARPHRD_ETHER {
			continue
		}
		ci := gopacket.CaptureInfo{Timestamp: time.Now(), Length: n, CaptureLength: min(n, len(s.buf)), InterfaceIndex: ll.Ifindex}
		if ll.Pkttype == unix.PACKET_OUTGOING {
			ci.AncillaryData = outgoing
		}
		return append([]byte(nil), s.buf[:ci.CaptureLength]...), ci, nil
	}
}

// Lost returns how many packets the kernel has dropped because they were not
// read in time. A capture that lost packets cannot say that there were none.
func (s *Socket) Lost() (uint64, error) {
	var stats *unix.TpacketStats
	var err error
	if e := s.raw.Control(func(fd uintptr) {
		stats, err = unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS)
	}); errors.Join(e, err) != nil {
		return 0, os.NewSyscallError("getsockopt PACKET_STATISTICS", errors.Join(e, err))
	}
	return s.lost.Add(uint64(stats.Drops)), nil // the kernel's counters start again at each look
}

// Close ends the capture.
func (s *Socket) Close() error { return s.file.Close() }
