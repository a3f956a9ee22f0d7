package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/gopacket"
)

// ReadPcap reads what WritePcap wrote, or another pcap file of Ethernet frames
// in this machine's or the other byte order, with times in micro- or nanoseconds
// (draft-ietf-opsawg-pcap), and decodes at most limit packets. more is how many
// the file has beyond those. A file that is cut short is an error, with the
// packets before the cut.
func ReadPcap(r io.Reader, limit int) (packets []Packet, more int, err error) {
	in := bufio.NewReader(r)
	head := make([]byte, pcapHeader)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, 0, fmt.Errorf("capture: read the header of a pcap file: %w", err)
	}
	order, unit, err := pcapKind(head)
	if err != nil {
		return nil, 0, err
	}
	if link := order.Uint32(head[20:]) & 0xffff; link != pcapEther {
		return nil, 0, fmt.Errorf("capture: a pcap file of link type %d, not of Ethernet frames", link)
	}
	for {
		record := make([]byte, pcapRecord)
		if _, err := io.ReadFull(in, record); errors.Is(err, io.EOF) {
			return packets, more, nil
		} else if err != nil {
			return packets, more, fmt.Errorf("capture: read a pcap file: %w", err)
		}
		kept := order.Uint32(record[8:])
		if kept > pcapSnap {
			return packets, more, fmt.Errorf("capture: a packet of %d bytes in a pcap file", kept)
		}
		data := make([]byte, kept)
		if _, err := io.ReadFull(in, data); err != nil {
			return packets, more, fmt.Errorf("capture: read a packet of a pcap file: %w", err)
		}
		if len(packets) >= limit {
			more++
			continue
		}
		packets = append(packets, Decode(data, gopacket.CaptureInfo{
			Timestamp:     time.Unix(int64(order.Uint32(record)), int64(order.Uint32(record[4:]))*int64(unit)),
			CaptureLength: int(kept), Length: int(order.Uint32(record[12:])),
		}))
	}
}

// pcapKind reads a file's magic number: its byte order, and what the second half
// of a time counts.
func pcapKind(head []byte) (binary.ByteOrder, time.Duration, error) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch order.Uint32(head) {
		case pcapMagic:
			return order, time.Nanosecond, nil
		case pcapMicro:
			return order, time.Microsecond, nil
		}
	}
	return nil, 0, fmt.Errorf("capture: not a pcap file: it begins with %x", head[:4])
}
