package hostfilter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// nft adds rules to a chain that iptables-nft has made, and takes them away,
// without starting iptables each time: what takes that program some
// milliseconds takes the kernel some microseconds, and a lookup waits for it.
// The rules are those that iptables-nft makes of the same lines (see the
// kernel's include/uapi/linux/netfilter/nf_tables.h).
type nft struct {
	fd      int
	family  int
	seq     uint32
	handles map[key]uint64
}

// nftBatch is how many rules one transaction holds. The kernel's replies must
// fit the socket's receive buffer.
const nftBatch = 64

// newNFT returns an error where the chains are not nf_tables', as with
// iptables-legacy.
func newNFT(family int) (*nft, error) {
	n, err := openNFT(family)
	if err != nil {
		return nil, err
	}
	for _, chain := range []string{chainPort, chainAny} {
		if err == nil {
			n.seq++
			m := n.message(unix.NFT_MSG_GETCHAIN, unix.NLM_F_ACK, append(text(unix.NFTA_CHAIN_TABLE, "filter"), text(unix.NFTA_CHAIN_NAME, chain)...))
			err = n.talk(m, n.seq, nil)
		}
	}
	if err != nil {
		unix.Close(n.fd)
		return nil, fmt.Errorf("look for the chains in nf_tables: %w", err)
	}
	return n, nil
}

// openNFT opens a netlink socket to nf_tables.
func openNFT(family int) (*nft, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("bound the wait at a netlink socket: %w", err)
	}
	return &nft{fd: fd, family: family, handles: map[key]uint64{}}, nil
}

// open adds rules that accept packets to the addresses.
func (n *nft) open(ks []key) error {
	for part := range slices.Chunk(ks, nftBatch) {
		err := n.commit(len(part), func(i int) []byte {
			k := part[i]
			chain := chainAny
			if k.port != 0 {
				chain = chainPort
			}
			body := slices.Concat(text(unix.NFTA_RULE_TABLE, "filter"), text(unix.NFTA_RULE_CHAIN, chain), nested(unix.NFTA_RULE_EXPRESSIONS, k.expressions()))
			return n.message(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND|unix.NLM_F_ECHO, body)
		}, func(i int, handle uint64) { n.handles[part[i]] = handle })
		if err != nil {
			return fmt.Errorf("open addresses in nf_tables: %w", err)
		}
		for _, k := range part {
			if n.handles[k] == 0 {
				return errors.New("open addresses in nf_tables: the kernel did not name the rule")
			}
		}
	}
	return nil
}

// close takes the rules away again.
func (n *nft) close(ks []key) error {
	for part := range slices.Chunk(ks, nftBatch) {
		err := n.commit(len(part), func(i int) []byte {
			k := part[i]
			chain := chainAny
			if k.port != 0 {
				chain = chainPort
			}
			handle := binary.BigEndian.AppendUint64(nil, n.handles[k])
			body := slices.Concat(text(unix.NFTA_RULE_TABLE, "filter"), text(unix.NFTA_RULE_CHAIN, chain), attribute(unix.NFTA_RULE_HANDLE, handle))
			return n.message(unix.NFT_MSG_DELRULE, 0, body)
		}, nil)
		if err != nil {
			return fmt.Errorf("close addresses in nf_tables: %w", err)
		}
		for _, k := range part {
			delete(n.handles, k)
		}
	}
	return nil
}

// expressions is the rule in the kernel's own terms: load a field, compare it,
// accept.
func (k key) expressions() []byte {
	const (
		networkHeader, transportHeader = 1, 2 // enum nft_payload_bases
		daddr4, daddr6, dport          = 16, 24, 2
		l4proto                        = 16 // NFT_META_L4PROTO
	)
	offset := uint32(daddr4)
	if k.addr.Is6() {
		offset = daddr6
	}
	all := append(load(networkHeader, offset, uint32(len(k.addr.AsSlice()))), compare(k.addr.AsSlice())...)
	if k.port != 0 {
		proto := byte(unix.IPPROTO_TCP)
		if k.proto == "udp" {
			proto = unix.IPPROTO_UDP
		}
		all = slices.Concat(all,
			expression("meta", append(number(unix.NFTA_META_KEY, l4proto), number(unix.NFTA_META_DREG, 1)...)), compare([]byte{proto}),
			load(transportHeader, dport, 2), compare(binary.BigEndian.AppendUint16(nil, k.port)))
	}
	const accept = 1 // NF_ACCEPT
	verdict := nested(unix.NFTA_DATA_VERDICT, number(unix.NFTA_VERDICT_CODE, accept))
	return append(all, expression("immediate", append(number(unix.NFTA_IMMEDIATE_DREG, 0), nested(unix.NFTA_IMMEDIATE_DATA, verdict)...))...)
}

