package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// swapped turns a pcap file's numbers to the other byte order.
func swapped(file []byte) []byte {
	out := bytes.Clone(file)
	swap := func(at, n int) {
		for i := range n / 2 {
			out[at+i], out[at+n-1-i] = out[at+n-1-i], out[at+i]
		}
	}
	for _, f := range [][2]int{{0, 4}, {4, 2}, {6, 2}, {16, 4}, {20, 4}} {
		swap(f[0], f[1])
	}
	for at := pcapHeader; at < len(file); {
		kept := int(binary.LittleEndian.Uint32(file[at+8:]))
		for i := range 4 {
			swap(at+4*i, 4)
		}
		at += pcapRecord + kept
	}
	return out
}

func TestReadPcap(t *testing.T) {
	var want []Packet
	at := time.Unix(1700000000, 123456000)
	for _, data := range samples(t) {
		want = append(want, Decode(data, gopacket.CaptureInfo{Timestamp: at, Length: len(data) + 3, CaptureLength: len(data)}))
		at = at.Add(time.Second)
	}
	var own, micro bytes.Buffer
	if err := WritePcap(&own, want); err != nil {
		t.Fatal(err)
	}
	w := pcapgo.NewWriter(&micro)
	if err := w.WriteFileHeader(1<<16, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for _, p := range want {
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: p.Time, Length: p.Len, CaptureLength: len(p.Data)}, p.Data); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range map[string][]byte{
		"own": own.Bytes(), "gopacket's, in microseconds": micro.Bytes(), "the other byte order": swapped(own.Bytes()),
	} {
		got, more, err := ReadPcap(bytes.NewReader(file), len(want))
		if err != nil || more != 0 || len(got) != len(want) {
			t.Errorf("%s: %d packets and %d more, %v", name, len(got), more, err)
			continue
		}
		for i := range want {
			if !got[i].Time.Equal(want[i].Time) || got[i].Len != want[i].Len || got[i].String() != want[i].String() {
				t.Errorf("%s: packet %d is %v %s, want %v %s", name, i, got[i].Time, &got[i], want[i].Time, &want[i])
			}
		}
	}
	if got, more, err := ReadPcap(bytes.NewReader(own.Bytes()), 2); err != nil || len(got) != 2 || more != len(want)-2 {
		t.Errorf("limit: %d and %d more, %v", len(got), more, err)
	}
	got, _, err := ReadPcap(bytes.NewReader(own.Bytes()[:own.Len()-1]), 100)
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(got) != len(want)-1 {
		t.Errorf("cut short: %d, %v", len(got), err)
	}
	large := bytes.Clone(own.Bytes())
	binary.LittleEndian.PutUint32(large[pcapHeader+8:], 1<<30)
	wifi := bytes.Clone(own.Bytes())
	wifi[20] = 105
	for text, file := range map[string][]byte{"not a pcap file": make([]byte, 24), "header": {1}, "1073741824 bytes": large, "link type 105": wifi} {
		if _, _, err := ReadPcap(bytes.NewReader(file), 100); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
}
