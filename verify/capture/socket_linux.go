package capture

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/google/gopacket"
	"golang.org/x/sys/unix"
)

// Socket reads the packets of every interface of a network namespace but the
// loopback, or of one of them. It is a gopacket.PacketDataSource.
type Socket struct {
	fd     int
	buf    []byte
	idle   atomic.Uint64 // how often there was nothing to read
	lost   atomic.Uint64
	closed atomic.Bool
}

// snap is how much of a packet is kept: any name server's message over UDP, and
// the start of everything else.
const snap = 4096

// idleAfter is how long a read waits before it says that there is nothing.
const idleAfter = 3 * time.Millisecond

// Open opens a socket in the network namespace of the calling thread, on the
// interface with that index, or with 0 on all, those that come later too. It
// needs CAP_NET_RAW over the namespace. See packet(7).
func Open(index int) (*Socket, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket AF_PACKET", err)
	}
	s := &Socket{fd: fd, buf: make([]byte, snap)}
	tv := unix.NsecToTimeval(idleAfter.Nanoseconds())
	steps := []struct {
		name string
		do   func() error
	}{
		// The person's limit caps this one; losses are counted.
		{"setsockopt SO_RCVBUF", func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 8<<20) }},
		{"setsockopt SO_RCVTIMEO", func() error { return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv) }},
		{"setsockopt SO_TIMESTAMPNS", func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) }},
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
	return s, nil
}

// ErrIdle is what ReadPacketData returns when no packet came for a while.
var ErrIdle = fmt.Errorf("capture: no packet: %w", os.ErrDeadlineExceeded)

// ReadPacketData returns the next Ethernet frame, ErrIdle, or os.ErrClosed.
func (s *Socket) ReadPacketData() ([]byte, gopacket.CaptureInfo, error) {
	var oob [128]byte
	for {
		if s.closed.Load() {
			return nil, gopacket.CaptureInfo{}, os.ErrClosed
		}
		n, oobn, _, from, err := unix.Recvmsg(s.fd, s.buf, oob[:], unix.MSG_TRUNC)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			s.idle.Add(1)
			return nil, gopacket.CaptureInfo{}, ErrIdle
		case err == unix.ENETDOWN: // one interface of many went down
			continue
		case err != nil:
			return nil, gopacket.CaptureInfo{}, os.NewSyscallError("recvmsg", err)
		}
		ll, ok := from.(*unix.SockaddrLinklayer)
		if !ok || ll.Hatype != unix.ARPHRD_ETHER {
			continue
		}
		ci := gopacket.CaptureInfo{Timestamp: stamp(oob[:oobn]), Length: n, CaptureLength: min(n, len(s.buf)), InterfaceIndex: ll.Ifindex}
		data := append([]byte(nil), s.buf[:ci.CaptureLength]...)
		return data, ci, nil
	}
}

// stamp is the kernel's time of a packet.
func stamp(oob []byte) time.Time {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err == nil {
		for _, m := range messages {
			if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
				return timespec(m.Data)
			}
		}
	}
	return time.Now()
}

// Idle counts the times that there was nothing to read. Whatever was sent
// before a call has been read when the count has grown by two since.
func (s *Socket) Idle() uint64 { return s.idle.Load() }

// Lost returns how many packets the kernel has dropped because they were not
// read in time. A capture that lost packets cannot say that there were none.
func (s *Socket) Lost() (uint64, error) {
	stats, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0, os.NewSyscallError("getsockopt PACKET_STATISTICS", err)
	}
	return s.lost.Add(uint64(stats.Drops)), nil // the kernel's counters start again at each look
}

// Stop makes the next ReadPacketData return os.ErrClosed.
func (s *Socket) Stop() { s.closed.Store(true) }

// Close frees the socket. No ReadPacketData may be going on.
func (s *Socket) Close() error {
	s.Stop()
	return unix.Close(s.fd)
}