func load(base, offset, length uint32) []byte {
	return expression("payload", slices.Concat(number(unix.NFTA_PAYLOAD_DREG, 1), number(unix.NFTA_PAYLOAD_BASE, base),
		number(unix.NFTA_PAYLOAD_OFFSET, offset), number(unix.NFTA_PAYLOAD_LEN, length)))
}

func compare(value []byte) []byte {
	return expression("cmp", slices.Concat(number(unix.NFTA_CMP_SREG, 1), number(unix.NFTA_CMP_OP, 0), // 0: equal
		nested(unix.NFTA_CMP_DATA, attribute(unix.NFTA_DATA_VALUE, value))))
}

func expression(name string, data []byte) []byte {
	return nested(unix.NFTA_LIST_ELEM, append(text(unix.NFTA_EXPR_NAME, name), nested(unix.NFTA_EXPR_DATA, data)...))
}

// attribute is one netlink attribute with its padding (netlink(7)).
func attribute(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, -len(b)&3)...)
}

func nested(kind uint16, value []byte) []byte { return attribute(kind|unix.NLA_F_NESTED, value) }
func text(kind uint16, s string) []byte       { return attribute(kind, append([]byte(s), 0)) }
func number(kind uint16, v uint32) []byte {
	return attribute(kind, binary.BigEndian.AppendUint32(nil, v))
}

// message is one nf_tables message with the current sequence number.
func (n *nft) message(kind, flags uint16, body []byte) []byte {
	family := byte(unix.NFPROTO_IPV4)
	if n.family == 6 {
		family = unix.NFPROTO_IPV6
	}
	return n.header(unix.NFNL_SUBSYS_NFTABLES<<8|kind, flags, append([]byte{family, 0, 0, 0}, body...))
}

func (n *nft) header(kind, flags uint16, body []byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST|flags)
	b = binary.NativeEndian.AppendUint32(b, n.seq)
	b = binary.NativeEndian.AppendUint32(b, 0)
	return append(b, body...)
}

// commit sends count messages as one transaction. named gets the handle that
// the kernel gave to each rule.
func (n *nft) commit(count int, make func(i int) []byte, named func(i int, handle uint64)) error {
	frame := []byte{unix.AF_UNSPEC, 0, 0, unix.NFNL_SUBSYS_NFTABLES} // the last two: its number, big endian
	n.seq++
	all := n.header(unix.NFNL_MSG_BATCH_BEGIN, 0, frame)
	first := n.seq + 1
	for i := range count {
		n.seq++
		m := make(i)
		if i == count-1 {
			binary.NativeEndian.PutUint16(m[6:], binary.NativeEndian.Uint16(m[6:])|unix.NLM_F_ACK)
		}
		all = append(all, m...)
	}
	last := n.seq
	n.seq++
	all = append(all, n.header(unix.NFNL_MSG_BATCH_END, 0, frame)...)
	missing := 0
	if named != nil {
		missing = count
	}
	return n.talk(all, last, func(seq uint32, body []byte) bool {
		if handle := ruleHandle(body); named != nil && seq >= first && seq <= last && handle != 0 {
			named(int(seq-first), handle)
			missing--
		}
		return missing == 0
	})
}

// talk sends messages and reads what the kernel says until it has acknowledged
// the one numbered last and heard says that nothing else is to come.
func (n *nft) talk(messages []byte, last uint32, heard func(seq uint32, body []byte) bool) error {
	if err := unix.Sendto(n.fd, messages, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	acked, complete := false, heard == nil || heard(0, nil)
	buf := make([]byte, 1<<16)
	for !acked || !complete {
		size, _, err := unix.Recvfrom(n.fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		for b := buf[:size]; len(b) >= unix.SizeofNlMsghdr; {
			length := int(binary.NativeEndian.Uint32(b))
			if length < unix.SizeofNlMsghdr || length > len(b) {
				return errors.New("receive: a message of a wrong length")
			}
			kind, seq, body := binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint32(b[8:]), b[unix.SizeofNlMsghdr:length]
			b = b[min(len(b), (length+3)&^3):]
			switch {
			case kind == unix.NLMSG_ERROR && len(body) >= 4:
				if no := int32(binary.NativeEndian.Uint32(body)); no != 0 && seq+nftBatch+2 >= last {
					return unix.Errno(-no)
				}
				acked = acked || seq == last
			case heard != nil:
				complete = heard(seq, body) || complete
			}
		}
	}
	return nil
}

// ruleHandle is the handle in a message about a rule; 0 if there is none.
func ruleHandle(body []byte) uint64 {
	for b := body[min(len(body), 4):]; len(b) >= 4; {
		length, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if length < 4 || length > len(b) {
			return 0
		}
		if kind&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER) == unix.NFTA_RULE_HANDLE && length >= 12 {
			return binary.BigEndian.Uint64(b[4:])
		}
		b = b[min(len(b), (length+3)&^3):]
	}
	return 0
}
