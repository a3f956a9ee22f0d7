package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha1" //nolint:gosec // the format's own checksum
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// listAPK reads a package of Alpine's (format 2: gzip streams after each other,
// of which the last holds the files and the one before it .PKGINFO) and checks
// what apk-tools checks of one without a signature: the SHA-256 of the last
// stream against datahash, and each file's SHA-1 against its own header
// (the format's page: wiki.alpinelinux.org/wiki/Apk_spec). It prints .PKGINFO
// and then a line for each file: mode, owner, name.
func listAPK(w io.Writer, r io.Reader) error {
	streams, err := gzipStreams(r)
	if err != nil {
		return err
	}
	if len(streams) < 2 {
		return fmt.Errorf("%d streams, want one of control and one of files", len(streams))
	}
	control, data := streams[len(streams)-2], streams[len(streams)-1]
	info, err := fileIn(control.plain, ".PKGINFO")
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(data.packed); !strings.Contains(info, "\ndatahash = "+hex.EncodeToString(sum[:])+"\n") {
		return fmt.Errorf("the files' stream has the hash %x, and .PKGINFO says\n%s", sum, info)
	}
	fmt.Fprint(w, info)
	t := tar.NewReader(bytes.NewReader(data.plain))
	files := 0
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeReg {
			sum := sha1.New() //nolint:gosec // the format's own checksum
			if _, err := io.Copy(sum, t); err != nil {
				return err
			}
			if want := h.PAXRecords["APK-TOOLS.checksum.SHA1"]; want != hex.EncodeToString(sum.Sum(nil)) {
				return fmt.Errorf("%s: checksum %x, its header says %q", h.Name, sum.Sum(nil), want)
			}
			files++
		}
		fmt.Fprintf(w, "%s %s/%s /%s\n", h.FileInfo().Mode(), h.Uname, h.Gname, strings.TrimPrefix(h.Name, "/"))
	}
	if files == 0 {
		return errors.New("no files")
	}
	return nil
}

type stream struct{ packed, plain []byte }

// gzipStreams splits concatenated gzip streams.
func gzipStreams(r io.Reader) ([]stream, error) {
	all, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var out []stream
	for rest := all; len(rest) > 0; {
		// A ByteReader, so that not a byte behind the stream is read.
		in := bytes.NewReader(rest)
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		z.Multistream(false)
		plain, err := io.ReadAll(bufio.NewReader(z))
		if err != nil {
			return nil, err
		}
		used := len(rest) - in.Len()
		out = append(out, stream{rest[:used], plain})
		rest = rest[used:]
	}
	return out, nil
}

// fileIn returns the text of a file of a tar archive.
func fileIn(archive []byte, name string) (string, error) {
	t := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := t.Next()
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if h.Name == name {
			text, err := io.ReadAll(t)
			return string(text), err
		}
	}
}
