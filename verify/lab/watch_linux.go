package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/gopacket"
	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/verify/capture"
)

// maxPackets bounds the memory of the captures. Beyond it they are full, and a
// full capture does not say that there was nothing.
const maxPackets = 200000

// watch captures on the machine's outer link and on every interface of every
// network namespace that appears on the machine: those are the boxes.
type watch struct {
	mu      sync.Mutex
	packets []capture.Packet
	from    int // those before it were seen before the last clear
	full    bool
	lost    string // why the captures are not complete, or ""
	boxes   int    // namespaces seen since the last clear

	looking sync.Mutex // held while captures begin or end
	taps    map[uint64]*tap
	pids    map[string]bool // of the last scan

	known map[uint64]bool // namespaces that are no boxes
	outer *tap
	sock  *net.UDPConn // sends markers
	marks int
	seen  int // the last marker seen on the outer link
}

// tap is one running capture.
type tap struct {
	link   string
	socket *capture.Socket
	done   chan struct{}
	net    *os.File // the box's network namespace; nil for the outer link
}

func newWatch(internet *os.File) (*watch, error) {
	w := &watch{taps: map[uint64]*tap{}, known: map[uint64]bool{}}
	// Not /proc/self: that is the first thread, which may be one that went elsewhere.
	for _, name := range []string{"/proc/thread-self/ns/net", fmt.Sprintf("/proc/self/fd/%d", internet.Fd())} {
		ino, err := inode(name)
		if err != nil {
			return nil, err
		}
		w.known[ino] = true
	}
	socket, err := capture.Open(index(outerLink))
	if err != nil {
		return nil, err
	}
	w.outer = w.capture("outer", socket)
	w.sock, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(gateway, markerPort)))
	if err != nil {
		return nil, err
	}
	go w.look()
	return w, nil
}

func (w *watch) capture(link string, socket *capture.Socket) *tap {
	t := &tap{link: link, socket: socket, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		if err := socket.Run(w.taker(link)); err != nil {
			w.incomplete(err.Error())
		}
	}()
	return t
}

// taker returns what keeps the packets of a link.
func (w *watch) taker(link string) func([]byte, gopacket.CaptureInfo) {
	return func(data []byte, ci gopacket.CaptureInfo) {
		p := capture.Decode(data, ci)
		p.Link = link
		w.add(p)
	}
}

func (w *watch) add(p capture.Packet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.Link == "outer" && p.Is("udp") && p.Dst == gateway && p.DstPort == markerPort {
		if i := strings.LastIndex(string(p.Data), "marker "); i >= 0 {
			n, _ := strconv.Atoi(string(p.Data[i+len("marker "):]))
			w.seen = max(w.seen, n)
			return
		}
	}
	if len(w.packets) >= maxPackets {
		w.full = true
		return
	}
	w.packets = append(w.packets, p)
}

func (w *watch) incomplete(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = why
}

// look finds new network namespaces among those of the processes. A box has its
// namespace several milliseconds before it has an interface. Most of the time no
// process was born since the last look, and a look costs next to nothing.
func (w *watch) look() {
	var full time.Time
	newest, born, busy := newborn{}, uint64(0), false
	for {
		last := newest.pid()
		switch {
		case time.Since(full) > 50*time.Millisecond && (busy || last != born):
			full = time.Now()
			busy = w.scan(true)
		case last != born:
			busy = w.scan(false)
		}
		born = last
		time.Sleep(2 * time.Millisecond)
	}
}

// newborn tells when a process was born on the machine.
type newborn struct{ file *os.File }

// pid returns the number that the last process got, or 0. The kernel says so in
// the last field of /proc/loadavg, for the namespace of whoever reads it: see
// proc_loadavg(5).
func (n *newborn) pid() uint64 {
	if n.file == nil {
		n.file, _ = os.Open("/proc/loadavg")
	}
	var buf [128]byte
	size, _ := n.file.ReadAt(buf[:], 0)
	fields := strings.Fields(string(buf[:size]))
	if len(fields) == 0 {
		return uint64(time.Now().UnixNano()) // not known: take it that there was one
	}
	pid, _ := strconv.ParseUint(fields[len(fields)-1], 10, 64)
	return pid
}

