package capture

import (
	"encoding/binary"
	"io"
)

// The pcap file format, as draft-ietf-opsawg-pcap describes it.
const (
	pcapMagic  = 0xa1b23c4d // times in nanoseconds
	pcapMicro  = 0xa1b2c3d4 // in microseconds
	pcapSnap   = 1 << 18
	pcapEther  = 1 // LINKTYPE_ETHERNET
	pcapHeader = 24
	pcapRecord = 16
)

// WritePcap writes packets as a pcap file that Wireshark opens.
func WritePcap(w io.Writer, packets []Packet) error {
	le := binary.LittleEndian
	head := make([]byte, 0, pcapHeader)
	head = le.AppendUint32(head, pcapMagic)
	head = le.AppendUint16(head, 2) // version 2.4
	head = le.AppendUint16(head, 4)
	head = le.AppendUint64(head, 0) // two reserved fields
	head = le.AppendUint32(head, pcapSnap)
	head = le.AppendUint32(head, pcapEther)
	if _, err := w.Write(head); err != nil {
		return err
	}
	for i := range packets {
		p := &packets[i]
		record := make([]byte, 0, pcapRecord+len(p.Data))
		record = le.AppendUint32(record, uint32(p.Time.Unix()))
		record = le.AppendUint32(record, uint32(p.Time.Nanosecond()))
		record = le.AppendUint32(record, uint32(len(p.Data)))
		record = le.AppendUint32(record, uint32(max(p.Len, len(p.Data))))
		if _, err := w.Write(append(record, p.Data...)); err != nil {
			return err
		}
	}
	return nil
}