// scan starts captures in new namespaces and tells whether anything but this
// process is there. A box's first process is born in its namespace, so most
// scans look at processes that are new, and only with all at every one, to find
// what moved there and to end captures in namespaces that nobody is in.
func (w *watch) scan(all bool) bool {
	w.looking.Lock()
	defer w.looking.Unlock()
	proc, err := os.Open("/proc")
	if err != nil {
		w.incomplete(err.Error())
		return false
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	present, pids := map[uint64]bool{}, map[string]bool{}
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' || name == "1" {
			continue
		}
		pids[name] = true
		if !all && w.pids[name] {
			continue
		}
		file := "/proc/" + name + "/ns/net"
		ino, err := inode(file)
		if err != nil || w.known[ino] {
			continue
		}
		present[ino] = true
		if w.taps[ino] == nil {
			w.enter(file, ino)
		}
	}
	w.pids = pids
	if all {
		for ino, t := range w.taps {
			if !present[ino] {
				w.finish(t)
				delete(w.taps, ino)
			}
		}
	}
	return len(pids) > 0
}

func (w *watch) enter(file string, ino uint64) {
	f, err := os.Open(file)
	if err != nil {
		return // it has ended already
	}
	var socket *capture.Socket
	if err := inNamespace(int(f.Fd()), func() (err error) {
		socket, err = capture.Open(0)
		return err
	}); err != nil {
		f.Close()
		w.incomplete(fmt.Sprintf("a box's network could not be entered: %v", err))
		return
	}
	t := w.capture("box", socket)
	t.net = f
	w.taps[ino] = t
	w.mu.Lock()
	w.boxes++
	w.mu.Unlock()
}

// finish reads what is left in a capture and ends it.
func (w *watch) finish(t *tap) {
	w.drain(t)
	t.socket.Close()
	<-t.done
	t.net.Close()
}

// drain keeps all that had been captured by now.
func (w *watch) drain(t *tap) {
	if err := t.socket.Drain(w.taker(t.link)); err != nil {
		w.incomplete("the capture on the " + t.link + " link: " + err.Error())
	}
	w.losses(t)
}

func (w *watch) losses(t *tap) {
	if n, err := t.socket.Lost(); err != nil || n > 0 {
		w.incomplete(fmt.Sprintf("the capture on the %s link lost %d packets (%v)", t.link, n, err))
	}
}

// sync returns when the captures have seen everything sent before the call.
func (w *watch) sync() error {
	w.looking.Lock()
	defer w.looking.Unlock()
	w.marks++
	mark := w.marks
	taps := []*tap{w.outer}
	for _, t := range w.taps {
		taps = append(taps, t)
	}
	for end := time.Now().Add(2 * time.Second); ; {
		if _, err := fmt.Fprintf(w.sock, "marker %d", mark); err != nil {
			return fmt.Errorf("lab: send a marker: %w", err)
		}
		time.Sleep(2 * time.Millisecond)
		w.mu.Lock()
		seen := w.seen >= mark
		w.mu.Unlock()
		if seen {
			break
		}
		if time.Now().After(end) {
			return errors.New("lab: the capture on the outer link does not see a packet that was sent")
		}
	}
	for _, t := range taps {
		w.drain(t)
	}
	return nil
}

func (w *watch) clear() {
	w.looking.Lock()
	defer w.looking.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from, w.lost = len(w.packets), ""
	w.boxes = len(w.taps)
}

// find returns the packets that match. none is set when the question is
// whether there were none: then the captures must have been complete.
func (w *watch) find(m capture.Match, none bool) (Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var a Answer
	all := capture.Match{Link: m.Link}
	for i := w.from; i < len(w.packets); i++ {
		p := &w.packets[i]
		if all.Has(p) {
			a.Total++
		}
		if m.Has(p) {
			if a.Count++; a.Count <= 5 {
				a.Lines = append(a.Lines, p.String())
			}
		}
	}
	switch {
	case !none || a.Count > 0:
		return a, nil
	case w.full:
		return a, fmt.Errorf("lab: the captures are full after %d packets and cannot say", maxPackets)
	case w.lost != "":
		return a, fmt.Errorf("lab: %s and cannot say", w.lost)
	case m.Link == "box" && w.boxes == 0:
		return a, errors.New("lab: no box was there since the last mark, so nothing can be said about one")
	}
	return a, nil
}

func (w *watch) write(link string, f *os.File) (int, error) {
	if err := w.sync(); err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []capture.Packet
	for _, p := range w.packets {
		if p.Link == link {
			out = append(out, p)
		}
	}
	return len(out), capture.WritePcap(f, out)
}

func inode(file string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		return 0, err
	}
	return st.Ino, nil
}
